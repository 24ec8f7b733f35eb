"""Names of folders, and which text may be one (pure): a name is never read as part of an address."""

import zlib

from table.errors import InvalidConfigError

MOST_BYTES = 255  # of one name, in UTF-8, on the file systems of Linux, macOS and Windows
_VERSION_QUERY = "?versionId="
_HASH_BYTES = 9  # a hyphen and eight digits


def check_one_name(name: str) -> str:
    """The unchanged name, if it is one folder: every other character but these stands for itself.

    Raises:
        InvalidConfigError: it is empty, ``.`` or ``..``, or has a separator or a zero byte.
    """
    if name in ("", ".", "..") or "/" in name or "\0" in name:
        raise InvalidConfigError(f"{name!r} is not the name of one folder: give a name without separators")
    return name


def check_uncut(path: str, protocol: str) -> str:
    """The unchanged path, if its store's client takes each of its characters for itself.

    s3fs cuts a path at ``?versionId=``, so that two paths would be one object.

    Args:
        path: of a file or a folder.
        protocol: fsspec's name of the backend.

    Raises:
        InvalidConfigError: the path has such text.
    """
    if _VERSION_QUERY in path and protocol in ("s3", "s3a"):
        raise InvalidConfigError(
            f"{path!r} has the text {_VERSION_QUERY!r}, at which the client of S3 cuts a path: choose another name, or "
            "set hoodie.datasource.write.partitionpath.urlencode=true for a new table, if it is a partition's"
        )
    return path


def address_below(address: str, name: str) -> str:
    """The address of a folder in a folder, for people, plans and catalogs."""
    return f"{address}{name}" if address.endswith("/") else f"{address}/{name}"


def with_ending(name: str, ending: str) -> str:
    """A name with an ending, of at most `MOST_BYTES`: a longer name is cut, and gets eight digits that are its own."""
    whole = name + ending
    if _size(whole) <= MOST_BYTES:
        return whole
    kept = name.encode("utf-8", "surrogateescape")[: MOST_BYTES - _HASH_BYTES - _size(ending)].decode("utf-8", "ignore")
    return f"{kept}-{zlib.crc32(name.encode('utf-8', 'surrogateescape')):08x}{ending}"


def _size(text: str) -> int:
    return len(text.encode("utf-8", "surrogateescape"))

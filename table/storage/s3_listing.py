"""Lists folders and reads objects on S3 with as few requests as possible.

s3fs sends two or three requests, because it asks for more: the size of an object before it reads the object, and
whether a folder without entries is an object.
"""

import inspect
from collections.abc import Mapping
from typing import Any

_DIRECTORY_BUCKETS = ("--x-s3", "--xa-s3")  # and access points of them


def is_directory_bucket(bucket: str) -> bool:
    """Whether a bucket is one of S3 Express: it lists folders as a whole, in no order (pure).

    The suffixes are reserved for them (Amazon S3 User Guide, "Directory bucket naming rules").

    Args:
        bucket: its name, or that of an access point.
    """
    return bucket.endswith(_DIRECTORY_BUCKETS)


def list_entries(fs: Any, target: str, *, deep: bool = False, prefix: str = "") -> list[Mapping[str, Any]]:
    """The entries of a folder, from ListObjectsV2 alone: one request for each thousand entries.

    Args:
        fs: s3fs file system.
        target: ``bucket/folder``.
        deep: whether all objects below the folder are listed; the result then has no folders.
        prefix: what the names of the entries begin with.

    Returns:
        The entries as s3fs describes them; none if the folder does not exist.

    Raises:
        FileNotFoundError: the bucket does not exist.
        Exception: any error of s3fs.
    """
    from fsspec.asyn import sync  # noqa: PLC0415 loads asyncio

    delimiter = "" if deep else "/"
    listed = sync(fs.loop, fs._lsdir, target.strip("/"), refresh=True, delimiter=delimiter, prefix=prefix)  # noqa: SLF001 see above
    return list(listed)


def read_object(fs: Any, target: str) -> bytes:
    """An object as a whole, from one GetObject.

    Args:
        fs: s3fs file system.
        target: ``bucket/key``.

    Raises:
        Exception: any error of s3fs.
    """
    # releases before 2025 do not have this argument, and do not request the size
    knows = "max_concurrency" in inspect.signature(fs._cat_file).parameters  # noqa: SLF001 what cat_file calls
    return bytes(fs.cat_file(target, **({"max_concurrency": 1} if knows else {})))

"""Listings and reads of S3 with one request each.

s3fs asks twice or three times where it wants to know more than we do: the size of an object before it reads it, and
whether a folder without entries is an object.
"""

import inspect
from collections.abc import Mapping
from typing import Any


def list_entries(fs: Any, target: str, *, deep: bool = False) -> list[Mapping[str, Any]]:
    """What lies in a folder, from ListObjectsV2 alone: one request for each thousand entries.

    Args:
        fs: s3fs file system.
        target: ``bucket/folder``.
        deep: whether everything below it is listed; no folders are then.

    Returns:
        s3fs' entries; none for a folder that is not there.

    Raises:
        FileNotFoundError: there is no such bucket.
        Exception: what s3fs raises.
    """
    from fsspec.asyn import sync  # noqa: PLC0415 loads asyncio

    delimiter = "" if deep else "/"
    listed = sync(fs.loop, fs._lsdir, target.strip("/"), refresh=True, delimiter=delimiter)  # noqa: SLF001 see above
    return list(listed)


def read_object(fs: Any, target: str) -> bytes:
    """An object as a whole, from one GetObject.

    Args:
        fs: s3fs file system.
        target: ``bucket/key``.

    Raises:
        Exception: what s3fs raises.
    """
    # releases before 2025 have no such argument, and ask for no size
    knows = "max_concurrency" in inspect.signature(fs._cat_file).parameters  # noqa: SLF001 what cat_file calls
    return bytes(fs.cat_file(target, **({"max_concurrency": 1} if knows else {})))

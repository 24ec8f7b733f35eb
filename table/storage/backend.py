"""The fsspec file system of a store, which is opened anew where the store refuses its credentials as expired.

A client reads its credentials once: from the options, the environment or a file. Credentials of limited validity are
replaced there by others while a sink lives, and the client would send the expired ones for good.
"""

from collections.abc import Callable, Mapping
from typing import Any

import fsspec

_ANEW: dict[str, Any] = {}  # token of fsspec's instance -> the instance that was opened in its place

# does something at the store: what is done, for messages; the file's path; a call that gets the backend and the path's
# address there
Ask = Callable[[str, str, Callable[[Any, str], Any]], Any]


def open_backend(protocol: str, options: Mapping[str, Any]) -> Any:
    """The fsspec file system, of which fsspec keeps one instance per process, and in older versions one per thread.

    Listings are not cached: if another thread, process or instance changes a folder, a cached listing hides files
    from `open` and `ls`.

    Args:
        protocol: fsspec's name of the backend.
        options: arguments of the backend's constructor.

    Raises:
        ValueError, ImportError: no installed backend opens the protocol.
    """
    first = _open(protocol, options)
    return _ANEW.get(first._fs_token, first)  # noqa: SLF001 of protocol, options and process


def backend_token(protocol: str, options: Mapping[str, Any]) -> str:
    """Names the backend; the same before and after it is opened anew."""
    return str(_open(protocol, options)._fs_token)  # noqa: SLF001 as above


def open_anew(protocol: str, options: Mapping[str, Any], expired: Any) -> Any:
    """Opens a backend again, so that it reads its credentials again; unless another thread has done so.

    Args:
        protocol: fsspec's name of the backend.
        options: arguments of the backend's constructor.
        expired: the instance whose credentials the store refused.
    """
    newest = open_backend(protocol, options)
    if newest is expired:
        newest = _open(protocol, {**options, "skip_instance_cache": True})
        _ANEW[backend_token(protocol, options)] = newest
    return newest


def sent_key(fs: Any) -> str | None:
    """The access key id with which an s3fs file system signs; None if it is not known. It is no secret."""
    signer = getattr(getattr(fs, "_s3", None), "_request_signer", None)
    credentials = vars(getattr(signer, "_credentials", None) or object)
    # the property of credentials that renew themselves would renew them
    key = credentials.get("_access_key") or credentials.get("access_key")
    return key if isinstance(key, str) else None


def _open(protocol: str, options: Mapping[str, Any]) -> Any:
    return fsspec.filesystem(protocol, **{**options, "use_listings_cache": False})

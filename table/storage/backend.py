"""The fsspec file system of a store, which is opened anew where the store refuses its credentials as expired.

A client reads its credentials once: from the options, the environment or a file. Credentials of limited validity are
replaced there by others while a sink lives, and the client would send the expired ones for good.
"""

import errno
from collections.abc import Callable, Mapping
from typing import Any

import fsspec

from table.storage.versions import REQUEST_TIMEOUT_S

_SENDING = {"pipe_file", "call_s3"}
_REPEATED = {"pipe_file"}  # may reach the store twice: a creation is known by its mark (`table.storage.creation`)
_SENT_EACH_S = 256 * 1024
_CONNECTED_WITHIN_S = 20.0

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


class Answered:
    """A backend for S3 whose requests with a body end, also where the connection has died without a sign.

    The client asks the store whether it may send a body (``Expect: 100-continue``), and waits for that word without
    any limit of time: neither ``read_timeout`` nor a retry ends it. Here a file or a part is sent once more, on another
    connection. Other requests end by the client's own limits.

    Args:
        fs: of s3fs; all else of it is passed through.
    """

    def __init__(self, fs: Any) -> None:
        self._fs = fs

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._fs, name)
        if name not in _SENDING:
            return found

        def ask(*args: Any, **kwargs: Any) -> Any:
            from fsspec.exceptions import FSTimeoutError  # noqa: PLC0415 loads asyncio

            sent = sum(len(given) for given in (*args, *kwargs.values()) if isinstance(given, bytes | memoryview))
            timeout_s = REQUEST_TIMEOUT_S + sent / _SENT_EACH_S
            for is_last in (name not in _REPEATED and args[:1] != ("upload_part",), True):
                try:
                    return found(*args, **kwargs, timeout=timeout_s)
                except FSTimeoutError as error:
                    if is_last:
                        raise OSError(errno.ETIMEDOUT, f"no answer within {timeout_s:.0f} s") from error
            return None

        return ask


def sent_key(fs: Any) -> str | None:
    """The access key id with which an s3fs file system signs; None if it is not known. It is no secret."""
    signer = getattr(getattr(fs, "_s3", None), "_request_signer", None)
    credentials = vars(getattr(signer, "_credentials", None) or object)
    # the property of credentials that renew themselves would renew them
    key = credentials.get("_access_key") or credentials.get("access_key")
    return key if isinstance(key, str) else None


def _open(protocol: str, options: Mapping[str, Any]) -> Any:
    return fsspec.filesystem(protocol, **{**_patience(protocol), **options, "use_listings_cache": False})


def _patience(protocol: str) -> Mapping[str, Any]:
    """How long a client waits for an answer, where it would wait for good: gcsfs, unless ``requests_timeout`` is given.

    A connection that died without a sign would stop a sink for ever. The limit is on silence, not on a transfer. The
    clients of S3 and Azure have such a limit of their own.
    """
    if protocol not in ("gs", "gcs"):
        return {}
    try:
        from aiohttp import ClientTimeout  # noqa: PLC0415 gcsfs needs it, this project does not
    except ImportError:
        return {}  # what is missing is said where the file system is opened
    return {"requests_timeout": ClientTimeout(sock_connect=_CONNECTED_WITHIN_S, sock_read=REQUEST_TIMEOUT_S)}

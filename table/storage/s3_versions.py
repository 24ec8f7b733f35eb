"""Versions of objects on S3: conditional requests (GetObject with ETag, PutObject with If-Match and If-None-Match)."""

import errno
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from table.errors import InvalidConfigError
from table.storage.reach import COLLISIONS, code_of
from table.storage.versions import VersionedFile

_CHANGED = ("PreconditionFailed", *COLLISIONS)  # 412, and 409 beside another request
_UNKNOWN = "NotImplemented"  # 501: the server knows no conditions
_GONE = ("NoSuchKey", "404")  # If-Match of an object that was deleted

Answer = TypeVar("Answer")


def get_version(fs: Any, target: str, timeout_s: float) -> VersionedFile | None:
    """An object with its ETag; None if the object does not exist.

    Args:
        fs: s3fs file system.
        target: ``bucket/key``.
        timeout_s: seconds for the whole request, its repetitions included.

    Raises:
        Exception: any error of s3fs.
    """
    bucket, key = fs.split_path(target)[:2]

    async def get() -> VersionedFile:
        answer = await fs._call_s3("get_object", Bucket=bucket, Key=key)  # noqa: SLF001 the body is read in fsspec's loop
        async with answer["Body"] as body:
            return VersionedFile(bytes(await body.read()), str(answer["ETag"]))

    try:
        return _in_loop(fs, get, timeout_s)
    except FileNotFoundError as error:
        if code_of(error) == "NoSuchBucket":
            raise _no_bucket(bucket) from error
        return None


def put_version(fs: Any, target: str, data: bytes, etag: str | None, timeout_s: float) -> str | None:
    """Puts an object if it still has this ETag. Returns the new ETag; None if the object has another ETag.

    Args:
        fs: s3fs file system.
        target: ``bucket/key``.
        data: the new content.
        etag: the ETag that the object must have; None: the object must not exist.
        timeout_s: seconds for the whole request, its repetitions included.

    Raises:
        InvalidConfigError: the installed botocore, or the server, does not know the condition; nothing was put.
        Exception: any error of s3fs; it is then not known whether the object was put.
    """
    bucket, key = fs.split_path(target)[:2]
    condition = {"IfNoneMatch": "*"} if etag is None else {"IfMatch": etag}

    async def put() -> str:
        await fs.set_session()  # without it an instance that has sent nothing yet has no client
        _check_known(await fs.get_s3(bucket), *condition)
        answer = await fs._call_s3("put_object", Bucket=bucket, Key=key, Body=data, **condition)  # noqa: SLF001 as above
        return str(answer["ETag"])

    try:
        return _in_loop(fs, put, timeout_s)
    except Exception as error:
        code = code_of(error)
        if code in _CHANGED or (etag is not None and code in _GONE):
            return None
        if code == _UNKNOWN:
            raise InvalidConfigError(f"the server of {bucket!r} cannot replace an object on a condition") from error
        if isinstance(error, FileNotFoundError):
            raise _no_bucket(bucket) from error
        raise


def _check_known(client: Any, header: str) -> None:
    """Refuses a botocore that does not know a condition: s3fs would omit it, and the put would replace any version.

    Raises:
        InvalidConfigError: botocore is too old.
    """
    if header not in client.meta.service_model.operation_model("PutObject").input_shape.members:
        raise InvalidConfigError(
            f"the installed botocore does not know {header} of PutObject, and so cannot replace an object on the "
            "condition that no other writer has done so: install botocore 1.36 or later"
        )


def _no_bucket(bucket: str) -> OSError:
    return OSError(errno.EIO, f"there is no bucket {bucket!r}")


def _in_loop(fs: Any, request: Callable[[], Coroutine[Any, Any, Answer]], timeout_s: float) -> Answer:
    from fsspec.asyn import sync  # noqa: PLC0415 loads asyncio
    from fsspec.exceptions import FSTimeoutError  # noqa: PLC0415 as above

    try:
        answer: Answer = sync(fs.loop, request, timeout=timeout_s)
    except FSTimeoutError as error:
        raise OSError(errno.ETIMEDOUT, f"no answer within {timeout_s:g} s") from error
    return answer

"""S3: data files as multipart uploads, which can be aborted, and whose first parts S3 can copy from another object.

No function here takes a pattern: keys are taken literally, ``*`` and ``?`` included.
"""

import errno
from collections.abc import Iterator, Sequence
from typing import Any

from table.storage.byte_ranges import ByteRange

MIN_PART_BYTES = 5 * 1024 * 1024  # S3's least size of a part, except the last
_UPLOAD_PART_BYTES = 8 * 1024 * 1024
_COPY_PART_BYTES = 1024 * 1024 * 1024
_READ_BYTES = 8 * 1024 * 1024
_DELETED_AT_ONCE = 1000


def read_blocks(fs: Any, source: str, piece: ByteRange) -> Iterator[bytes]:
    """A piece of an object, some megabytes at a time.

    Args:
        fs: fsspec file system.
        source: ``bucket/key`` of the object.
        piece: the bytes to read.

    Raises:
        OSError: when the store refuses, or the piece ends behind the end of the object.
    """
    stop = piece.start + piece.length
    for start in range(piece.start, stop, _READ_BYTES):
        end = min(stop, start + _READ_BYTES)
        block = fs.cat_file(source, start=start, end=end)
        if len(block) != end - start:
            raise OSError(errno.EIO, f"the file ends after {start + len(block)} bytes, {stop} were to be read")
        yield block


def begin_upload(fs: Any, target: str) -> str:
    """Begins a multipart upload of ``bucket/key``. Returns its id. No object exists until the upload is completed."""
    bucket, key = fs.split_path(target)[:2]
    return str(fs.call_s3("create_multipart_upload", Bucket=bucket, Key=key)["UploadId"])


def abort_upload(fs: Any, target: str, upload: str) -> None:
    """Aborts an upload, so that a later attempt to complete it fails. An upload that has ended is not an error."""
    bucket, key = fs.split_path(target)[:2]
    try:
        fs.call_s3("abort_multipart_upload", Bucket=bucket, Key=key, UploadId=upload)
    except FileNotFoundError:
        return
    except Exception as error:
        if "NoSuchUpload" not in str(error) and "upload does not exist" not in str(error):
            raise


def delete_objects(fs: Any, paths: Sequence[str]) -> frozenset[str]:
    """Deletes objects by their exact names, a thousand in a request. Returns the names that could not be deleted."""
    failed: set[str] = set()
    for at in range(0, len(paths), _DELETED_AT_ONCE):
        some = paths[at : at + _DELETED_AT_ONCE]
        bucket = fs.split_path(some[0])[0]
        by_key = {fs.split_path(path)[1]: path for path in some}
        try:
            said = fs.call_s3(
                "delete_objects", Bucket=bucket, Delete={"Objects": [{"Key": key} for key in by_key], "Quiet": True}
            )
        except Exception:  # noqa: BLE001 what was not deleted is reported, whatever the reason
            failed.update(some)
        else:
            failed.update(by_key[error["Key"]] for error in said.get("Errors", ()))
    return frozenset(failed)


class S3Upload:
    """An output file that is a multipart upload: the object exists after `complete`.

    Args:
        fs: s3fs file system.
        target: ``bucket/key`` of the new object.
        upload: id of the upload, from `begin_upload`.

    Raises:
        OSError: when S3 refuses.
    """

    def __init__(self, fs: Any, target: str, upload: str) -> None:
        self._fs, self._path, self._upload = fs, target, upload
        to_bucket, to_key = fs.split_path(target)[:2]
        self._target = {"Bucket": to_bucket, "Key": to_key}
        self._parts: list[dict[str, Any]] = []
        self._buffer = bytearray()
        self._position = 0
        self._source_path = ""
        self._source: dict[str, str] = {}
        self.closed = False

    def copy_from(self, source: str, pieces: Sequence[ByteRange]) -> None:
        """Begins the object with pieces of another object, which S3 copies.

        Args:
            source: ``bucket/key`` to copy from.
            pieces: bytes to copy; together at least `MIN_PART_BYTES`. Small pieces are downloaded and uploaded, because
                S3 accepts no small parts.
        """
        bucket, key = self._fs.split_path(source)[:2]
        self._source_path, self._source = source, {"Bucket": bucket, "Key": key}
        for piece in pieces:
            self._take(piece)

    def _take(self, piece: ByteRange) -> None:
        """Appends a piece. S3 can copy it only after the buffered bytes have grown into a part of their own."""
        lacking = max(0, MIN_PART_BYTES - len(self._buffer)) if self._buffer else 0
        if piece.length < lacking + MIN_PART_BYTES:
            lacking = piece.length
        for block in read_blocks(self._fs, self._source_path, ByteRange(piece.start, lacking)):
            self.write(block)
        if piece.length > lacking:
            if self._buffer:
                self._send()
            self._copy(piece.start + lacking, piece.length - lacking)

    def _copy(self, start: int, length: int) -> None:
        stop = start + length
        self._position += length
        while start < stop:
            left = stop - start
            # the rest must not be too short for a part
            size = left if left < _COPY_PART_BYTES + MIN_PART_BYTES else _COPY_PART_BYTES
            said = self._call(
                "upload_part_copy", CopySource=self._source, CopySourceRange=f"bytes={start}-{start + size - 1}"
            )
            self._add_part(said["CopyPartResult"]["ETag"])
            start += size

    def _call(self, method: str, **arguments: Any) -> Any:
        number = len(self._parts) + 1
        return self._fs.call_s3(method, **self._target, UploadId=self._upload, PartNumber=number, **arguments)

    def _add_part(self, etag: str) -> None:
        self._parts.append({"PartNumber": len(self._parts) + 1, "ETag": etag})

    def write(self, data: Any, /) -> int:
        """Appends bytes."""
        self._buffer += data
        self._position += len(data)
        if len(self._buffer) >= _UPLOAD_PART_BYTES:
            self._send()
        return len(data)

    def _send(self) -> None:
        body, self._buffer = bytes(self._buffer), bytearray()
        self._add_part(self._call("upload_part", Body=body)["ETag"])

    def tell(self) -> int:
        """Bytes so far, the copied bytes included."""
        return self._position

    def close(self) -> None:
        """Sends the buffered bytes. The object does not exist yet."""
        if self.closed:
            return
        self.closed = True
        if self._buffer or not self._parts:
            self._send()

    def complete(self) -> None:
        """Completes the upload, after `close`: the object exists afterwards."""
        self._fs.call_s3(
            "complete_multipart_upload",
            **self._target,
            UploadId=self._upload,
            MultipartUpload={"Parts": self._parts},
        )

    def abort(self) -> None:
        """Aborts the upload: no object comes of it."""
        self.closed = True
        abort_upload(self._fs, self._path, self._upload)

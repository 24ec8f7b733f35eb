"""A new S3 object that begins with bytes of another: a multipart upload whose first parts S3 copies itself."""

import errno
from collections.abc import Iterator, Sequence
from typing import Any

from table.storage import ByteRange

MIN_PART_BYTES = 5 * 1024 * 1024  # S3's least size of a part that is not the last
_UPLOAD_PART_BYTES = 8 * 1024 * 1024
_COPY_PART_BYTES = 1024 * 1024 * 1024
_READ_BYTES = 8 * 1024 * 1024


def read_blocks(fs: Any, source: str, piece: ByteRange) -> Iterator[bytes]:
    """A piece of an object, some megabytes at a time.

    Args:
        fs: fsspec file system.
        source: the object's name there.
        piece: which bytes.

    Raises:
        OSError: when the store refuses, or the object is shorter.
    """
    stop = piece.start + piece.length
    for start in range(piece.start, stop, _READ_BYTES):
        end = min(stop, start + _READ_BYTES)
        block = fs.cat_file(source, start=start, end=end)
        if len(block) != end - start:
            raise OSError(errno.EIO, f"the file ends after {start + len(block)} bytes, {stop} were to be read")
        yield block


class S3CopyUpload:
    """An output file; the object exists once it is closed.

    Args:
        fs: s3fs file system.
        source: ``bucket/key`` to copy from.
        pieces: bytes to copy; together at least `MIN_PART_BYTES`. Small ones travel through here, because S3
            takes no small parts.
        target: ``bucket/key`` of the new object.

    Raises:
        OSError: when S3 refuses.
    """

    def __init__(self, fs: Any, source: str, pieces: Sequence[ByteRange], target: str) -> None:
        self._fs, self._source_path = fs, source
        bucket, key = fs.split_path(source)[:2]
        self._source = {"Bucket": bucket, "Key": key}
        to_bucket, to_key = fs.split_path(target)[:2]
        self._target = {"Bucket": to_bucket, "Key": to_key}
        self._path = target
        self._parts: list[dict[str, Any]] = []
        self._buffer = bytearray()
        self._position = 0
        self.closed = False
        self._upload = fs.call_s3("create_multipart_upload", **self._target)["UploadId"]
        try:
            for piece in pieces:
                self._take(piece)
        except BaseException:
            self._abort()
            raise

    def _take(self, piece: ByteRange) -> None:
        """What waits to be sent must grow into a part of its own before S3 can copy behind it."""
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
            # no part may be left that is too short
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
        """Bytes so far, copied ones included."""
        return self._position

    def close(self) -> None:
        """Makes the object whole."""
        if self.closed:
            return
        self.closed = True
        try:
            if self._buffer:
                self._send()
            self._fs.call_s3(
                "complete_multipart_upload",
                **self._target,
                UploadId=self._upload,
                MultipartUpload={"Parts": self._parts},
            )
        except BaseException:
            self._abort()
            raise
        self._fs.invalidate_cache(self._path)

    def _abort(self) -> None:
        self._fs.call_s3("abort_multipart_upload", **self._target, UploadId=self._upload)

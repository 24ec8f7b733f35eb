"""S3: data files as multipart uploads, which can be aborted, and whose first parts S3 can copy from another object.

No function here takes a pattern: keys are taken literally, ``*`` and ``?`` included.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from table.errors import StorageError
from table.storage.backend import Ask
from table.storage.byte_ranges import ByteRange

MIN_PART_BYTES = 5 * 1024 * 1024  # S3's least size of a part, except the last
_UPLOAD_PART_BYTES = 8 * 1024 * 1024
_COPY_PART_BYTES = 1024 * 1024 * 1024
_READ_BYTES = 8 * 1024 * 1024
DELETED_AT_ONCE = 1000


def read_blocks(ask: Ask, source: str, piece: ByteRange) -> Iterator[bytes]:
    """A piece of a file, some megabytes at a time.

    Args:
        ask: the store.
        source: path of the file.
        piece: the bytes to read.

    Raises:
        StorageError: when the store refuses, or the piece ends beyond the end of the file.
    """
    stop = piece.start + piece.length
    for start in range(piece.start, stop, _READ_BYTES):
        end = min(stop, start + _READ_BYTES)
        block = ask("copy", source, partial(_read_block, start=start, end=end))
        if len(block) != end - start:
            raise StorageError(
                f"could not copy {source!r}: the file ends after {start + len(block)} bytes, {stop} were to be read"
            )
        yield block


def _read_block(fs: Any, full: str, start: int, end: int) -> bytes:
    return bytes(fs.cat_file(full, start=start, end=end))


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


def delete_objects(fs: Any, _: str, paths: Sequence[str]) -> dict[str, str]:
    """Deletes objects of one bucket by their exact names, in one request.

    Args:
        fs: s3fs file system.
        paths: each ``bucket/key``; at most `DELETED_AT_ONCE`.

    Returns:
        Those that may remain, each with what the store said. If the store names an object that it was not asked for,
        its answer proves nothing, and all may remain.

    Raises:
        Exception: any error of s3fs.
    """
    by_key = {fs.split_path(path)[1]: path for path in paths}
    bucket = fs.split_path(paths[0])[0]
    asked = {"Objects": [{"Key": key} for key in by_key], "Quiet": True}
    errors = fs.call_s3("delete_objects", Bucket=bucket, Delete=asked).get("Errors") or ()
    refused = {str(error.get("Key")): f"{error.get('Code')}: {error.get('Message')}" for error in errors}
    strange = next((key for key in refused if key not in by_key), None)
    if strange is not None:
        reason = f"the store's answer names {strange!r}, which was not to be deleted ({refused[strange]})"
        return dict.fromkeys(paths, reason)
    return {by_key[key]: reason for key, reason in refused.items()}


class S3Upload:
    """An output file that is a multipart upload: the object exists after `complete`.

    Args:
        ask: the store.
        path: of the new file.
        upload: id of the upload, from `begin_upload`.

    Raises:
        StorageError: when S3 refuses.
        FileNotFoundError: the upload was aborted.
    """

    def __init__(self, ask: Ask, path: str, upload: str) -> None:
        self._ask, self._path, self._upload = ask, path, upload
        self._target: dict[str, str] = ask("open", path, _object_of)
        self._parts: list[dict[str, Any]] = []
        self._buffer = bytearray()
        self._position = 0
        self._source_path = ""
        self._source: dict[str, str] = {}
        self.closed = False

    def copy_from(self, source: str, pieces: Sequence[ByteRange]) -> None:
        """Begins the object with pieces of another object, which S3 copies.

        Args:
            source: path of the file to copy from.
            pieces: bytes to copy; together at least `MIN_PART_BYTES`. Small pieces are downloaded and uploaded, because
                S3 accepts no small parts.
        """
        self._source_path, self._source = source, self._ask("open", source, _object_of)
        for piece in pieces:
            self._take(piece)

    def _take(self, piece: ByteRange) -> None:
        """Appends a piece. S3 can copy it only after the buffered bytes have grown into a part of their own."""
        lacking = max(0, MIN_PART_BYTES - len(self._buffer)) if self._buffer else 0
        if piece.length < lacking + MIN_PART_BYTES:
            lacking = piece.length
        for block in read_blocks(self._ask, self._source_path, ByteRange(piece.start, lacking)):
            self.write(block)
        if piece.length > lacking:
            if self._buffer:
                self._send()
            self._copy(piece.start + lacking, piece.length - lacking)

    def _copy(self, start: int, length: int) -> None:
        stop = start + length
        self._position += length
        while start < stop:
            remaining = stop - start
            # the rest must not be too short for a part
            size = remaining if remaining < _COPY_PART_BYTES + MIN_PART_BYTES else _COPY_PART_BYTES
            answer = self._call_part(
                "upload_part_copy",
                ("copy", self._source_path),
                CopySource=self._source,
                CopySourceRange=f"bytes={start}-{start + size - 1}",
            )
            self._add_part(answer["CopyPartResult"]["ETag"])
            start += size

    def _call(self, method: str, about: tuple[str, str], **arguments: Any) -> Any:
        """Makes one request about the upload; `about`: what is done and the path, for messages."""
        given = {**self._target, "UploadId": self._upload, **arguments}
        return self._ask(*about, lambda fs, _: fs.call_s3(method, **given))

    def _call_part(self, method: str, about: tuple[str, str], **arguments: Any) -> Any:
        return self._call(method, about, PartNumber=len(self._parts) + 1, **arguments)

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
        self._add_part(self._call_part("upload_part", ("send", self._path), Body=body)["ETag"])

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
        self._call("complete_multipart_upload", ("publish", self._path), MultipartUpload={"Parts": self._parts})

    def abort(self) -> None:
        """Aborts the upload: no object comes of it."""
        self.closed = True
        self._ask("abort the upload of", self._path, lambda fs, full: abort_upload(fs, full, self._upload))


def _object_of(fs: Any, full: str) -> dict[str, str]:
    bucket, key = fs.split_path(full)[:2]
    return {"Bucket": bucket, "Key": key}

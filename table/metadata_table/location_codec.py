"""Records of a record index <-> Avro without a header (HoodieMetadataPayload)."""

from collections.abc import Sequence
from dataclasses import dataclass
from io import BytesIO
from typing import Any
from uuid import UUID

import fastavro

from table.errors import CorruptFileError
from table.metadata_table.column_stats import newest_values
from table.metadata_table.record_codec import parsed_schema, schema_of
from table.metadata_table.records import RecordType, Value

_UUID_CHARS = 36
_NO_INDEX = -1  # of a file id that is a UUID alone, as Flink makes it
_BY_UUID, _BY_TEXT = 0, 1  # fileIdEncoding


def encode_location(partition_path: str, file_id: str, made_ms: int, version: int) -> bytes:
    """The value of a key (HoodieMetadataPayload.createRecordIndexUpdate).

    Args:
        partition_path: of the file group; "" in a table without partitions.
        file_id: of the file group.
        made_ms: request time of the commit that put the key there, in milliseconds since 1970.
        version: of the metadata table.
    """
    uuid, index = file_id[:_UUID_CHARS], file_id[_UUID_CHARS + 1 :]
    high, low, number, text, encoding = 0, 0, 0, file_id, _BY_TEXT
    if _is_uuid(uuid) and (file_id == uuid or (index.isascii() and index.isdigit())):
        bits = UUID(uuid).int
        high, low = _signed(bits >> 64), _signed(bits & (1 << 64) - 1)
        number, text, encoding = int(index) if index else _NO_INDEX, "", _BY_UUID
    location = {
        "partitionName": partition_path,
        "fileIdHighBits": high,
        "fileIdLowBits": low,
        "fileIndex": number,
        "fileId": text,
        "instantTime": made_ms,
        "fileIdEncoding": encoding,
        "position": None,
    }
    out = BytesIO()
    record = {"key": "", "type": int(RecordType.RECORD_INDEX), "recordIndexMetadata": location}
    fastavro.schemaless_writer(out, parsed_schema(schema_of(version)), record)
    return out.getvalue()


@dataclass(frozen=True)
class Location:
    """Where a record index has a key.

    Attributes:
        partition_path: of the file group.
        file_id: of the file group.
        made_ms: request time of the commit that put the key there, in milliseconds since 1970.
    """

    partition_path: str
    file_id: str
    made_ms: int


def decode_location(values: Sequence[Value]) -> Location | None:
    """Where a key is; None: nowhere.

    Args:
        values: what the layers of a slice say of it, oldest first.

    Raises:
        CorruptFileError: the newest record does not follow its schema.
    """
    newest = newest_values(values)
    if not newest:
        return None
    found = _record(newest[-1])["recordIndexMetadata"]
    try:
        file_id = found["fileId"]
        if found["fileIdEncoding"] == _BY_UUID:
            bits = (found["fileIdHighBits"] % (1 << 64)) << 64 | found["fileIdLowBits"] % (1 << 64)
            number = found["fileIndex"]
            file_id = str(UUID(int=bits)) if number == _NO_INDEX else f"{UUID(int=bits)}-{number}"
        return Location(found["partitionName"], file_id, found["instantTime"])
    except (KeyError, TypeError) as error:
        raise CorruptFileError(f"a record of the record index is damaged: {error!r}") from error


def _record(value: Value) -> dict[str, Any]:
    try:
        record: Any = fastavro.schemaless_reader(BytesIO(value.data or b""), parsed_schema(value.schema), None)
        return dict(record)
    except Exception as error:  # fastavro's errors have no common base
        raise CorruptFileError(f"a record of the record index is damaged: {error}") from error


def newest_location(values: Sequence[Value], version: int) -> bytes | None:
    """The record of a key after all that the layers of a slice say of it, oldest first; None: it was deleted.

    Args:
        values: what the layers say.
        version: of the metadata table, whose schema the result has.
    """
    newest = newest_values(values)
    if not newest:
        return None
    if newest[-1].schema == schema_of(version):
        return newest[-1].data
    out = BytesIO()
    fastavro.schemaless_writer(out, parsed_schema(schema_of(version)), _record(newest[-1]))
    return out.getvalue()


def _is_uuid(text: str) -> bool:
    try:
        return str(UUID(text)) == text
    except ValueError:
        return False


def _signed(bits: int) -> int:
    return bits - (1 << 64) if bits >> 63 else bits

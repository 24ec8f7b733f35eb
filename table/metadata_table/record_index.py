"""What a commit adds to a record index: the file group of each record key (pure; HoodieTableMetadataUtil).

The index is global: a key has one record. Its value is the same for all keys that a commit adds to one file group.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from typing import Any
from uuid import UUID

import fastavro
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from table.config.metadata_indexes import RECORD_INDEX
from table.errors import CorruptFileError, UnsupportedTableError
from table.files.key_changes import KeyChanges
from table.metadata_table.column_stats import newest_values
from table.metadata_table.index_keys import groups_of_keys
from table.metadata_table.record_codec import parsed_schema, schema_of
from table.metadata_table.records import RecordType, Value
from table.metadata_table.statistics import GroupRecords

MOST_KEYS = 1_000_000
_MOST_KEY_BYTES = 32_767  # Hudi's readers take the length for a signed number
_UUID_CHARS = 36
_NO_INDEX = -1  # of a file id that is a UUID alone, as Flink makes it
_BY_UUID, _BY_TEXT = 0, 1  # fileIdEncoding

KeysByGroup = Mapping[tuple[str, str], KeyChanges]
"""Partition path and file id -> its keys."""
_Positions = npt.NDArray[np.int64]


@dataclass(frozen=True)
class NewLocations:
    """The records of a commit.

    Attributes:
        values: a value for each file group of the table.
        added: keys that get a record.
        places: for each of these keys the position of its value.
        deleted: keys whose records go.
    """

    values: tuple[bytes, ...]
    added: pa.Array
    places: _Positions
    deleted: pa.Array

    def __len__(self) -> int:
        return len(self.added) + len(self.deleted)

    def by_group(self, count: int) -> dict[tuple[str, int], GroupRecords]:
        """The records of each file group of the index that gets any.

        Args:
            count: number of its file groups.
        """
        added, gone = groups_of_keys(self.added, count), groups_of_keys(self.deleted, count)
        made = {}
        for number in np.unique(np.concatenate([added, gone])).tolist():
            new = np.flatnonzero(added == number)
            keys = self.added.take(pa.array(new)).to_pylist()
            # of two records of one key the later one counts
            pairs = {key.encode(): self.values[at] for key, at in zip(keys, self.places[new].tolist(), strict=True)}
            lost = self.deleted.filter(pa.array(gone == number)).to_pylist()
            made[RECORD_INDEX, number] = GroupRecords(tuple(sorted(pairs.items())), tuple(sorted(lost)))
        return made


def new_locations(changes: KeysByGroup | None, version: int, made_ms: int) -> NewLocations:
    """The records of a commit. A key that one file group loses and another one gets has moved, and keeps a record.

    Args:
        changes: the keys of each file group; None: they are not known.
        version: of the metadata table.
        made_ms: request time of the commit, in milliseconds since 1970.

    Raises:
        UnsupportedTableError: the keys are not known, or more than `MOST_KEYS` were added or deleted.
    """
    if changes is None:
        raise UnsupportedTableError("the keys that the commit adds and deletes are not known to this process")
    count = sum(len(keys) for change in changes.values() for keys in (*change.added, *change.deleted))
    if count > MOST_KEYS:
        raise UnsupportedTableError(f"the commit adds and deletes {count} keys, which are more than {MOST_KEYS}")
    for change in changes.values():
        for keys in change.added:
            longest = pc.max(pc.binary_length(keys)).as_py() or 0
            if longest > _MOST_KEY_BYTES:
                raise UnsupportedTableError(f"a key has {longest} bytes, and an HFile holds keys of {_MOST_KEY_BYTES}")
    places = [np.full(sum(map(len, change.added)), at) for at, change in enumerate(changes.values())]
    added = _joined([keys for change in changes.values() for keys in change.added])
    deleted = _joined([keys for change in changes.values() for keys in change.deleted])
    return NewLocations(
        tuple(encode_location(*group, made_ms, version) for group in changes),
        added,
        np.concatenate([np.zeros(0, np.int64), *places]),
        deleted.filter(pc.invert(pc.is_in(deleted, added))).unique(),
    )


def _joined(arrays: Sequence[pa.Array]) -> pa.Array:
    return pa.concat_arrays([pa.array([], pa.string()), *arrays])


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
    left = newest_values(values)
    if not left:
        return None
    found = _record(left[-1])["recordIndexMetadata"]
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
    """The record of a key behind all that the layers of a slice say of it, oldest first; None: it was deleted.

    Args:
        values: what the layers say.
        version: of the metadata table, whose schema the result has.
    """
    left = newest_values(values)
    if not left:
        return None
    if left[-1].schema == schema_of(version):
        return left[-1].data
    out = BytesIO()
    fastavro.schemaless_writer(out, parsed_schema(schema_of(version)), _record(left[-1]))
    return out.getvalue()


def _is_uuid(text: str) -> bool:
    try:
        return str(UUID(text)) == text
    except ValueError:
        return False


def _signed(bits: int) -> int:
    return bits - (1 << 64) if bits >> 63 else bits

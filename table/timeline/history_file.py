"""One data file of the archive of layout 2: completed instants as rows of Parquet (HoodieLSMTimelineInstant)."""

import io
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from table.errors import CorruptFileError
from table.timeline.archived_timeline import RetiredFile
from table.timeline.instant import COMPLETED_AS, Action, State

_VERSION = 1
_AVRO_SCHEMA = (
    '{"type":"record","name":"HoodieLSMTimelineInstant","namespace":"org.apache.hudi.avro.model","fields":['
    '{"name":"instantTime","type":["null",{"type":"string","avro.java.string":"String"}],"default":null},'
    '{"name":"completionTime","type":["null",{"type":"string","avro.java.string":"String"}],"default":null},'
    '{"name":"action","type":["null",{"type":"string","avro.java.string":"String"}],"default":null},'
    '{"name":"metadata","type":["null","bytes"],"default":null},'
    '{"name":"plan","type":["null","bytes"],"default":null},'
    '{"name":"version","type":"int","default":1}]}'
)
_SCHEMA = pa.schema(
    [
        pa.field("instantTime", pa.string()),
        pa.field("completionTime", pa.string()),
        pa.field("action", pa.string()),
        pa.field("metadata", pa.binary()),
        pa.field("plan", pa.binary()),
        pa.field("version", pa.int32(), nullable=False),
    ]
)
_METADATA = {"parquet.avro.schema": _AVRO_SCHEMA, "writer.model.name": "avro"}
# actions whose requested file is a plan
_PLANNED = frozenset((Action.CLEAN, Action.COMPACTION, Action.LOG_COMPACTION, Action.REPLACE_COMMIT, Action.CLUSTERING))


class Row(NamedTuple):
    """A completed instant. Rows are ordered by time.

    Attributes:
        time: request time.
        action: the action in the name of the completed file.
        metadata: content of the completed file.
        plan: content of the requested file, where that is a plan; else None.
    """

    time: str
    action: str
    completion_time: str
    metadata: bytes
    plan: bytes | None


def rows_of(files: Iterable[RetiredFile]) -> list[Row]:
    """The rows of retired instants, sorted by time (MetadataConversionUtils.createLSMTimelineInstant).

    Args:
        files: every file of each instant, lowest state first.
    """
    completed: dict[tuple[str, Action], RetiredFile] = {}
    plans: dict[tuple[str, Action], bytes] = {}
    for file in files:
        instant = file.instant
        key = (instant.time, COMPLETED_AS.get(instant.action, instant.action))
        if instant.is_completed:
            completed[key] = file
        elif file.data and instant.action in _PLANNED and not (instant.state is State.INFLIGHT and key in plans):
            plans[key] = file.data
    return sorted(
        Row(time, action.value, file.instant.completion_time or file.moved_at, file.data, plans.get((time, action)))
        for (time, action), file in completed.items()
    )


def distinct_rows(rows: Iterable[Row]) -> list[Row]:
    """One row for each instant, by time (pure).

    An archival that ended early has taken instants that the next one takes again. By then the requested file may be
    deleted, so that the row of the later one has no plan: the later row stays, with the plan that is known.
    """
    found: dict[tuple[str, str], Row] = {}
    for row in rows:
        known = found.get((row.time, row.action))
        found[row.time, row.action] = row if known is None or row.plan is not None else row._replace(plan=known.plan)
    return [found[key] for key in sorted(found)]


def encode_rows(rows: Sequence[Row]) -> bytes:
    """Encodes rows as a data file, compressed with gzip as in Hudi."""
    columns = [*zip(*rows, strict=True), (_VERSION,) * len(rows)]
    columns = [columns[0], columns[2], columns[1], columns[3], columns[4], columns[5]]
    arrays = [pa.array(values, field.type) for values, field in zip(columns, _SCHEMA, strict=True)]
    out = io.BytesIO()
    table = pa.Table.from_arrays(arrays, schema=_SCHEMA)
    with pq.ParquetWriter(out, _SCHEMA, compression="gzip", store_schema=False, use_dictionary=False) as writer:
        writer.write_table(table)
        writer.add_key_value_metadata(_METADATA)
    return out.getvalue()


def decode_rows(data: bytes, name: str) -> list[Row]:
    """The inverse of `encode_rows`, also for files that Hudi wrote.

    Args:
        data: the file's bytes.
        name: file name, for the error.

    Raises:
        CorruptFileError: the bytes are not such a data file.
    """
    try:
        found = pq.read_table(io.BytesIO(data), columns=_SCHEMA.names).to_pylist()
        return [
            Row(row["instantTime"], row["action"], row["completionTime"], row["metadata"], row["plan"]) for row in found
        ]
    except (pa.ArrowException, OSError, ValueError, KeyError) as error:
        raise CorruptFileError(f"{name} is no file of a history: {error}") from error

"""Slices with log files, made by hand: what `merge_slice` is to read, and what it is to find."""

import io
import json

import pyarrow as pa
import pyarrow.parquet as pq

from table.config.merge_mode import MergeMode
from table.files.log.avro_data import encode_avro_content
from table.files.log.delete_block import encode_deletes
from table.files.log.framing import BlockType, Header, LogBlock, encode_block
from table.records.merge import MergeRules
from table.scan.merge_slice import SliceReading, merge_slice
from table.schema.avro_schema import META_COLUMNS, relaxed, to_avro, with_meta_columns
from table.storage.local import LocalStorage
from table.view.file_group import CommittedInstants, build_file_groups

COLUMNS = pa.schema([("id", pa.string()), ("ts", pa.int64()), ("v", pa.string()), ("w", pa.float64())])
SCHEMA = relaxed(with_meta_columns(COLUMNS))
AVRO = json.dumps(to_avro(SCHEMA, "t"))
FILE_ID = "f-0"


def record(key, ts, v, w=None, time="0"):
    """A row with its meta columns."""
    meta = dict.fromkeys(META_COLUMNS, "") | {"_hoodie_record_key": key, "_hoodie_commit_time": time}
    return {**meta, "id": key, "ts": ts, "v": v, "w": w}


def data_block(time, records, kind=BlockType.AVRO_DATA):
    """A block of rows."""
    rows = [{**row, "_hoodie_commit_time": time} for row in records]
    return LogBlock(kind, {Header.INSTANT_TIME: time, Header.SCHEMA: AVRO}, _content(kind, rows, AVRO, SCHEMA))


def partial_block(time, records, names, kind=BlockType.AVRO_DATA):
    """A block of records that have meta columns and these columns alone."""
    names = [*META_COLUMNS, *names]
    schema = pa.schema([field for field in SCHEMA if field.name in names])
    avro = json.dumps(to_avro(schema, "t"))
    rows = [{name: row[name] for name in schema.names} | {"_hoodie_commit_time": time} for row in records]
    header = {Header.INSTANT_TIME: time, Header.SCHEMA: avro, Header.IS_PARTIAL: "true"}
    return LogBlock(kind, header, _content(kind, rows, avro, schema))


def _content(kind, rows, avro, schema):
    if kind is BlockType.AVRO_DATA:
        return encode_avro_content(avro, rows)
    out = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows, schema), out)
    return out.getvalue()


def delete_block(time, deletes):
    """A block of deletes: keys with an ordering value, or None."""
    keys, order = pa.array([key for key, _ in deletes], pa.string()), pa.array([ts for _, ts in deletes], pa.int64())
    content = encode_deletes(keys, "", pa.table({"ts": order}))
    return LogBlock(BlockType.DELETE, {Header.INSTANT_TIME: time, Header.SCHEMA: AVRO}, content)


def rollback_block(time, target):
    """A command that takes the blocks of an instant back."""
    header = {Header.INSTANT_TIME: time, Header.TARGET_INSTANT_TIME: target, Header.COMMAND_BLOCK_TYPE: "0"}
    return LogBlock(BlockType.COMMAND, header, b"")


def write_base(folder, records, time="1"):
    """The base file of the slice."""
    pq.write_table(pa.Table.from_pylist(records, SCHEMA), f"{folder}/{FILE_ID}_0-0-0_{time}.parquet")


def write_log(folder, version, data, time="1"):
    """A log file of the slice: blocks, or bytes."""
    whole = data if isinstance(data, bytes) else b"".join(encode_block(block) for block in data)
    with open(f"{folder}/.{FILE_ID}_{time}.log.{version}_0-0-0", "wb") as file:
        file.write(whole)


def read(folder, committed=("1",), rules=None, columns=None, memory_bytes=1 << 27, inflight=()):
    """The rows of the slice in a folder, in their order."""
    pieces = list(read_pieces(folder, committed, rules, columns, memory_bytes, inflight))
    wanted = pa.schema([SCHEMA.field(name) for name in columns or SCHEMA.names])
    assert all(piece.schema.equals(wanted) for piece in pieces)
    return [row for piece in pieces for row in piece.to_pylist()]


def read_pieces(folder, committed=("1",), rules=None, columns=None, memory_bytes=1 << 27, inflight=()):
    """The slice in a folder, piece by piece."""
    instants = CommittedInstants(frozenset(committed), min(committed), {}, frozenset(inflight))
    storage = LocalStorage(str(folder))
    [group] = build_file_groups("", storage.list_dir(""), instants)
    reading = SliceReading(
        SCHEMA,
        tuple(columns or SCHEMA.names),
        rules or MergeRules(MergeMode.EVENT_TIME, ("ts",), orders_deletes=True),
        instants,
        memory_bytes,
    )
    yield from merge_slice(storage, group.merged_slice, reading)


def shown(rows):
    """Key, order and values of rows, by key."""
    return sorted((row["id"], row["ts"], row["v"], row["w"]) for row in rows)

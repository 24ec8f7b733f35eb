"""The records of a change file, ``.cdc``: blocks of CDC_DATA (pure; HoodieCDCUtils, HoodieCDCDataBlock).

A record says of one key what a commit did: operation ``i``, ``u`` or ``d``, the key, and by `ChangeImages` the row
before and after, without meta columns. The content of a block is that of a block of AVRO_DATA.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from table.config.change_images import ChangeImages
from table.files.log.avro_data import encode_avro_runs, read_avro_rows
from table.files.log.framing import LogBlock
from table.keys.search import KeyCount, count_keys
from table.schema.avro_schema import META_COLUMNS

INSERTED, UPDATED, DELETED = "i", "u", "d"
_TEXT = ["null", "string"]
_KEY, _IMAGES = "record_key", ("before", "after")


@lru_cache(maxsize=16)
def change_schema(images: ChangeImages, avro_schema: str) -> str:
    """The schema of change records (Avro, JSON), as it stands in the headers of blocks.

    Args:
        images: what the records hold.
        avro_schema: Avro schema of the table's rows (JSON); its meta columns are left out.
    """
    return json.dumps(_schema(images, avro_schema, by_name=True))


@lru_cache(maxsize=16)
def _whole_schema(images: ChangeImages, avro_schema: str) -> str:
    """The same schema with the row's fields in both images: the encoder of columns resolves no names."""
    return json.dumps(_schema(images, avro_schema, by_name=False))


def _schema(images: ChangeImages, avro_schema: str, *, by_name: bool) -> Mapping[str, Any]:
    if images is ChangeImages.OP_KEY_ONLY:  # Hudi's own schema of these two has the text before the null
        return _record("Record", [{"name": name, "type": ["string", "null"]} for name in ("op", _KEY)])
    whole = json.loads(avro_schema)
    namespace = whole.pop("namespace")  # the row has that of the record around it
    row = {**whole, "fields": [field for field in whole["fields"] if field["name"] not in META_COLUMNS]}
    before = _field("before", ["null", row])
    if images is ChangeImages.DATA_BEFORE:
        return _record("CDC", [_field("op", _TEXT), _field(_KEY, _TEXT), before], namespace)
    after = _field("after", ["null", whole["name"] if by_name else row])
    return _record("CDC", [_field("op", _TEXT), _field("ts_ms", _TEXT), before, after], namespace)


def _field(name: str, kind: Any) -> Mapping[str, Any]:
    return {"name": name, "type": kind, "doc": "", "default": None}


def _record(name: str, fields: list[Any], namespace: str | None = None) -> Mapping[str, Any]:
    return {"type": "record", "name": name, **({"namespace": namespace} if namespace else {}), "fields": fields}


def encode_changes(
    images: ChangeImages,
    avro_schema: str,
    instant_time: str,
    operation: str,
    keys: pa.ChunkedArray,
    before: pa.Table | None,
    after: pa.Table | None,
) -> Iterator[tuple[int, bytes]]:
    """Change records of one operation, some ten thousand at a time: their number, and their bytes with lengths.

    Args:
        images: what the records hold.
        avro_schema: as for `change_schema`.
        instant_time: the commit's, which is also what ``ts_ms`` holds.
        operation: `INSERTED`, `UPDATED` or `DELETED`.
        keys: the record keys (string).
        before: the rows before the commit, with the table's columns; None: there were none.
        after: the rows after it; None: there are none.
    """
    columns = {"op": pa.repeat(pa.scalar(operation), len(keys)), _KEY: keys}
    if images is not ChangeImages.OP_KEY_ONLY:
        names = _columns(avro_schema)
        columns["ts_ms"] = pa.repeat(pa.scalar(instant_time), len(keys))
        given = before if before is not None else after
        assert given is not None
        columns["before"] = _image(before, given, names)
        columns["after"] = _image(after, given, names)
    yield from encode_avro_runs(_whole_schema(images, avro_schema), pa.table(columns))


def count_changed(block: LogBlock, name: str, fields: Sequence[str], keys: pa.Array) -> KeyCount:
    """How often a block of CDC_DATA names some keys, and of how many rows that is not known.

    Args:
        block: the block.
        name: name of its file, for the error.
        fields: the fields of the record key: whole images come without the key.
        keys: record keys (string).

    Raises:
        CorruptFileError: the content cannot be decoded with the block's schema.
    """
    counted = KeyCount()
    for part in read_avro_rows(block, [_KEY, *_IMAGES], name):
        for image in _IMAGES if _KEY not in part.column_names else ():
            held = part.column(image).drop_null()
            rows = pa.concat_tables([pa.Table.from_struct_array(one) for one in held.chunks]) if len(held) else None
            counted += count_keys(rows, fields, keys) if rows is not None else KeyCount()
        if _KEY in part.column_names:
            counted += KeyCount(pc.sum(pc.is_in(part.column(_KEY), value_set=keys)).as_py() or 0)
    return counted


@lru_cache(maxsize=16)
def _columns(avro_schema: str) -> tuple[str, ...]:
    """Names of a table's columns without meta columns."""
    return tuple(field["name"] for field in json.loads(avro_schema)["fields"] if field["name"] not in META_COLUMNS)


def _image(rows: pa.Table | None, like: pa.Table, names: Sequence[str]) -> pa.Array:
    """Rows as values of one column; nulls where there are no rows."""
    if rows is None:
        return pa.nulls(len(like), pa.struct([like.schema.field(name) for name in names]))
    held = rows.select(list(names)).combine_chunks()
    arrays = [pa.concat_arrays(one.chunks) if one.num_chunks else pa.array([], one.type) for one in held.columns]
    return pa.StructArray.from_arrays(arrays, fields=[held.schema.field(name) for name in names])

"""The records of a change file, ``.cdc``: blocks of CDC_DATA (pure; HoodieCDCUtils, HoodieCDCDataBlock).

A record says of one key what a commit did: operation ``i``, ``u`` or ``d``, the key, and by `ChangeImages` the row
before and after, without meta columns. The content of a block is that of a block of AVRO_DATA.
"""

import json
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

import pyarrow as pa

from table.config.change_images import ChangeImages
from table.files.log.avro_data import encode_avro_runs
from table.schema.avro_schema import META_COLUMNS

INSERTED, UPDATED, DELETED = "i", "u", "d"
_TEXT = ["null", "string"]


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
        return _record("Record", [{"name": name, "type": ["string", "null"]} for name in ("op", "record_key")])
    whole = json.loads(avro_schema)
    row = {**whole, "fields": [field for field in whole["fields"] if field["name"] not in META_COLUMNS]}
    before = _field("before", ["null", row])
    if images is ChangeImages.DATA_BEFORE:
        return _record("CDC", [_field("op", _TEXT), _field("record_key", _TEXT), before], whole["namespace"])
    after = _field("after", ["null", f"{whole['namespace']}.{whole['name']}" if by_name else row])
    return _record("CDC", [_field("op", _TEXT), _field("ts_ms", _TEXT), before, after], whole["namespace"])


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
    columns = {"op": pa.repeat(pa.scalar(operation), len(keys)), "record_key": keys}
    if images is not ChangeImages.OP_KEY_ONLY:
        names = [field["name"] for field in json.loads(avro_schema)["fields"] if field["name"] not in META_COLUMNS]
        columns["ts_ms"] = pa.repeat(pa.scalar(instant_time), len(keys))
        given = before if before is not None else after
        assert given is not None
        columns["before"] = _image(before, given, names)
        columns["after"] = _image(after, given, names)
    yield from encode_avro_runs(_whole_schema(images, avro_schema), pa.table(columns))


def _image(rows: pa.Table | None, like: pa.Table, names: list[str]) -> pa.Array:
    """Rows as values of one column; nulls where there are no rows."""
    if rows is None:
        return pa.nulls(len(like), pa.struct([like.schema.field(name) for name in names]))
    held = rows.select(names).combine_chunks()
    arrays = [pa.concat_arrays(one.chunks) if one.num_chunks else pa.array([], one.type) for one in held.columns]
    return pa.StructArray.from_arrays(arrays, fields=[held.schema.field(name) for name in names])

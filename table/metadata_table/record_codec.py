"""Records of the lists of files <-> Avro without a header (HoodieMetadataRecord)."""

import json
from functools import lru_cache
from io import BytesIO
from typing import Any

import fastavro

from table.config.table_config import MERGER_VERSION
from table.errors import CorruptFileError
from table.metadata_table.records import ListRecord, RecordType
from table.timeline.metadata.avro_record import load_schema_text


def schema_of(version: int) -> str:
    """The Avro schema of HoodieMetadataRecord.

    Statistics say more from version 9 on. The bytes of a list are the same, but hudi-rs wants one schema in all files.

    Args:
        version: of the metadata table.
    """
    return load_schema_text("metadata_record_9" if version >= MERGER_VERSION else "metadata_record")


def encode_record(kind: RecordType, record: ListRecord) -> bytes:
    """The value of a key: Avro without a header. The key itself is left empty, as Hudi writes it.

    Args:
        kind: whether the record lists partition paths or files.
        record: the entries, in the order in which they are written.
    """
    entries = {name: {"size": size, "isDeleted": is_deleted} for name, (size, is_deleted) in record.entries.items()}
    out = BytesIO()
    value = {"key": "", "type": int(kind), "filesystemMetadata": entries}
    fastavro.schemaless_writer(out, parsed_schema(schema_of(0)), value)
    return out.getvalue()


def decode_record(value: bytes, schema: str) -> ListRecord:
    """Decodes the value of a key.

    Args:
        value: Avro, without a header.
        schema: the writer's Avro schema.

    Raises:
        CorruptFileError: the value does not follow the schema, or is no list of files.
    """
    try:
        found: Any = fastavro.schemaless_reader(BytesIO(value), parsed_schema(schema), None)
        entries = found["filesystemMetadata"] or {}
        return ListRecord({name: (int(one["size"]), bool(one["isDeleted"])) for name, one in entries.items()})
    except Exception as error:  # fastavro's errors have no common base
        raise CorruptFileError(f"a record of the metadata table is damaged: {error}") from error


@lru_cache(maxsize=8)
def parsed_schema(schema: str) -> Any:
    """An Avro schema as fastavro reads and writes by it."""
    return fastavro.parse_schema(json.loads(schema), named_schemas={})

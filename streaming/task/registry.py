"""Avro values of Kafka with a schema registry -> JSON text: the form that Confluent's serializers write.

A value is a byte 0, the number of its schema in four bytes (big-endian), and the Avro record.
"""

import base64
import io
import json
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from datetime import time as time_of_day
from decimal import Decimal
from typing import Any

import fastavro
import numpy as np
import pyarrow as pa

from streaming.task.failure import told_to_the_driver
from table import clock
from table.errors import InvalidConfigError, InvalidRecordError

_MAGIC, _HEAD_BYTES = 0, 5
_RECORD, _VALUE = "hudistream_value", "value"
_PATIENCE_S = 30.0
_TRIES = 4
_LATER = (408, 429)  # too slow, too many: the same request may be answered later
_PLACES = ("topic", "partition", "offset")
_Schema = dict[Any, Any] | None


@dataclass(frozen=True)
class Registry:
    """A schema registry with Confluent's interface.

    Attributes:
        address: ``http://host:8081``.
        headers: of each request, such as ``Authorization``.
    """

    address: str
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)

    def load_schema(self, number: int) -> Any:
        """The Avro schema with a number, parsed, as the one field of a record.

        Such a record is encoded as its field is. Of other types than records fastavro forgets the schemas that they
        refer to, as a union of references does.

        Raises:
            InvalidConfigError: the registry does not answer, refuses, or has another kind of schema under the number.
        """
        found = self._ask(f"schemas/ids/{number}")
        kind = found.get("schemaType", "AVRO")
        if kind != "AVRO":
            raise InvalidConfigError(
                f"schema {number} of the registry at {self.address} is of type {kind}; only Avro is decoded: read JSON "
                "with Spark's from_json, and Protobuf with from_protobuf"
            )
        known: dict[str, Any] = {}
        self._load_references(found.get("references") or (), known)
        value = {"name": _VALUE, "type": _with_our_readers(json.loads(found["schema"]))}
        return fastavro.parse_schema({"type": "record", "name": _RECORD, "fields": [value]}, named_schemas=known)

    def _load_references(self, references: Iterable[Mapping[str, Any]], known: dict[str, Any]) -> None:
        """Parses the schemas that a schema refers to, and theirs first."""
        for each in references:
            if each["name"] in known:
                continue
            subject = urllib.parse.quote(each["subject"], safe="")
            found = self._ask(f"subjects/{subject}/versions/{each['version']}")
            self._load_references(found.get("references") or (), known)
            fastavro.parse_schema(_with_our_readers(json.loads(found["schema"])), named_schemas=known)

    def _ask(self, path: str) -> dict[str, Any]:
        address = f"{self.address.rstrip('/')}/{path}"
        why: Exception | None = None
        for attempt in range(_TRIES):
            if attempt:
                clock.sleep_s(0.2 * 2**attempt)
            try:
                request = urllib.request.Request(address, headers=dict(self.headers))  # noqa: S310 an address of the user
                with urllib.request.urlopen(request, timeout=_PATIENCE_S) as answer:  # noqa: S310
                    found: dict[str, Any] = json.load(answer)
                    return found
            except urllib.error.HTTPError as error:
                if error.code < 500 and error.code not in _LATER:
                    raise InvalidConfigError(
                        f"the schema registry refuses {address}: {error.code} {error.reason}; is it the topic's own "
                        "registry, and may this user read it (headers=)?"
                    ) from error
                why = error
            except (OSError, ValueError) as error:
                why = error
        raise InvalidConfigError(
            f"the schema registry does not answer at {address}: {why}; each node that computes rows asks it: correct "
            "the address, or try again when it is back"
        ) from why


def _with_our_readers(schema: Any) -> Any:
    """A schema (JSON) in which the logical types that are read here have names of their own (pure)."""
    if isinstance(schema, list):
        return [_with_our_readers(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    made = {key: _with_our_readers(value) if key in _NESTING else value for key, value in schema.items()}
    if made.get("logicalType") in _OURS:
        made["logicalType"] = _PREFIX + made["logicalType"]
    return made


def _read_decimal(data: Any, schema: _Schema, _reader: _Schema = None) -> str:
    """A decimal as text, whatever precision its schema has, as in Avro's DecimalConversion; fastavro rounds to it."""
    unscaled = int.from_bytes(data, "big", signed=True)
    scale = (schema or {}).get("scale", 0)
    return format(Decimal(f"{unscaled}E-{scale}"), "f")


def _read_nanos(value: Any, schema: _Schema, _reader: _Schema = None) -> str:
    """A time of nanoseconds since the epoch, in ISO form."""
    zone = "" if "local" in (schema or {})["logicalType"] else "Z"
    return f"{np.datetime64(value, 'ns')}{zone}"


def _read_uuid(value: Any, _schema: _Schema, _reader: _Schema = None) -> str:
    """A UUID as it was written: it may be text that is none."""
    return str(value)


_NESTING = ("type", "items", "values", "fields")
_PREFIX = "hudistream-"
_OURS = {"decimal", "timestamp-nanos", "local-timestamp-nanos", "uuid"}
fastavro.read.LOGICAL_READERS |= {
    f"bytes-{_PREFIX}decimal": _read_decimal,
    f"fixed-{_PREFIX}decimal": _read_decimal,
    f"long-{_PREFIX}timestamp-nanos": _read_nanos,
    f"long-{_PREFIX}local-timestamp-nanos": _read_nanos,
    f"string-{_PREFIX}uuid": _read_uuid,
}

_schemas: dict[tuple[str, int], Any] = {}  # of this process: a number never gets another schema


def read_values(registry: Registry, column: str, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Rows with their Avro values as JSON text; runs on a worker.

    Args:
        registry: of the topic.
        column: the values (binary); null stays null.
        batches: columns of Spark's Kafka source.

    Raises:
        WorkerError: a value cannot be read; it names topic, partition and offset.
    """
    for batch in batches:
        at = batch.schema.get_field_index(column)
        with told_to_the_driver():
            texts = _read(registry, batch, batch.column(at))
        yield batch.set_column(at, pa.field(column, pa.string()), pa.array(texts, pa.string()))


def _read(registry: Registry, batch: pa.RecordBatch, values: pa.Array) -> list[str | None]:
    texts: list[str | None] = []
    for row, value in enumerate(values.to_pylist()):
        try:
            texts.append(None if value is None else _as_json(registry, value))
        except InvalidConfigError:
            raise
        except Exception as error:
            place = "-".join(str(batch.column(name)[row]) for name in _PLACES if name in batch.schema.names)
            raise InvalidRecordError(f"the Avro value at {place or f'row {row}'} cannot be read: {error}") from error
    return texts


def _as_json(registry: Registry, value: bytes) -> str:
    if len(value) < _HEAD_BYTES or value[0] != _MAGIC:
        raise ValueError("it does not begin with a byte 0 and the number of its schema, as values with a registry do")
    number = int.from_bytes(value[1:_HEAD_BYTES], "big")
    key = registry.address, number
    if key not in _schemas:
        _schemas[key] = registry.load_schema(number)
    decoded = fastavro.schemaless_reader(io.BytesIO(memoryview(value)[_HEAD_BYTES:]), _schemas[key], None)
    assert isinstance(decoded, dict)
    return json.dumps(decoded[_VALUE], default=_plain, ensure_ascii=False)


def _plain(value: object) -> str:
    """Values that JSON does not have, as text: those of Avro's logical types, and bytes in Base64."""
    if isinstance(value, datetime | date | time_of_day):
        return value.isoformat()
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    raise TypeError(f"a value of {type(value).__name__} has no JSON")

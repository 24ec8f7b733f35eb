"""Records of the timeline <-> Avro container files (TimelineMetadataUtils).

One record per file, no codec. The schemas in ``table/timeline/metadata/schemas`` carry the record and field names that
Hudi resolves by; plain ``string`` is accepted where Java annotates its own string class.
"""

import io
import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from importlib import resources
from typing import Any

import fastavro

from table.errors import CorruptFileError


@cache
def load_schema_text(name: str) -> str:
    """The schema ``table/timeline/metadata/schemas/<name>.avsc``."""
    return resources.files("table.timeline.metadata").joinpath("schemas", f"{name}.avsc").read_text("utf-8")


@cache
def _schema(name: str) -> Any:
    return fastavro.parse_schema(json.loads(load_schema_text(name)), named_schemas={})


def encode_record(name: str, record: Mapping[str, Any]) -> bytes:
    """An Avro container file with one record of the schema ``table/timeline/metadata/schemas/<name>.avsc``."""
    out = io.BytesIO()
    fastavro.writer(out, _schema(name), [record], codec="null")
    return out.getvalue()


def decode_record(name: str, data: bytes, file: str = "") -> dict[str, Any]:
    """The one record of a container file.

    Args:
        name: name of the record (``clean_plan``), for the error.
        data: the file's bytes.
        file: name of the file, for the error.

    Raises:
        CorruptFileError: when it is no Avro file, or holds no record.
    """
    try:
        return _first_record(fastavro.reader(io.BytesIO(data)))
    except Exception as error:  # the file contains its schema, and a damaged one can raise any error
        raise CorruptFileError(f"{file or 'it'} is not an Avro file with a {name}: {error!r}") from error


def decode_fields(
    data: bytes, names: Collection[str], within: Mapping[str, Collection[str]] | None = None
) -> dict[str, Any] | None:
    """Some fields of the one record of a container file. The others are passed over, which is quicker.

    Args:
        data: the file's bytes.
        names: the fields of the record.
        within: name of a record in it -> the fields of that record; other records keep all of theirs.

    Returns:
        The fields; None where they cannot be read alone. `decode_record` says what is wrong with a damaged file.
    """
    try:
        written: Any = fastavro.reader(io.BytesIO(data)).writer_schema
        wanted = _narrowed(written, {written["name"].rpartition(".")[2]: names, **(within or {})})
        return _first_record(fastavro.reader(io.BytesIO(data), fastavro.parse_schema(wanted, named_schemas={})))
    except Exception:  # noqa: BLE001 the file contains its schema, and a damaged one can raise any error
        return None


def _first_record(reader: Iterable[Any]) -> dict[str, Any]:
    """The first record, of a file that is whole: the marker at its end is read, too, as readers in Java do."""
    return dict(list(reader)[0])  # noqa: RUF015 `next` would leave the marker unread


def _narrowed(schema: Any, names: Mapping[str, Collection[str]]) -> Any:
    """An Avro schema whose records of these names have only some fields."""
    if isinstance(schema, list):
        return [_narrowed(one, names) for one in schema]
    if not isinstance(schema, dict):
        return schema
    inner = {key: _narrowed(schema[key], names) for key in ("type", "items", "values") if key in schema}
    if "fields" in schema:
        kept = names.get(str(schema.get("name")).rpartition(".")[2])
        fields = [one for one in schema["fields"] if kept is None or one["name"] in kept]
        inner["fields"] = [{**one, "type": _narrowed(one["type"], names)} for one in fields]
    return {**schema, **inner}


@contextmanager
def read_as(name: str, file: str) -> Iterator[None]:
    """Reads the fields of a record. A field that is missing or has another type means that the file is damaged.

    Args:
        name: name of the record, for the error.
        file: name of the file, for the error.

    Raises:
        CorruptFileError: in place of the error that a missing or wrong field raises.
    """
    try:
        yield
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        raise CorruptFileError(
            f"{file or 'it'} is damaged: it does not have the fields of a {name}: {error!r}"
        ) from error


def text_of(value: Any) -> str:
    """The value, which must be a string (TypeError)."""
    if not isinstance(value, str):
        raise TypeError(f"{value!r} in the place of a text")
    return value


def texts_of(values: Iterable[Any] | None) -> tuple[str, ...]:
    """The values, which must be strings (TypeError); none for None."""
    return tuple(map(text_of, values or ()))

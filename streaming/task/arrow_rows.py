"""Converts the rows of a caller to Arrow rows with the types that a table stores."""

from collections.abc import Iterator
from typing import Any, TypeAlias

import pyarrow as pa

from table.columns.storable import as_storable, storable_schema
from table.errors import InvalidConfigError, InvalidRecordError, SchemaMismatchError
from table.schema.avro_schema import NO_ROWS

Rows: TypeAlias = Any  # a Table, RecordBatch or RecordBatchReader, a pandas or Polars frame: see `open_rows`


def open_rows(rows: Rows) -> pa.Table | pa.RecordBatchReader:
    """Rows as a table, or as a reader where they come piece by piece.

    Args:
        rows: a `pyarrow.Table`, `RecordBatch` or `RecordBatchReader`, a pandas or Polars frame, or any other object
            with ``__arrow_c_stream__``. The index of a pandas frame is not a column; one with a name is refused.

    Raises:
        InvalidConfigError: the object is none of these, or the index of a pandas frame has a name.
        SchemaMismatchError: a column has a type that cannot be stored.
        InvalidRecordError: a value does not fit into the type in which it is stored. A reader raises it when the value
            is read.
    """
    if isinstance(rows, pa.RecordBatch):
        rows = pa.Table.from_batches([rows])
    if isinstance(rows, pa.Table):
        return _held(rows)
    if _is_frame_of(rows, "pandas"):
        _check_index(rows)
        try:
            table = pa.Table.from_pandas(rows, preserve_index=False)
        except (pa.ArrowException, ValueError, TypeError, OverflowError) as error:
            raise InvalidRecordError(
                f"the pandas frame has a column that Arrow cannot take: {_words_of(error)}: give it a "
                "type of its own, as with frame.astype({'column': 'string'}), and each column one name"
            ) from error
        return _held(table)
    if _is_frame_of(rows, "polars"):  # held, so that the batch can be repeated after a conflict
        _check_objects(rows)
        rows = _read_stream(rows)
        return _held(rows.read_all())
    if not isinstance(rows, pa.RecordBatchReader):
        if not hasattr(rows, "__arrow_c_stream__"):
            raise InvalidConfigError(_refusal(rows))
        rows = _read_stream(rows)
    schema = storable_schema(rows.schema)
    return pa.RecordBatchReader.from_batches(schema, _storable_batches(rows, schema))


def _is_frame_of(rows: Rows, library: str) -> bool:
    """Whether an object is a `DataFrame` of a library, or of a class that is made of it."""
    names = ((one.__module__.partition(".")[0], one.__name__) for one in type(rows).__mro__)
    return (library, "DataFrame") in names


def _check_objects(frame: Rows) -> None:
    """Refuses a Polars frame with Python objects: Arrow would get their addresses."""
    found = [name for name, kind in frame.schema.items() if "Object" in str(kind)]
    if found:
        raise SchemaMismatchError(
            f"the column {found[0]!r} has the type {frame.schema[found[0]]}: cast it, as to String"
        )


def _words_of(error: Exception) -> str:
    """What an error says, without a traceback in its text."""
    texts = [str(error)] if isinstance(error, UnicodeError) else [str(one) for one in error.args]
    return "; ".join(text.strip().splitlines()[-1] for text in texts if text.strip())


def _check_index(frame: Rows) -> None:
    """Refuses a pandas frame whose index has a name: it holds values that would not be written."""
    named = [str(name) for name in frame.index.names if name is not None]
    if named:
        raise InvalidConfigError(
            f"the pandas frame has the index {', '.join(named)}, and an index is not written: frame.reset_index() "
            "makes it a column, frame.reset_index(drop=True) leaves it out"
        )


def _held(rows: pa.Table) -> pa.Table:
    made = as_storable(rows, storable_schema(rows.schema))
    return made if len(made) else made.replace_schema_metadata(NO_ROWS)


def _read_stream(rows: Rows) -> pa.RecordBatchReader:
    try:
        return pa.RecordBatchReader.from_stream(rows)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:  # such as Polars' Int128
        column = next((name for name in getattr(rows, "columns", ()) if not _is_known(rows, name)), None)
        which = "a column" if column is None else f"the column {column!r}"
        kind = "" if column is None else f" {rows[column].dtype}"
        raise SchemaMismatchError(
            f"{which} has a type{kind} that Arrow does not know ({error}): cast it, as to Int64 or Decimal(38, 0)"
        ) from error


def _is_known(frame: Rows, column: str) -> bool:
    """Whether Arrow knows the type of a column of a Polars frame."""
    try:
        return pa.RecordBatchReader.from_stream(frame.select(column)) is not None
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return False


def _storable_batches(reader: pa.RecordBatchReader, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    for batch in reader:
        yield from as_storable(pa.Table.from_batches([batch]), schema).to_batches()


def _refusal(rows: object) -> str:
    kind = f"{type(rows).__module__}.{type(rows).__qualname__}".removeprefix("builtins.")
    way_out = "make one of it, as with pyarrow.Table.from_pylist(rows)"
    if hasattr(rows, "sparkSession"):
        way_out = "write Spark DataFrames with HudiSink"
    elif hasattr(rows, "collect"):  # a lazy frame of Polars
        way_out = "collect it first: rows.collect()"
    elif hasattr(rows, "to_table"):  # a dataset
        way_out = "write rows.scanner().to_reader()"
    elif hasattr(rows, "to_frame"):  # a single column
        way_out = "make a frame of it: rows.to_frame()"
    elif isinstance(rows, Iterator):
        way_out = "pyarrow.RecordBatchReader.from_batches(schema, rows) makes a reader of record batches"
    return (
        "ArrowSink.write takes a pyarrow Table, RecordBatch or RecordBatchReader, or a pandas or Polars frame, not a "
        f"{kind}: {way_out}"
    )

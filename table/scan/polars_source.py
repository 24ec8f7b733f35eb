"""A scan as a Polars lazy frame: Polars passes the columns and the condition it needs, and the scan skips the rest.

Polars passes its own expression. Conditions that compare a column with a value are passed on to the scan, which skips
partitions, files and row groups by them. The whole Polars expression is then applied to the remaining rows. So a
condition that this module does not understand costs only time.
"""

import atexit
import inspect
import json
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from datetime import date, timedelta
from typing import Any

import pyarrow as pa

from table import clock, threads
from table.extras import needs_extra
from table.hudi_table import HudiTable
from table.scan.predicate import with_terms
from table.scan.scan import Scan, make_scan

Term = tuple[str, str, Any]

_OPERATORS = {"Eq": "=", "NotEq": "!=", "Lt": "<", "LtEq": "<=", "Gt": ">", "GtEq": ">="}
_TURNED = {"=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_NUMBERS = ("Int8", "Int16", "Int32", "Int64", "UInt8", "UInt16", "UInt32", "UInt64", "Float32", "Float64")
_EPOCH = date(1970, 1, 1)
_EXIT_S = 2.0  # for which the end of the process waits for reads that a query has let go of
_LEAVE_S = 0.02  # a thread that has ended a read is then out of the interpreter

_OPEN: set[object] = set()  # reads that Polars has begun, in threads of its own


def scan_hudi(source: str | os.PathLike[str] | Scan, storage_options: Mapping[str, Any] | None = None) -> Any:
    """A table as a ``polars.LazyFrame``. Each time it is collected, it reads the table again.

    Args:
        source: a path, for the newest snapshot; or a scan, made by `HudiTable.scan` or `HudiTable.changes`.
        storage_options: for fsspec; a scan has its own.

    Raises:
        TableNotFoundError: when there is no table.
        ImportError: Polars is not installed.
        HudiError: as `Scan.plan`.
    """
    try:
        import polars as pl  # noqa: PLC0415 an extra
        from polars.io.plugins import register_io_source  # noqa: PLC0415
    except ImportError as error:
        raise ImportError(needs_extra("scan_hudi", "polars")) from error
    scan = source if isinstance(source, Scan) else make_scan(HudiTable.open(source, storage_options))
    shown = scan.schema
    # to Polars NaN equals itself and is greater than every number; to Arrow it is neither
    floating = {field.name for field in shown if pa.types.is_floating(field.type)}
    empty: Any = pl.from_arrow(shown.empty_table())

    def read(columns: list[str] | None, predicate: Any, rows: int | None, _batch_size: int | None) -> Iterator[Any]:
        needed = columns
        if columns is not None and predicate is not None:
            needed = list(dict.fromkeys([*columns, *predicate.meta.root_names()]))
        remaining, this = rows, object()
        terms = [term for term in _terms_of(predicate) if term[0] not in floating]
        _OPEN.add(this)
        try:
            _, batches = _narrowed(scan, needed, terms, rows if predicate is None else None).open_batches()
            with closing(batches):
                for batch in batches:
                    frame: Any = pl.from_arrow(batch)
                    frame = frame.filter(predicate) if predicate is not None else frame
                    frame = frame.select(columns) if columns is not None else frame
                    yield frame if remaining is None else frame.head(remaining)
                    remaining = None if remaining is None else remaining - frame.height
                    if remaining is not None and remaining <= 0:
                        return
        finally:
            _OPEN.discard(this)

    options: dict[str, Any] = {"schema": empty.schema, "is_pure": scan.as_of is not None}
    if "explain_name" in inspect.signature(register_io_source).parameters:  # not in older versions
        options["explain_name"] = "hudistream"
    return register_io_source(read, **options)


@atexit.register
def _wait_for_reads() -> None:
    """Waits until no thread of Polars is in a read.

    A query that has its first rows ends before its reads do. A thread that comes back into an interpreter that is gone
    ends the process with an error (PyGILState_Release).
    """
    if "polars" not in sys.modules:
        return
    never, end = threads.make_signal(), clock.monotonic_s() + _EXIT_S
    while _OPEN and clock.monotonic_s() < end:
        never.wait(_LEAVE_S)
    never.wait(_LEAVE_S)


def _narrowed(scan: Scan, columns: list[str] | None, terms: list[Term], limit: int | None) -> Scan:
    """The scan with the columns, terms and limit that Polars needs."""
    chosen = scan if columns is None else replace(scan, columns=tuple(columns))
    if scan.limit is not None:
        # the scan's own limit applies before Polars' condition, so the condition must not choose the rows under it
        return chosen if limit is None else replace(chosen, limit=min(limit, scan.limit))
    if limit is not None:
        chosen = replace(chosen, limit=limit)
    return replace(chosen, where=with_terms(scan.where, terms))


def _terms_of(predicate: Any) -> list[Term]:
    """The conditions of an expression that this module understands. Each is true for every row that Polars wants."""
    if predicate is None:
        return []
    try:
        return list(_conjuncts(json.loads(predicate.meta.serialize(format="json"))))
    except Exception:  # noqa: BLE001 Polars may spell expressions differently tomorrow; rows are right either way
        return []


def _conjuncts(node: Any) -> Iterator[Term]:
    found = node.get("BinaryExpr")
    if found is not None and found["op"] in ("And", "LogicalAnd"):
        yield from _conjuncts(found["left"])
        yield from _conjuncts(found["right"])
        return
    term = _comparison(found) if found is not None else _membership(node.get("Function"))
    if term is not None:
        yield term


def _comparison(found: Any) -> Term | None:
    operator = _OPERATORS.get(found["op"])
    if operator is None:
        return None
    for column, literal, spelled in (("left", "right", operator), ("right", "left", _TURNED[operator])):
        value = _value(found[literal])
        if "Column" in found[column] and value is not None:
            return found[column]["Column"], spelled, value
    return None


def _membership(found: Any) -> Term | None:
    """``column.is_in([…])``: Polars writes the list as an Arrow stream."""
    if not isinstance(found, dict) or "IsIn" not in (found.get("function", {}).get("Boolean") or {}):
        return None
    column, listed = found["input"]
    stream = listed["Literal"]["Scalar"]["List"]
    values = pa.ipc.open_stream(pa.py_buffer(bytes(stream))).read_all().column(0).to_pylist()
    flat = values[0] if len(values) == 1 and isinstance(values[0], list) else values
    return None if any(value is None for value in flat) else (column["Column"], "in", flat)


def _value(node: Any) -> Any:
    """The value of a literal; None if it is null, or of a form that is not understood."""
    literal = node.get("Literal") if isinstance(node, dict) else None
    if not isinstance(literal, dict):
        return None
    [(kind, value)] = (literal.get("Scalar") or literal.get("Dyn") or {"": None}).items()
    if kind in _NUMBERS or kind in ("String", "Boolean", "Int", "Float"):
        return value
    return _EPOCH + timedelta(days=value) if kind == "Date" else None

"""Looks for record keys in rows that are not in a table: bad rows, and rows that wait to be written."""

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from table.keys.arrow_keys import compute_record_keys
from table.keys.keygen import KeyRules


@dataclass(frozen=True, slots=True)
class KeyCount:
    """How many rows have one of the keys.

    Attributes:
        rows: rows that have one.
        unsure: rows whose key is not known: it is null or empty, or the columns that make it are missing.
    """

    rows: int = 0
    unsure: int = 0

    def __add__(self, other: "KeyCount") -> "KeyCount":
        return KeyCount(self.rows + other.rows, self.unsure + other.unsure)


def missing_key_columns(rows: pa.Table, fields: Sequence[str]) -> tuple[str, ...]:
    """The fields of a record key of which rows have no column."""
    present = {*rows.column_names}
    return tuple(name for name in fields if not {name, name.partition(".")[0]} & present)


def count_keys(rows: pa.Table, fields: Sequence[str], keys: pa.Array) -> KeyCount:
    """Counts the rows that have one of the keys.

    Args:
        rows: rows as a batch brought them (Arrow).
        fields: the fields of the record key.
        keys: record keys, as ``_hoodie_record_key`` has them (string).
    """
    if missing_key_columns(rows, fields):
        return KeyCount(0, len(rows))
    try:
        made = compute_record_keys(KeyRules(tuple(fields)), rows).cast(pa.string())
    except (pa.ArrowException, TypeError, KeyError, ValueError):  # columns of types that make no key
        return KeyCount(0, len(rows))
    found = pc.is_in(made, value_set=keys)
    if len(fields) == 1:  # Hudi's complex key generator names even a single field, in some versions
        named = pc.binary_join_element_wise(f"{fields[0]}:", made, "")
        found = pc.or_(found, pc.is_in(named, value_set=keys))
    has_none = pc.equal(pc.fill_null(made, ""), "")
    return KeyCount(_count(found), _count(has_none))


def _count(flags: pa.ChunkedArray) -> int:
    return int(pc.sum(flags).as_py() or 0)

"""Compares the rows of file groups before and after a range of commits: which were added, changed, deleted (pure).

A row that no commit wrote anew keeps its commit time and sequence number, wherever clusterings and compactions carry
it. So rows that have all three of key, time and number in common are the same row. The others are paired by their keys.
Keys need not be unique: of several rows with one key each is in one pair at most. Where records are without some
columns, or nulls are filled, a late record changes a row that keeps its time and number: values decide there.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from table.columns.same_values import same_rows

# columns beside those of the table; no table has such names
KEY, TIME, NUMBER, UNTIL = "_hudistream_key", "_hudistream_time", "_hudistream_number", "_hudistream_until"
IDENTITY = (KEY, TIME, NUMBER)

Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Rules:
    """When a pair of rows is a change.

    Attributes:
        values: the columns of the table that are compared.
        written: times of the commits of the range that change rows; empty where rows do not say which commit wrote
            them.
        unchanged: whether a row that one of them wrote anew with equal values is a change.
        by_identity: whether rows with the same key, time and number have the same values.
    """

    values: tuple[str, ...]
    written: frozenset[str]
    unchanged: bool = True
    by_identity: bool = True


@dataclass(frozen=True)
class Compared:
    """What became of rows.

    Attributes:
        old: the updated rows before, in the order of `new`.
        new: the updated rows after.
        deleted: rows that are gone.
        inserted: rows that came.
    """

    old: pa.Table
    new: pa.Table
    deleted: pa.Table
    inserted: pa.Table


def compare_rows(before: pa.Table, after: pa.Table, rules: Rules) -> Compared:
    """Compares rows.

    Args:
        before: rows with the columns of `Rules.values` and `IDENTITY`: all that had one of some keys.
        after: rows with the same columns: all that have one of these keys.
        rules: when a pair is a change.
    """
    if rules.by_identity:
        before, after = _without_pairs(before, after, IDENTITY)
    at, other = pair_up(*number_rows(before, after, (KEY,)))
    old, new = before.take(pa.array(at)), after.take(pa.array(other))
    changed = pa.array(_changes(old, new, rules))
    return Compared(old.filter(changed), new.filter(changed), _others(before, at), _others(after, other))


def uncommon_keys(before: pa.Table, after: pa.Table) -> pa.Array:
    """The keys of the rows that are not the same before and after (string array, none twice).

    Args:
        before: rows with the columns of `IDENTITY`.
        after: rows with the same columns.
    """
    unpaired = [rows.column(KEY) for rows in _without_pairs(before, after, IDENTITY)]
    chunks = [chunk for column in unpaired for chunk in column.chunks]
    return pc.unique(pa.chunked_array(chunks, pa.string()))


def number_rows(first: pa.Table, second: pa.Table, names: Sequence[str]) -> tuple[Numbers, Numbers]:
    """Numbers for the rows of two tables: equal where rows are equal in the columns named.

    Args:
        first: with string columns of these names.
        second: with the same columns.
    """
    numbers = np.zeros(len(first) + len(second), np.int64)
    for name in names:
        both = pa.chunked_array([*first.column(name).chunks, *second.column(name).chunks], pa.string())
        encoded = both.dictionary_encode(null_encoding="encode").unify_dictionaries()
        chunks = [chunk.indices.to_numpy() for chunk in encoded.chunks]
        codes = np.concatenate([np.zeros(0, np.int64), *chunks]).astype(np.int64)
        # small numbers again, so that no product overflows
        numbers = np.unique(numbers * (codes.max(initial=0) + 1) + codes, return_inverse=True)[1].reshape(-1)
    return numbers[: len(first)], numbers[len(first) :]


def pair_up(first: Numbers, second: Numbers) -> tuple[Numbers, Numbers]:
    """Pairs entries of equal value: the first of one side with the first of the other, and so on.

    Returns:
        Positions in `first` and in `second`, pair by pair.
    """
    one, other = _ranked(first), _ranked(second)
    most = max(one.max(initial=0), other.max(initial=0)) + 1
    _, at, there = np.intersect1d(first * most + one, second * most + other, assume_unique=True, return_indices=True)
    order = np.argsort(there, kind="stable")
    return at[order].astype(np.int64), there[order].astype(np.int64)


def _ranked(numbers: Numbers) -> Numbers:
    """How many entries of the same value stand before each entry."""
    order = np.argsort(numbers, kind="stable")
    _, starts, counts = np.unique(numbers[order], return_index=True, return_counts=True)
    ranks = np.empty(len(numbers), np.int64)
    ranks[order] = np.arange(len(numbers)) - np.repeat(starts, counts)
    return ranks


def _without_pairs(before: pa.Table, after: pa.Table, names: Sequence[str]) -> tuple[pa.Table, pa.Table]:
    at, other = pair_up(*number_rows(before, after, names))
    return _others(before, at), _others(after, other)


def _others(rows: pa.Table, positions: Numbers) -> pa.Table:
    """The rows at all other positions."""
    kept = np.ones(len(rows), np.bool_)
    kept[positions] = False
    return rows.filter(pa.array(kept))


def _changes(old: pa.Table, new: pa.Table, rules: Rules) -> npt.NDArray[np.bool_]:
    changed: npt.NDArray[np.bool_] = np.zeros(len(new), np.bool_)
    if rules.unchanged and rules.written:
        given = pa.array(sorted(rules.written), pa.string())
        anew = ~same_rows(old.select([TIME, NUMBER]), new.select([TIME, NUMBER]))
        changed = pc.is_in(new.column(TIME), value_set=given).to_numpy() & anew
    # values are compared only where the times do not tell
    at = pa.array(np.flatnonzero(~changed))
    changed[at.to_numpy()] = ~same_rows(old.take(at).select(rules.values), new.take(at).select(rules.values))
    return changed

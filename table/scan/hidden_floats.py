"""NaN and the signs of zero in conditions: what the bounds of a footer do not say.

Arrow passes over a row group whose bounds contradict a condition. No footer counts NaN, and ``[3.0, NaN, 3.0]`` has the
bounds 3.0 and 3.0: Arrow takes them for a guarantee of all rows, and ``f != 3.0`` loses a row. Bounds do not say either
which zeros a chunk has, and `isin` distinguishes them. So where a condition can be true for a NaN or a zero, a row
group stays if the condition can be true for its bounds, or for these values beside its other columns.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from io import BytesIO
from itertools import product

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from table.files.parquet.footer import says_all_bounds
from table.scan.predicate import Predicate, which_may_hold

Leaf = tuple[str, ...]

# a page that differs from its checksum is an error, not other rows
PARQUET = ds.ParquetFileFormat(
    default_fragment_scan_options=ds.ParquetFragmentScanOptions(page_checksum_verification=True)
)
_NAN = float("nan")
_MOST_LEAVES = 3  # of a condition: each makes four times as many cases


@dataclass(frozen=True, eq=False)
class Case:
    """Values that a wanted row can have, and bounds do not show.

    Attributes:
        nan: columns that are NaN.
        zeros: columns that are a zero of one sign.
        known: says so.
    """

    nan: tuple[Leaf, ...]
    zeros: tuple[Leaf, ...]
    known: pc.Expression


@dataclass(frozen=True, eq=False)
class HiddenFloats:
    """For which values that bounds do not show a condition can be true.

    Attributes:
        predicate: the condition.
        schema: every column of the table (Arrow).
        cases: a wanted row can have the values of one of them; its other columns are within their bounds.
        every: whether any row group may hold a wanted row, because there are too many cases.
    """

    predicate: Predicate
    schema: pa.Schema
    cases: tuple[Case, ...]
    every: bool = False


def float_leaves(columns: Iterable[str], schema: pa.Schema) -> list[Leaf]:
    """The floats among columns, and in their structs: Arrow has bounds of these.

    Args:
        columns: names.
        schema: every column of the table (Arrow).
    """
    return [leaf for name in sorted(columns) for leaf in _leaves_of((name,), schema.field(name).type)]


def _leaves_of(path: Leaf, kind: pa.DataType) -> Iterator[Leaf]:
    if pa.types.is_floating(kind):
        yield path
    elif pa.types.is_struct(kind):
        for field in kind:
            yield from _leaves_of((*path, field.name), field.type)


def find_hidden(predicate: Predicate | None, schema: pa.Schema) -> HiddenFloats | None:
    """What bounds hide from a condition; None where they hide nothing that it can ask for.

    Args:
        predicate: the condition.
        schema: every column of the table (Arrow).
    """
    leaves = float_leaves(predicate.columns & set(schema.names), schema) if predicate is not None else []
    if predicate is None or not leaves:
        return None
    if len(leaves) > _MOST_LEAVES:
        return HiddenFloats(predicate, schema, (), every=True)
    held = tuple(case for case in _cases_of(leaves) if _may_hold(predicate, case.known, schema))
    return HiddenFloats(predicate, schema, held) if held else None


def _cases_of(leaves: Sequence[Leaf]) -> Iterator[Case]:
    """Every choice of columns that are NaN, 0.0 or -0.0."""
    for chosen in product((None, _NAN, 0.0, -0.0), repeat=len(leaves)):
        hidden = [(leaf, value) for leaf, value in zip(leaves, chosen, strict=True) if value is not None]
        if hidden:
            nan = tuple(leaf for leaf, value in hidden if math.isnan(value))
            zeros = tuple(leaf for leaf, value in hidden if value == 0.0)
            yield Case(nan, zeros, _all_of([ds.field(*leaf) == value for leaf, value in hidden]))


def _all_of(known: Sequence[pc.Expression]) -> pc.Expression:
    every = known[0]
    for one in known[1:]:
        every &= one
    return every


def _may_hold(predicate: Predicate, known: pc.Expression, schema: pa.Schema) -> bool:
    try:
        return bool(which_may_hold(predicate.expression, [known], schema))
    except (pa.ArrowException, ValueError, TypeError):  # NaN has no whole number: nothing is known
        return True


def unseen_groups(
    hidden: HiddenFloats | None, fragment: ds.ParquetFileFragment, known: pc.Expression
) -> list[int] | None:
    """The row groups of a file that may hold a wanted row, by its footer; None where Arrow finds the same ones.

    Args:
        hidden: of the condition.
        fragment: the file; its footer has been read.
        known: what is true for all its rows.
    """
    if hidden is None:
        return None
    numbers = range(fragment.num_row_groups)
    if hidden.every:
        return list(numbers)
    chunks = _Chunks(fragment.metadata)
    cases = [case for case in hidden.cases if not case.zeros or any(chunks.are_zeros(n, case.zeros) for n in numbers)]
    if not cases:
        return None
    by_arrow = _held(hidden, fragment)
    kept = set(by_arrow)
    footer: pa.Buffer | None = None
    for case in cases:
        groups = {n for n in numbers if n not in kept and chunks.may_have(n, case)}
        if not groups:
            continue
        footer = footer if footer is not None else _footer_alone(fragment.metadata)
        same = PARQUET.make_fragment(pa.BufferReader(footer), partition_expression=known & case.known)
        kept |= set(_held(hidden, same)) & groups
    return sorted(kept) if len(kept) > len(by_arrow) else None


def counts_right(predicate: Predicate | None, fragment: ds.ParquetFileFragment, schema: pa.Schema) -> bool:
    """Whether Arrow may count the rows of a row group by bounds: no float of the condition can be NaN, or be all zeros.

    Of zeros it takes the bound for the value of each row, and `isin` distinguishes the signs.

    Args:
        predicate: the condition; None: all rows.
        fragment: the file; its footer has been read.
        schema: every column of the table (Arrow).
    """
    leaves = float_leaves(predicate.columns & set(schema.names), schema) if predicate is not None else []
    chunks = _Chunks(fragment.metadata) if leaves else None
    return chunks is None or not any(
        chunks.may_all_be_nan(number, [leaf]) or chunks.are_zeros(number, [leaf])
        for leaf in leaves
        for number in range(fragment.num_row_groups)
    )


def _held(hidden: HiddenFloats, fragment: ds.ParquetFileFragment) -> list[int]:
    """The row groups that Arrow does not rule out."""
    return [group.id for group in fragment.subset(hidden.predicate.expression, schema=hidden.schema).row_groups]


def _footer_alone(metadata: pq.FileMetaData) -> pa.Buffer:
    """A file without rows that has this footer, to ask Arrow about another guarantee without a read."""
    sink = BytesIO()
    metadata.write_metadata_file(sink)
    return pa.py_buffer(sink.getvalue())


class _Chunks:
    """The bounds of a footer's chunks."""

    def __init__(self, metadata: pq.FileMetaData) -> None:
        self._metadata = metadata
        schema = metadata.schema
        self._places = {schema.column(number).path: number for number in range(len(schema))}

    @cached_property
    def _tells_nan(self) -> bool:
        """Asked last: it decodes the entries of the footer, a bloom filter among them."""
        return says_all_bounds(self._metadata)

    def _bounds(self, group: int, leaf: Leaf) -> tuple[float, float] | None:
        place = self._places.get(".".join(leaf))
        statistics = self._metadata.row_group(group).column(place).statistics if place is not None else None
        return (statistics.min, statistics.max) if statistics is not None and statistics.has_min_max else None

    def may_all_be_nan(self, group: int, leaves: Iterable[Leaf]) -> bool:
        """Whether one row of a row group may have a NaN in each of these columns; a column that is absent is null."""
        return all(".".join(leaf) in self._places and self._may_be_nan(group, leaf) for leaf in leaves)

    def _may_be_nan(self, group: int, leaf: Leaf) -> bool:
        bounds = self._bounds(group, leaf)
        return bounds is None or not bounds[1] < float("inf") or not self._tells_nan

    def are_zeros(self, group: int, leaves: Iterable[Leaf]) -> bool:
        """Whether all numbers of these columns of a row group are zeros."""
        return all(self._bounds(group, leaf) == (0.0, 0.0) for leaf in leaves)

    def may_have(self, group: int, case: Case) -> bool:
        """Whether one row of a row group may have the values of a case."""
        return self.are_zeros(group, case.zeros) and self.may_all_be_nan(group, case.nan)

"""Merges records of one key, a column at a time (pure; HoodieMergeHandle and the payload classes).

``DefaultHoodieRecordPayload`` orders by event time, ``OverwriteWithLatestAvroPayload`` by commit time;
``PartialUpdateAvroPayload`` fills nulls of the newer record from the older one.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from table.columns.same_values import same_column
from table.columns.take import take_rows, take_values
from table.config.merge_mode import MergeMode
from table.records.present_columns import PRESENT_COLUMN, completed
from table.schema.avro_schema import DELETE_MARKER, META_COLUMNS, RECORD_KEY

ARRIVAL_COLUMN = "_hudistream_arrival"
REMOVES_COLUMN = (
    "_hudistream_removes"  # a delete that ignores the ordering value, for a key that moves to another file group
)

_LONG_RUN = 256  # rows of a run, on average, from which slicing is cheaper than taking row by row

Flags = npt.NDArray[np.bool_]
Positions = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class MergeRules:
    """How records of one key become one.

    Attributes:
        mode: the table's merge semantics.
        ordering_fields: columns that order records, the most significant first; none: records are ordered by arrival.
        deletes_all: every incoming record deletes its key, whatever its ordering value (operation ``delete``).
        orders_deletes: among partial records, deletes are compared by ordering value, too, and no null is filled from
            them. Readers do so (FileGroupRecordBuffer), from table version 9 on writers, too (PartialUpdateHandler). In
            earlier versions deletes of partial records ignore the order when they are written.
    """

    mode: MergeMode = MergeMode.EVENT_TIME
    ordering_fields: tuple[str, ...] = ()
    deletes_all: bool = False
    orders_deletes: bool = False

    @property
    def compares(self) -> bool:
        """Whether ordering values decide which record stays; otherwise the one that arrived last does."""
        return bool(self.ordering_fields) and self.mode.compares_ordering and not self.deletes_all

    @property
    def fills(self) -> bool:
        """Whether nulls of the newer record are filled from the older one."""
        return self.mode.fills_nulls and not self.deletes_all


@dataclass(frozen=True)
class MergedRows:
    """Outcome of merging a run of stored rows with incoming ones.

    Attributes:
        rows: the stored rows in their order, some replaced, some deleted.
        updated: number of replaced rows.
        deleted: number of deleted rows.
        gone: positions of the deleted rows in the stored ones.
        changed: positions of the replaced rows in the stored ones.
        fresh: the row that each of them became.
    """

    rows: pa.Table
    updated: int
    deleted: int
    gone: Positions
    changed: Positions
    fresh: pa.Table


@dataclass(frozen=True)
class MergeOutcome:
    """The decision for stored rows whose keys incoming records have.

    Attributes:
        rows: positions of these stored rows, ascending.
        wins: which of them are replaced by another row, or deleted.
        lost: which of them are deleted.
        fresh: table of the replacing rows.
        chosen: for each of these stored rows, the position of its replacing row in `fresh`.
    """

    rows: Positions
    wins: Flags
    lost: Flags
    fresh: pa.Table
    chosen: Positions

    @property
    def updated(self) -> int:
        """Number of stored rows that are replaced and not deleted."""
        return int((self.wins & ~self.lost).sum())


def delete_flags(rows: pa.Table, rules: MergeRules) -> Flags:
    """Which incoming records delete their key."""
    if rules.deletes_all:
        return np.ones(len(rows), np.bool_)
    if DELETE_MARKER not in rows.column_names or not pa.types.is_boolean(rows.schema.field(DELETE_MARKER).type):
        return np.zeros(len(rows), np.bool_)
    flags: Flags = pc.fill_null(rows.column(DELETE_MARKER), False).to_numpy()
    return flags


def can_order(arrow: pa.DataType) -> bool:
    """Whether values of that type have an order that Java and Arrow agree on."""
    return not (pa.types.is_nested(arrow) or pa.types.is_binary(arrow) or pa.types.is_null(arrow))


def sortable(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Values that compare as Java compares them: NaN is the greatest float, and -0.0 is less than 0.0."""
    if not pa.types.is_floating(column.type):
        return column
    doubles = column.cast(pa.float64())
    values = pc.fill_null(doubles, 0.0).to_numpy()
    bits = np.where(np.isnan(values), np.float64(np.nan), values).view(np.int64)
    ordered = bits ^ ((bits >> 63) & np.int64(2**63 - 1))
    return pa.chunked_array([pa.array(ordered, mask=pc.is_null(doubles).to_numpy())])


def merge_rows(
    stored: pa.Table, incoming: pa.Table, found: Positions, rules: MergeRules, removes: Flags | None = None
) -> MergedRows:
    """Replaces or removes stored rows.

    Args:
        stored: rows of a base file, any schema.
        incoming: rows of the same schema, no key twice.
        found: for each stored row the position of its key in `incoming`, or -1.
        rules: decide which record wins. On ties, and where the stored row has no ordering value, the incoming one wins.
        removes: which incoming records delete their key whatever the ordering value.
    """
    outcome = decide_merge(stored, incoming, found, rules, removes)
    if not len(outcome.rows):
        return MergedRows(stored, 0, 0, outcome.rows, outcome.rows, stored.slice(0, 0))
    keep = np.ones(len(stored), np.bool_)
    keep[outcome.rows] = ~outcome.lost
    deleted = int(outcome.lost.sum())
    # takes only the rows that are needed here: `outcome.fresh` may have many times more rows than `stored`
    fresh = take_rows(outcome.fresh.select(stored.column_names), outcome.chosen[outcome.wins])
    rows = _replaced(stored, outcome, fresh, keep if deleted else None)
    changed, stays = outcome.rows[outcome.wins & ~outcome.lost], pa.array(~outcome.lost[outcome.wins])
    return MergedRows(
        rows, outcome.updated, deleted, outcome.rows[outcome.lost], changed, fresh.filter(stays) if deleted else fresh
    )


def decide_merge(
    stored: pa.Table, incoming: pa.Table, found: Positions, rules: MergeRules, removes: Flags | None = None
) -> MergeOutcome:
    """Decides which record wins if a stored row and an incoming record share a key. Arguments as for `merge_rows`.

    Only the ordering columns of the stored rows are read; partial updates read all columns. Incoming records without
    columns get them from the stored row.
    """
    hit = np.flatnonzero(found >= 0)
    chosen = found[hit]
    newer = np.ones(len(chosen), np.bool_)
    if rules.ordering_fields:
        order = list(rules.ordering_fields)
        old, new = take_rows(stored.select(order), hit), take_rows(incoming.select(order), chosen)
        newer = newer_than_stored(old, new, rules)
    deletes = delete_flags(incoming, rules)[chosen]
    if removes is not None:
        newer, deletes = newer | removes[chosen], deletes | removes[chosen]
    if PRESENT_COLUMN in incoming.column_names:
        fresh = completed(take_rows(stored, hit), take_rows(incoming, chosen), newer)
        return MergeOutcome(hit, newer, newer & deletes, fresh, np.arange(len(hit)))
    if rules.fills:
        records = take_rows(incoming.select(stored.column_names), chosen)
        fresh = filled_from_older(take_rows(stored, hit), records, newer)
        wins = ~deletes | newer | (not rules.orders_deletes)
        return MergeOutcome(hit, wins, wins & deletes, fresh, np.arange(len(hit)))
    return MergeOutcome(hit, newer, newer & deletes, incoming, chosen)


def changed_columns(stored: pa.Table, outcome: MergeOutcome) -> pa.Table:
    """The columns in which at least one row gets another value: all their rows, with the new values.

    Args:
        stored: rows of a base file, with the columns that may change.
        outcome: the decision for these rows; it deletes none.
    """
    if not outcome.wins.any():
        return stored.select([])
    rows = pa.array(outcome.rows[outcome.wins])
    fresh = take_rows(outcome.fresh, outcome.chosen[outcome.wins])
    names = [
        name for name in stored.column_names if not same_column(stored.column(name).take(rows), fresh.column(name))
    ]
    return _replaced(stored.select(names), outcome, fresh.select(names))


def _replaced(stored: pa.Table, outcome: MergeOutcome, fresh: pa.Table, keep: Flags | None = None) -> pa.Table:
    """The stored rows with the winners, `fresh`, in their places."""
    take = np.arange(len(stored))
    take[outcome.rows[outcome.wins]] = len(stored) + np.arange(int(outcome.wins.sum()))
    both = pa.concat_tables([stored, _encoded_like(fresh, stored.schema)]).unify_dictionaries()
    return _gathered(both, take if keep is None else take[keep])


def _encoded_like(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """The rows, with dictionary-encoded columns where the schema has dictionaries."""
    for number, (own, field) in enumerate(zip(rows.schema, schema, strict=True)):
        if pa.types.is_dictionary(field.type) and not pa.types.is_dictionary(own.type):
            rows = rows.set_column(number, own.with_type(field.type), rows.column(number).dictionary_encode())
    return rows


def _gathered(rows: pa.Table, positions: Positions) -> pa.Table:
    """Rows by position. If most positions are consecutive, as when few rows change, whole runs are copied."""
    starts = np.flatnonzero(np.diff(positions, prepend=-2) != 1)
    if len(starts) * _LONG_RUN >= len(positions):
        return take_rows(rows.combine_chunks(), positions)
    ends = [*starts[1:].tolist(), len(positions)]
    runs = zip(positions[starts].tolist(), starts.tolist(), ends, strict=True)
    return pa.concat_tables([rows.slice(first, end - start) for first, start, end in runs]).combine_chunks()


def newer_than_stored(stored: pa.Table, incoming: pa.Table, rules: MergeRules) -> Flags:
    """For each pair of rows, whether the incoming record is as new as the stored one, or newer.

    Several fields are compared one after another, as far as they are equal (ArrayComparable). A stored row without
    one of its values is the older one.
    """
    if not rules.compares:
        return np.ones(len(stored), np.bool_)
    *before, last = rules.ordering_fields
    old, new = sortable(stored.column(last)), sortable(incoming.column(last))
    newer, lacks = pc.less_equal(old, new), pc.is_null(old)
    for name in reversed(before):
        old, new = sortable(stored.column(name)), sortable(incoming.column(name))
        newer = pc.or_kleene(pc.less(old, new), pc.and_kleene(pc.equal(old, new), newer))
        lacks = pc.or_(lacks, pc.is_null(old))
    flags: Flags = pc.fill_null(pc.or_kleene(newer, lacks), False).to_numpy()
    return flags


def filled_from_older(old: pa.Table, new: pa.Table, newer: Flags) -> pa.Table:
    """The newer record of each pair, its nulls filled from the older one. Meta columns are the incoming record's."""
    choose = pa.array(newer)
    columns = []
    for name in old.column_names:
        first, second = old.column(name), new.column(name)
        if name in META_COLUMNS:
            columns.append(second)
            continue
        positions = np.arange(len(old))
        valid_old, valid_new = (pc.is_valid(column).to_numpy() for column in (first, second))
        use_new = np.where(choose, valid_new | ~valid_old, valid_new & ~valid_old)
        both = pa.chunked_array([*first.chunks, *second.chunks], first.type)
        columns.append(take_values(both, np.where(use_new, len(old) + positions, positions)))
    return pa.table(columns, schema=old.schema)


def combine_rows(rows: pa.Table, rules: MergeRules) -> pa.Table:
    """One record per key, of records that arrive together (``HoodieWriteHelper.deduplicateRecords``).

    Args:
        rows: with ``_hoodie_record_key``, and ``_hudistream_arrival`` (int64), which orders records with equal ordering
            values; without this column, the rows are in order of arrival.
        rules: by event time, the record with the greatest ordering value stays, and the last one of equals; by commit
            time, the last record stays. Partial records, and records without some columns, are merged two by two.

    Returns:
        The records that stay, in order of arrival.
    """
    keys = rows.column(RECORD_KEY).combine_chunks().dictionary_encode()
    if isinstance(keys, pa.ChunkedArray):
        keys = keys.combine_chunks()
    if len(keys.dictionary) == len(rows):
        return rows
    groups = keys.indices.to_numpy()
    numbered = ARRIVAL_COLUMN in rows.column_names
    arrival = rows.column(ARRIVAL_COLUMN).to_numpy() if numbered else np.arange(len(rows))
    if rules.fills or PRESENT_COLUMN in rows.column_names:
        return _folded(rows, groups, arrival, rules)
    order = np.lexsort((arrival, *_ranks(rows, rules), groups))
    last = np.append(groups[order][1:] != groups[order][:-1], True)
    return take_rows(rows, np.sort(order[last]))


def _ranks(rows: pa.Table, rules: MergeRules) -> Iterator[Positions]:
    """For each ordering field, the least significant first, the rank of each row's value: equal values share a rank.

    Nulls are lowest.
    """
    for name in reversed(rules.ordering_fields) if rules.compares else ():
        values = sortable(rows.column(name)).combine_chunks()
        ranks: Positions = pc.rank(values, tiebreaker="min").to_numpy().astype(np.int64)
        ranks[pc.is_null(values).to_numpy(zero_copy_only=False)] = 0
        yield ranks


def _folded(rows: pa.Table, groups: npt.NDArray[np.int32], arrival: Positions, rules: MergeRules) -> pa.Table:
    """Records of a key merged two by two in order of arrival, all keys side by side."""
    order = np.lexsort((arrival, groups))
    starts = np.flatnonzero(np.diff(groups[order], prepend=-1))
    counts = np.diff(np.append(starts, len(order)))
    position = np.argsort(order[starts], kind="stable")
    starts, counts = starts[position], counts[position]
    merged = take_rows(rows, order[starts])
    for turn in range(1, int(counts.max())):
        more = np.flatnonzero(counts > turn)
        old, new = take_rows(merged, more), take_rows(rows, order[starts[more] + turn])
        newer = newer_than_stored(old, new, rules)
        is_partial = PRESENT_COLUMN in rows.column_names
        filled = completed(old, new, newer) if is_partial else filled_from_older(old, new, newer)
        count = np.arange(len(more))
        if rules.orders_deletes:
            as_is = delete_flags(new, rules) | delete_flags(old, rules)
            choice = np.where(as_is, np.where(newer, len(more), 2 * len(more)), 0)
        else:
            # no null of a delete is filled, nor any from a newer delete: the record that arrived last stays as it is
            as_is = np.where(newer, delete_flags(new, rules), delete_flags(old, rules))
            choice = np.where(as_is, len(more), 0)
        if as_is.any():
            filled = take_rows(pa.concat_tables([filled, new, old]), choice + count)
        place = np.arange(len(merged))
        place[more] = len(merged) + np.arange(len(more))
        merged = take_rows(pa.concat_tables([merged, filled]).combine_chunks(), place)
    return merged


def last_of_each_key(rows: pa.Table) -> pa.Table:
    """The last row of each key. The rows are in order of arrival, before and after."""
    return combine_rows(rows, MergeRules(MergeMode.COMMIT_TIME))


def last_of_each_run(rows: pa.Table, next_key: str | None) -> pa.Table:
    """The last row of each run of equal keys.

    Args:
        rows: sorted by ``_hoodie_record_key``, then so that the row that stays is the last of its key.
        next_key: key of the row that follows, or None at the end.
    """
    keys = rows.column(RECORD_KEY).combine_chunks()
    if isinstance(keys, pa.ChunkedArray):
        keys = pa.concat_arrays(keys.chunks)
    keep = np.ones(len(keys), np.bool_)
    if len(keys) > 1:
        keep[:-1] = pc.not_equal(keys.slice(0, len(keys) - 1), keys.slice(1)).to_numpy(zero_copy_only=False)
    if len(keys) and next_key is not None:
        keep[-1] = keys[-1].as_py() != next_key
    return rows.filter(pa.array(keep))

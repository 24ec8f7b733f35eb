"""Which of two records of one key stays: pure, a column at a time (HoodieMergeHandle, DefaultHoodieRecordPayload)."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from table.schema import RECORD_KEY


@dataclass(frozen=True)
class MergedBatch:
    """Outcome of merging a run of stored rows with incoming ones.

    Attributes:
        rows: the stored rows, some replaced, in the stored order.
        matched: positions of incoming rows whose key was found, whether or not they won.
        updated: how many stored rows were replaced.
    """

    rows: pa.Table
    matched: npt.NDArray[np.int64]
    updated: int


def merge_stored_rows(
    stored: pa.Table, incoming: pa.Table, ordering_field: str | None, *, event_time_order: bool
) -> MergedBatch:
    """Replaces stored rows by incoming rows of the same key.

    Args:
        stored: rows of a base file, any schema with ``_hoodie_record_key``.
        incoming: rows of the same schema, no key twice.
        ordering_field: column that orders records, or None.
        event_time_order: the stored row stays when its ordering value is greater; on ties, and where
            it has none, the incoming row wins. Without it the incoming row always wins.

    Returns:
        A row for each stored row: every stored duplicate of a key is replaced.
    """
    positions = pc.index_in(stored.column(RECORD_KEY), value_set=incoming.column(RECORD_KEY).combine_chunks())
    found = positions.fill_null(-1).to_numpy()
    hit = found >= 0
    if not hit.any():
        return MergedBatch(stored, np.zeros(0, np.int64), 0)
    wins = hit.copy()
    if event_time_order and ordering_field is not None:
        old = stored.column(ordering_field).filter(pa.array(hit))
        new = incoming.column(ordering_field).take(pa.array(found[hit]))
        newer = pc.or_kleene(pc.less_equal(old, new), pc.is_null(old))
        wins[hit] = pc.fill_null(newer, False).to_numpy()
    take = np.where(wins, len(stored) + found, np.arange(len(stored)))
    both = pa.concat_tables([stored, incoming]).unify_dictionaries().combine_chunks()
    return MergedBatch(both.take(pa.array(take)), np.unique(found[hit]), int(wins.sum()))


def last_of_each_key(rows: pa.Table) -> pa.Table:
    """Of rows in order of arrival the last one of each key, in order of arrival."""
    keys = rows.column(RECORD_KEY).combine_chunks()
    if isinstance(keys, pa.ChunkedArray):
        keys = pa.concat_arrays(keys.chunks)
    table = pa.table({"key": keys, "position": pa.array(np.arange(len(keys)))})
    last = table.group_by("key").aggregate([("position", "max")]).column("position_max").to_numpy()
    return rows.take(pa.array(np.sort(last))) if len(last) < len(rows) else rows


def last_of_each_run(rows: pa.Table, next_key: str | None) -> pa.Table:
    """Of rows sorted by key the last one of each run of equal keys.

    Args:
        rows: sorted by ``_hoodie_record_key``, then by what decides among equal keys.
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

"""Decides which row groups of a file are copied, patched or decoded when rows change and are added (pure)."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from table.files.base.tail_merge import CHEAP_GROUP_BYTES, is_settled, plan_tail_merge

# row groups of at least this part of a full one are patched, so that most columns are copied; smaller ones are merged
_WORTH_PART = 8
_MOST_FULL = 2  # a patched row group is in memory as a whole: larger ones are decoded in pieces


@dataclass(frozen=True)
class MergePlan:
    """Numbers of the row groups that are not copied unchanged.

    Attributes:
        patched: row groups, in file order, of which all but the changed columns are copied. Small unchanged row groups
            after a patched one are among them, so that they stay at the end of the file: only small row groups at the
            end are merged.
        decoded: row groups whose rows are merged with the records and encoded together with the new rows. Small row
            groups at the end of the file are among them if that reduces the number of small row groups.
    """

    patched: tuple[int, ...]
    decoded: tuple[int, ...]


def plan_merge(
    group_rows: Sequence[int],
    touched: Collection[int],
    losing: Collection[int],
    new_rows: int,
    row_bytes: int,
    row_group_bytes: int,
) -> MergePlan:
    """Decides for each row group whether it is copied, patched or decoded.

    Args:
        group_rows: rows of each row group, in file order.
        touched: row groups with rows that change.
        losing: row groups in `touched` that may lose rows.
        new_rows: number of added rows.
        row_bytes: about how many bytes a stored row takes in memory (Arrow).
        row_group_bytes: bytes of a full row group.
    """
    full, cheap = max(1, row_group_bytes // row_bytes), CHEAP_GROUP_BYTES // row_bytes
    sizes = range(-(-full // _WORTH_PART), _MOST_FULL * full + 1)
    decoded = {number for number in touched if number in losing or group_rows[number] not in sizes}
    rest = [number for number in range(len(group_rows)) if number not in decoded]
    pending = new_rows + sum(group_rows[number] for number in decoded)
    kept = plan_tail_merge([group_rows[number] for number in rest], pending, full, cheap) if pending else len(rest)
    patched = [number for number in rest[:kept] if number in touched]
    lagging = [
        number
        for number in rest[:kept]
        if patched and number > patched[0] and number not in touched and not is_settled(group_rows[number], full)
    ]
    return MergePlan(tuple(sorted(patched + lagging)), tuple(sorted(decoded.union(rest[kept:]))))

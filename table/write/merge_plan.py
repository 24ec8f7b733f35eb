"""What becomes of a file's row groups when some of their rows change and others are added (pure)."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from table.files.base.tail_merge import CHEAP_GROUP_BYTES, is_settled, plan_tail_merge

# row groups from this part of a full one on are kept apart for the sake of what is copied; smaller ones grow together
_WORTH_PART = 8
_MOST_FULL = 2  # a patched row group is in memory whole: one that was written by a larger bound is taken in pieces


@dataclass(frozen=True)
class MergePlan:
    """Numbers of row groups. The others are copied as they are.

    Attributes:
        patched: copied but for the columns that change, in their order. Small ones behind them in which nothing changes
            are among them: merged are only those at the end of a file, so that is where small ones stay.
        decoded: their rows are merged and encoded together with the new ones; small ones at the end of the file are
            among them where that makes fewer of them.
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
    """Decides for each row group.

    Args:
        group_rows: rows of each row group, in file order.
        touched: row groups with rows that change.
        losing: of these, the ones that may lose rows.
        new_rows: rows that are added.
        row_bytes: of a stored row (Arrow), about.
        row_group_bytes: of a full row group.
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

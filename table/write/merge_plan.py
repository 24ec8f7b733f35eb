"""What becomes of a file's row groups when some of their rows change and others are added (pure)."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from table.files.tail_merge import CHEAP_GROUP_BYTES, plan_tail_merge

# row groups from this part of a full one on are kept apart for the sake of what is copied; smaller ones grow together
_WORTH_PART = 16
_MOST_FULL = 2  # a patched row group is in memory whole: one that was written by a larger bound is taken in pieces


@dataclass(frozen=True)
class MergePlan:
    """Numbers of row groups. The others are the writer's: it copies them, or merges small ones with the new rows.

    Attributes:
        patched: copied but for the columns that change.
        decoded: their rows are merged and encoded together with the new ones.
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
        row_bytes: of a row (Arrow).
        row_group_bytes: of a full row group.
    """
    full, cheap = max(1, row_group_bytes // row_bytes), CHEAP_GROUP_BYTES // row_bytes
    kept = plan_tail_merge(group_rows, new_rows, full, cheap) if new_rows else len(group_rows)
    patched = tuple(
        number
        for number in sorted(touched)
        if number < kept
        and number not in losing
        and full <= _WORTH_PART * group_rows[number]
        and group_rows[number] <= _MOST_FULL * full
    )
    if not patched:
        return MergePlan((), tuple(sorted(touched)))
    decoded = set(touched).difference(patched).union(range(kept, len(group_rows)))
    return MergePlan(patched, tuple(sorted(decoded)))

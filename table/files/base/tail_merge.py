"""Chooses the row groups at a file's end that are encoded again when rows are added (pure).

Row groups of a file are kept like the runs of a tiered log-structured merge tree. A group belongs to a
tier by its size, each tier eight times as large as the one below. When new rows would be the eighth
group of their tier, the other groups of the tier are decoded and encoded together with the new rows, into a group
of the next tier. As soon as all small groups together make a settled group, they are encoded into one, which is
never encoded again. So a row is encoded again at most once per tier, however often rows are added to its file. A file
has at most seven small groups per tier.
"""

from collections.abc import Sequence

# below this many bytes (Arrow, in memory) the cost of a row group is that of starting it
CHEAP_GROUP_BYTES = 256 * 1024
GROUPS_A_TIER = 8


def is_settled(rows: int, full_rows: int) -> bool:
    """Whether a row group is never encoded again: from two fifths of a full one on.

    Rows that fill two row groups make each of them just over half full. The number of rows of a full group is an
    estimate, and such a group must not look small by it.
    """
    return 5 * rows >= 2 * full_rows


def plan_tail_merge(group_rows: Sequence[int], new_rows: int, full_rows: int, cheap_rows: int = 0) -> int:
    """How many leading row groups of a file stay as they are; the rest is encoded again with the new rows.

    Args:
        group_rows: rows of each row group, in file order.
        new_rows: rows to be added.
        full_rows: rows of a full row group. Settled groups stay as they are. The rows that are read back from the file
            are at most this many (the memory bound).
        cheap_rows: groups of at most this many rows are the lowest tier, which holds one group at most.

    Returns:
        Number of leading groups to copy.
    """
    small = len(group_rows)
    reach = 0
    while small and not is_settled(group_rows[small - 1], full_rows) and reach + group_rows[small - 1] <= full_rows:
        small -= 1
        reach += group_rows[small]
    if is_settled(reach + new_rows, full_rows):
        return small  # the small groups and the new rows make a settled group
    kept = len(group_rows)
    while kept > small and group_rows[kept - 1] <= cheap_rows:
        kept -= 1
    while True:
        tier = _tier(sum(group_rows[kept:]) + new_rows, cheap_rows)
        start = kept
        while start > small and _tier(group_rows[start - 1], cheap_rows) <= tier:
            start -= 1
        if kept - start < GROUPS_A_TIER - 1:
            return kept
        kept = start


def _tier(rows: int, cheap_rows: int) -> int:
    tier, bound = 0, max(1, cheap_rows)
    while rows > bound:
        tier, bound = tier + 1, bound * GROUPS_A_TIER
    return tier

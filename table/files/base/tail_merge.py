"""Which row groups at a file's end are encoded again when rows are added to it (pure).

Row groups of a file are kept like the runs of a tiered log-structured merge tree. A group belongs to a
tier by its size, each tier eight times as large as the one below. Only when new rows would be the eighth
group of their tier are the others decoded and encoded together with them, into a group of the next tier;
and as soon as all small groups together make a settled one, they become it and are left alone for good.
So a row is encoded again at most once per tier, however often its file is topped up, and a file has at most
seven small groups per tier.
"""

from collections.abc import Sequence

# below this many bytes (Arrow, in memory) a group's price is that of starting a row group at all
CHEAP_GROUP_BYTES = 256 * 1024
GROUPS_A_TIER = 8


def is_settled(rows: int, full_rows: int) -> bool:
    """Whether a row group is left alone for good: from two fifths of a full one on.

    Rows that made two row groups made each just over half full. How many rows are full is an estimate, by which such
    a group must not look small.
    """
    return 5 * rows >= 2 * full_rows


def plan_tail_merge(group_rows: Sequence[int], new_rows: int, full_rows: int, cheap_rows: int = 0) -> int:
    """How many of a file's row groups stay as they are; those behind are encoded again with the new rows.

    Args:
        group_rows: rows of each row group, in file order.
        new_rows: rows to be added.
        full_rows: rows of a full row group; a settled one stays for good, and what is gathered from the file
            does not exceed a full one (the memory bound).
        cheap_rows: groups of at most so many rows are the lowest tier, which holds one group at most.

    Returns:
        Number of leading groups that are copied.
    """
    small = len(group_rows)
    reach = 0
    while small and not is_settled(group_rows[small - 1], full_rows) and reach + group_rows[small - 1] <= full_rows:
        small -= 1
        reach += group_rows[small]
    if is_settled(reach + new_rows, full_rows):
        return small  # together they make a settled group
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

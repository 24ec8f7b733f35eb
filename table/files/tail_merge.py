"""Which row groups at a file's end are encoded anew when rows are added to it (pure).

Row groups of a file are kept like the runs of a log-structured merge tree: a top-up decodes the small
groups at the end and encodes them together with the new rows into one. A group is taken along while it is
not larger than what has been gathered so far, so whatever is encoded anew at least doubles the group it
lies in: a row is encoded at most log2(full group / top-up) times more, however often its file is topped
up, and of the groups that stay small each is larger than all behind it together.
"""

from collections.abc import Sequence

# below this many bytes (Arrow, in memory) a group's price is that of starting a row group at all
CHEAP_GROUP_BYTES = 256 * 1024


def plan_tail_merge(group_rows: Sequence[int], new_rows: int, full_rows: int, cheap_rows: int = 0) -> int:
    """How many of a file's row groups stay as they are; those behind are encoded anew with the new rows.

    Args:
        group_rows: rows of each row group, in file order.
        new_rows: rows to be added.
        full_rows: rows of a full row group; one of at least half of it stays for good, and what is
            gathered from the file does not exceed it (the memory bound).
        cheap_rows: groups of at most so many rows are gathered whatever the size of the top-up.

    Returns:
        Number of leading groups that are copied.
    """
    kept, gathered = len(group_rows), 0
    while kept:
        last = group_rows[kept - 1]
        is_full = 2 * last >= full_rows
        if is_full or last > max(gathered + new_rows, cheap_rows) or gathered + last > full_rows:
            break
        gathered += last
        kept -= 1
    return kept

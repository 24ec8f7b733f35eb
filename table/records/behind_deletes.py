"""Finds records that may not go to the log of their file group, because it holds a delete of their key (pure).

Readers of a log keep one record of each key, and compare it with the row of the base file. If a record follows a delete
of the same key, readers forget the delete, and the deleted row comes back if its ordering value is greater than the
record's. Hudi 1.0.2 fails if a delete without an ordering value stands before a record that has one.
"""

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from table.records.merge import MergeRules, delete_flags, newer_than_stored

Flags = npt.NDArray[np.bool_]
Positions = npt.NDArray[np.int64]


def may_forget_deletes(rules: MergeRules) -> bool:
    """Whether a record that follows the delete of its key can bring back the deleted row.

    It cannot if the record that arrived last stays.
    """
    return rules.compares


def any_behind_delete(incoming: pa.Table, removes: Flags, deletes: pa.Table, rules: MergeRules) -> bool:
    """Whether a record must be merged into the base file, because readers of the log would show a wrong row.

    Args:
        incoming: records, with the ordering columns.
        removes: which of these records delete their key whatever the ordering value.
        deletes: one row for each delete of the log: column `at`, the position in `incoming` of the record with its key;
            `removes`, whether the delete ignores the ordering value; and the ordering columns.
        rules: decide which record wins.
    """
    at: Positions = deletes.column("at").to_numpy()
    if not len(at):
        return False
    unordered: Flags = deletes.column("removes").to_numpy()
    order = list(rules.ordering_fields)
    is_older = ~newer_than_stored(deletes.select(order), incoming.select(order).take(pa.array(at)), rules)
    is_row = ~delete_flags(incoming, rules)[at]
    # a delete with an ordering value may lose against the base row; a delete without one must remove that row
    wrong = ~removes[at] & (unordered | (is_row & (is_older | rules.fills)))
    return bool(wrong.any())

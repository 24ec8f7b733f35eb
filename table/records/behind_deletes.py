"""Which records come behind a delete that the log of their file group holds, and may not go to that log (pure).

Readers of a log keep one record of each key, and compare it with the row of the base file. So a delete is forgotten
once a later record of its key stands behind it, and the deleted row comes back where its ordering value is greater.
Hudi 1.0.2 fails where a delete without an ordering value stands before a record that has one.
"""

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from table.records.merge import MergeRules, delete_flags, newer_than_stored

Flags = npt.NDArray[np.bool_]
Positions = npt.NDArray[np.int64]


def may_forget_deletes(rules: MergeRules) -> bool:
    """Whether a record behind the delete of its key can bring back what was deleted.

    Where the record that arrived last stays, it cannot.
    """
    return rules.compares


def any_behind_delete(incoming: pa.Table, removes: Flags, deletes: pa.Table, rules: MergeRules) -> bool:
    """Whether a record must be merged into the base file, because readers of the log would show another row.

    Args:
        incoming: records, with the ordering column.
        removes: which of them remove their key whatever the order.
        deletes: for each delete of the log the record of its key: column `at`, its position in `incoming`;
            `removes`, whether the delete takes part in no order; and the ordering column.
        rules: who wins.
    """
    assert rules.ordering_field is not None
    at: Positions = deletes.column("at").to_numpy()
    if not len(at):
        return False
    unordered: Flags = deletes.column("removes").to_numpy()
    order = [rules.ordering_field]
    is_older = ~newer_than_stored(deletes.select(order), incoming.select(order).take(pa.array(at)), rules)
    is_row = ~delete_flags(incoming, rules)[at]
    # a delete with an ordering value may lose against the base row, of which one without is to leave nothing
    wrong = ~removes[at] & (unordered | (is_row & (is_older | rules.fills)))
    return bool(wrong.any())

"""Faults of other engines that are passed over, by name; tests/agreement/test_known_faults.py pins each (pure)."""

import math
from collections.abc import Callable
from dataclasses import dataclass

from .cases import HUDIS, ORDER, PATH, PATH_2

FLOATS = ("float", "double")
LISTS = frozenset(("list", "floats", "structs", "map"))
ENCODED = "hoodie.datasource.write.partitionpath.urlencode"
HIVE_STYLE = "hoodie.datasource.write.hive_style_partitioning"
DELETES = ("delete", "delete_where")


@dataclass(frozen=True)
class Known:
    """A fault of another engine.

    Attributes:
        name: what the totals of the result call it.
        readers: beginnings of the names of the readers that have it.
        error: a part of what is raised; None: rows are wrong.
        about: of a case and a question, whether it can show there.
    """

    name: str
    readers: tuple
    error: str | None
    about: Callable


def _kinds(case):
    """Every kind that a column of the case has at some time, by name."""
    found = {name: {kind} for name, kind in case.shape.kinds.items()}
    for step in case.steps:
        for name, kind in step.kinds.items():
            found.setdefault(name, set()).add(kind)
    return found


def _compares_floats(case, question, operators, values):
    kinds = _kinds(case)
    return any(
        kinds.get(name, set()) & set(FLOATS)
        and operator in operators
        and any(isinstance(one, float) and values(one) for one in (value if isinstance(value, list) else [value]))
        for group in question.where or ()
        for name, operator, value in group
    )


def _changes_columns(case):
    return any(name not in case.shape.kinds or len(kinds) > 1 for name, kinds in _kinds(case).items())


def _changed_columns(case, question):
    """An earlier snapshot, and columns that changed since."""
    return question.as_of is not None and _changes_columns(case)


def _partial_log_behind_a_change(case, _):
    return case.shape.merging == "partial" and case.shape.merge_on_read and _changes_columns(case)


def _fills_lists(case, _):
    kinds = _kinds(case).values()
    return case.shape.merging == "partial" and case.shape.merge_on_read and any(map(LISTS.intersection, kinds))


def _has_small_groups(case):
    return case.shape.options.get("hoodie.parquet.block.size") == "200"


def _floats_became_doubles(case, _):
    return any({"float", "double"} <= kinds for kinds in _kinds(case).values())


def _is_by_hudi(step):
    return step.writes and step.by in HUDIS


def _is_made_by(case, who):
    """Whether the first batch, which makes the table, is of a real Hudi."""
    return next((step.by for step in case.steps if step.writes), None) == who


def _hudi_makes_statistics_of_floats(case, _):
    return any(map(_is_by_hudi, case.steps)) and any(kinds & set(FLOATS) for kinds in _kinds(case).values())


def _hudi_makes_statistics_of_bytes(case, _):
    return any(map(_is_by_hudi, case.steps)) and any("bytes" in kinds for kinds in _kinds(case).values())


KNOWN = (
    Known(
        "statistics that Hudi makes beside a NaN are zeros", ("check",), ", and the statistics with 0.0",
        _hudi_makes_statistics_of_floats,
    ),
    Known(
        "statistics that Hudi makes of binary columns take bytes for signed numbers", ("check",),
        ", and the statistics with '", _hudi_makes_statistics_of_bytes,
    ),
    Known("bounds hide NaN", ("hudi-rs",), None, lambda c, q: _compares_floats(c, q, ("=", ">="), math.isnan)),
    Known(
        "bounds hide NaN and zeros", ("Hudi",), None,
        lambda c, q: _compares_floats(c, q, ("=", "in"), lambda one: math.isnan(one) or not one),
    ),
    Known("a float becomes a double by its text", ("hudi-rs", "Hudi"), None, _floats_became_doubles),
    Known(
        "1.0.2 does not know the ordering column of a table that 1.2.0 made", ("Hudi 1.0.2",), None,
        lambda c, q: c.shape.merge_on_read and c.shape.ordered and _is_made_by(c, HUDIS[1]),
    ),
    Known(
        "a range shows partition values as folders spell them", ("Hudi",), None,
        lambda c, q: q.since is not None and ENCODED in c.shape.options,
    ),
    Known(
        "a condition on a partition value that is null fails", ("Hudi",), "Comparable.compareTo(Object)",
        lambda c, q: {HIVE_STYLE, ENCODED} <= {*c.shape.options} and not q.asked.isdisjoint((PATH, PATH_2)),
    ),
    Known(
        "deletes that are ordered by decimals fail", ("Hudi 1.0.2",), "java.math.BigDecimal cannot be cast",
        lambda c, q: c.shape.merge_on_read and "decimal" in c.shape.kinds.get(ORDER, ""),
    ),
    Known(
        "some columns of partial updates fail", ("Hudi 1.2.0",), "ArrayIndexOutOfBoundsException",
        lambda c, q: c.shape.merge_on_read and c.shape.merging == "partial",
    ),
    Known(
        "statistics of binary columns cannot be compared", ("Hudi 1.2.0, data skipping on",), "HeapByteBuffer",
        lambda c, q: any("bytes" in _kinds(c).get(name, ()) for name in q.asked),
    ),
    Known(
        "a delete in a log takes one of the rows that share a key", ("hudi-rs",), None,
        lambda c, q: c.shape.merge_on_read and c.shape.repeats and any(step.what in DELETES for step in c.steps),
    ),
    Known(
        "a row group of NaN alone hides behind the bounds of others", ("hudi-rs",), None,
        lambda c, q: _has_small_groups(c) and _compares_floats(c, q, ("!=", ">", ">="), lambda _: True),
    ),
    Known("an earlier snapshot has the newest columns", ("hudi-rs",), None, _changed_columns),
    Known(
        "log files from before a change of columns fail", ("hudi-rs",), "partial-update column",
        lambda c, q: c.shape.merge_on_read,
    ),
    Known("no partial updates behind a change of columns", ("hudi-rs",), None, _partial_log_behind_a_change),
    Known("no partial updates of lists and maps", ("hudi-rs",), None, _fills_lists),
    Known("no partial updates", ("hudi-rs",), "merger", lambda c, q: c.shape.merging == "partial"),
)  # fmt: skip


def find_known(reader, about, error):
    """The name of a fault of others that explains a difference, or None.

    Args:
        reader: its name; "writer" for a step.
        about: (case, question), or the step.
        error: what was raised; None: rows differ.
    """
    for fault in KNOWN:
        raised = error is None if fault.error is None else error is not None and fault.error in str(error)
        if reader.startswith(fault.readers) and raised and fault.about(*about):
            return fault.name
    return None

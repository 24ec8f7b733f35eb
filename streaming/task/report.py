"""Collects the files that a task has written and the bad rows that it has found, into a `TaskResult`."""

from collections.abc import Iterable, Iterator, Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from streaming.plan.columns import PROBLEM_COLUMN
from streaming.plan.task_plan import TaskPlan
from streaming.plan.task_result import EXAMPLES, TaskResult, sum_results
from streaming.plan.write_profile import FILES_REMEMBERED
from streaming.task.bad_rows import BadRows, find_bad_rows, find_long_decimals
from streaming.task.quarantine_writer import QuarantineWriter
from table.columns.text_bytes import find_bad_text, made_readable
from table.files.base.summary import BaseFileSummary
from table.index.key_lookup import LookupCounts
from table.timeline.metadata.commit import WriteStat
from table.view.file_group import BaseFile

_LONGEST_SHOWN = 150  # characters of a bad row, and of its reason


class TaskReport:
    """Collects the results of one task.

    Args:
        plan: from the driver.
        write_token: this attempt's.

    Attributes:
        listed: live files of the paths that were listed.
        lookup: the cost of looking up keys.
        deletes_unmatched: deletes of keys that the table does not have.
    """

    def __init__(self, plan: TaskPlan, write_token: str) -> None:
        self._plan = plan
        self._parts: list[TaskResult] = []
        self._bad_rows = self._examples = 0
        self.listed: dict[str, tuple[BaseFile, ...]] = {}
        self.lookup = LookupCounts()
        self.deletes_unmatched = 0
        self._bad = QuarantineWriter(plan.quarantine, write_token) if plan.quarantine else None

    @property
    def is_lost(self) -> bool:
        """Whether the batch cannot be committed any more. The remaining rows are then only searched for bad rows."""
        return bool(self._bad_rows) and self._bad is None

    def add_file(self, stat: WriteStat, summary: BaseFileSummary) -> None:
        """Counts a finished file."""
        reencoded = {} if summary.reason is None else {summary.reason: 1}
        self._parts.append(TaskResult((stat,), summary.footer_bytes, summary.copied_bytes, reencoded))

    def without_bad_rows(
        self, rows: pa.Table, required: Mapping[str, str], exempt: npt.NDArray[np.bool_] | None = None
    ) -> pa.Table:
        """The rows that can be stored. The others are counted and put aside.

        Args:
            rows: with ``_hoodie_record_key``.
            required: columns that must not be null -> why.
            exempt: rows that need only their key.
        """
        bad = [*find_bad_rows(rows, required, exempt), *self._long_decimals(rows)]
        good = np.ones(len(rows) if bad else 0, np.bool_)
        for part in bad:  # a row with several reasons counts once
            if (mine := part.rows & good).any():
                self.count_bad(rows.filter(pa.array(mine)), part.reason)
                good &= ~mine
        if bad:
            rows = rows.filter(pa.array(good))
        return rows.slice(0, 0) if self.is_lost else rows

    def _long_decimals(self, rows: pa.Table) -> Iterator[BadRows]:
        """Rows of a merge-on-read table with ordering values that its logs could not hold."""
        rules = self._plan.context.merge
        has_logs = self._plan.logs is not None and not rules.deletes_all
        return find_long_decimals(rows, rules.ordering_fields if has_logs else ())

    def without_bad_text(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The rows whose text is valid UTF-8. The others are counted and put aside at once.

        Args:
            batches: as they arrive, before their keys and paths are used.
        """
        for batch in batches:
            rows = pa.Table.from_batches([batch])
            bad = find_bad_text(rows)
            if not bad:
                yield batch
                continue
            good = np.ones(len(rows), np.bool_)
            for part in bad:
                mine = part.rows & good
                if mine.any():
                    self.count_bad(made_readable(rows.filter(pa.array(mine))), part.reason)
                    good &= ~mine
            yield from rows.filter(pa.array(good)).to_batches()

    def without_problems(self, rows: pa.Table) -> pa.Table:
        """The rows that no earlier task has marked as bad. The others are counted and put aside."""
        problems = rows.column(PROBLEM_COLUMN)
        if problems.null_count == len(problems):
            return rows
        for reason in problems.drop_null().unique().to_pylist():
            self.count_bad(rows.filter(pc.fill_null(pc.equal(problems, reason), False)), reason)
        return rows.filter(pc.is_null(problems))

    def count_bad(self, rows: pa.Table, reason: str) -> None:
        """Counts rows that cannot be stored for a reason, and puts them aside."""
        self._bad_rows += len(rows)
        columns = [name for name in rows.column_names if name in self._plan.context.schema.names]
        if self._bad is not None:
            self._bad.write(rows.select(columns), reason)
        wanted = [name for name in columns if self._plan.shown is None or name in self._plan.shown] or columns
        shown = rows.select(wanted).slice(0, EXAMPLES - self._examples)
        examples = tuple(f"{_shown(shown.slice(number, 1))} ({_cut(reason)})" for number in range(len(shown)))
        self._parts.append(TaskResult(bad_rows=len(rows), examples=examples))
        self._examples += len(examples)

    def abandon(self) -> None:
        """After a failure, discards the bad rows that were put aside."""
        if self._bad is not None:
            self._bad.abandon()

    def finish(self) -> TaskResult:
        """The result of the task."""
        put_aside = self._bad.close() if self._bad is not None else None
        rest = TaskResult(
            listed={path: files for path, files in self.listed.items() if len(files) <= FILES_REMEMBERED},
            quarantined=(put_aside,) if put_aside else (),
            lookup=self.lookup,
            deletes_unmatched=self.deletes_unmatched,
        )
        return sum_results((*self._parts, rest))


def _shown(row: pa.Table) -> str:
    """One row as text. A value that Python cannot represent (a date in the year 12921) shows as its column's type."""
    values = {}
    for name in row.column_names:
        try:
            values[name] = row.column(name)[0].as_py()
        except (OverflowError, ValueError):
            values[name] = f"<{row.column(name).type}>"
    return _cut(str(values))


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST_SHOWN else text[: _LONGEST_SHOWN - 1] + "…"

"""ChangeFeed: inserts, updates, deletes of a range of commits, as a value. It reads nothing before rows are needed."""

from collections.abc import Generator, Iterator
from dataclasses import dataclass, field, replace

import pyarrow as pa

from table.errors import InvalidConfigError
from table.hudi_table import HudiTable
from table.notebook import ShownInNotebooks
from table.scan.as_of import AsOf, load_range
from table.scan.change_range import EARLIEST
from table.scan.feed.choices import FeedChoices, shown_schema
from table.scan.feed.part import FeedPart
from table.scan.feed.plan import FeedPlan, plan_feed
from table.scan.frames import GivesFrames
from table.scan.pinned import BEGUN, DEFAULT_LIFETIME_S, HeldPin, begun, plan_pinned
from table.scan.plan import checked_names, load_read_schema
from table.scan.predicate import Where


@dataclass(frozen=True, eq=False)
class ChangeFeed(GivesFrames, ShownInNotebooks):
    """The changes of a range of commits, one row a change. Immutable and picklable. Each method plans again.

    A row has the columns:

    - ``_change_operation`` (string): ``i`` for a row that was inserted, ``u`` for one that was updated, ``d`` for one
      that was deleted.
    - ``_change_instant`` (string): request time of the commit. Of a row that was deleted in a range of several commits,
      of the last one that changed its file group.
    - those of the table, with the values after the change; of a deleted row with its last values.
    - ``_change_before`` (struct of these columns), if `FeedChoices.before`: the row before the change; null where it
      was inserted.

    Attributes:
        table: the table.
        since: the start, exclusive, as in `HudiTable.changes`.
        until: the end, inclusive; None means the last commit before which no write is pending.
        columns: the columns wanted, in order; None means all but Hudi's five meta columns.
        where: which rows, as in `HudiTable.scan`: the changes are those of the rows for which it is true.
        limit: the largest number of changes; None means all.
        choices: what is shown.
        pin_s: seconds for which cleaning keeps the files of the snapshots; 0: no pin.
    """

    table: HudiTable
    since: AsOf = EARLIEST
    until: AsOf | None = None
    columns: tuple[str, ...] | None = None
    where: Where | None = None
    limit: int | None = None
    choices: FeedChoices = field(default_factory=FeedChoices)
    pin_s: int = DEFAULT_LIFETIME_S

    def __post_init__(self) -> None:
        if isinstance(self.columns, str):
            raise InvalidConfigError(f"columns={self.columns!r}: give a list of names, [{self.columns!r}]")
        if self.limit is not None and self.limit < 0:
            raise InvalidConfigError(f"limit={self.limit}: give a number of rows, 0 or more")
        if self.columns is not None:
            object.__setattr__(self, "columns", tuple(self.columns))

    @property
    def schema(self) -> pa.Schema:
        """The columns of the rows (Arrow): those that the table has now. Lists no files.

        Raises:
            HudiError: as `to_arrow`.
        """
        snapshot, _, _ = load_range(self.table, self.since, self.until)
        schema = load_read_schema(snapshot)[1]
        names = checked_names(self.columns, schema, meta_columns=False)
        return shown_schema(pa.schema([schema.field(name) for name in names]), self.choices)

    @property
    def position(self) -> str | None:
        """The end of the range as it is now, which the next range begins after; None where the table has no commit.

        Raises:
            HudiError: as `to_arrow`.
        """
        _, chosen, _ = load_range(self.table, self.since, self.until)
        return chosen.until if chosen is not None else None

    def plan(self) -> FeedPlan:
        """The file groups that are read. Raises as `table.scan.feed.plan.plan_feed`."""
        return plan_feed(self.table, self.since, self.until, self.columns, self.where, self.choices)

    def plan_pinned(self) -> tuple[FeedPlan, HeldPin]:
        """As `plan`. In addition, cleaning keeps the files of the snapshots for `pin_s` seconds.

        Raises:
            HudiError: as `plan`.
        """
        return plan_pinned(self.table, self.plan, self.pin_s)

    def __dir__(self) -> list[str]:
        """What an editor offers: not the plans, which are for engines."""
        return [name for name in super().__dir__() if name not in {"plan", "plan_pinned"}]

    def pinned_for(self, seconds: int) -> "ChangeFeed":
        """The same feed with another `pin_s`, for rows that are read long after the call.

        Args:
            seconds: at most a day; 0: no pin.
        """
        return replace(self, pin_s=seconds)

    def to_arrow(self) -> pa.Table:
        """All changes in memory.

        Raises:
            InvalidConfigError: a column is not in the table; or the range cannot be read any more: the error names the
                first instant that can; or a pending write lies in it, or commits that a reader may have seen were
                undone.
            UnsupportedTableError: the table's version is not 6, 8 or 9, or how it merges log files is not known.
            CorruptFileError, StorageError: a file cannot be decoded or read.
        """
        return self.to_batches().read_all()

    def to_batches(self) -> pa.RecordBatchReader:
        """Changes as a stream: the rows of one file group that changed are in memory. Raises as `to_arrow`."""
        plan, pin = self.plan_pinned()
        rows = begun(_while_pinned(plan, pin))
        return pa.RecordBatchReader.from_batches(plan.shown, _limited(rows, self.limit))

    def splits(self) -> tuple[FeedPart, ...]:
        """The feed in parts that any process can read, one commit after the other if `FeedChoices.each_commit`.

        Raises:
            HudiError: as `to_arrow`.
            InvalidConfigError: there is a limit, which independent parts cannot keep.
        """
        if self.limit is not None:
            raise InvalidConfigError(f"limit={self.limit}: parts of a feed cannot keep a limit; take it from the rows")
        return self.plan_pinned()[0].parts


def _while_pinned(plan: FeedPlan, pin: HeldPin) -> Generator[pa.RecordBatch, None, None]:
    try:
        yield BEGUN
        for part in plan.parts:
            for rows in part.read():
                pin.renew()
                yield from rows.to_batches()
    finally:
        pin.release()


def _limited(batches: Iterator[pa.RecordBatch], limit: int | None) -> Iterator[pa.RecordBatch]:
    remaining = limit
    for batch in batches:
        if remaining is not None and len(batch) >= remaining:
            if remaining:
                yield batch.slice(0, remaining)
            return
        remaining = remaining - len(batch) if remaining is not None else None
        yield batch

"""Scan: a query of a table as a value. It reads nothing before its rows are needed."""

import sys
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
from pyarrow.fs import FileSystem

from table.columns.spilled_table import table_of
from table.errors import HudiError, InvalidConfigError, UnsupportedTableError
from table.extras import needs_extra
from table.hudi_table import HudiTable
from table.notebook import ShownInNotebooks
from table.scan.arrow_filesystem import arrow_filesystem, arrow_path
from table.scan.as_of import AsOf, load_changes, load_snapshot
from table.scan.explain_scan import ScanExplanation, explain_plan
from table.scan.frames import GivesFrames
from table.scan.hidden_floats import PARQUET, counts_right, unseen_groups
from table.scan.partition_guarantee import partition_guarantee
from table.scan.pinned import BEGUN, DEFAULT_LIFETIME_S, HeldPin, begun, pinned, plan_pinned
from table.scan.plan import ScanPlan, checked_names, load_read_schema, plan_scan
from table.scan.predicate import Where
from table.scan.read_plan import count_rows, read_batches, read_rows, reads_as
from table.scan.read_slice import deletion_named
from table.scan.split import ScanSplit
from table.storage.at_once import each_at_once
from table.view.file_group import FileSlice

_DUCKDB_BYTES = 256 * 1024 * 1024  # of rows that are held in memory for DuckDB


@dataclass(frozen=True, eq=False)
class Scan(GivesFrames, ShownInNotebooks):
    """Rows of a snapshot, or of a range of commits. Immutable and picklable. Each method that returns rows plans again.

    Attributes:
        table: the table.
        columns: the columns wanted, in order; None means all.
        where: which rows: a ``pyarrow.compute.Expression``; or tuples ``(column, operator, value)``, which all must be
            true; or a list of such lists, of which one must be true. None means all.
        as_of: which snapshot: an instant time, an ISO time, a date or a datetime; None means the newest one at the
            moment of reading.
        limit: the largest number of rows; None means all. Rows come in the order of partition paths and file groups.
        since: only rows that later commits wrote, up to `as_of`; None means all rows. With `since`, `as_of` None means
            the last commit before which no write is pending.
        pin_s: seconds for which cleaning keeps the files of the snapshot. Reads within one call renew and release the
            pin themselves. Results that outlive the call (`to_dataset`, `to_duckdb`, `splits`) must be read within this
            time. 0: no pin.
        meta_columns: whether all columns means Hudi's five meta columns, too; they come first.
        confirms: whether the files are compared with what the commits say; see `confirmed`.
    """

    table: HudiTable
    columns: tuple[str, ...] | None = None
    where: Where | None = None
    as_of: AsOf | None = None
    limit: int | None = None
    since: AsOf | None = None
    pin_s: int = DEFAULT_LIFETIME_S
    meta_columns: bool = False
    confirms: bool = False

    def __post_init__(self) -> None:
        if isinstance(self.columns, str):
            raise InvalidConfigError(f"columns={self.columns!r}: give a list of names, [{self.columns!r}]")
        if self.limit is not None and (
            isinstance(self.limit, bool) or not isinstance(self.limit, int) or self.limit < 0
        ):
            raise InvalidConfigError(f"limit={self.limit!r}: give a number of rows, 0 or more")
        if not isinstance(self.pin_s, int | float) or not self.pin_s >= 0:
            raise InvalidConfigError(f"pin_s={self.pin_s!r}: give a number of seconds, 0 or more")
        if self.columns is not None:
            object.__setattr__(self, "columns", tuple(self.columns))

    @property
    def schema(self) -> pa.Schema:
        """The columns of the rows (Arrow): those of the snapshot; of a range, those of the newest one. Lists no files.

        Raises:
            HudiError: as `plan`.
        """
        if self.since is None:
            snapshot = load_snapshot(self.table, self.as_of)
        else:
            snapshot, _, _ = load_changes(self.table, self.since, self.as_of)
        schema = load_read_schema(snapshot)[1]
        names = checked_names(self.columns, schema, meta_columns=self.meta_columns)
        return pa.schema([schema.field(name) for name in names])

    def plan(self) -> ScanPlan:
        """The slices that are read, and what was pruned before a row is read.

        Raises:
            UnsupportedTableError: the table's version is not 6, 8 or 9, or its merge mode for log files is not
                supported.
            InvalidConfigError: a column is not in the table, the condition is not supported, or there is no such
                snapshot or range; the error names the ones that exist.
        """
        return self._plan()

    def _plan(self, *, lists_all: bool = False) -> ScanPlan:
        given = (self.columns, self.where, self.as_of, self.since)
        return plan_scan(
            self.table, *given, meta_columns=self.meta_columns, lists_all=lists_all, confirms=self.confirms
        )

    def plan_pinned(self) -> ScanPlan:
        """As `plan`. In addition, cleaning keeps the files of the snapshot for `pin_s` seconds.

        Raises:
            HudiError: as `plan`.
        """
        return plan_pinned(self.table, self.plan, self.pin_s)[0]

    def __dir__(self) -> list[str]:
        """What an editor offers: not the plans, which are for engines."""
        return [name for name in super().__dir__() if name not in {"plan", "plan_pinned", "open_batches"}]

    def pinned_for(self, seconds: int) -> "Scan":
        """The same scan with another `pin_s`, for rows that are read long after the call.

        Args:
            seconds: at most a day; 0: no pin.
        """
        return replace(self, pin_s=seconds)

    def confirmed(self) -> "Scan":
        """The same scan; it fails where a file of the newest snapshot is gone or has another size than its commit says.

        Other scans take the listing as it is. This one reads the commits of the active timeline, side by side. Its
        methods raise `LostDataError`.
        """
        return replace(self, confirms=True)

    def to_arrow(self) -> pa.Table:
        """All rows in memory.

        Returns:
            Columns with the table's types, all nullable. A column that an older file does not have is null.

        Raises:
            HudiError: as `plan`; CorruptFileError where a file cannot be decoded.
        """
        with pinned(self.table, self.plan, self.pin_s) as (plan, _):
            return read_rows(plan, self.limit)

    def to_batches(self) -> pa.RecordBatchReader:
        """Rows as a stream in bounded memory: some batches of some files are read ahead. Raises as `to_arrow`."""
        shown, batches = self.open_batches()
        return pa.RecordBatchReader.from_batches(shown, batches)

    def open_batches(self) -> tuple[pa.Schema, Generator[pa.RecordBatch, None, None]]:
        """As `to_batches`: the schema, and rows that the caller closes. Raises as `to_arrow`."""
        plan, pin = plan_pinned(self.table, self.plan, self.pin_s)
        return plan.shown, begun(_while_pinned(read_batches(plan, self.limit), pin))

    def to_dataset(self) -> ds.Dataset:
        """A ``pyarrow.dataset`` of the base files, for engines that push down columns and filters by themselves.

        Arrow passes over row groups by least and greatest values, in which no NaN counts. So a filter of the dataset
        that is true for NaN (``f != 3.0``, `is_nan`) can lose rows, and its ``count_rows(filter=…)`` can count NaN that
        do not match. For such a condition use `where` with `to_batches`, `to_arrow` or `count`.

        Where Arrow does not read the store itself, give the dataset to nobody who calls ``Scanner.to_reader`` (DuckDB
        does): that call can wait for ever, because it holds the interpreter's lock while files are opened in Python.
        ``to_table``, ``to_batches`` and ``head`` release it.

        Raises:
            HudiError: as `plan`.
            InvalidConfigError: there is a limit, or the condition names a column that is not among `columns`.
            UnsupportedTableError: a file has other types than the table has now, and Arrow cannot widen them; or a
                slice has log files; or Arrow would pass over a row for which the condition is true.
        """
        return self._pinned_dataset()[0]

    def _pinned_dataset(self) -> tuple[ds.Dataset, HeldPin]:
        if self.limit is not None:
            raise InvalidConfigError(f"limit={self.limit}: a dataset has no limit; use to_batches() or to_arrow()")
        plan, pin = plan_pinned(self.table, self.plan, self.pin_s)
        try:
            return _dataset_of(plan), pin
        except BaseException:
            pin.release()
            raise

    def count(self) -> int:
        """How many rows there are. Without log files and without a condition, only footers are read.

        Raises:
            HudiError: as `to_arrow`.
        """
        every = replace(self, columns=None, meta_columns=True)  # a condition may name any column
        with pinned(self.table, every.plan, self.pin_s) as (plan, _):
            if self.limit is None:
                # the rows themselves then say what is wrong
                with suppress(HudiError, pa.ArrowException), deletion_named(self.table.storage):
                    return int(_dataset_of(plan, counts=True).count_rows())
            asked = plan.predicate.columns if plan.predicate is not None else frozenset()
            one = replace(plan, names=tuple(name for name in plan.names if not asked or name in asked)[:1])
            return min(count_rows(one), self.limit if self.limit is not None else sys.maxsize)

    def to_duckdb(self, connection: Any = None, name: str = "t") -> Any:
        """Registers the rows in a DuckDB connection as a view.

        Where Arrow itself reads the store (local disks), DuckDB reads the files when the view is queried, and pushes
        columns and filters down. On other stores, or if `to_dataset` is not possible (a limit, log files, files with
        other types), the rows are read at once, to local disk if they are more than 256 MiB: there `columns` and
        `where` of the scan say what is read.

        Args:
            connection: of DuckDB; None: a new one, in memory.
            name: of the view.

        Returns:
            The connection.

        Raises:
            HudiError: as `to_arrow`.
            InvalidConfigError: the table has no commit yet.
            ImportError: there is no connection, and DuckDB is not installed.
        """
        if connection is None:
            try:
                import duckdb  # noqa: PLC0415 an extra
            except ImportError as error:
                raise ImportError(needs_extra("to_duckdb()", "duckdb")) from error
            connection = duckdb.connect()
        connection.register(name, self._rows_for_duckdb()[0])
        return connection

    @contextmanager
    def held_for_duckdb(self) -> Iterator[ds.Dataset | pa.Table]:
        """Rows as `to_duckdb` registers them. Their files are pinned while the block runs. Raises as `to_duckdb`."""
        rows, pin = self._rows_for_duckdb()
        try:
            yield rows
        finally:
            pin.release()

    def _rows_for_duckdb(self) -> tuple[ds.Dataset | pa.Table, HeldPin]:
        """Rows that DuckDB's threads read without Python.

        DuckDB starts a scan by `Scanner.to_reader`, which holds the interpreter's lock while it waits for threads of
        Arrow. If one of these has to open a file in Python, it waits for that lock, and neither goes on.
        """
        rows, pin = self._read_for_duckdb()
        if not rows.schema.names:
            pin.release()
            raise InvalidConfigError("the table has no commit yet, hence no columns to query")
        return rows, pin

    def _read_for_duckdb(self) -> tuple[ds.Dataset | pa.Table, HeldPin]:
        if self.table.storage.native_filesystem is not None:
            with suppress(HudiError):
                return self._pinned_dataset()
        with self.to_batches() as batches:
            return table_of(batches, batches.schema, _DUCKDB_BYTES), HeldPin(self.table.storage)

    def splits(self) -> tuple[ScanSplit, ...]:
        """The scan in parts that any process can read: one for each file slice. Picklable.

        Raises:
            HudiError: as `plan`.
            InvalidConfigError: there is a limit, which independent parts cannot keep.
        """
        if self.limit is not None:
            raise InvalidConfigError(f"limit={self.limit}: parts of a scan cannot keep a limit; take it from the rows")
        plan = self.plan_pinned()
        return tuple(ScanSplit.of(plan, found) for found in plan.slices)

    def explain(self) -> ScanExplanation:
        """Counts what is read and what is pruned. Reads the footers of the files that are not pruned."""
        return explain_plan(self._plan(lists_all=True))


def make_scan(
    table: HudiTable,
    columns: Sequence[str] | None = None,
    where: Where | None = None,
    as_of: AsOf | None = None,
    limit: int | None = None,
    *,
    meta_columns: bool = False,
) -> Scan:
    """A scan; the arguments are the attributes of `Scan`."""
    given = columns if columns is None or isinstance(columns, str) else tuple(columns)
    return Scan(table, given, where, as_of, limit, meta_columns=meta_columns)  # type: ignore[arg-type] # Scan refuses a string


def make_range(
    table: HudiTable,
    since: AsOf,
    until: AsOf | None = None,
    columns: Sequence[str] | None = None,
    where: Where | None = None,
    limit: int | None = None,
) -> Scan:
    """A scan of the newest row of each key that the commits of a range wrote, with the meta columns.

    The arguments are the attributes of `Scan`; `until` is its `as_of`.
    """
    return replace(make_scan(table, columns, where, until, limit, meta_columns=True), since=since)


def _while_pinned(
    batches: Generator[pa.RecordBatch, None, None], pin: HeldPin
) -> Generator[pa.RecordBatch, None, None]:
    try:
        with closing(batches):
            yield BEGUN
            for batch in batches:
                pin.renew()
                yield batch
    finally:
        pin.release()


def _dataset_of(plan: ScanPlan, *, counts: bool = False) -> ds.Dataset:
    """The base files of a plan.

    Args:
        plan: of the scan.
        counts: whether rows are counted, which Arrow does by bounds where it can.
    """
    outside = sorted(set(plan.needed.names) - set(plan.names))
    if outside:
        raise InvalidConfigError(
            f"the condition needs the column {outside[0]!r}: add it to columns, or use to_batches() or to_arrow()"
        )
    storage = plan.context.table.storage
    filesystem = arrow_filesystem(storage)
    with deletion_named(storage):
        opened = each_at_once(storage, lambda found: _fragment(plan, found, filesystem, counts=counts), plan.slices)
        fragments = [fragment for fragment in opened if fragment is not None]
    dataset = ds.FileSystemDataset(fragments, plan.shown, PARQUET, filesystem)
    return dataset.filter(plan.predicate.expression) if plan.predicate is not None else dataset


def _fragment(
    plan: ScanPlan, found: FileSlice, filesystem: FileSystem, *, counts: bool
) -> ds.ParquetFileFragment | None:
    if found.log_files:
        raise UnsupportedTableError(
            f"file group {found.file_id} in {found.partition_path!r} has log files: a dataset cannot merge them; use "
            "to_batches() or to_arrow()"
        )
    if found.base_file is None:
        return None
    path = found.base_file.path
    known = partition_guarantee(plan.context.table.config, plan.schema, found.partition_path)
    fragment = PARQUET.make_fragment(arrow_path(path), filesystem, partition_expression=known)
    if not reads_as(fragment.physical_schema, plan.shown):
        raise UnsupportedTableError(
            f"{path} has other types than the table has now; a dataset cannot cast them: use to_batches() or to_arrow()"
        )
    by_bounds = not counts or counts_right(plan.predicate, fragment, plan.schema)
    if not by_bounds or unseen_groups(plan.hidden, fragment, known) is not None:
        raise UnsupportedTableError(
            f"{path} has bounds of floats that hide a NaN or the sign of a zero from Arrow, and the condition may be "
            "true for it: use to_batches() or to_arrow()"
        )
    return fragment

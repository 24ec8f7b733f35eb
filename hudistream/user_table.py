"""HudiTable, the object that users hold: what a table is, its rows, and its services.

The packages below pass the plain value `table.hudi_table.HudiTable` around, which knows where a table is and no more.
This class extends it above all that it calls, sinks included, so it can be given to every function that takes a table.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, overload

import pyarrow as pa

from table import hudi_table
from table.catalog.connect import connect
from table.catalog.manifest import Manifest, write_manifest
from table.catalog.sync import SyncReport, sync_table
from table.config.table_config import TableConfig
from table.inspect.checkpoints import load_checkpoints
from table.inspect.contents import load_files, load_history, load_partitions
from table.inspect.health import load_health
from table.inspect.health_facts import Health
from table.notebook import facts_html
from table.options.catalog_settings import CatalogSettings, ManifestFor
from table.options.clustering_settings import ClusteringSettings
from table.options.groups import ArchiveSettings, BaseFileSettings, CleanSettings, CompactionSettings
from table.options.lock_settings import LockSettings
from table.options.values import OneOf
from table.scan.as_of import AsOf
from table.scan.change_range import EARLIEST, newest_settled
from table.scan.feed.choices import Moves, MovesName, choices_of
from table.scan.feed.feed import ChangeFeed
from table.scan.feed.follow import follow
from table.scan.lookup import lookup
from table.scan.plan import load_read_schema
from table.scan.predicate import Where
from table.scan.scan import Scan, make_range, make_scan
from table.services.archival.archival import ArchivalOutcome, archive
from table.services.check.check import check
from table.services.check.finding import CheckReport
from table.services.clean.clean import clean
from table.services.clustering.clustering import ClusteringOutcome
from table.services.clustering.command import cluster
from table.services.compaction.compaction import compact
from table.services.conversion.convert import convert_table
from table.services.rollback.undo_commit import roll_back
from table.services.savepoint.restore import restore_to_savepoint
from table.services.savepoint.savepoint import create_savepoint, delete_savepoint
from table.snapshot import Snapshot
from table.storage.interface import Storage
from table.storage.remote import FsspecStorage
from table.timeline.metadata.clean import CleanMetadata
from table.timeline.metadata.restore import RestorePlan

if TYPE_CHECKING:
    from streaming.batch.summary import BatchSummary

_INTERNAL = frozenset(
    {"archived_timeline", "instant_clock", "layout", "listing", "load_timeline", "lock", "store_listing", "storage"}
)  # fmt: skip


class HudiTable(hudi_table.HudiTable):
    """A table. Immutable and picklable; holds no open file. Every question lists the timeline anew.

    Attributes:
        storage: where it is.
        config: what its properties say.
    """

    @staticmethod
    def open(path: str | os.PathLike[str], storage_options: Mapping[str, Any] | None = None) -> "HudiTable":
        """Opens the table at a path.

        Args:
            path: a folder or an address; see `table.storage.opening.open_storage`.
            storage_options: for fsspec.

        Raises:
            TableNotFoundError: when there is none.
            CorruptFileError: when its properties are damaged.
        """
        return _of(hudi_table.HudiTable.open(path, storage_options))

    @property
    def schema(self) -> pa.Schema:
        """The columns (Arrow), the five meta columns first; the meta columns alone where nothing was written yet.

        All are nullable: what is missing in older files is null, whatever the newest schema says.

        Raises:
            CorruptFileError: the newest commit is damaged.
        """
        return load_read_schema(Snapshot.load(self))[1]

    def history(self, limit: int | None = None) -> pa.Table:
        """The active timeline, newest instant first.

        Args:
            limit: most instants; None means all.

        Returns:
            ``instant`` (string): its time, in the table's zone. ``requested_at`` (timestamp[ms, UTC]): the same moment;
            null where the text is no time. ``completed_at`` (timestamp[ms, UTC]): when it was completed; null before
            that, and in tables of version 6, which do not say it. ``action`` (string): ``commit``, ``clean``,
            ``savepoint`` … ``state`` (string): ``REQUESTED``, ``INFLIGHT`` or ``COMPLETED``. ``savepoint`` (bool):
            whether a savepoint keeps the commit's files; the savepoint has a row of its own, too. ``seconds`` (double):
            from its request to its completion; null before that. In version 6 the store's modification times say it.
            The others are null but for completed writes: ``operation`` (string): ``INSERT``, ``UPSERT`` …
            ``rows_added``, ``rows_updated``, ``rows_deleted``, ``files_written``, ``bytes_written`` (int64).
            ``schema_changes`` (list of string).
        """
        return load_history(self, limit)

    def count(self, where: Where | None = None, as_of: AsOf | None = None) -> int:
        """How many rows a snapshot has: `Scan.count`.

        Args:
            where: which rows, as in `scan`; None means all.
            as_of: which snapshot, as in `scan`; None means the newest.

        Raises:
            HudiError: as `Scan.count`.
        """
        return self.scan(where=where, as_of=as_of).count()

    def to_duckdb(self, connection: Any = None, name: str = "t") -> Any:
        """Registers the newest snapshot in DuckDB: `Scan.to_duckdb`. Returns the connection."""
        return self.scan().to_duckdb(connection, name)

    def partitions(self, as_of: AsOf | None = None) -> pa.Table:
        """The partitions that hold a visible file, by path.

        Args:
            as_of: which snapshot, as in `scan`; None means the newest.

        Returns:
            ``partition_path`` (string), "" in a non-partitioned table. ``file_groups``, ``log_files`` (int64).
            ``size_bytes`` (int64): of base files and log files, compressed. ``newest_instant`` (string): the newest
            base instant of a file slice.

        Raises:
            InvalidConfigError: there is no such snapshot.
        """
        return load_partitions(self, as_of)

    def files(self, as_of: AsOf | None = None) -> pa.Table:
        """The files of a snapshot: by partition path and file group, the base file before its log files.

        Args:
            as_of: which snapshot, as in `scan`; None means the newest.

        Returns:
            ``partition_path``, ``file_id``, ``base_instant`` (string): of the file slice. ``path`` (string): relative
            to the table. ``kind`` (string): ``base``, ``log``, or ``change`` of a change file. ``size_bytes`` (int64).

        Raises:
            InvalidConfigError: there is no such snapshot.
        """
        return load_files(self, as_of)

    def checkpoints(self) -> pa.Table:
        """The streams that write the table: the last batch of each, and where its sources stood after it.

        Returns:
            Columns ``sink``, ``batch_id``, ``query_id``, ``operation``, ``epoch``, ``positions`` (list of JSON texts).

        Raises:
            CorruptFileError: a commit or the archive is damaged.
        """
        return load_checkpoints(self)

    def write_manifest(self, reader: ManifestFor | str) -> Manifest:
        """Writes the list of the newest snapshot's files, for an engine that reads no Hudi table itself.

        Args:
            reader: ``bigquery`` or ``redshift``.

        Returns:
            Where it is, and what it names. Of log files nothing is named: compact a merge-on-read table before.

        Raises:
            InvalidConfigError: the reader is not known.
            StorageError: the store fails.
        """
        return write_manifest(self, OneOf(ManifestFor, what="reader").read("reader", reader))

    def health(self, *, stale_after_s: float | None = None) -> Health:
        """How well the table is, as ``hudistream health`` says it. Nothing is changed.

        It is judged by the settings of the sink that started last.

        Args:
            stale_after_s: seconds without a commit of a writer after which the table is worth a look; None: never.
                Services do not count.

        Returns:
            Facts for an operator: age of the last commit, writer, files, backlog of services, and a verdict.

        Raises:
            HudiError: the timeline or a folder cannot be read.
        """
        return load_health(self, stale_after_s=stale_after_s)

    def scan(
        self,
        columns: Sequence[str] | None = None,
        where: Where | None = None,
        as_of: AsOf | None = None,
        limit: int | None = None,
        *,
        meta_columns: bool = False,
    ) -> Scan:
        """Rows of a snapshot. Nothing is read until the result is asked for them.

        Args:
            columns: the columns wanted, in order; None means all.
            where: which rows: a ``pyarrow.compute.Expression``; or tuples ``(column, operator, value)`` that are all
                true; or a list of such lists of which one is true. Operators: ``= == != < > <= >= in``, ``not in``.
            as_of: an instant time, an ISO time, a date or a datetime; what names no zone is in the table's
                (``hoodie.table.timeline.timezone``). None means the newest snapshot at the moment of reading.
            limit: most rows.
            meta_columns: whether all columns means Hudi's five meta columns, too; they come first. `columns` and
                `where` may name one in any case.

        Raises:
            InvalidConfigError: the limit is negative, or `columns` is one text. What needs the table to be known to be
                wrong is reported when rows are asked for.
        """
        return make_scan(self, columns, where, as_of, limit, meta_columns=meta_columns)

    @overload
    def changes(
        self,
        since: AsOf | None = None,
        until: AsOf | None = None,
        columns: Sequence[str] | None = None,
        where: Where | None = None,
        limit: int | None = None,
    ) -> Scan: ...

    @overload
    def changes(
        self,
        since: AsOf | None = None,
        until: AsOf | None = None,
        columns: Sequence[str] | None = None,
        where: Where | None = None,
        limit: int | None = None,
        *,
        deletes: bool = ...,
        before: bool = ...,
        each_commit: bool = ...,
        moves: Moves | MovesName = ...,
        unchanged: bool = ...,
    ) -> ChangeFeed: ...

    def changes(  # noqa: PLR0913 one parameter per thing that users say
        self,
        since: AsOf | None = None,
        until: AsOf | None = None,
        columns: Sequence[str] | None = None,
        where: Where | None = None,
        limit: int | None = None,
        *,
        deletes: bool | None = None,
        before: bool | None = None,
        each_commit: bool | None = None,
        moves: Moves | MovesName | None = None,
        unchanged: bool | None = None,
    ) -> Scan | ChangeFeed:
        """What the commits of a range changed.

        Without one of the last five arguments: the latest row of each key that these commits wrote, as a `Scan`.
        Deleted keys are not shown. With one of them: inserts, updates and deletes, one row a change, as a `ChangeFeed`.
        It compares the file slices before and after, and reads only file groups that a commit of the range touched.
        Compactions and clusterings are no changes.

        To follow a table, use `follow`; or read up to `newest_instant`, and give it as `since` the next time.

        Args:
            since: exclusive: as `as_of` in `scan`; or ``"earliest"``, or None: from the first commit on. In tables of
                versions 8 and 9 a time of completion.
            until: inclusive: as `since`. None means as far as every write is completed: `newest_instant`.
            columns: the columns wanted, in order; None means all, of a `Scan` with the five meta columns first.
            where: as in `scan`; of a `Scan` it is asked of the latest row. A `ChangeFeed` shows the changes of the rows
                for which it is true: one that no longer fulfils it is a delete.
            limit: as in `scan`.
            deletes: whether deleted rows are shown: by default they are.
            before: whether each row has the row before the change, as the struct ``_change_before``; by default not.
            each_commit: whether each commit's change of a row is shown, commit by commit; by default one change for the
                whole range, and none for a row that came and went in it.
            moves: how a row is shown that went to another partition path, as a global index moves it: ``update`` (the
                default), or ``delete_insert``, for which partition paths are read apart from each other.
            unchanged: whether a row that was written again with equal values is an update; by default it is, as in
                Hudi. Only the columns wanted are compared.

        Returns:
            A scan or a feed. When its rows are asked for, it refuses with InvalidConfigError a range whose end, or of a
            feed whose start, cannot be read any more (the error names the first instant that can), and one with a
            pending write in it. A feed also refuses a range before which commits were undone that a reader may have
            seen.

        Raises:
            InvalidConfigError: as in `scan`; or `moves` is another text.
        """
        start = since if since is not None else EARLIEST
        choices = choices_of(deletes=deletes, before=before, each_commit=each_commit, moves=moves, unchanged=unchanged)
        if choices is None:
            return make_range(self, start, until, columns, where, limit)
        return ChangeFeed(self, start, until, columns, where, limit, choices)  # type: ignore[arg-type] # it checks

    def follow(  # noqa: PLR0913 one parameter per thing that users say; all but the first by name
        self,
        since: AsOf | None = None,
        *,
        columns: Sequence[str] | None = None,
        where: Where | None = None,
        deletes: bool = True,
        before: bool = False,
        each_commit: bool = False,
        moves: Moves | MovesName = Moves.UPDATE,
        unchanged: bool = True,
        most_commits: int | None = None,
        wait_s: float | None = 1.0,
    ) -> Iterator[ChangeFeed]:
        """The changes of the table as they come: ``for batch in table.follow(since): … batch.to_arrow()``.

        Each batch begins where the one before it ended. ``batch.until`` is a text: keep it together with what you made
        of the batch, and give it as `since` to go on from there in another process. While the iterator is open,
        cleaning by hudistream keeps the rows before the next change, within its bound for readers.

        Args:
            since: where to begin, exclusive; None means from the first commit on: the first batch has all rows as
                inserts.
            columns: as in `changes`.
            where: as in `changes`.
            deletes: as in `changes`.
            before: as in `changes`.
            each_commit: as in `changes`.
            moves: as in `changes`.
            unchanged: as in `changes`.
            most_commits: most commits in a batch; None means all that are there.
            wait_s: seconds between two looks at the table while nothing is new; None: the iterator ends then.

        Yields:
            A `ChangeFeed` with a range of its own.

        Raises:
            InvalidConfigError: an argument does not fit; or the changes after `since` cannot be read any more, as in
                `changes`.
        """
        choices = choices_of(deletes=deletes, before=before, each_commit=each_commit, moves=moves, unchanged=unchanged)
        assert choices is not None
        start = since if since is not None else EARLIEST
        return follow(ChangeFeed(self, start, None, columns, where, None, choices), wait_s, most_commits)  # type: ignore[arg-type] # it checks

    @property
    def newest_instant(self) -> str | None:
        """The newest completed write before which no write is pending; None where there is none.

        A reader that has read up to here misses nothing later: a pending write may complete with its earlier time. In
        tables of versions 8 and 9 it is the newest time of completion.
        """
        return newest_settled(self.load_timeline())

    def lookup(
        self,
        keys: Sequence[str] | pa.Array,
        columns: Sequence[str] | None = None,
        as_of: AsOf | None = None,
        *,
        meta_columns: bool = False,
    ) -> pa.Table:
        """The rows that have one of some record keys. Files that cannot hold one are not read beyond their footers.

        Args:
            keys: record keys, as in ``_hoodie_record_key``; of a key of several fields ``a:1,b:2``.
            columns: as in `scan`.
            as_of: as in `scan`.
            meta_columns: as in `scan`.

        Returns:
            In the order of partition paths, file groups and rows. A key that no row has is left out.

        Raises:
            InvalidConfigError: a key is no text, a column is not in the table, or there is no such snapshot.
            UnsupportedTableError: the table keeps no record keys, or a log file has a block that is not supported.
            CorruptFileError, StorageError: a file cannot be decoded or read.
        """
        return lookup(self, keys, columns, as_of, meta_columns=meta_columns)

    def delete(self, where: Where, options: Mapping[str, Any] | None = None) -> "BatchSummary":
        """Deletes the rows for which a condition is true, in one commit: `hudistream.ArrowSink.delete`.

        Nothing else is done: a clean by other settings could delete what the table's stream retains.

        Args:
            where: which rows, as in `scan`. The newest snapshot is asked.
            options: of the sink, as ``hoodie.index.type`` where keys are not unique within a partition path alone. With
                ``hoodie.table.services.enabled=true`` it cleans, archives and compacts by them.

        Returns:
            The `hudistream.BatchSummary`: ``rows_deleted`` says how many.

        Raises:
            InvalidConfigError: the condition names a column that is not in the table.
            CommitConflictError: another writer holds the table.
            HudiError: nothing of it is visible.
        """
        from streaming.arrow_sink import ArrowSink  # noqa: PLC0415 who reads needs no sink

        storage_options = self.storage.options if isinstance(self.storage, FsspecStorage) else None
        given = {"hoodie.table.services.enabled": "false", **(options or {})}
        with ArrowSink(self.storage.base_uri, given, storage_options) as sink:
            return sink.delete(where=where)

    def clean(self, settings: CleanSettings | None = None, *, due: bool = True) -> list[CleanMetadata]:
        """Deletes file versions that no reader needs any more: `hudistream.clean`, with the default policy for None."""
        return clean(self, settings, due=due)

    def compact(
        self, settings: CompactionSettings | None = None, base_file: BaseFileSettings | None = None
    ) -> tuple[str, ...]:
        """Folds log files into base files as a sink does by default: `hudistream.compact`. Returns instant times."""
        done = compact(self, settings, base_file)
        return tuple(instant.time for instant in done)

    def cluster(
        self,
        sort: str | Sequence[str] | None = None,
        layout: str = "linear",
        *,
        partitions: Sequence[str] = (),
        settings: ClusteringSettings | None = None,
        base_file: BaseFileSettings | None = None,
        shared: bool = False,
        lock: LockSettings | None = None,
    ) -> ClusteringOutcome | None:
        """Puts small files together and rows where queries look: `hudistream.cluster`.

        Args:
            sort: columns by which the rows of a partition path are sorted; none: small files are put together.
            layout: the order of several columns: ``linear``, ``z-order`` or ``hilbert``.
            partitions: these partition paths alone; none: all.
            settings: the rest, such as the sizes of files.
            base_file: how base files are encoded.
            shared: whether other writers write the table meanwhile, in the mode of several writers.
            lock: the lock that the other writers take.

        Returns:
            What was done; None where nothing would change.
        """
        given: dict[str, Any] = {"sort_columns": sort or (), "layout": layout, "partitions": tuple(partitions)}
        chosen = replace(settings or ClusteringSettings(), **given)
        return cluster(self, chosen, base_file, shared=shared, lock=lock)

    def archive(
        self,
        settings: ArchiveSettings | None = None,
        clean_settings: CleanSettings | None = None,
        compaction_settings: CompactionSettings | None = None,
    ) -> ArchivalOutcome:
        """Retires old instants from the active timeline: `hudistream.archive`, with the default bounds for None."""
        return archive(self, settings, clean_settings, compaction_settings)

    def check(self, *, repair: bool = False) -> CheckReport:
        """Looks whether the table is whole: `hudistream.check`."""
        return check(self, repair=repair)

    def sync(self, settings: CatalogSettings, *, everything: bool = False) -> SyncReport:
        """Registers the table in a catalog, or brings its registration up to date: `hudistream sync`.

        Args:
            settings: which catalog, and under which name; those of a sink's options ``hoodie.datasource.hive_sync.*``.
            everything: compares all partitions, and not only those that were written since the last sync.

        Raises:
            InvalidConfigError: nothing says which catalog.
            CatalogError: it does not answer, refuses, or has another table of that name.
        """
        catalog = connect(settings)
        try:
            return sync_table(self, catalog, settings, everything=everything)
        finally:
            catalog.close()

    def __dir__(self) -> list[str]:
        """What an editor offers: not what the layers below hand around."""
        return [name for name in super().__dir__() if name not in _INTERNAL]

    def _repr_html_(self) -> str:
        config = self.config
        facts = [
            ("path", self.storage.base_uri),
            ("name", config.name),
            ("type", config.table_type),
            ("version", config.version),
            ("record key", config.record_key_fields),
            ("partition fields", config.partition_fields),
            ("ordering fields", config.ordering_fields),
        ]
        return facts_html("HudiTable", [(name, value) for name, value in facts if value])

    def __repr__(self) -> str:
        kind = self.config.table_type.lower().replace("_", "-")
        return f"HudiTable({self.storage.base_uri!r}: {self.config.name}, {kind}, version {self.config.version})"

    def convert(self, to: int) -> "HudiTable":
        """Gives the table another version, 6, 8 or 9: `hudistream upgrade`. Returns the table as it is now."""
        return _of(convert_table(self, to))

    def create_savepoint(self, time: str | None = None, user: str = "", comment: str = "") -> str:
        """Keeps the files that readers of a commit see: `hudistream.create_savepoint`. Returns the commit's time."""
        return create_savepoint(self, time, user, comment)

    def delete_savepoint(self, time: str) -> None:
        """Lets go of a savepoint: `hudistream.delete_savepoint`."""
        delete_savepoint(self, time)

    def restore_to_savepoint(self, time: str, *, force: bool = False) -> RestorePlan:
        """Takes the table back to a savepoint: `hudistream.restore_to_savepoint`. Returns what was undone."""
        return restore_to_savepoint(self, time, force=force)

    def roll_back(self, time: str, *, force: bool = False) -> None:
        """Rolls back one commit: `hudistream.roll_back`."""
        roll_back(self, time, force=force)


def create_table(storage: Storage, config: TableConfig) -> HudiTable:
    """Creates a table, or opens the one that another process created first; see `table.hudi_table.create_table`.

    Raises:
        TableExistsError: when the path is a file or a folder with something in it that is no table.
    """
    return _of(hudi_table.create_table(storage, config))


def _of(found: hudi_table.HudiTable) -> HudiTable:
    return HudiTable(found.storage, found.config)

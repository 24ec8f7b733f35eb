"""Registers a table in a catalog, and keeps the registration up to date (HiveSyncTool)."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from table.catalog.catalog import Catalog, Partitions
from table.catalog.partition_values import partition_values
from table.catalog.path_changes import PathChanges, are_told, find_path_changes, settled_until, written_beyond
from table.catalog.registration import LAST_SYNC, SYNCED_BEYOND, Registration, is_changed, register_as, synced_until
from table.errors import CatalogError
from table.hudi_table import HudiTable
from table.log import get_logger
from table.options.catalog_settings import CatalogKind, CatalogSettings
from table.snapshot import Snapshot
from table.storage.interface import join
from table.timeline.commit_cache import CommitCache
from table.view.file_group import FileGroup
from table.view.file_system_view import list_file_groups, walk_file_groups

log = get_logger("hudistream.catalog")


@dataclass(frozen=True)
class SyncReport:
    """The changes by a sync.

    Attributes:
        tables: names of the registered views, with their database.
        created: names of the views that were registered for the first time.
        changed: names of the views whose columns changed.
        partitions_added: partitions added, in all views together.
        partitions_dropped: partitions dropped, in all views together.
        partitions_moved: partitions moved, in all views together.
        has_listed: whether the sync listed the whole table, and did not only read the writes since the last sync.
        synced_until: instant time up to which the table's writes are registered.
    """

    tables: tuple[str, ...] = ()
    created: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    partitions_added: int = 0
    partitions_dropped: int = 0
    partitions_moved: int = 0
    has_listed: bool = False
    synced_until: str = ""

    @property
    def is_empty(self) -> bool:
        """Whether the catalog already agreed with the table's partitions and columns."""
        parts = self.partitions_added + self.partitions_dropped + self.partitions_moved
        return not (self.created or self.changed or parts)


def sync_table(
    table: HudiTable,
    catalog: Catalog,
    settings: CatalogSettings,
    commits: CommitCache | None = None,
    *,
    everything: bool = False,
) -> SyncReport:
    """Registers a table, or brings its registration up to date.

    If the active timeline still has all writes since the last sync, the sync reads only these. Else it lists the
    table's partition paths and the catalog's partitions.

    Args:
        catalog: the catalog.
        settings: name and form of the registration.
        commits: decoded commits of the table; None: they are read.
        everything: lists in any case.

    Returns:
        The changes. A table without a commit is not registered: it has no columns yet.

    Raises:
        CatalogError: the catalog does not answer, or has another table of that name. Changes made before the error
            stay, and the next sync goes on from there.
        StorageError, CorruptFileError: the table cannot be read.
    """
    snapshot = Snapshot.load(table, commits=commits)
    schema = snapshot.load_schema()
    if schema is None or not snapshot.timeline.completed_writes:
        return SyncReport()
    until = settled_until(snapshot.timeline)
    wanted = register_as(table.config, schema, catalog_location(table.storage.base_uri, settings), settings, until)
    if settings.creates_database:
        catalog.create_database(wanted[0].database)
    looks = _Looks(snapshot, settings)
    beyond = written_beyond(snapshot.timeline, until)
    lists = everything or not settings.reads_changes
    reports = [_Sync(looks, catalog, lists, beyond).run(view) for view in wanted]
    done = _together(reports, wanted, until)
    log.info(
        "catalog_synced",
        table=table.storage.base_uri,
        registered=", ".join(done.tables),
        partitions_added=done.partitions_added,
        partitions_dropped=done.partitions_dropped,
        columns_changed=bool(done.changed),
        synced_until=until,
    )
    return done


def describe_registration(table: HudiTable, settings: CatalogSettings) -> tuple[tuple[Registration, Partitions], ...]:
    """The registrations that a sync would write: each view, with its partitions.

    Args:
        settings: name and form of the registration.

    Raises:
        CatalogError: the table has no commit yet, or has partition paths that cannot be split into values.
    """
    snapshot = Snapshot.load(table)
    schema = snapshot.load_schema()
    if schema is None or not snapshot.timeline.completed_writes:
        raise CatalogError(f"the table {table.storage.base_uri!r} has no commit yet, and so no columns")
    location = catalog_location(table.storage.base_uri, settings)
    looks = _Looks(snapshot, settings)
    views = register_as(table.config, schema, location, settings, settled_until(snapshot.timeline))
    return tuple((one, looks.locate(one, looks.paths_with_rows) if one.partition_keys else {}) for one in views)


def catalog_location(base_uri: str, settings: CatalogSettings) -> str:
    """The address of a table's root for the readers of a catalog. It has a scheme; for Glue ``s3``."""
    uri = base_uri if "://" in base_uri else f"file:{base_uri}"
    scheme, marks, rest = uri.partition("://")
    if settings.kind is CatalogKind.GLUE and marks and scheme in ("s3a", "s3n"):
        return f"s3://{rest}"
    return uri


@dataclass(frozen=True)
class _Looks:
    """Locations of a table's partitions. All views share what was listed and decoded for one view."""

    snapshot: Snapshot
    settings: CatalogSettings
    _walked: list[Sequence[str]] = field(default_factory=list)

    def locate(self, wanted: Registration, paths: Iterable[str]) -> Partitions:
        """Partition paths as the catalog stores them: values of the partition columns -> location."""
        fields, config = [key.name for key in wanted.partition_keys], self.snapshot.config
        extractor, decodes = self.settings.extractor, self.settings.decodes_paths
        decodes = config.url_encode if decodes is None else decodes
        return {
            partition_values(path, fields, extractor, is_styled=config.hive_style, decodes=decodes): join(
                wanted.location, path
            )
            for path in paths
        }

    @property
    def paths_with_rows(self) -> Sequence[str]:
        """The partition paths with a file that a snapshot shows: a folder may remain after its rows are deleted."""
        if not self._walked:
            walked = walk_file_groups(self.snapshot.listing, self.snapshot.slicing)
            self._walked.append(sorted(path for path, groups in walked if _any_visible(groups)))
        return self._walked[0]

    def keep_written(self, paths: Iterable[str]) -> frozenset[str]:
        """The paths that have a visible file now: another writer may have written to them since the snapshot."""
        asked = frozenset(paths)
        if not asked:
            return asked
        now = self.snapshot.again()
        return frozenset(path for path in asked if _any_visible(list_file_groups(now.listing, path, now.slicing)))


def _any_visible(groups: Iterable[FileGroup]) -> bool:
    return any(group.latest_base_file is not None or group.log_files for group in groups)


@dataclass(frozen=True)
class _Sync:
    """The sync of one view of a table.

    Attributes:
        looks: the table.
        catalog: the catalog.
        everything: lists in any case.
        beyond: writes of the table after a pending one, as `written_beyond` gives them.
    """

    looks: _Looks
    catalog: Catalog
    everything: bool
    beyond: str

    def run(self, wanted: Registration) -> SyncReport:
        found = self.catalog.find_table(wanted.database, wanted.name)
        name = f"{wanted.database}.{wanted.name}"
        if found is not None and found.location.rstrip("/") != wanted.location.rstrip("/"):
            raise CatalogError(
                f"the catalog has another table {name!r}, at {found.location!r}, and this one is at "
                f"{wanted.location!r}: give it another name (hoodie.datasource.hive_sync.table, .database), or drop "
                "the other one there"
            )
        # the sync registers its time last: after a sync that failed, the next one begins where that one began
        stored = found.parameters if found is not None else {}
        since, before = stored.get(LAST_SYNC, ""), stored.get(SYNCED_BEYOND, "")
        is_told = bool(self.beyond or before)
        wanted = synced_until(wanted, wanted.parameters[LAST_SYNC], self.beyond if is_told else None)
        begun = synced_until(wanted, since, before if is_told else None)
        if found is None:
            self.catalog.create_table(begun)
        has_changed = found is not None and is_changed(wanted, found)
        if has_changed:
            self.catalog.change_table(begun, cascades=True)
        partitions = self._sync_partitions(wanted, since, before)
        is_same = found is not None and not has_changed and partitions.is_empty
        if begun != wanted and not (is_same and self.looks.settings.only_changes):
            self.catalog.change_table(wanted, cascades=False)
        return SyncReport(
            (name,),
            (name,) if found is None else (),
            (name,) if has_changed else (),
            partitions.partitions_added,
            partitions.partitions_dropped,
            partitions.partitions_moved,
            partitions.has_listed,
        )

    def _sync_partitions(self, wanted: Registration, since: str, before: str) -> SyncReport:
        if not wanted.partition_keys:
            return SyncReport()
        if self.everything or not are_told(self.looks.snapshot.timeline, since, before):
            return self._compare(wanted)
        # the write at `since` was registered; no older write was pending then
        snapshot = self.looks.snapshot
        newer = [one for one in snapshot.timeline.writes_by_time if one.time > since]
        changes = find_path_changes([(one, snapshot.commits.read(one)) for one in newer])
        return self._apply(wanted, changes)

    def _apply(self, wanted: Registration, changes: PathChanges) -> SyncReport:
        # the order of instant times hides a write that was requested before a deletion and completed after it
        back = self.looks.keep_written(changes.deleted)
        added = self.looks.locate(wanted, (*changes.written, *sorted(back)))
        gone = [path for path in changes.deleted if path not in back]
        dropped = list(self.looks.locate(wanted, gone))
        if dropped:
            self.catalog.drop_partitions(wanted, dropped)
        new = self.catalog.add_partitions(wanted, added) if added else 0
        return SyncReport(partitions_added=new, partitions_dropped=len(dropped))

    def _compare(self, wanted: Registration) -> SyncReport:
        found = self.catalog.list_partitions(wanted)
        there = self.looks.locate(wanted, self.looks.paths_with_rows)
        gone = {values: self._path_of(wanted, found[values]) for values in found if values not in there}
        kept = self.looks.keep_written(path for path in gone.values() if path is not None)
        dropped = [values for values, path in gone.items() if path not in kept]
        moved = {
            values: location
            for values, location in there.items()
            if values in found and found[values].rstrip("/") != location.rstrip("/")
        }
        if dropped:
            self.catalog.drop_partitions(wanted, dropped)
        if moved:
            self.catalog.move_partitions(wanted, moved)
        missing = {values: location for values, location in there.items() if values not in found}
        added = self.catalog.add_partitions(wanted, missing) if missing else 0
        return SyncReport(
            partitions_added=added, partitions_dropped=len(dropped), partitions_moved=len(moved), has_listed=True
        )

    @staticmethod
    def _path_of(wanted: Registration, location: str) -> str | None:
        """The partition path of a location; None if the location is not below the table."""
        root = wanted.location.rstrip("/") + "/"
        return location.removeprefix(root).rstrip("/") if location.startswith(root) else None


def _together(reports: Sequence[SyncReport], wanted: Sequence[Registration], until: str) -> SyncReport:
    return SyncReport(
        tuple(f"{one.database}.{one.name}" for one in wanted),
        tuple(name for report in reports for name in report.created),
        tuple(name for report in reports for name in report.changed),
        sum(report.partitions_added for report in reports),
        sum(report.partitions_dropped for report in reports),
        sum(report.partitions_moved for report in reports),
        any(report.has_listed for report in reports),
        until,
    )

"""Plans a scan: chooses the file slices to read, pruned by partition path, key range and bloom filter."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import pyarrow as pa
import pyarrow.compute as pc

from table.columns.near_name import did_you_mean
from table.config.table_config import TableConfig
from table.errors import InvalidConfigError
from table.hudi_table import HudiTable
from table.index.key_cache import KeyCache, LookedIntoFile
from table.index.key_lookup import SoughtKeys
from table.keys.folder_values import columns_shown_by_path
from table.metadata_table.read_statistics import load_ranges
from table.references.losses import leave_out_accepted
from table.scan.as_of import AsOf, load_changes, load_snapshot
from table.scan.bounded_slices import boundable_columns, slice_guarantee
from table.scan.change_range import ChangeRange
from table.scan.cleaned_meanwhile import lost_to
from table.scan.hidden_floats import HiddenFloats, find_hidden
from table.scan.partition_guarantee import guarantees_below, partition_guarantee
from table.scan.predicate import Predicate, Where, parse_where, which_may_hold
from table.scan.read_slice import SliceContext, check_readable, deletion_named
from table.schema.avro_schema import META_FIELDS, RECORD_KEY, relaxed, with_meta_columns, without_meta_columns
from table.snapshot import Snapshot
from table.storage.at_once import each_at_once
from table.storage.interface import Storage
from table.timeline.metadata.clean import CleanPlan
from table.view.file_group import FileSlice

# a reader rarely needs the same footers again, so no cache outlives the plan
_NO_CACHE = KeyCache(0)


@dataclass(frozen=True)
class Pruning:
    """Counts of what a plan skips, and why.

    Attributes:
        partitions: partition paths of the table.
        partitions_pruned: partition paths that contradict the condition. A folder that is not listed counts as one,
            because the number of its partitions is unknown.
        files: file slices of the snapshot, in the folders that were listed.
        files_in_pruned_partitions: slices in pruned partitions.
        files_pruned_by_key_range: slices whose range of record keys contains none of the keys wanted.
        files_pruned_by_bloom_filter: slices whose bloom filter contains none of these keys.
        files_pruned_by_column_stats: slices that the metadata table's statistics of columns rule out.
        files_without_changes: slices that hold no row of the range of commits.
    """

    partitions: int = 0
    partitions_pruned: int = 0
    files: int = 0
    files_in_pruned_partitions: int = 0
    files_pruned_by_key_range: int = 0
    files_pruned_by_bloom_filter: int = 0
    files_pruned_by_column_stats: int = 0
    files_without_changes: int = 0


@dataclass(frozen=True, eq=False)
class ScanPlan:
    """The slices that a scan reads, and how.

    Attributes:
        context: needed to read a slice.
        schema: every column of the table, meta columns first, all nullable (Arrow).
        names: the columns wanted, in order.
        predicate: which rows are wanted; None means all.
        slices: by partition path, then file group.
        as_of: instant time of the last visible write; None where the table has none.
        pruning: what was skipped.
        changes: the commits whose rows are wanted; None means all.
        cleans: instant times of the cleans that were completed when the timeline was listed.
        snapshot: what it was planned from; None where a part of the scan was sent to another process.
        listed: the slices that the folders showed, before any was pruned; none where a part was sent.
    """

    context: SliceContext
    schema: pa.Schema
    names: tuple[str, ...]
    predicate: Predicate | None
    slices: tuple[FileSlice, ...]
    as_of: str | None
    pruning: Pruning
    changes: ChangeRange | None = None
    cleans: frozenset[str] = frozenset()
    snapshot: Snapshot | None = None
    listed: tuple[FileSlice, ...] = ()

    def loses_to(self, clean: CleanPlan, *, is_new: bool) -> bool:  # noqa: ARG002 names tell, whenever it was requested
        """Whether a clean deletes a file that the snapshot shows and the folders did not (pure).

        Args:
            clean: not completed when the timeline was listed.
            is_new: whether it was not even requested then.
        """
        return lost_to(clean, self.listed, self.context.committed, self._is_wanted) is not None

    def _is_wanted(self, partition_path: str) -> bool:
        if self.predicate is None:
            return True
        known = partition_guarantee(self.context.table.config, self.schema, partition_path)
        return bool(which_may_hold(self.predicate.expression, [known], self.schema))

    @property
    def seen(self) -> tuple[str, ...]:
        """Request times of the last write of each snapshot that is read: `as_of`."""
        return (self.as_of,) if self.as_of is not None else ()

    @property
    def needed(self) -> pa.Schema:
        """The columns that are read: the columns wanted, and the columns of the condition."""
        asked = self.predicate.columns if self.predicate is not None else frozenset()
        wanted = dict.fromkeys(self.names)
        return pa.schema([self.schema.field(name) for name in (*wanted, *sorted(asked - wanted.keys()))])

    @cached_property
    def hidden(self) -> HiddenFloats | None:
        """What bounds of floats hide from the condition; None where Arrow may prune by them."""
        return find_hidden(self.predicate, self.schema)

    @property
    def shown(self) -> pa.Schema:
        """The columns of the result."""
        return pa.schema([self.schema.field(name) for name in self.names])


def plan_scan(  # noqa: PLR0913 the fields of a `Scan`
    table: HudiTable,
    columns: Sequence[str] | None = None,
    where: Where | None = None,
    as_of: AsOf | None = None,
    since: AsOf | None = None,
    *,
    meta_columns: bool = True,
    lists_all: bool = False,
    confirms: bool = False,
) -> ScanPlan:
    """Plans a scan: reads the timeline, lists folders, and reads footers if the condition names record keys.

    Folders in which no row can fulfil the condition are not listed.

    Args:
        columns: the columns wanted, in order; None means all.
        where: which rows; see `table.scan.predicate.parse_where`.
        as_of: which snapshot; see `table.scan.as_of.load_snapshot`.
        since: only rows of later commits, up to `as_of`; see `table.scan.as_of.load_changes`. None means all rows.
        meta_columns: whether all columns means the five meta columns, too.
        lists_all: lists every folder, so that `Pruning` counts the files in all of them.
        confirms: compares the folders with the files that the commits of the active timeline name.

    Raises:
        LostDataError: `confirms`, and a file is gone or has another size.
        UnsupportedTableError: the table's version is not 6, 8 or 9, or its merge mode for log files is not supported;
            or `since` is given and the rows do not contain their commit time.
        InvalidConfigError: a column is not in the table, a condition is not supported, or there is no such snapshot or
            no such range.
    """
    changes: ChangeRange | None = None
    if since is None:
        snapshot = newest = load_snapshot(table, as_of)
    else:
        newest, snapshot, changes = load_changes(table, since, as_of)
    if confirms and as_of is not None:
        raise InvalidConfigError(
            f"{'as_of' if since is None else 'until'}={as_of!r} names an older snapshot, whose files may have been "
            "cleaned: only the newest one can be confirmed"
        )
    stored, schema = load_read_schema(newest)  # of a range, too: a stream has the same columns in each batch
    names = checked_names(columns, schema, meta_columns=meta_columns)
    predicate = None if where is None else predicate_of(table.config, where, schema)
    if confirms:
        leave_out_accepted(snapshot)
    slices, pruning = _slices_of(snapshot, schema, predicate, lists_all=lists_all, confirms=confirms)
    listed = tuple(slices)
    if since is not None:
        predicate = changes.restrict(predicate) if changes is not None else predicate
        slices, pruning = _only_changed(slices, changes, pruning)
    if predicate is not None:
        slices, pruning = _prune_by_statistics(table, schema, slices, predicate, pruning)
    for found in slices:
        check_readable(table, found, schema)
    if predicate is not None and predicate.keys is not None and table.config.populate_meta_fields:
        slices, pruning = _prune_by_keys(table.storage, slices, predicate.keys, pruning)
    seen = max(snapshot.timeline.committed_times, default=None)
    context = SliceContext(table, snapshot.committed, stored)
    return ScanPlan(
        *(context, schema, names, predicate, tuple(slices), seen, pruning, changes, snapshot.cleans, snapshot, listed)
    )


def predicate_of(config: TableConfig, where: Where, schema: pa.Schema) -> Predicate:
    """A user's condition, bound to the columns of a table.

    Args:
        config: the table's properties.
        where: see `table.scan.predicate.parse_where`.
        schema: every column of the table, meta columns included (Arrow).

    Raises:
        InvalidConfigError: a column is not in the table, or a value cannot be compared to it.
    """
    return parse_where(where, schema, key_columns_of(config, schema), config.timezone)


def load_read_schema(snapshot: Snapshot) -> tuple[pa.Schema | None, pa.Schema]:
    """The columns of a snapshot (Arrow).

    Returns:
        The columns as stored, without meta columns, or None where nothing was written. And the columns as they are
        read: meta columns first, all nullable, because a column that an older file does not have is read as null.
    """
    stored = snapshot.load_schema()
    return stored, relaxed(with_meta_columns(stored) if stored is not None else pa.schema(META_FIELDS))


def checked_names(columns: Sequence[str] | None, schema: pa.Schema, *, meta_columns: bool = True) -> tuple[str, ...]:
    """The columns wanted, in order. None means all, with the five meta columns or without them.

    Raises:
        InvalidConfigError: the table has no such column.
    """
    if columns is None:
        return tuple(schema.names if meta_columns else without_meta_columns(schema).names)
    if isinstance(columns, str):
        raise InvalidConfigError(f"columns={columns!r}: give a list of names, [{columns!r}]")
    if not columns:
        raise InvalidConfigError("columns=[]: name at least one column; how many rows there are, count() says")
    known = {*schema.names}
    unknown = [name for name in columns if name not in known]
    if unknown and not without_meta_columns(schema).names:
        raise InvalidConfigError(f"the table has no commit yet, so it has no column {unknown[0]!r}")
    if unknown:
        raise InvalidConfigError(
            f"the table has no column {unknown[0]!r}; it has {', '.join(without_meta_columns(schema).names)}"
            f"{did_you_mean(str(unknown[0]), schema.names)}"
        )
    return tuple(columns)


def key_columns_of(config: TableConfig, schema: pa.Schema) -> tuple[str, ...]:
    """The columns whose value is the record key, as text or as a whole number.

    A complex key of one field is left out, because Hudi's releases spell it differently (`table.keys.keygen`).
    """
    names = config.record_key_fields
    if len(names) != 1 or names[0] not in schema.names or config.keygen_type == "COMPLEX":
        return (RECORD_KEY,)
    kind = schema.field(names[0]).type
    is_key = pa.types.is_string(kind) or pa.types.is_integer(kind)
    return (RECORD_KEY, names[0]) if is_key else (RECORD_KEY,)


class _Narrow:
    """Leaves out the folders in which no row can fulfil a condition, and counts them."""

    def __init__(self, config: TableConfig, schema: pa.Schema, predicate: Predicate) -> None:
        self._config, self._schema, self._predicate = config, schema, predicate
        self.left_out = 0

    def __call__(self, folders: Sequence[str]) -> Sequence[str]:
        owners: list[int] = []
        guarantees: list[pc.Expression] = []
        for number, folder in enumerate(folders):
            for known in guarantees_below(self._config, self._schema, folder):
                owners.append(number)
                guarantees.append(known)
        held = {owners[at] for at in which_may_hold(self._predicate.expression, guarantees, self._schema)}
        self.left_out += len(folders) - len(held)
        return [folders[number] for number in sorted(held)]


def _slices_of(
    snapshot: Snapshot, schema: pa.Schema, predicate: Predicate | None, *, lists_all: bool, confirms: bool
) -> tuple[list[FileSlice], Pruning]:
    """The slices of the partitions that may hold a row, by partition path and file group."""
    narrow = None if predicate is None or lists_all else _Narrow(snapshot.config, schema, predicate)
    listed = snapshot.walk_file_groups(narrow, confirms=confirms)
    groups = ((path, [group.merged_slice for group in found]) for path, found in listed)
    walked = sorted(groups, key=lambda found: found[0])
    guarantees: list[pc.Expression] = []
    kept = list(range(len(walked)))
    if predicate is not None:
        guarantees = [partition_guarantee(snapshot.table.config, schema, path) for path, _ in walked]
        kept = which_may_hold(predicate.expression, guarantees, schema)
    slices = [one for number in kept for one in walked[number][1]]
    files = sum(len(found) for _, found in walked)
    left_out = 0 if narrow is None else narrow.left_out
    return slices, Pruning(len(walked) + left_out, len(walked) - len(kept) + left_out, files, files - len(slices))


def _only_changed(
    slices: Sequence[FileSlice], changes: ChangeRange | None, pruning: Pruning
) -> tuple[list[FileSlice], Pruning]:
    """The slices that may hold a row of the range; none where there is no range."""
    kept = [found for found in slices if changes is not None and changes.may_hold(found)]
    return kept, replace(pruning, files_without_changes=len(slices) - len(kept))


def _prune_by_statistics(
    table: HudiTable, schema: pa.Schema, slices: list[FileSlice], predicate: Predicate, pruning: Pruning
) -> tuple[list[FileSlice], Pruning]:
    """The slices that may hold a row by the statistics of the metadata table, if the table has them."""
    # statistics are those of the values in files, and readers may show others
    kinds = boundable_columns(schema, predicate.columns - columns_shown_by_path(table.config))
    ranges = load_ranges(table.storage, table.config, kinds, slices) if kinds else {}
    if not ranges:
        return slices, pruning
    guarantees = [slice_guarantee(found, kinds, ranges) for found in slices]
    bounded = [number for number, known in enumerate(guarantees) if known is not None]
    held = which_may_hold(predicate.expression, [known for known in guarantees if known is not None], schema)
    gone = {*bounded} - {bounded[at] for at in held}
    kept = [found for number, found in enumerate(slices) if number not in gone]
    return kept, replace(pruning, files_pruned_by_column_stats=len(gone))


def _prune_by_keys(
    storage: Storage, slices: Sequence[FileSlice], keys: pa.Array, pruning: Pruning
) -> tuple[list[FileSlice], Pruning]:
    """The slices that may hold one of the keys. The footer of a base file does not cover the keys in log files."""
    sought = SoughtKeys(keys)
    verdicts = list(each_at_once(storage, lambda found: _verdict(storage, found, sought), slices))
    kept = [found for found, verdict in zip(slices, verdicts, strict=True) if verdict is None]
    counts = {"files_pruned_by_key_range": "range", "files_pruned_by_bloom_filter": "filter"}
    return kept, replace(pruning, **{name: verdicts.count(verdict) for name, verdict in counts.items()})


def _verdict(storage: Storage, found: FileSlice, sought: SoughtKeys) -> str | None:
    """The reason why a slice holds none of the keys; None if it may hold one."""
    if found.base_file is None or found.log_files:
        return None
    if not len(sought.keys):
        return "range"
    base = found.base_file
    with deletion_named(storage), LookedIntoFile(storage, base.path, _NO_CACHE, base.size_bytes) as file:
        known = file.load_known()
    low, high = sought.within(known.bounds)
    if low == high:
        return "range"
    return "filter" if known.bloom is not None and not sought.any_may_be_in(known.bloom, low, high) else None

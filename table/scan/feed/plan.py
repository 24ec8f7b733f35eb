"""Plans a change feed: the file slices before and after each step, in parts that can be read apart from each other."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from operator import attrgetter

import pyarrow as pa

from table.config.merge_mode import mode_in_force
from table.errors import InvalidConfigError
from table.hudi_table import HudiTable
from table.scan.as_of import AsOf
from table.scan.change_range import EARLIEST
from table.scan.feed.choices import FeedChoices, Moves, shown_schema
from table.scan.feed.compare import Rules
from table.scan.feed.part import FeedPart, FeedReading, GroupChange
from table.scan.feed.steps import Group, Step, load_steps
from table.scan.partition_guarantee import partition_guarantee
from table.scan.plan import checked_names, load_read_schema, predicate_of
from table.scan.predicate import Predicate, Where, which_may_hold
from table.scan.read_slice import SliceContext, check_readable
from table.scan.split import narrowed
from table.schema.avro_schema import META_COLUMNS
from table.snapshot import Snapshot
from table.storage.at_once import each_at_once
from table.storage.interface import FileInfo, join
from table.timeline.metadata.clean import CleanPlan
from table.view.file_group import FileSlice, LogFile, parse_data_files


@dataclass(frozen=True, eq=False)
class FeedPlan:
    """The parts of a change feed, in the order in which they are read.

    Attributes:
        shown: the columns of the result.
        parts: one step after the other; within a step by partition path and file group.
        since: where the range begins, exclusive, as in `Timeline.visible_times`; None where the table has no commit.
        until: where it ends, inclusive.
        seen: request times of the last writes that the snapshots between the steps show, oldest first.
        cleans: instant times of the cleans that were completed when the timeline was listed.
        snapshot: what it was planned from.
    """

    shown: pa.Schema
    parts: tuple[FeedPart, ...] = ()
    since: str | None = None
    until: str | None = None
    seen: tuple[str, ...] = ()
    cleans: frozenset[str] = frozenset()
    snapshot: Snapshot | None = None

    def loses_to(self, clean: CleanPlan, *, is_new: bool) -> bool:
        """Whether a clean may delete versions from before a step, which distinguish an update from an insert (pure).

        Args:
            clean: not completed when the timeline was listed.
            is_new: whether it was not even requested then. Of older ones the names of their files say enough.
        """
        return is_new and bool(self.seen) and (clean.earliest is None or clean.earliest[0] > self.seen[0])

    @property
    def slices(self) -> tuple[FileSlice, ...]:
        """The slices that are read, before and after."""
        return tuple(found for part in self.parts for found in part.slices)


@dataclass(frozen=True, eq=False)
class _View:
    """The file groups at one moment: between two steps.

    Attributes:
        snapshot: of that moment; None before the first commit.
        context: needed to read its slices.
    """

    snapshot: Snapshot | None
    context: SliceContext

    def slices(self, path: str, entries: Iterable[FileInfo]) -> dict[str, FileSlice]:
        """The slices of a partition path by file id."""
        found = () if self.snapshot is None else self.snapshot.group_files(path, entries)
        return {group.file_id: group.merged_slice for group in found}


def plan_feed(
    table: HudiTable,
    since: AsOf,
    until: AsOf | None,
    columns: Sequence[str] | None,
    where: Where | None,
    choices: FeedChoices,
) -> FeedPlan:
    """Plans a change feed: reads the timeline and the commits of the range, lists the folders that they touched.

    Args:
        since: as in `table.scan.as_of.load_changes`.
        until: as in `table.scan.as_of.load_changes`.
        columns: the columns wanted, in order; None means all but the meta columns.
        where: which rows; the feed is that of the rows for which it is true, so a row comes or goes with it.
        choices: what is shown.

    Raises:
        InvalidConfigError: as `table.scan.feed.steps.load_steps`; or a column is not in the table, or a file is gone.
        UnsupportedTableError: the table's version is not supported, or how it merges the records of log files is not.
        CorruptFileError: a commit is damaged.
    """
    snapshot, steps = load_steps(table, since, until, choices)
    stored, schema = load_read_schema(snapshot)  # of all steps, so that a follower has the same columns in each
    names = checked_names(columns, schema, meta_columns=False)
    shown = shown_schema(pa.schema([schema.field(name) for name in names]), choices)
    predicate = None if where is None else predicate_of(table.config, where, schema)
    reading = FeedReading(table.config, schema, names, predicate, choices)
    planner = _Planner(snapshot, stored, reading)
    parts = [part for step in steps for part in planner.parts_of(step)]
    if not steps:
        return FeedPlan(shown, cleans=snapshot.cleans, snapshot=snapshot)
    ends = (steps[0].since, steps[-1].until)
    return FeedPlan(shown, tuple(parts), *ends, planner.seen, snapshot.cleans, snapshot)


class _Planner:
    """Plans one step after the other. A folder is listed once, and each moment between two steps is built once.

    Args:
        snapshot: the newest one.
        stored: the columns of the newest snapshot, without meta columns (Arrow).
        reading: what is read of each part.
    """

    def __init__(self, snapshot: Snapshot, stored: pa.Schema | None, reading: FeedReading) -> None:
        self._snapshot, self._stored, self._reading = snapshot, stored, reading
        self._views: dict[str, _View] = {}
        self._listed: dict[str, tuple[FileInfo, ...]] = {}
        self._seen: set[str] = set()

    @property
    def seen(self) -> tuple[str, ...]:
        """The last write of each moment that slices are read from."""
        return tuple(sorted(self._seen))

    def parts_of(self, step: Step) -> Iterator[FeedPart]:
        """The parts of a step."""
        before, after = self._view(step.since), self._view(step.until)
        if step.is_whole:
            changes = self._all_groups(after)
        else:
            self._check_there(step)
            changes = self._changes_of(step, before, after)
        reading = replace(self._reading, rules=self._rules_of(step))
        yield from _in_parts(changes, before.context, after.context, reading)

    def _rules_of(self, step: Step) -> Rules:
        reading = self._reading
        config = reading.config
        written = step.written if config.populate_meta_fields else frozenset()
        values = tuple(name for name in reading.names if name not in META_COLUMNS)
        mode = mode_in_force(config.version, config.payload_class, config.extra)
        # a late record fills nulls of a row that keeps its commit; of an unknown payload class nothing is known
        by_identity = config.populate_meta_fields and mode is not None and not mode.fills_nulls
        return Rules(values, written, reading.choices.unchanged, by_identity)

    def _view(self, time: str) -> _View:
        if time not in self._views:
            snapshot = None
            if time != EARLIEST:
                snapshot = self._snapshot.at(self._snapshot.timeline.visible_until(time))
                self._seen.add(max(snapshot.timeline.committed_times))
            committed = (snapshot or self._snapshot).committed
            self._views[time] = _View(snapshot, SliceContext(self._snapshot.table, committed, self._stored))
        return self._views[time]

    def _list(self, paths: Iterable[str]) -> None:
        missing = [path for path in paths if path not in self._listed]
        listing = self._snapshot.listing
        found = each_at_once(self._snapshot.storage, lambda path: tuple(listing.list_files(path)), missing)
        self._listed.update(zip(missing, found, strict=True))

    def _changes_of(self, step: Step, before: _View, after: _View) -> list[GroupChange]:
        touched, written = step.touched, step.paths
        paths = self._may_hold(sorted({path for path, _ in touched}))
        self._list(paths)
        changes = []
        for path in paths:
            entries = self._listed[path]
            old, new = before.slices(path, entries), after.slices(path, entries)
            logs: dict[str, list[LogFile]] = {}
            for log in parse_data_files(path, entries)[1]:
                if log.path in written and not log.suffix:
                    logs.setdefault(log.file_id, []).append(log)
            for _, file_id in sorted(group for group in touched if group[0] == path):
                slices = (old.get(file_id), new.get(file_id))
                found = GroupChange(path, file_id, *slices, touched[path, file_id], tuple(logs.get(file_id, ())))
                changes += [found] if found.slices else []
        self._check(changes)
        return changes

    def _all_groups(self, after: _View) -> list[GroupChange]:
        """Every group of a moment, of which every row is an insert."""
        if after.snapshot is None:
            return []
        walked = sorted(after.snapshot.walk_file_groups(), key=lambda found: found[0])
        kept = set(self._may_hold([path for path, _ in walked]))
        last = max(after.snapshot.timeline.committed_times)
        groups = [group for path, found in walked if path in kept for group in found]
        changes = [GroupChange(one.partition_path, one.file_id, None, one.merged_slice, last) for one in groups]
        self._check(changes)
        return changes

    def _check(self, changes: Iterable[GroupChange]) -> None:
        for change in changes:
            for found in change.slices:
                check_readable(self._snapshot.table, found, self._reading.schema)

    def _may_hold(self, paths: Sequence[str]) -> list[str]:
        predicate: Predicate | None = self._reading.predicate
        if predicate is None:
            return list(paths)
        config, schema = self._reading.config, self._reading.schema
        guarantees = [partition_guarantee(config, schema, path) for path in paths]
        return [paths[at] for at in which_may_hold(predicate.expression, guarantees, schema)]

    def _check_there(self, step: Step) -> None:
        """Refuses a step of which a file is gone that its commits name: an older version would stand for it.

        These are the version before the first commit of a group, and what its last commit wrote.
        """
        touched = step.touched
        first: dict[Group, str] = {}
        last: dict[Group, str] = {}
        replaced = {
            (path, file_id) for _, commit in step.commits for path, ids in commit.replaced.items() for file_id in ids
        }
        for _, commit in step.commits:
            for stat in commit.stats:
                group = (stat.partition_path, stat.file_id)
                if group in touched:
                    first.setdefault(group, join(stat.partition_path, stat.prev_base_file or ""))
                    last[group] = "" if group in replaced else stat.path
        paths = self._may_hold(sorted({path for path, _ in touched}))
        self._list(paths)
        there = {join(path, entry.name) for path in paths for entry in self._listed[path]}
        named = [path for (folder, _), path in (*first.items(), *last.items()) if folder in paths and path != folder]
        gone = sorted(path for path in named if path and path not in there)
        if gone:
            raise InvalidConfigError(
                f"the changes from {step.since} to {step.until} cannot be computed: {gone[0]}, which a commit of the "
                "range names, is gone; another engine cleaned the table, or the file is lost (`hudistream check`). "
                "Read the table anew, and follow it from table.newest_instant on"
            )


def _in_parts(
    changes: Sequence[GroupChange], before: SliceContext, after: SliceContext, reading: FeedReading
) -> Iterator[FeedPart]:
    """Parts of the groups between which rows may have moved; each other group is a part of its own."""
    whole = reading.choices.moves is Moves.UPDATE
    families = (
        [list(changes)] if whole else [list(of_path) for _, of_path in groupby(changes, attrgetter("partition_path"))]
    )
    for family in families:
        joins = _rows_may_move(family)
        for groups in [family] if joins else [[change] for change in family]:
            if groups:
                paths = {change.partition_path for change in groups}
                yield FeedPart(narrowed(before, paths), narrowed(after, paths), tuple(groups), reading, joins)


def _rows_may_move(changes: Sequence[GroupChange]) -> bool:
    """Whether a row may be in one group before and in another one after."""
    old = {(change.partition_path, change.file_id) for change in changes if change.before is not None}
    new = {(change.partition_path, change.file_id) for change in changes if change.after is not None}
    return bool(old and new) and len(old | new) > 1

"""The write profile of one table, kept from batch to batch, and built again when it cannot be trusted."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import islice

from streaming.batch.walk_table import walk_table
from streaming.plan.live_files import base_files_of
from streaming.plan.plan_tasks import looks_everywhere, remembered_below
from streaming.plan.task_plan import TaskPlan
from streaming.plan.task_result import TaskResult
from streaming.plan.write_profile import (
    COMMITS_REMEMBERED,
    FILES_REMEMBERED,
    PATHS_REMEMBERED,
    CommitSize,
    WriteProfile,
    apply_commit,
    apply_foreign_commit,
    base_file_stats,
    fresh_profile,
    is_understood,
    learn_listed,
)
from table.errors import HudiError, LostDataError
from table.files.base.stored_file import read_footer_bytes
from table.log import get_logger
from table.metadata_table.metadata_listing import MetadataListing
from table.options.choices import TableType
from table.options.write_options import WriteOptions
from table.snapshot import Snapshot
from table.storage.interface import Storage
from table.timeline.change import came_and_went
from table.timeline.instant import WRITE_ACTIONS, Action
from table.timeline.named_files import NamedFiles
from table.view.file_group import BaseFile
from table.view.file_system_view import confirmed_groups

FOOTERS_SAMPLED = 3
PATHS_TOLD = 20
PATHS_WORTH_THE_LISTS = 16  # reading the metadata table takes ten requests; tasks list a path with one, side by side

log = get_logger("hudistream.profile")


class ProfileCache:
    """Holds the profile between batches; the rules are in `streaming.plan.write_profile`.

    Args:
        commits: decoded commits of the table.
        limit_bytes: larger files are not remembered; None: all are.
        everywhere: whether the files of all paths are needed. They are then listed once, after a start.
        in_order: whether writes complete in the order of their times; see `WriteProfile.find_unseen`.
    """

    def __init__(
        self,
        storage: Storage,
        limit_bytes: int | None,
        *,
        everywhere: bool = False,
        in_order: bool = True,
    ) -> None:
        self._storage, self._limit, self._everywhere = storage, limit_bytes, everywhere
        self._in_order = in_order
        self._profile: WriteProfile | None = None
        self._pending: frozenset[str] = frozenset()  # writes of others when the profile was loaded

    def load(self, snapshot: Snapshot) -> WriteProfile:
        """The cached profile with the commits of other writers applied; a fresh profile after a start.

        The profile is also built again if the timeline does not say what other writers did.
        """
        committed = snapshot.timeline.committed_times
        followed = self._follow(self._profile, snapshot) if self._profile is not None else None
        if followed is None:
            followed = self._build(snapshot)
            log.debug("write_profile_built", table=self._storage.base_uri, commits=len(committed))
        # drop archived instants from `seen`, which would grow without end
        self._profile = replace(followed, seen=committed)
        pending = snapshot.timeline.pending_of(*WRITE_ACTIONS, Action.CLUSTERING)
        self._pending = frozenset(instant.time for instant in pending)
        return self._profile

    def _follow(self, profile: WriteProfile, snapshot: Snapshot) -> WriteProfile | None:
        """Applies the commits that the profile has not seen; None if the profile has to be built again."""
        timeline = snapshot.timeline
        unseen = profile.find_unseen(timeline.committed_times, in_order=self._in_order)
        if unseen is None or came_and_went(self._pending - profile.seen, timeline.committed_times):
            return None
        for instant in timeline.completed_writes:
            if instant.time not in unseen:
                continue
            metadata = snapshot.commits.find(instant)
            if metadata is None or not is_understood(instant, metadata):
                return None
            bases = base_file_stats(metadata.stats)
            few = [(stat.path, stat.file_size_bytes) for stat in bases[:FOOTERS_SAMPLED]]
            footers = self._sample_footers(few, len(bases))
            profile = apply_foreign_commit(profile, instant, metadata, footers, self._limit)
            log.debug(
                "foreign_commit_applied",
                table=self._storage.base_uri,
                instant_time=instant.time,
                files=len(metadata.stats),
            )
        return profile

    def _build(self, snapshot: Snapshot) -> WriteProfile:
        sizes, writes = [], snapshot.timeline.completed_of(Action.COMMIT, Action.DELTA_COMMIT)
        for instant in writes[: -COMMITS_REMEMBERED - 1 : -1]:
            commit = snapshot.commits.find_totals(instant)
            if commit is not None and commit.base_files:
                footers = self._sample_footers(commit.sample, commit.base_files)
                sizes.append(CommitSize(commit.base_bytes, commit.base_rows, footers))
        fresh = fresh_profile(snapshot.timeline.committed_times, sizes, self._list_everywhere(snapshot))
        return fresh if fresh.has_all_paths else learn_listed(fresh, self._list_written_last(snapshot), self._limit)

    def _list_written_last(self, snapshot: Snapshot) -> Mapping[str, tuple[BaseFile, ...]]:
        """The live files of the paths that the last commits wrote, from the metadata table.

        Empty where few paths were written: the tasks list them. Merge-on-read tables are left out: a log file goes
        beside a base file that no task opens, so that a listing must show that it is there.
        """
        writes, listing = snapshot.timeline.completed_writes, snapshot.listing
        is_merge_on_read = snapshot.config.table_type == TableType.MERGE_ON_READ
        if is_merge_on_read or not writes or not isinstance(listing, MetadataListing):
            return {}
        if self._limit is not None and self._limit <= 0:
            return {}
        confirmed = snapshot.confirmed
        named = confirmed.named or NamedFiles()
        if len(tuple(named.since(writes[-1].time))) < PATHS_WORTH_THE_LISTS or not listing.load():
            return {}
        found: dict[str, tuple[BaseFile, ...]] = {}
        for path in reversed(named.since(writes[-COMMITS_REMEMBERED:][0].time).newest_first()):
            try:
                groups = confirmed_groups(path, listing.list_files(path), confirmed)
            except LostDataError:
                continue  # the task that writes there lists the folder, and judges
            found[path] = base_files_of(group.latest_slice for group in groups)
        log.debug("paths_listed_from_metadata_table", table=self._storage.base_uri, partition_paths=len(found))
        return found

    def _list_everywhere(self, snapshot: Snapshot) -> Mapping[str, tuple[BaseFile, ...] | None] | None:
        """The live files of the whole table; None where they are not needed, or too many to remember."""
        if not self._everywhere or not snapshot.timeline.committed_times:
            return None
        found: dict[str, tuple[BaseFile, ...] | None] = {}
        files = 0
        for path, groups in walk_table(snapshot):
            # a path with log files stays unknown: the task that writes there lists it
            is_plain = all(group.is_plain for group in groups)
            found[path] = base_files_of(group.latest_slice for group in groups) if is_plain else None
            files += len(groups)
            if len(found) > PATHS_REMEMBERED or files > FILES_REMEMBERED:
                log.debug("too_many_files_to_remember", table=self._storage.base_uri, most=FILES_REMEMBERED)
                return None
        log.debug("table_listed", table=self._storage.base_uri, partition_paths=len(found), files=files)
        return found

    def _sample_footers(self, few: Sequence[tuple[str, int]], files: int) -> int:
        """Footer bytes of a commit's base files, estimated from a few of them.

        Args:
            few: path and size of these few.
            files: number of all.
        """
        sampled = []
        for path, size_bytes in few:
            try:
                sampled.append(read_footer_bytes(self._storage, path, size_bytes or None))
            except (HudiError, FileNotFoundError):
                continue  # the file was cleaned meanwhile; the estimate does not need it
        return round(sum(sampled) / len(sampled) * files) if sampled else 0

    def advance(self, profile: WriteProfile, instant_time: str, result: TaskResult) -> None:
        """Applies one of our own commits to the profile."""
        self._log_listed(result)
        self._profile = apply_commit(
            profile, instant_time, result.stats, result.footer_bytes, result.listed, self._limit
        )

    def learn(self, profile: WriteProfile, result: TaskResult) -> None:
        """Keeps the files that tasks listed, for a batch that had nothing to commit."""
        self._log_listed(result)
        self._profile = learn_listed(profile, result.listed, self._limit)

    def _log_listed(self, result: TaskResult) -> None:
        for path, files in result.listed.items():
            log.debug("partition_path_listed", table=self._storage.base_uri, partition_path=path, files=len(files))

    def drop(self) -> None:
        """Forgets the profile, for example after a failed batch, which may have left any files."""
        self._profile = None


class Profiles:
    """The profile caches of one writer: operations with the same needs share one.

    Args:
        in_order: as of `ProfileCache`.
    """

    def __init__(self, storage: Storage, *, in_order: bool) -> None:
        self._storage, self._in_order = storage, in_order
        self._caches: dict[tuple[int | None, bool], ProfileCache] = {}

    def of(self, options: WriteOptions) -> ProfileCache:
        """The cache for an operation with these options."""
        needs = limit, everywhere = remembered_below(options), looks_everywhere(options)
        if needs not in self._caches:
            self._caches[needs] = ProfileCache(self._storage, limit, everywhere=everywhere, in_order=self._in_order)
        return self._caches[needs]

    def forget(self) -> None:
        """Forgets all profiles, for example after a failed batch, which may have left any files."""
        for cache in self._caches.values():
            cache.drop()


def tell_small_files(table: str, plan: TaskPlan) -> None:
    """Logs the small files that a batch fills first (UpsertPartitioner.assignInserts), for twenty paths at most.

    Args:
        table: address of the table, for the log.
        plan: with the files of the paths that the driver knows. Paths that a task lists are not logged.
    """
    for path in islice(plan.known_files, PATHS_TOLD):
        files = {file.file_id: file.size_bytes for file in plan.small_files_of(path)}
        if files:
            log.debug("small_files_found", table=table, partition_path=path, size_bytes=files)

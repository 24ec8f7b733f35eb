"""Decides whether a commit may become visible (pure).

The table state that the commit was planned from must still hold. Every commit is checked before its completion.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from table.config.table_config import TableConfig
from table.files.names import parse_base_file, parse_log_file
from table.timeline.metadata.clustering import OPERATION
from table.timeline.metadata.commit import NO_PREVIOUS_COMMIT, CommitMetadata, WriteStat
from table.transaction.checkpoint import SINK_KEY

_BUCKET_DIGITS = 8
_ANY_VERSION = ""  # sorts before every instant time
# properties that must not change while a batch runs: readers of its files depend on them
_STABLE = (
    "name", "version", "layout_version", "table_type", "record_key_fields", "partition_fields", "ordering_fields",
    "keygen_type", "hive_style", "url_encode", "populate_meta_fields", "drop_partition_columns", "change_images",
    "metadata_partitions", "payload_class",
)  # fmt: skip


@dataclass(frozen=True)
class CommitFacts:
    """The facts from the store at the moment of completion. "We" is the writer of the commit.

    Attributes:
        instant_time: instant time of our commit.
        file_groups: (partition path, file id) of every file group that we wrote.
        inputs: paths of the base files that we continued.
        schema: the Avro schema that we wrote with.
        inflight_exists: whether our inflight file still exists.
        rolled_back: instants undone by rollbacks that appeared since we started.
        restored: whether a restore appeared since we started.
        seen: writes that were completed when we started.
        missing: writes in `seen` that are gone, although archival did not take them.
        decided: other writes that are decided to be committed, and are not completed on the timeline.
        cleaned: paths that cleans deleted, or are about to delete, since we started.
        compactions: compactions above whose slices our files lie: those that were pending when we started, and in
            layout 2 those requested since that rewrite no file group for which we wrote a base file.
        scheduled: other compactions that were requested since we started, and are pending: their plans do not contain
            our files.
        clustered: file groups that pending clusterings of other engines replace -> instant time of the clustering.
        withdrawn: compactions that were pending when we started, and were withdrawn.
        others: commits completed since we started.
        config_before: the table's properties when we started.
        config_now: the table's properties now; None if the file is gone.
        looks: whether we looked for existing rows of the table; a batch that only adds rows cannot miss one.
        widens_order: whether we widen an ordering column. Logs must hold no deletes with values of the older type then.
        unseen_from: the least time of a write that may have completed since we started (`Timeline.unseen_from`).
        line_then: first active write when we started.
        line_now: first active write now. Archival has removed every earlier write from the active timeline.
    """

    instant_time: str
    file_groups: frozenset[tuple[str, str]]
    inputs: frozenset[str]
    schema: str
    inflight_exists: bool
    rolled_back: frozenset[str]
    restored: bool
    seen: frozenset[str]
    missing: frozenset[str]
    cleaned: frozenset[str]
    compactions: frozenset[str]
    scheduled: frozenset[str]
    withdrawn: frozenset[str]
    others: Mapping[str, CommitMetadata]
    config_before: TableConfig
    config_now: TableConfig | None
    decided: frozenset[str] = frozenset()
    looks: bool = True
    widens_order: bool = False
    unseen_from: str | None = None
    line_then: str | None = None
    line_now: str | None = None
    clustered: Mapping[tuple[str, str], str] = field(default_factory=dict)


@dataclass(frozen=True)
class Conflict:
    """Why a commit must not become visible.

    Attributes:
        reason: the conflict in words, for the error message.
        file_groups: our file groups that another commit changed, or will replace, as well, if that is the only
            conflict.
        is_of_clustering: whether only clusterings are in the way, completed or planned: they change no row.
    """

    reason: str
    file_groups: frozenset[tuple[str, str]] = frozenset()
    is_of_clustering: bool = False


def find_conflict(facts: CommitFacts) -> Conflict | None:
    """Why the commit must not become visible, or None if it may."""
    reason = (
        _find_undone(facts)
        or _find_archived(facts)
        or _find_changed(facts)
        or _find_rescheduled(facts)
        or _find_other_schema(facts)
    )
    return Conflict(reason) if reason is not None else _find_overlap(facts)


def _find_undone(facts: CommitFacts) -> str | None:
    time = facts.instant_time
    if time in facts.rolled_back:
        return f"instant {time} was rolled back by another writer while the batch ran"
    if not facts.inflight_exists:
        return f"the inflight file of instant {time} is not there any more: another writer rolled it back"
    undone = (facts.rolled_back & facts.seen) | facts.missing
    if undone:
        return f"commit {min(undone)} was undone while the batch ran, which was planned from it"
    if facts.decided:
        return f"commit {min(facts.decided)} is decided, and its completed file is not there: the next batch creates it"
    return "a restore began while the batch ran" if facts.restored else None


def _find_archived(facts: CommitFacts) -> str | None:
    """A reason if archival took writes that the batch has not seen: the active timeline does not show their changes."""
    unseen_from, line = facts.unseen_from, facts.line_now
    if unseen_from is None or line is None or line <= max(unseen_from, facts.line_then or ""):
        return None
    return (
        f"commits up to {line} were archived while the batch ran, which has not seen those from {unseen_from} on: the "
        "timeline does not tell any more what they changed"
    )


def _find_changed(facts: CommitFacts) -> str | None:
    changed = _changed_properties(facts.config_before, facts.config_now)
    if changed:
        return f"hoodie.properties changed while the batch ran: {', '.join(changed)}"
    taken = facts.cleaned & facts.inputs
    if taken:
        return f"a clean deletes {min(taken)}, which the batch continues"
    if not facts.looks:
        return None
    # the batch may have searched such a version for its keys: the version that replaces it was not visible to the batch
    current = _current_at_begin(facts)
    unseen = [file for file in facts.cleaned if _is_as_new_as(file, current)]
    return f"a clean deletes {min(unseen)}, which was current when the batch began" if unseen else None


def _current_at_begin(facts: CommitFacts) -> Mapping[tuple[str, str], str]:
    """For each file group that other commits wrote, the version that was current when the batch began.

    It is the first version that those commits replaced. If a group was replaced as a whole, that version is not known:
    `_ANY_VERSION`. A compaction above whose slices our files lie counts, too: what it folded was visible to the batch,
    and what it made was not.
    """
    found: dict[tuple[str, str], str] = {}
    for metadata in facts.others.values():
        previous = {(stat.partition_path, stat.file_id): stat.prev_commit for stat in metadata.stats}
        for group in metadata.file_groups:
            time = previous.get(group, NO_PREVIOUS_COMMIT)
            found[group] = min(_ANY_VERSION if time == NO_PREVIOUS_COMMIT else time, found.get(group, time))
    return found


def _is_as_new_as(path: str, current: Mapping[tuple[str, str], str]) -> bool:
    partition_path, _, file = path.rpartition("/")
    base, on_log = parse_base_file(file), parse_log_file(file)
    if base is not None:
        time, known = base.instant_time, current.get((partition_path, base.file_id))
    elif on_log is not None:
        time, known = on_log.base_instant_time, current.get((partition_path, on_log.file_id))
    else:
        return False
    return known is not None and time >= known


def _find_rescheduled(facts: CommitFacts) -> str | None:
    if facts.withdrawn:
        return f"compaction {min(facts.withdrawn)} was withdrawn while the batch ran, which wrote log files above it"
    if facts.scheduled and facts.file_groups:
        return f"{min(facts.scheduled)} was scheduled while the batch ran, without the files that the batch wrote"
    return None


def _others(facts: CommitFacts) -> Mapping[str, CommitMetadata]:
    """Other commits, without the compactions whose files lie below our log files."""
    return {time: metadata for time, metadata in facts.others.items() if time not in facts.compactions}


def _find_other_schema(facts: CommitFacts) -> str | None:
    for other, metadata in _others(facts).items():
        theirs = metadata.extra.get("schema")
        if theirs and theirs != facts.schema:
            return f"commit {other} changed the table's schema while the batch ran"
        if facts.widens_order and not theirs and any(_is_delete_in_log(stat) for stat in metadata.stats):
            return f"commit {other} deleted by older ordering values, which the batch widens, while it ran"
    return None


def _is_delete_in_log(stat: WriteStat) -> bool:
    return bool(stat.num_deletes) and parse_log_file(stat.path.rpartition("/")[2]) is not None


def _find_overlap(facts: CommitFacts) -> Conflict | None:
    ours = {_place_of(group): group for group in sorted(facts.file_groups, reverse=True)}
    clustered = {ours[place]: time for group, time in facts.clustered.items() if (place := _place_of(group)) in ours}
    found: dict[tuple[str, str], tuple[str, str | None]] = {}
    moves_only = True
    for other, metadata in _others(facts).items():
        for place in sorted(ours.keys() & {_place_of(group) for group in metadata.file_groups}):
            found.setdefault(ours[place], (other, metadata.extra.get(SINK_KEY)))
            moves_only &= metadata.operation == OPERATION
    if clustered:
        (path, file_id), time = next(iter(sorted(clustered.items())))
        why = f"the pending clustering {time} replaces file group {file_id} in {path!r}, which the batch wrote"
        return Conflict(why, frozenset(found) | frozenset(clustered), moves_only)
    if not found:
        return None
    (path, file_id), (other, sink) = next(iter(found.items()))
    who = f"commit {other}" + (f" of sink {sink!r}" if sink else "")
    more = f", and {len(found) - 1} more file groups that the batch wrote were written," if len(found) > 1 else ""
    why = f"{who} wrote file group {file_id} in {path!r}{more} while the batch ran"
    return Conflict(why, frozenset(found), moves_only)


def _place_of(file_group: tuple[str, str]) -> tuple[str, str]:
    """The unit that two writers must not both write: a file group, or with a bucket index the bucket.

    Two file groups of one bucket would hold its keys twice (BucketIndexConcurrentFileWritesConflictResolutionStrategy).
    The file id of a bucket begins with the number of the bucket, in eight digits. Without a bucket index, two file ids
    of a partition are not expected to begin with the same eight digits.
    """
    path, file_id = file_group
    number = file_id[:_BUCKET_DIGITS]
    return (path, number if number.isdigit() else file_id)


def _changed_properties(before: TableConfig, now: TableConfig | None) -> Iterable[str]:
    if now is None:
        return ["the file does not exist any more"]
    return [
        f"{name} {getattr(before, name)!r} -> {getattr(now, name)!r}"
        for name in _STABLE
        if getattr(before, name) != getattr(now, name)
    ]

"""May this commit become visible? What it was planned from must still hold; asked before every completion (pure)."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from table.config.table_config import TableConfig
from table.timeline.metadata.commit import CommitMetadata

# changes to these while a batch runs change what its files mean
_STABLE = (
    "name", "version", "layout_version", "table_type", "record_key_fields", "partition_fields", "ordering_field",
    "keygen_type", "hive_style", "url_encode", "populate_meta_fields", "drop_partition_columns", "cdc_enabled",
    "metadata_partitions", "payload_class",
)  # fmt: skip


@dataclass(frozen=True)
class CommitFacts:
    """What the store says at the moment of completion.

    Attributes:
        instant_time: ours.
        file_groups: (partition path, file id) of every file group we wrote.
        inputs: paths of the base files that we continued.
        schema: the Avro schema we wrote with.
        inflight_exists: whether our inflight file is still there.
        rolled_back: instants that rollbacks name which came since we started.
        restored: whether a restore came since.
        seen: completed writes when we started.
        missing: those of them that are not there any more, and that no archival took.
        cleaned: paths that cleans deleted, or are about to delete, since we started.
        compactions: those that were pending when we started: what we wrote belongs to the slices that they make.
        others: commits completed since we started.
        config_before: the table's properties when we started.
        config_now: and now.
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
    others: Mapping[str, CommitMetadata]
    config_before: TableConfig
    config_now: TableConfig | None


def find_conflict(facts: CommitFacts) -> str | None:
    """Why the commit must not become visible, or None when it may."""
    return _find_undone(facts) or _find_changed(facts) or _find_overlap(facts)


def _find_undone(facts: CommitFacts) -> str | None:
    time = facts.instant_time
    if time in facts.rolled_back:
        return f"instant {time} was rolled back by another writer while the batch ran"
    if not facts.inflight_exists:
        return f"the inflight file of instant {time} is not there any more: another writer rolled it back"
    undone = (facts.rolled_back & facts.seen) | facts.missing
    if undone:
        return f"commit {min(undone)} was undone while the batch ran, which was planned from it"
    return "a restore began while the batch ran" if facts.restored else None


def _find_changed(facts: CommitFacts) -> str | None:
    changed = _changed_properties(facts.config_before, facts.config_now)
    if changed:
        return f"hoodie.properties changed while the batch ran: {', '.join(changed)}"
    taken = facts.cleaned & facts.inputs
    return f"a clean deletes {min(taken)}, which the batch continues" if taken else None


def _find_overlap(facts: CommitFacts) -> str | None:
    for other, metadata in facts.others.items():
        if other in facts.compactions:
            continue  # what it made lies below what we wrote
        shared = facts.file_groups & metadata.file_groups
        if shared:
            path, file_id = min(shared)
            return f"commit {other} wrote file group {file_id} in {path!r} while the batch ran"
        theirs = metadata.extra.get("schema")
        if theirs and theirs != facts.schema:
            return f"commit {other} changed the table's schema while the batch ran"
    return None


def _changed_properties(before: TableConfig, now: TableConfig | None) -> Iterable[str]:
    if now is None:
        return ["the file does not exist any more"]
    return [
        f"{name} {getattr(before, name)!r} -> {getattr(now, name)!r}"
        for name in _STABLE
        if getattr(before, name) != getattr(now, name)
    ]

"""Archival: instants go to the archive log, then their files (TimelineArchiverV1).

An instant is in the log before any of its files is gone, and its completed file goes last: half an
instant would look like a write that failed. A crash in between leaves an instant in both places; the
next run retires it again, and readers of the archive take it once.
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import structlog

from table import clock
from table.errors import BrokenInvariantError, CorruptFileError, HudiError
from table.files.log_block import encode_avro_block
from table.hudi_table import HudiTable, check_copy_on_write
from table.services.archival_plan import ArchivalPlan, plan_archival
from table.services.leftovers import delete_leftovers, find_held
from table.settings import ArchiveSettings, CleanSettings
from table.storage import METAFOLDER
from table.timeline.active_timeline import delete_instant_file, instant_path, load_timeline
from table.timeline.archived_timeline import next_archive_file
from table.timeline.end_record import ENDS_FOLDER, delete_end
from table.timeline.instant import DECIDED_ACTIONS, Action, Instant, State
from table.timeline.service_metadata import decode_record, load_schema_text
from table.timeline.timeline import Timeline

log = structlog.get_logger("hudistream.archival")

_COMMIT, _REPLACE = "hoodieCommitMetadata", "hoodieReplaceCommitMetadata"
DECIDED_NAMES = frozenset(action.value for action in DECIDED_ACTIONS)


@dataclass(frozen=True)
class ArchivalOutcome:
    """What an archival did.

    Attributes:
        instants: instants that left the active timeline.
        path: the archive's new file, or None where nothing was due.
        orphans: files of rolled back instants that had come back and were deleted again.
    """

    instants: tuple[Instant, ...] = ()
    path: str | None = None
    orphans: tuple[str, ...] = ()


def archive(table: HudiTable, settings: ArchiveSettings, clean: CleanSettings) -> ArchivalOutcome:
    """Retires what is due.

    Args:
        table: the table.
        settings: the bounds.
        clean: how many files are deleted at a time.

    Raises:
        HudiError: what was retired so far is in the archive.
    """
    check_copy_on_write(table.config, "archive instants of")
    storage = table.storage
    timeline = load_timeline(storage)
    plan = plan_archival(timeline, settings)
    if not plan.instants:
        return ArchivalOutcome()
    held = find_held(table, timeline, plan)
    if held:
        log.info("archival_held", table=storage.base_uri, instants=sorted(held))
        plan = plan_archival(timeline, settings, held)
    if not plan.instants:
        return ArchivalOutcome()
    orphans = delete_leftovers(table, timeline, plan, clean)
    path = _append(table, timeline, plan, settings.batch)
    for instant in plan.instants:
        # the completed file last: a request without it looks like a write that failed
        for file in timeline.files_of(instant.time, instant.action):
            if file.state is not State.COMPLETED:
                delete_instant_file(storage, file)
        delete_instant_file(storage, instant)
    _forget_ends(table, timeline, plan)
    if orphans:
        orphans += delete_leftovers(table, timeline, plan, clean)
    log.info(
        "instants_archived",
        table=table.storage.base_uri,
        instants=len(plan.instants),
        first_active=plan.first_active,
        path=path,
    )
    return ArchivalOutcome(plan.instants, path, orphans)


def _forget_ends(table: HudiTable, timeline: Timeline, plan: ArchivalPlan) -> None:
    """Deletes the end records of what was archived: no inflight file of these instants is left to be completed."""
    line = plan.first_active
    if line is None:
        return
    pending = {instant.time for instant in timeline.pending}
    for entry in table.storage.list_dir(ENDS_FOLDER):
        time, _, action = entry.name.partition(".")
        if time < line and time not in pending and action in DECIDED_NAMES:
            delete_end(table.storage, time, Action(action))


def _append(table: HudiTable, timeline: Timeline, plan: ArchivalPlan, batch: int) -> str:
    storage = table.storage
    modified = {entry.name: entry.modified_ms for entry in storage.list_dir(METAFOLDER)}
    files = [file for instant in plan.instants for file in timeline.files_of(instant.time, instant.action)]
    records = [_record(table, file, modified.get(file.file_name, clock.now_ms())) for file in files]
    schema = load_schema_text("archived_entry")
    try:
        blocks = [encode_avro_block(schema, records[at : at + batch]) for at in range(0, len(records), batch)]
    except Exception as error:  # of which of them, encoding them one by one tells
        for file, record in zip(files, records, strict=True):
            with _damage_named(file):
                encode_avro_block(schema, [record])
        raise BrokenInvariantError(
            f"instants cannot be archived together, though each of them can: {error!r}"
        ) from error
    while True:
        path = next_archive_file(storage, table.config.archive_folder)
        if storage.create_exclusive(path, b"".join(blocks), durable=True):
            return path


def _record(table: HudiTable, file: Instant, modified_ms: int) -> dict[str, Any]:
    """One state file as the archive holds it (MetadataConversionUtils.createMetaWrapper)."""
    record: dict[str, Any] = {
        "commitTime": file.time,
        "actionType": file.action.value,
        "actionState": file.state.value,
        "stateTransitionTime": clock.format_instant_time(modified_ms, table.config.timezone),
        "version": None,
    }
    data = table.storage.read(instant_path(file))
    if data.strip():
        with _damage_named(file):
            member, value = _metadata(file, data)
        if member is not None:
            record[member] = value
    return record


@contextmanager
def _damage_named(file: Instant) -> Iterator[None]:
    try:
        yield
    except HudiError:
        raise
    except Exception as error:
        raise CorruptFileError(
            f"{file.file_name} is damaged: it does not hold what the archive takes of it: {error!r}"
        ) from error


def _metadata(file: Instant, data: bytes) -> tuple[str | None, Any]:
    is_completed = file.state is State.COMPLETED
    if file.action is Action.CLEAN:
        name = "clean_metadata" if is_completed else "clean_plan"
        return ("hoodieCleanMetadata" if is_completed else "hoodieCleanerPlan"), decode_record(
            name, data, file.file_name
        )
    if file.action is Action.ROLLBACK:
        if not is_completed:
            return None, None
        return "hoodieRollbackMetadata", decode_record("rollback_metadata", data, file.file_name)
    if file.action is Action.REPLACE_COMMIT and file.state is State.REQUESTED:
        return "hoodieRequestedReplaceMetadata", decode_record("requested_replace", data, file.file_name)
    try:
        document = json.loads(data)
    except ValueError as error:
        raise CorruptFileError(f"{file.file_name} is not the JSON of a commit: {error}") from error
    if file.action is Action.REPLACE_COMMIT:
        return (_REPLACE if is_completed else "HoodieInflightReplaceMetadata"), _avro_commit(document, replace=True)
    return _COMMIT, _avro_commit(document, replace=False)


def _avro_commit(document: Mapping[str, Any], *, replace: bool) -> dict[str, Any]:
    """The JSON of a commit in the archive's Avro form: the same names."""
    extra = {key: value for key, value in (document.get("extraMetadata") or {}).items() if value is not None}
    converted: dict[str, Any] = {
        "partitionToWriteStats": document.get("partitionToWriteStats") or {},
        "compacted": document.get("compacted"),
        "extraMetadata": extra,
        "operationType": document.get("operationType"),
        "version": 1,
    }
    if replace:
        converted["partitionToReplaceFileIds"] = document.get("partitionToReplaceFileIds") or {}
    return converted

"""Files of instants <-> records of the archive log (HoodieArchivedMetaEntry, MetadataConversionUtils; pure).

One record holds one state file: its time, action and state, and its content in the member of that action.
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from table.errors import CorruptFileError, HudiError
from table.timeline.archived_timeline import ArchivedChange, ArchivedCommit, RetiredFile
from table.timeline.instant import Action, Instant, State
from table.timeline.metadata.avro_record import decode_record, encode_record, text_of, texts_of
from table.timeline.metadata.commit import CommitMetadata, commit_of, encode_commit, stat_from_json

_COMMIT, _REPLACE = "hoodieCommitMetadata", "hoodieReplaceCommitMetadata"


_NOT_JSON = (Action.CLEAN, Action.ROLLBACK, Action.COMPACTION, Action.LOG_COMPACTION)
# instant files whose content the archive keeps: the member of its record, and the schema of the file
_AVRO_MEMBERS = {
    (Action.CLEAN, State.REQUESTED): ("hoodieCleanerPlan", "clean_plan"),
    (Action.CLEAN, State.INFLIGHT): ("hoodieCleanerPlan", "clean_plan"),
    (Action.CLEAN, State.COMPLETED): ("hoodieCleanMetadata", "clean_metadata"),
    (Action.ROLLBACK, State.COMPLETED): ("hoodieRollbackMetadata", "rollback_metadata"),
    (Action.COMPACTION, State.REQUESTED): ("hoodieCompactionPlan", "compaction_plan"),
    (Action.LOG_COMPACTION, State.REQUESTED): ("hoodieCompactionPlan", "compaction_plan"),
    (Action.REPLACE_COMMIT, State.REQUESTED): ("hoodieRequestedReplaceMetadata", "requested_replace"),
}


def archive_record(file: RetiredFile) -> dict[str, Any]:
    """The archive's record of one state file (MetadataConversionUtils.createMetaWrapper).

    Raises:
        CorruptFileError: the file's content does not match its name.
    """
    instant = file.instant
    record: dict[str, Any] = {
        "commitTime": instant.time,
        "actionType": instant.action.value,
        "actionState": instant.state.value,
        "stateTransitionTime": file.moved_at,
        "version": None,
    }
    if file.data.strip():
        with damage_named(instant):
            member, value = _metadata(instant, file.data)
        if member is not None:
            record[member] = value
    return record


@contextmanager
def damage_named(file: Instant) -> Iterator[None]:
    """Names the instant file whose content cannot be archived.

    Raises:
        CorruptFileError: in place of the error that decoding or encoding the content raises.
    """
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
    if file.action in _NOT_JSON or (file.action is Action.REPLACE_COMMIT and file.state is State.REQUESTED):
        member, name = _AVRO_MEMBERS.get((file.action, file.state), (None, ""))
        return member, decode_record(name, data, file.file_name) if member is not None else None
    try:
        document = json.loads(data)
    except ValueError as error:
        raise CorruptFileError(f"{file.file_name} is not the JSON of a commit: {error}") from error
    if file.action is Action.REPLACE_COMMIT:
        return (_REPLACE if is_completed else "HoodieInflightReplaceMetadata"), _avro_commit(document, replace=True)
    return _COMMIT, _avro_commit(document, replace=False)


def _avro_commit(document: Mapping[str, Any], *, replace: bool) -> dict[str, Any]:
    """Converts the JSON of a commit to the archive's Avro form, which has the same field names."""
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


def to_retired(record: Mapping[str, Any]) -> RetiredFile:
    """The instant file of a record: the inverse of `archive_record`, as far as the archive keeps the content.

    Raises:
        TypeError, ValueError, KeyError, AttributeError: the record does not have the fields of an instant file.
    """
    time, state = text_of(record["commitTime"]), State(text_of(record["actionState"]))
    file = Instant(time, Action(text_of(record["actionType"])), state)
    content = record.get(_COMMIT) or record.get(_REPLACE) or record.get("HoodieInflightReplaceMetadata")
    data = b""
    if content:
        data = encode_commit(commit_of(content))
    elif (known := _AVRO_MEMBERS.get((file.action, state))) is not None and record.get(known[0]):
        data = encode_record(known[1], record[known[0]])
    return RetiredFile(file, data, record.get("stateTransitionTime") or time)


def to_commit(record: Mapping[str, Any]) -> ArchivedCommit | None:
    """The completed commit that a record holds, without its write stats; None for any other record."""
    content = record.get(_COMMIT) or record.get(_REPLACE)
    if record.get("actionState") != "COMPLETED" or not content:
        return None
    extra = {key: text_of(value) for key, value in (content.get("extraMetadata") or {}).items() if value is not None}
    metadata = CommitMetadata(operation=text_of(content.get("operationType") or "UNKNOWN"), extra=extra)
    return ArchivedCommit(text_of(record["commitTime"]), text_of(record["actionType"]), metadata)


def to_change(record: Mapping[str, Any]) -> ArchivedChange | None:
    """What a completed instant did, from its record; None for a record of an earlier state."""
    if record.get("actionState") != "COMPLETED":
        return None
    time = text_of(record["commitTime"])
    rollback = record.get("hoodieRollbackMetadata")
    if rollback:
        return ArchivedChange(time, undone=texts_of(rollback.get("commitsRollback") or ()))
    content = record.get(_COMMIT) or record.get(_REPLACE)
    if not content:
        return ArchivedChange(time)
    by_path = content.get("partitionToWriteStats") or {}
    stats = tuple(stat_from_json(stat, path) for path, of_path in by_path.items() for stat in of_path)
    replaced = {path: texts_of(ids) for path, ids in (content.get("partitionToReplaceFileIds") or {}).items()}
    operation = text_of(content.get("operationType") or "UNKNOWN")
    is_compacted = bool(content.get("compacted"))
    return ArchivedChange(time, CommitMetadata(stats, operation, {}, replaced, is_compacted))

"""Restores <-> Avro (HoodieRestorePlan, HoodieRestoreMetadata)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from table.timeline.instant import Action
from table.timeline.metadata.avro_record import decode_record, encode_record, read_as, text_of, texts_of


@dataclass(frozen=True)
class RestorePlan:
    """What a restore undoes.

    Attributes:
        savepoint: the commit that is restored.
        instants: (time, action) of the commits to undo, newest first.
    """

    savepoint: str
    instants: tuple[tuple[str, str], ...]


def _infos(plan: RestorePlan) -> list[dict[str, str]]:
    return [{"commitTime": time, "action": action} for time, action in plan.instants]


def encode_restore_plan(plan: RestorePlan) -> bytes:
    """Content of ``<time>.restore.requested``."""
    record = {"instantsToRollback": _infos(plan), "version": 2, "savepointToRestoreTimestamp": plan.savepoint}
    return encode_record("restore_plan", record)


def decode_restore_plan(data: bytes, file: str = "") -> RestorePlan:
    """A restore plan, ours or Hudi's.

    Args:
        data: the file's bytes.
        file: name of the file, for the error.

    Raises:
        CorruptFileError: when it is damaged.
    """
    record = decode_record("restore_plan", data, file)
    with read_as("restore_plan", file):
        instants = tuple(
            (text_of(info["commitTime"]), Action(info["action"]).value) for info in record["instantsToRollback"]
        )
        return RestorePlan(text_of(record.get("savepointToRestoreTimestamp") or ""), instants)


def decode_restored(data: bytes, file: str = "") -> tuple[str, ...]:
    """Times of the commits that a completed restore undid.

    Args:
        data: the file's bytes.
        file: name of the file, for the error.

    Raises:
        CorruptFileError: when it is damaged.
    """
    record = decode_record("restore_metadata", data, file)
    with read_as("restore_metadata", file):
        return tuple(dict.fromkeys((*texts_of(record.get("instantsToRollback")), *record["hoodieRestoreMetadata"])))


def encode_restore_metadata(
    start_time: str, duration_ms: int, plan: RestorePlan, rollbacks: Mapping[str, dict[str, Any]]
) -> bytes:
    """Content of ``<time>.restore``.

    Args:
        start_time: instant of the restore.
        plan: the commits that were undone.
        rollbacks: time of an undone commit -> record of its rollback (HoodieRollbackMetadata).
    """
    return encode_record(
        "restore_metadata",
        {
            "startRestoreTime": start_time,
            "timeTakenInMillis": duration_ms,
            "instantsToRollback": [time for time, _ in plan.instants],
            "hoodieRestoreMetadata": {time: [record] for time, record in rollbacks.items()},
            "version": 1,
            "restoreInstantInfo": _infos(plan),
        },
    )

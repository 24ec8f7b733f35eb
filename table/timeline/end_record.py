"""End records: one object decides how an instant ends (rule 3 of docs/concepts/safety.md).

An end record says "commit" and holds the whole commit metadata, or says "rollback". It is created if it is absent. So a
writer and a process that takes the writer for dead cannot both decide: the second one obeys the record that it finds. A
process that finds the end record of a dead process carries it out. The record stays until its instant is archived. Hudi
ignores the folder.

A rollback of a completed commit and a restore have an end record, too: "commit" says that the rollback or restore is
carried out, "rollback" that it was withdrawn before anything was undone. If it is carried out, the end records of the
undone commits are overruled.
"""

import base64
import json
from dataclasses import dataclass
from typing import Any

from table.errors import CorruptFileError
from table.storage.interface import OWN_FOLDER, Storage, join
from table.timeline.active_timeline import create_settled
from table.timeline.instant import WRITE_ACTIONS, Action
from table.timeline.metadata.avro_commit import decode_avro_commit
from table.timeline.metadata.commit import CommitMetadata
from table.version import VERSION

ENDS_FOLDER = join(OWN_FOLDER, "ends")
COMMIT, ROLLBACK = "commit", "rollback"
# actions that write data files, and whose end records hold a whole commit
DATA_ACTIONS = WRITE_ACTIONS | {Action.COMPACTION, Action.CLUSTERING}


@dataclass(frozen=True, slots=True)
class EndRecord:
    """How an instant ends.

    Attributes:
        end: ``commit`` or ``rollback``.
        by: identity of the process that decided the end.
        content: bytes of the completed file, for a commit.
        version: version of hudistream that wrote the record.
        undone: sink id and batch id of the stream's batch that a rollback of a completed commit undoes.
        completion_time: part of the completed file's name in timeline layout 2, so that each process that carries the
            end out creates the same file. None in layout 1, and for a rollback.
    """

    time: str
    action: Action
    end: str
    by: str
    content: bytes = b""
    version: str = VERSION
    undone: tuple[str, int] | None = None
    completion_time: str | None = None

    @property
    def is_commit(self) -> bool:
        """Whether the instant is to be committed."""
        return self.end == COMMIT

    @property
    def metadata(self) -> CommitMetadata:
        """The metadata in the completed file of a commit.

        Raises:
            CorruptFileError: the content is no commit.
        """
        return decode_avro_commit(self.content, f"{self.time}.{self.action.value}")

    def encode(self) -> bytes:
        """The record as JSON."""
        document: dict[str, Any] = {"end": self.end, "by": self.by, "version": self.version}
        try:
            document["content"] = self.content.decode()
        except UnicodeDecodeError:  # Avro
            document |= {"content": "", "base64": base64.b64encode(self.content).decode()}
        more = {"undone": self.undone, "completion_time": self.completion_time}
        return json.dumps(document | {key: value for key, value in more.items() if value}).encode()


def end_path(time: str, action: Action) -> str:
    """Path of an end record, relative to the table."""
    return join(ENDS_FOLDER, f"{time}.{action.value}")


def decode_end(time: str, action: Action, data: bytes) -> EndRecord:
    """The inverse of `EndRecord.encode`.

    Raises:
        CorruptFileError: the bytes are not an end record.
    """
    try:
        document = json.loads(data)
        end = EndRecord(
            time,
            action,
            document["end"],
            document["by"],
            base64.b64decode(document["base64"]) if "base64" in document else document["content"].encode(),
            document["version"],
            _undone(document.get("undone")),
            document.get("completion_time"),
        )
    except (ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
        raise CorruptFileError(f"{end_path(time, action)} is not an end record: {error!r}") from error
    if end.end not in (COMMIT, ROLLBACK):
        raise CorruptFileError(f"{end_path(time, action)} says {end.end!r}: neither commit nor rollback")
    return end


def _undone(value: Any) -> tuple[str, int] | None:
    return (str(value[0]), int(value[1])) if value else None


def find_end(storage: Storage, time: str, action: Action) -> EndRecord | None:
    """The end that was decided for an instant, or None."""
    try:
        return decode_end(time, action, storage.read(end_path(time, action)))
    except FileNotFoundError:
        return None


def decide_end(storage: Storage, wanted: EndRecord) -> EndRecord:
    """Decides how an instant ends, unless another process has decided.

    Args:
        wanted: the end that the caller wants.

    Returns:
        The end that counts.

    Raises:
        CommitOutcomeUnknownError: the store does not say which end counts.
    """
    data = create_settled(storage, end_path(wanted.time, wanted.action), wanted.encode())
    return decode_end(wanted.time, wanted.action, data)


def overrule_end(storage: Storage, end: EndRecord) -> None:
    """Replaces an end record. Only for a commit that is undone by hand, or that a foreign writer rolled back."""
    storage.put(end_path(end.time, end.action), end.encode())


def delete_end(storage: Storage, time: str, action: Action) -> None:
    """Deletes the end record of an archived instant: it has no inflight file that a late writer could complete."""
    storage.delete_metafile(end_path(time, action))

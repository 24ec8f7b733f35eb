"""Keeps the Delta log of a table: one commit for each new snapshot, a checkpoint now and then.

::

    _delta_log/00000000000000000012.json                  a commit; created exclusively
    _delta_log/00000000000000000010.checkpoint.parquet    all that counts up to a commit
    _delta_log/_last_checkpoint                           where readers begin
"""

import json
import re
from collections.abc import Sequence

from table import clock
from table.catalog.delta.delta_actions import (
    DeltaState,
    DeltaTarget,
    apply_commit,
    decode_checkpoint,
    encode_checkpoint,
    encode_commit,
    plan_commit,
)
from table.catalog.delta.delta_schema import changed_types, encode_schema
from table.errors import CommitConflictError, CorruptFileError, UnsupportedTableError
from table.hudi_table import HudiTable
from table.snapshot import Snapshot
from table.storage.interface import FileInfo, Storage, join
from table.view.file_group import BaseFile

FOLDER = "_delta_log"
CHECKPOINT_EVERY = 10
"""Commits between two checkpoints (``delta.checkpointInterval`` of Delta)."""
KEPT_MS = 3_600_000
"""So long a commit stays after a checkpoint has made it superfluous: readers that listed it may still read it."""
_TRIES = 10
_COMMIT = re.compile(r"(\d{20})\.json")
_CHECKPOINT = re.compile(r"(\d{20})\.checkpoint\.parquet")


class DeltaLog:
    """The Delta log of one table. Remembers what it says, so that a commit is one request more.

    Args:
        table: of any type. Of a merge-on-read table the log names base files alone.
    """

    def __init__(self, table: HudiTable) -> None:
        self._storage = table.storage
        self._state: DeltaState | None = None

    def bring_up_to_date(self, snapshot: Snapshot, files: Sequence[BaseFile]) -> DeltaState:
        """Commits what the newest snapshot has and the log has not; nothing where they agree.

        Args:
            snapshot: of the table. Another process that keeps the log, too, may be ahead: then its log is taken back to
                this snapshot, and forward again by its next commit.
            files: the base files that readers of the snapshot open.

        Raises:
            UnsupportedTableError: a column has no type in Delta, or another type than older files have.
            CommitConflictError: other processes write the log all the time.
            CorruptFileError, StorageError: the log cannot be read or written.
        """
        target = _target_of(snapshot, files)
        if target is None:
            return self._state or DeltaState()
        for _ in range(_TRIES):
            state = self._state or load_delta_state(self._storage)
            _check_types(state, target)
            now_ms = clock.now_ms()
            actions = plan_commit(state, target, clock.fresh_uuid(), now_ms)
            if not actions:
                self._state = state
                return state
            data, version = encode_commit(actions), state.version + 1
            if self._storage.create_exclusive(join(FOLDER, f"{version:020d}.json"), data):
                self._state = apply_commit(state, version, data)
                if version and version % CHECKPOINT_EVERY == 0:
                    self._write_checkpoint(self._state, now_ms)
                return self._state
            self._state = None  # another process was faster
        raise CommitConflictError(f"other processes write the Delta log of {self._storage.base_uri!r} all the time")

    def _write_checkpoint(self, state: DeltaState, now_ms: int) -> None:
        self._storage.put(join(FOLDER, f"{state.version:020d}.checkpoint.parquet"), encode_checkpoint(state, now_ms))
        size = len(state.files) + 2
        told = json.dumps({"version": state.version, "size": size}).encode()
        self._storage.put(join(FOLDER, "_last_checkpoint"), told)
        for name in superfluous(self._storage.list_dir(FOLDER), state.version):
            self._storage.delete(join(FOLDER, name))


def superfluous(entries: Sequence[FileInfo], checkpoint: int) -> list[str]:
    """Names of commits and checkpoints that readers need no more, because a newer checkpoint says it all (pure).

    Args:
        entries: of the log's folder.
        checkpoint: the newest checkpoint.
    """
    newest_ms = max((entry.modified_ms for entry in entries), default=0)
    found = []
    for entry in entries:
        number = _COMMIT.fullmatch(entry.name) or _CHECKPOINT.fullmatch(entry.name)
        if number is not None and int(number[1]) < checkpoint and entry.modified_ms < newest_ms - KEPT_MS:
            found.append(entry.name)
    return found


def load_delta_state(storage: Storage) -> DeltaState:
    """What the log says: its newest checkpoint, and the commits after it.

    Raises:
        CorruptFileError: a file of the log is damaged, or a commit is missing.
        StorageError: the store fails.
    """
    names = storage.list_names(FOLDER)
    commits = sorted(int(found[1]) for name in names if (found := _COMMIT.fullmatch(name)))
    checkpoints = sorted(int(found[1]) for name in names if (found := _CHECKPOINT.fullmatch(name)))
    state = DeltaState()
    if checkpoints:
        last = checkpoints[-1]
        state = decode_checkpoint(last, storage.read(join(FOLDER, f"{last:020d}.checkpoint.parquet")))
    for version in commits:
        if version <= state.version:
            continue
        if version != state.version + 1:
            raise CorruptFileError(f"the Delta log of {storage.base_uri!r} lacks commit {state.version + 1}")
        state = apply_commit(state, version, storage.read(join(FOLDER, f"{version:020d}.json")))
    return state


def _check_types(state: DeltaState, target: DeltaTarget) -> None:
    changed = changed_types(state.metadata["schemaString"], target.schema) if state.metadata is not None else []
    if changed:
        raise UnsupportedTableError(
            f"the Delta log cannot follow a change of types: {'; '.join(changed)}. Older files have the old type, and "
            "Delta's readers do not convert it. Write the rows into a new table, or stop keeping the log "
            "(hudistream.manifest.for) and delete the folder _delta_log"
        )


def _target_of(snapshot: Snapshot, files: Sequence[BaseFile]) -> DeltaTarget | None:
    schema, as_of = snapshot.load_schema(), max(snapshot.timeline.committed_times, default=None)
    if schema is None or as_of is None:
        return None
    if snapshot.config.drop_partition_columns:
        raise UnsupportedTableError(
            "the files of the table lack its partition columns (hoodie.datasource.write.drop.partition.columns): a "
            "Delta log would show them as null"
        )
    sizes = {file.path: file.size_bytes for file in files}
    return DeltaTarget(sizes, encode_schema(schema), snapshot.config.name, as_of)

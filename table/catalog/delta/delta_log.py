"""Keeps the Delta log of a table: one commit for each new snapshot, a checkpoint now and then.

::

    _delta_log/00000000000000000012.json                  a commit; created exclusively
    _delta_log/00000000000000000010.checkpoint.parquet    all that counts up to a commit
    _delta_log/_last_checkpoint                           where readers begin
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

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
from table.config.table_config import TableConfig
from table.errors import CommitConflictError, CorruptFileError, UnsupportedTableError
from table.hudi_table import HudiTable
from table.keys.folder_values import shown_values
from table.schema.avro_schema import without_meta_columns
from table.snapshot import Snapshot
from table.storage.interface import FileInfo, Storage, join
from table.view.file_group import BaseFile

FOLDER = "_delta_log"
CHECKPOINT_EVERY = 10
"""Commits between two checkpoints (``delta.checkpointInterval`` of Delta)."""
KEPT_MS, KEPT_AT_LEAST_MS, KEPT_COMMITS = 86_400_000, 3_600_000, 1000
"""Commits that a checkpoint has made superfluous stay for readers that listed them, and for time travel: for a day, or
for an hour where more than so many have come since. A listing of the table lists them, too."""
_FOOTERS_CHECKED = 1000  # before a new log, of a large table
_TRIES = 10
_ANEW = (
    "if no other writer keeps it, delete the folder _delta_log, and the next commit, or "
    "`hudistream manifest PATH --for delta`, makes it anew"
)
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
        for _ in range(_TRIES):
            state = self._look()
            target = _target_of(snapshot, files, state)
            if target is None:
                return state
            changed = _check_types(state, target)
            if state.metadata is None:
                step = -(-len(files) // _FOOTERS_CHECKED) or 1
                _check_footers(self._storage, files[::step], target)
            elif changed:  # the log may have missed a commit whose files stay
                _check_footers(self._storage, [one for one in files if one.instant_time != target.as_of], target)
            now_ms = clock.now_ms()
            actions = plan_commit(state, target, clock.fresh_uuid(), now_ms)
            if not actions:
                if not self._storage.exists(_commit_path(state.version + 1)):
                    return state
                self._state = None  # another process has said something else meanwhile
                continue
            data, version = encode_commit(actions), state.version + 1
            if self._storage.create_exclusive(_commit_path(version), data):
                self._state = apply_commit(state, version, data)
                if version and version % CHECKPOINT_EVERY == 0:
                    self._write_checkpoint(self._state, now_ms)
                return self._state
            self._state = None  # another process was faster
        raise CommitConflictError(f"other processes write the Delta log of {self._storage.base_uri!r} all the time")

    def _look(self) -> DeltaState:
        """What the log says: as remembered, if the newest commit that is remembered is still there."""
        known = self._state
        if known is None or known.version < 0 or not self._storage.exists(_commit_path(known.version)):
            self._state = known = load_delta_state(self._storage)
        return known

    def _write_checkpoint(self, state: DeltaState, now_ms: int) -> None:
        self._storage.put(join(FOLDER, f"{state.version:020d}.checkpoint.parquet"), encode_checkpoint(state, now_ms))
        size = len(state.files) + 2
        pointer = json.dumps({"version": state.version, "size": size}).encode()
        self._storage.put(join(FOLDER, "_last_checkpoint"), pointer)
        for name in superfluous(self._storage.list_dir(FOLDER), state.version):
            self._storage.delete(join(FOLDER, name))


def _commit_path(version: int) -> str:
    return join(FOLDER, f"{version:020d}.json")


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
        if number is None or int(number[1]) >= checkpoint:
            continue
        kept_ms = KEPT_AT_LEAST_MS if int(number[1]) < checkpoint - KEPT_COMMITS else KEPT_MS
        if entry.modified_ms < newest_ms - kept_ms:
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
        state = _load_checkpoint(storage, checkpoints[-1], is_needed=commits[:1] != [0])
    for version in commits:
        if version <= state.version:
            continue
        if version != state.version + 1:
            raise CorruptFileError(f"the Delta log of {storage.base_uri!r} has no commit {state.version + 1}: {_ANEW}")
        state = apply_commit(state, version, storage.read(_commit_path(version)))
    return state


def _load_checkpoint(storage: Storage, version: int, *, is_needed: bool) -> DeltaState:
    """What a checkpoint says; nothing where it is damaged and the commits say it, too."""
    try:
        return decode_checkpoint(version, storage.read(join(FOLDER, f"{version:020d}.checkpoint.parquet")))
    except CorruptFileError as error:
        if is_needed:
            raise CorruptFileError(f"{error}; {_ANEW}") from error
        return DeltaState()


def _check_types(state: DeltaState, target: DeltaTarget) -> list[str]:
    """Refuses a change of types over files that the log names and that stay. Returns the changes."""
    stays = state.files.keys() & target.files.keys()
    changed = changed_types(state.metadata["schemaString"], target.schema) if state.metadata is not None else []
    if changed and stays:
        raise UnsupportedTableError(
            f"the Delta log cannot follow a change of types: {'; '.join(changed)}. Older files have the old type, and "
            "Delta's readers do not convert it. Rewrite all files in one commit (insert_overwrite_table), or stop "
            "keeping the log (hudistream.manifest.for) and delete the folder _delta_log: cleaning deletes what it names"
        )
    return changed


def _check_footers(storage: Storage, files: Sequence[BaseFile], target: DeltaTarget) -> None:
    """Refuses files whose columns have older types."""
    for file in files:
        try:
            with storage.open_input(file.path, file.size_bytes) as source:
                stored = without_meta_columns(pq.read_schema(source))
        except FileNotFoundError:
            continue  # it was cleaned since: the next look at the table names newer files
        except (pa.ArrowException, OSError) as error:
            raise CorruptFileError(f"{file.path} is not a whole Parquet file: {error}") from error
        known = pa.schema([field for field in stored if _has_delta_type(field)])
        changed = changed_types(encode_schema(known), target.schema)
        if changed:
            raise UnsupportedTableError(
                f"{file.path} has columns of older types: {'; '.join(changed)}. Delta's readers do not convert them: "
                "rewrite all files in one commit (insert_overwrite_table) before a Delta log is kept"
            )


def _has_delta_type(field: pa.Field) -> bool:
    try:
        encode_schema(pa.schema([field]))
    except UnsupportedTableError:
        return False
    return True


def _target_of(snapshot: Snapshot, files: Sequence[BaseFile], state: DeltaState) -> DeltaTarget | None:
    schema, as_of = snapshot.load_schema(), max(snapshot.timeline.committed_times, default=None)
    if schema is None or as_of is None:
        if state.metadata is None or not state.files:
            return None
        # the table's only commits were undone: the log says that it has no rows
        known = tuple(state.metadata.get("partitionColumns") or ())
        return DeltaTarget({}, state.metadata["schemaString"], snapshot.config.name, as_of or "", known)
    if snapshot.config.drop_partition_columns:
        raise UnsupportedTableError(
            "the files of the table lack its partition columns (hoodie.datasource.write.drop.partition.columns): a "
            "Delta log would show them as null"
        )
    sizes = {file.path: file.size_bytes for file in files}
    columns, by_path = told_columns(snapshot.config, schema, {file.partition_path for file in files})
    values = {file.path: by_path[file.partition_path] for file in files} if columns else {}
    return DeltaTarget(sizes, encode_schema(schema), snapshot.config.name, as_of, columns, values)


def told_columns(
    config: TableConfig, schema: pa.Schema, paths: Iterable[str]
) -> tuple[tuple[str, ...], Mapping[str, Mapping[str, str | None]]]:
    """The partition columns whose values every path contains, and these values as Delta spells them (pure).

    Readers of Hudi show the value of the path, which can be another one than the file's (`shown_values`). A column
    that some path does not contain has its values in the files.

    Args:
        config: the table's properties.
        schema: the table's columns (Arrow).
        paths: the partition paths with files.
    """
    by_path = {path: shown_values(config, schema, path) for path in paths}
    named = config.partition_fields if by_path else ()
    columns = tuple(name for name in named if all(name in values for values in by_path.values()))
    return columns, {path: {name: _spelled(values[name]) for name in columns} for path, values in by_path.items()}


def _spelled(value: Any) -> str | None:
    return None if value is None else str(value)

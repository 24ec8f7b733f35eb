"""The actions of a Delta log: what one commit holds, what the log says so far, a checkpoint (pure; Delta protocol).

The log names base files of the Hudi table by their paths, and adds nothing to them. A writer feature that no Delta
writer knows keeps Delta's own writers out: an ``OPTIMIZE`` or a ``VACUUM`` would change files that the Hudi timeline
does not know of.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import quote, unquote

import pyarrow as pa
import pyarrow.parquet as pq

from table.errors import CorruptFileError, UnsupportedTableError

WRITER_FEATURE = "hudistream"
"""A writer that does not know a feature of this list must not write (Delta protocol, "Table Features")."""
PROTOCOL = {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": [WRITER_FEATURE]}
Values = Mapping[str, str | None]
_SAFE = "/._-=~"  # letters of a path that the log leaves as they are

_NO_CHANGE = {"dataChange": False}
_TEXTS = pa.list_(pa.string())
_MAP = pa.map_(pa.string(), pa.string())
CHECKPOINT = pa.schema(
    [
        pa.field("protocol", pa.struct([
            ("minReaderVersion", pa.int32()), ("minWriterVersion", pa.int32()),
            ("readerFeatures", _TEXTS), ("writerFeatures", _TEXTS),
        ])),
        pa.field("metaData", pa.struct([
            ("id", pa.string()), ("name", pa.string()),
            ("format", pa.struct([("provider", pa.string()), ("options", _MAP)])),
            ("schemaString", pa.string()), ("partitionColumns", _TEXTS), ("configuration", _MAP),
            ("createdTime", pa.int64()),
        ])),
        pa.field("add", pa.struct([
            ("path", pa.string()), ("partitionValues", _MAP), ("size", pa.int64()), ("modificationTime", pa.int64()),
            ("dataChange", pa.bool_()),
        ])),
    ]
)  # fmt: skip


@dataclass(frozen=True)
class DeltaState:
    """What a log says after its newest commit.

    Attributes:
        version: number of that commit; -1: there is none.
        files: path of each file, relative to the table -> its size in bytes.
        values: path of a file -> partition column -> its value; files without such columns are left out.
        protocol: the newest action ``protocol``; None before the first commit.
        metadata: the newest action ``metaData``; None before the first commit.
    """

    version: int = -1
    files: Mapping[str, int] = field(default_factory=dict)
    values: Mapping[str, Values] = field(default_factory=dict)
    protocol: Mapping[str, Any] | None = None
    metadata: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class DeltaTarget:
    """What the log has to say.

    Attributes:
        files: path of each file, relative to the table -> its size in bytes.
        schema: ``schemaString``.
        name: name of the table.
        as_of: time of the newest instant of the Hudi table.
        partition_columns: the columns whose values the folders contain.
        values: as of `DeltaState`.
    """

    files: Mapping[str, int]
    schema: str
    name: str
    as_of: str
    partition_columns: tuple[str, ...] = ()
    values: Mapping[str, Values] = field(default_factory=dict)


def plan_commit(state: DeltaState, target: DeltaTarget, table_id: str, now_ms: int) -> list[dict[str, Any]]:
    """The actions that bring a log to its target; none where it is there.

    Args:
        state: what the log says.
        target: what it has to say.
        table_id: ``id`` of a new Delta table.
        now_ms: milliseconds since 1970.

    Raises:
        UnsupportedTableError: another writer made the log.
    """
    actions: list[dict[str, Any]] = []
    if state.protocol is not None and WRITER_FEATURE not in (state.protocol.get("writerFeatures") or ()):
        raise UnsupportedTableError(
            f"there is a Delta log of another writer (protocol {dict(state.protocol)}): its writers would change files "
            "behind the Hudi table. Keep one of the two, and delete or move the folder _delta_log if it is not needed"
        )
    if state.protocol is None:
        actions.append({"protocol": PROTOCOL})
    if _says_otherwise(state.metadata, target):
        known = state.metadata or {"id": table_id, "createdTime": now_ms}
        actions.append({"metaData": _metadata(known, target)})
    gone = sorted(state.files.keys() - target.files.keys())
    stays = {path for path in state.files if state.values.get(path) == target.values.get(path)}
    new = sorted(target.files.keys() - stays)
    removed = {"deletionTimestamp": now_ms, "dataChange": True}
    actions += ({"remove": {"path": quote(path, _SAFE), **removed}} for path in gone)
    for path in new:  # a file that is added again changes no row: its folder tells other columns than before
        added = _add(path, target.files[path], target.values.get(path, {}), now_ms)
        actions.append({"add": {**added, "dataChange": path not in state.files}})
    if not actions:
        return []
    info = {"timestamp": now_ms, "operation": "WRITE", "engineInfo": "hudistream", "hudiInstant": target.as_of}
    return [{"commitInfo": info}, *actions]


def _says_otherwise(metadata: Mapping[str, Any] | None, target: DeltaTarget) -> bool:
    if metadata is None or metadata["schemaString"] != target.schema:
        return True
    return tuple(metadata.get("partitionColumns") or ()) != target.partition_columns


def _metadata(known: Mapping[str, Any], target: DeltaTarget) -> dict[str, Any]:
    created = {"createdTime": known["createdTime"]} if "createdTime" in known else {}  # Delta's protocol demands none
    return {
        "id": known["id"],
        "name": target.name,
        "format": {"provider": "parquet", "options": {}},
        "schemaString": target.schema,
        "partitionColumns": list(target.partition_columns),
        "configuration": {},
        **created,
    }


def _add(path: str, size: int, values: Values, now_ms: int) -> dict[str, Any]:
    written = {"size": size, "modificationTime": now_ms, "dataChange": True}
    return {"path": quote(path, _SAFE), "partitionValues": dict(values), **written}


def encode_commit(actions: Iterable[Mapping[str, Any]]) -> bytes:
    """The content of a commit: an action a line."""
    return "".join(f"{json.dumps(action)}\n" for action in actions).encode()


def apply_commit(state: DeltaState, version: int, data: bytes) -> DeltaState:
    """What a log says after one more commit.

    Args:
        state: what it said before.
        version: number of the commit.
        data: content of the commit.

    Raises:
        CorruptFileError: it is no commit.
    """
    try:
        actions = [json.loads(line) for line in data.splitlines() if line.strip()]
        return _applied(replace(state, version=version), actions)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise CorruptFileError(f"commit {version} of the Delta log cannot be read: {error}") from error


def _applied(state: DeltaState, actions: Iterable[Mapping[str, Any]]) -> DeltaState:
    files, values = dict(state.files), dict(state.values)
    for action in actions:
        if not isinstance(action, Mapping):
            raise TypeError(f"{action!r} is no action")
        if "remove" in action:
            path = unquote(action["remove"]["path"])
            files.pop(path, None)
            values.pop(path, None)
        elif "add" in action:
            path = unquote(action["add"]["path"])
            files[path] = action["add"]["size"]
            values.pop(path, None)
            if action["add"].get("partitionValues"):
                values[path] = dict(action["add"]["partitionValues"])
        elif "metaData" in action:
            state = replace(state, metadata=_checked(action["metaData"], "id", "schemaString"))
            json.loads(action["metaData"]["schemaString"])
        elif "protocol" in action:
            state = replace(state, protocol=_checked(action["protocol"]))
    return replace(state, files=files, values=values)


def _checked(action: Mapping[str, Any], *texts: str) -> Mapping[str, Any]:
    """An action that is an object, in which these fields are texts."""
    if not isinstance(action, Mapping) or not all(isinstance(action[name], str) for name in texts):
        raise TypeError(f"{action!r} is no such action")
    for name in ("writerFeatures", "partitionColumns"):
        if not isinstance(action.get(name) or (), list | tuple):
            raise TypeError(f"{name} is {action[name]!r}")
    return action


def encode_checkpoint(state: DeltaState, now_ms: int) -> bytes:
    """A checkpoint: Parquet with one row for each action that counts. Files that were removed are not named."""
    assert state.metadata is not None
    assert state.protocol is not None
    rows: list[dict[str, Any]] = [{"protocol": dict(state.protocol)}]
    rows.append({"metaData": {**state.metadata, "format": {"provider": "parquet", "options": []}, "configuration": []}})
    adds = (_add(path, size, state.values.get(path, {}), now_ms) for path, size in sorted(state.files.items()))
    rows += [{"add": {**add, "partitionValues": list(add["partitionValues"].items()), **_NO_CHANGE}} for add in adds]
    sink = pa.BufferOutputStream()
    pq.write_table(pa.Table.from_pylist(rows, CHECKPOINT), sink)
    return bytes(sink.getvalue())


def decode_checkpoint(version: int, data: bytes) -> DeltaState:
    """What a log says at a checkpoint.

    Raises:
        CorruptFileError: it is no checkpoint.
    """
    try:
        rows = pq.read_table(pa.BufferReader(data), columns=CHECKPOINT.names).to_pylist()
        actions = [{name: _plain(value) for name, value in row.items() if value is not None} for row in rows]
        return _applied(DeltaState(version), actions)
    except (pa.ArrowException, OSError, KeyError, TypeError, ValueError) as error:
        raise CorruptFileError(f"the checkpoint {version} of the Delta log cannot be read: {error}") from error


def _plain(action: Mapping[str, Any]) -> dict[str, Any]:
    """An action as a commit has it: without null fields, and with maps as objects."""
    plain = {name: value for name, value in action.items() if value is not None}
    if "format" in plain:
        plain["format"] = {**plain["format"], "options": dict(plain["format"]["options"] or ())}
    return {**plain, **{name: dict(plain[name]) for name in ("configuration", "partitionValues") if name in plain}}

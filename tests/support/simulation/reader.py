"""A reader of its own: Hudi's rules in a page of code, and none of ours.

What is visible: of each file group the base file with the greatest instant that is completed, or older
than the first completed write of the active timeline; less the groups that completed replace commits
of the active timeline name. Partitions are the folders with a metadata file.

In a merge-on-read table the log files of that base file's slice and of younger ones change its rows: those of their
blocks whose instant is completed, or older than the first one; of two records of a key the one with the greater value.
In timeline layout 1 the name of a log file holds the time of its slice. In layout 2 it holds that of the write, and the
log file lies on the base file if the write was completed after the base file was requested.

The properties say which of the two layouts the table has: while it is converted, there are instants of both.
"""

import json
import re
import struct
from functools import lru_cache
from io import BytesIO

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq

from table.files.log.delete_block import read_deletes
from table.files.log.framing import BlockType, LogBlock


def matcher(pattern):
    """The pattern's `match`, remembered: each look at a disk asks for the names of all its files."""
    return lru_cache(maxsize=100_000)(re.compile(pattern).match)


_BASE = matcher(r"^([a-zA-Z0-9-]+)_([0-9-]+)_([0-9]{17})\.parquet$")
_LOG = matcher(r"^\.([a-zA-Z0-9-]+)_([0-9]{17})\.log\.([0-9]+)_([0-9-]+)$")
_DONE = matcher(r"^\.hoodie/(?:timeline/)?([0-9]{17})(?:_([0-9]{17}))?\.(commit|deltacommit|replacecommit)$")
_LAYOUT_2 = ".hoodie/timeline/"
_HISTORY = matcher(r"^\.hoodie/timeline/history/[0-9_]+\.parquet$")
_DELETES, _ROWS = 1, 3
_ORDER = pa.schema([("ts", pa.int64())])
_KEYS = {}
_BLOCKS = {}


class UnreadableError(Exception):
    """A visible file cannot be read."""


def completed(files):
    """Instant time -> action of the completed writes."""
    return {time: action for time, (action, _) in _completed_files(files).items()}


def _has_layout_2(files):
    """Whether the properties say that the table has timeline layout 2; by its folder, where there are none."""
    held = files.get(".hoodie/hoodie.properties")
    if held is None:
        return any(path.startswith(_LAYOUT_2) for path in files)
    return b"hoodie.timeline.layout.version=2" in held[0]


def _completed_files(files):
    """Instant time -> action and path of the completed writes: of each there is one file."""
    found, is_later = {}, _has_layout_2(files)
    for path in files:
        match = _DONE(path)
        if match is not None and path.startswith(_LAYOUT_2) is is_later:
            if match[1] in found:
                raise UnreadableError(f"{path} and {found[match[1]][1]} complete one instant")
            found[match[1]] = (match[3], path)
    return found


def _completions(files):
    """Instant time -> time of completion of the writes, retired ones included; none in timeline layout 1."""
    found = {}
    if not _has_layout_2(files):
        return found
    for path in files:
        if _HISTORY(path):
            times = pq.read_table(BytesIO(files[path][0]), columns=["instantTime", "completionTime"]).to_pylist()
            found.update((row["instantTime"], row["completionTime"]) for row in times)
        elif (match := _DONE(path)) is not None and match[2] is not None:
            found[match[1]] = match[2]
    return found


def replaced_groups(files, done):
    """(partition path, file id) that completed replace commits name."""
    found = set()
    for time, (action, path) in _completed_files(files).items():
        if action == "replacecommit" and time in done:
            data = files[path][0]
            document = next(fastavro.reader(BytesIO(data))) if data.startswith(b"Obj") else json.loads(data)
            for partition_path, ids in (document.get("partitionToReplaceFileIds") or {}).items():
                found.update((partition_path, file_id) for file_id in ids)
    return found


def visible_files(files, until=None):
    """Paths of the base files that a reader sees (`until`: at that instant)."""
    done = completed(files)
    first = min(done, default=None)
    replaced = replaced_groups(files, {t: a for t, a in done.items() if until is None or t <= until})
    partitions = {path.rpartition("/")[0] for path in files if path.endswith(".hoodie_partition_metadata")}
    newest = {}
    for path in files:
        folder, _, name = path.rpartition("/")
        match = _BASE(name)
        if match is None or folder not in partitions or folder.startswith(".hoodie"):
            continue
        file_id, _, time = match.groups()
        if time not in done and not (first is not None and time < first):
            continue
        if until is not None and time > until:
            continue
        key = (folder, file_id)
        if key in replaced:
            continue
        if key not in newest or (time, name) > newest[key][0]:
            newest[key] = ((time, name), path)
    return sorted(path for _, path in newest.values())


def read_rows(files, paths):
    """(key, value) of every row of the files."""
    rows = []
    for path in paths:
        if path not in files:
            raise UnreadableError(f"{path} is not there")
        rows += _rows_of(files[path][0], path)
    return rows


def read_visible(files, until=None, *, strict=True):
    """(key, value) of every row that a reader sees; strict: as Hudi shows them."""
    paths = visible_files(files, until)
    if not _logs_by_group(files):
        return read_rows(files, paths)
    return [row for rows in read_groups(files, paths, until, strict=strict).values() for row in rows]


def read_groups(files, paths, until=None, *, strict=True):
    """(partition path, file id) -> (key, value) of every row of these base files, with the log files on top of them."""
    logs, groups = _logs_by_group(files), {}
    done = {time for time in completed(files) if until is None or time <= until}
    first = min(completed(files), default="")
    pending, ended = _pending_compactions(files), _completions(files)
    for path in paths:
        folder, _, name = path.rpartition("/")
        file_id, _, time = _BASE(name).groups()
        mine = dict(read_rows(files, [path]))
        for (base, _, _), log in sorted(logs.get((folder, file_id), ())):
            counted = [block for block in _blocks(files[log][0]) if block[0] in done or block[0] < first]
            if strict and not ended and base > time and counted and base not in pending:
                # Hudi takes such log files for a slice of their own, and shows nothing of the base file below it
                raise UnreadableError(f"{log} has rows, and there is neither its base file nor a compaction to come")
            if ended.get(base, base) >= time:
                for _, schema, content in counted:
                    _apply(mine, schema, content)
        groups[folder, file_id] = list(mine.items())
    return groups


def needed_files(files):
    """Paths of the base files that a reader sees, and of the log files on top of them."""
    paths, logs, ended = visible_files(files), _logs_by_group(files), _completions(files)
    needed = list(paths)
    for path in paths:
        folder, _, name = path.rpartition("/")
        file_id, _, time = _BASE(name).groups()
        on_top = [log for (base, _, _), log in logs.get((folder, file_id), ()) if ended.get(base, base) >= time]
        needed += [log for log in on_top if has_rows(files, log)]
    return needed


def has_rows(files, path, until=None):
    """Whether a reader needs a file: a base file, or a log file with blocks that count (`until`: at that instant)."""
    if ".log." not in path:
        return True
    done, first = completed(files), min(completed(files), default="")
    times = [block[0] for block in _blocks(files[path][0])]
    return any((time in done or time < first) and (until is None or time <= until) for time in times)


def rows_held(files, paths, until):
    """What a reader of an instant saw if there were no other data files than these."""
    kept = {path: held for path, held in files.items() if path.startswith(".hoodie/") or path in paths}
    kept |= {path: held for path, held in files.items() if path.endswith(".hoodie_partition_metadata")}
    return sorted(read_visible(kept, until, strict=False))


def _logs_by_group(files):
    """(partition path, file id) -> its log files, each behind what they are ordered by."""
    logs = {}
    for path in files:
        folder, _, name = path.rpartition("/")
        match = _LOG(name)
        if match is not None and not folder.startswith(".hoodie"):
            logs.setdefault((folder, match[1]), []).append(((match[2], int(match[3]), match[4]), path))
    return logs


def _pending_compactions(files):
    names = {path for path in files if path.endswith((".compaction.requested", ".compaction.inflight"))}
    times = {name.removeprefix(".hoodie/").partition(".")[0] for name in names}
    return {time for time in times if f".hoodie/{time}.commit" not in files}


def _blocks(data):
    """(instant, schema, content) of each block of a log file; no schema where it deletes keys."""
    known = _BLOCKS.get(data)
    if known is not None:
        return known
    at, found = 0, []
    while at < len(data):
        size, _, kind, headers = struct.unpack_from(">qiii", data, at + 6)
        here, texts = at + 26, {}
        for _ in range(headers):
            ordinal, length = struct.unpack_from(">ii", data, here)
            texts[ordinal] = data[here + 8 : here + 8 + length].decode()
            here += 8 + length
        if kind not in (_DELETES, _ROWS):
            raise UnreadableError(f"a block of kind {kind}")
        (length,) = struct.unpack_from(">q", data, here)
        found.append((texts[0], texts[2] if kind == _ROWS else None, data[here + 8 : here + 8 + length]))
        at += 14 + size
    if len(_BLOCKS) > 2000:
        _BLOCKS.clear()
    _BLOCKS[data] = found
    return found


def _apply(rows, schema_text, content):
    """The records of a block, onto the rows of its file group."""
    if schema_text is None:
        _delete(rows, content)
        return
    schema, place = fastavro.parse_schema(json.loads(schema_text)), 8
    for _ in range(struct.unpack_from(">i", content, 4)[0]):
        (length,) = struct.unpack_from(">i", content, place)
        record = fastavro.schemaless_reader(BytesIO(content[place + 4 : place + 4 + length]), schema)
        if int(record["v"]) >= int(rows.get(record["id"], "-1")):
            rows[record["id"]] = record["v"]
        place += 4 + length


def _delete(rows, content):
    deletes = read_deletes(LogBlock(BlockType.DELETE, {}, content), _ORDER, "a log")
    for key, value in zip(deletes.keys.to_pylist(), deletes.order.column("ts").to_pylist(), strict=True):
        if value is None or value >= int(rows.get(key, "-1")):
            rows.pop(key, None)


def _rows_of(data, path):
    known = _KEYS.get(data)
    if known is None:
        try:
            table = pq.read_table(BytesIO(data), columns=["id", "v"])
        except Exception as error:
            raise UnreadableError(f"{path}: {error}") from error
        known = list(zip(table.column("id").to_pylist(), table.column("v").to_pylist(), strict=True))
        if len(_KEYS) > 2000:
            _KEYS.clear()
        _KEYS[data] = known
    return known

"""A reader of its own: Hudi's rules for version 6 in a page of code, and none of ours.

What is visible: of each file group the base file with the greatest instant that is completed, or older
than the first completed write of the active timeline; less the groups that completed replace commits
of the active timeline name. Partitions are the folders with a metadata file.

In a merge-on-read table the log files of that base file's slice and of younger ones change its rows: those of their
blocks whose instant is completed, or older than the first one; of two records of a key the one with the greater value.
"""

import json
import re
import struct
from io import BytesIO

import fastavro
import pyarrow.parquet as pq

_BASE = re.compile(r"^([a-zA-Z0-9-]+)_([0-9-]+)_([0-9]{17})\.parquet$")
_LOG = re.compile(r"^\.([a-zA-Z0-9-]+)_([0-9]{17})\.log\.([0-9]+)_([0-9-]+)$")
_DONE = re.compile(r"^\.hoodie/([0-9]{17})\.(commit|deltacommit|replacecommit)$")
_KEYS = {}


class UnreadableError(Exception):
    """A visible file cannot be read."""


def completed(files):
    """Instant time -> action of the completed writes."""
    return {match[1]: match[2] for path in files if (match := _DONE.match(path))}


def replaced_groups(files, done):
    """(partition path, file id) that completed replace commits name."""
    found = set()
    for time, action in done.items():
        if action == "replacecommit":
            document = json.loads(files[f".hoodie/{time}.replacecommit"][0])
            for path, ids in (document.get("partitionToReplaceFileIds") or {}).items():
                found.update((path, file_id) for file_id in ids)
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
        match = _BASE.match(name)
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


def read_visible(files, until=None):
    """(key, value) of every row that a reader sees."""
    paths = visible_files(files, until)
    if not any(".log." in path for path in files):
        return read_rows(files, paths)
    done = completed(files)
    first = min(done, default=None)
    logs = {}
    for path in files:
        folder, _, name = path.rpartition("/")
        match = _LOG.match(name)
        if match is not None and not folder.startswith(".hoodie"):
            logs.setdefault((folder, match[1]), []).append(((match[2], int(match[3]), match[4]), path))
    rows = []
    for path in paths:
        folder, _, name = path.rpartition("/")
        file_id, _, time = _BASE.match(name).groups()
        mine = dict(read_rows(files, [path]))
        for (base, _, _), log in sorted(logs.get((folder, file_id), ())):
            if base >= time:
                _apply(mine, files[log][0], lambda instant: instant in done or instant < first)
        rows += mine.items()
    return rows


def _apply(rows, data, counts):
    """The blocks of a log file that count, onto the rows of its file group."""
    at = 0
    while at < len(data):
        size, _, kind, headers = struct.unpack_from(">qiii", data, at + 6)
        here, texts = at + 26, {}
        for _ in range(headers):
            ordinal, length = struct.unpack_from(">ii", data, here)
            texts[ordinal] = data[here + 8 : here + 8 + length].decode()
            here += 8 + length
        content = data[here + 8 :]
        if kind != 3:
            raise UnreadableError(f"a block of kind {kind}")
        if counts(texts[0]):
            schema = fastavro.parse_schema(json.loads(texts[2]))
            place = 8
            for _ in range(struct.unpack_from(">i", content, 4)[0]):
                (length,) = struct.unpack_from(">i", content, place)
                record = fastavro.schemaless_reader(BytesIO(content[place + 4 : place + 4 + length]), schema)
                if int(record["v"]) >= int(rows.get(record["id"], "-1")):
                    rows[record["id"]] = record["v"]
                place += 4 + length
        at += 14 + size


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

"""A reader of the metadata table: Hudi's rules for lists of files and statistics, on the world's files.

A block counts while its delta commit is on an active timeline, and not pending in the table.
The product decodes the HFiles: it is tested against Hudi's own.
"""

import re
import uuid
from io import BytesIO

import fastavro
import pyarrow as pa

from table.files.hfile.read_hfile import HFile
from table.files.log.delete_block import read_deletes
from table.files.log.framing import BlockType, Header, scan_blocks
from table.metadata_table.groups import EMPTY_DELETE_BLOCK
from table.metadata_table.index_keys import stats_key
from table.metadata_table.record_codec import decode_record, parsed_schema
from table.metadata_table.records import ALL_PARTITIONS, combine

from .reader import UnreadableError, matcher, needed_files, read_groups, visible_files

_OWN = ".hoodie/metadata/"
_instant_of = matcher(r"(\d{17,})(?:_(\d{17,}))?\.([a-z]+)(?:\.(requested|inflight))?$")
_DATA_BASE = re.compile(r"^([a-zA-Z0-9-]+)_[0-9-]+_([0-9]{17})\.parquet$")
_DATA_LOG = re.compile(r"^\.([a-zA-Z0-9-]+)_([0-9]{17})\.log\.")
_DECODED = {}


def check_lists(files):
    """Compares what a reader needs by the lists with what it needs by the store.

    Raises:
        UnreadableError: a file is missing from the lists or from the store, or has another size.
    """
    indexes = _indexes(files)
    listed = _listed(files) if "files" in indexes else None
    if listed is None:
        return
    needed = needed_files(files)
    if "column_stats" in indexes:
        _check_statistics(files, needed)
    if "record_index" in indexes:
        _check_record_index(files, needed)
    for path in needed:
        if path not in listed:
            raise UnreadableError(f"{path} is not in the lists of files")
        if listed[path] != len(files[path][0]):
            raise UnreadableError(f"{path} has {len(files[path][0])} bytes, and {listed[path]} in the lists of files")
    meta = {path: held for path, held in files.items() if path.startswith(".hoodie/") or path.endswith("_metadata")}
    by_lists = {**meta, **{path: files.get(path, (b"", 0)) for path in listed}}
    strange = set(visible_files(by_lists)) ^ set(visible_files(files))
    if strange:
        raise UnreadableError(f"{min(strange)} is visible either by the lists of files or by the store")
    _check_logs(files, listed)


def _check_logs(files, listed):
    """No log file of a current slice is listed that is gone."""
    bases = {}
    for path in visible_files(files):
        match = _DATA_BASE.match(path.rpartition("/")[2])
        bases[path.rpartition("/")[0], match[1]] = match[2]
    done = _completions(files, ".hoodie/")
    for path in listed:
        folder, _, name = path.rpartition("/")
        match = _DATA_LOG.match(name)
        if match is None or path in files or (folder, match[1]) not in bases:
            continue
        at = done.get(match[2], match[2]) if any("/timeline/" in one for one in files) else match[2]
        if at is not None and at >= bases[folder, match[1]]:
            raise UnreadableError(f"{path} is in the lists of files, and is not there")


def _check_statistics(files, needed):
    """Each file of the newest snapshot has statistics: Hudi computes from them which partition paths it reads."""
    known = set()
    own = _OwnFiles(files)
    for group in ("col-stats-0000-0", "col-stats-0001-0"):
        known |= {key for key, values in _group(own, "column_stats", group, _Keys()).items() if values[-1]}
    for path in needed:
        folder, _, name = path.rpartition("/")
        if stats_key("id", folder, name) not in known:
            raise UnreadableError(f"{path} has no statistics")


def _check_record_index(files, needed):
    """The index has each key of the newest snapshot with its file group, and no other: Hudi looks keys up in it."""
    held = {}
    for group, rows in read_groups(files, [path for path in needed if ".log." not in path], strict=False).items():
        for key, _ in rows:
            held.setdefault(key, set()).add(group)
    told, own = {}, _OwnFiles(files)
    for number in range(10):
        found = _group(own, "record_index", f"record-index-{number:04d}-0", _Locations())
        told.update({key: values[-1] for key, values in found.items() if values[-1]})
    for key, places in held.items():
        if told.get(key) not in places:
            raise UnreadableError(f"the record index has {key} at {told.get(key)}, and it is in {min(places)}")
    if told.keys() != held.keys():
        raise UnreadableError(f"the record index has {min(told.keys() - held.keys())}, which no file holds")


def _indexes(files):
    """The indexes that the table's properties name."""
    text = next(
        (files[p][0] for p in (".hoodie/hoodie.properties", ".hoodie/hoodie.properties.backup") if p in files), b""
    )
    match = re.search(rb"^hoodie\.table\.metadata\.partitions=(.*)$", text, re.MULTILINE)
    return set(match[1].decode().split(",")) if match else set()


def _listed(files):
    """Path -> size by the lists."""
    records = _group(_OwnFiles(files), "files", "files-0000-0", _Lists())
    found = {}
    for name in combine(records.get(ALL_PARTITIONS, ())):
        folder = "" if name == "." else name
        for file, size in combine(records.get(name, ())).items():
            found[f"{folder}/{file}".lstrip("/")] = size
    return found


class _OwnFiles:
    """What a reader knows of the metadata table at one moment: the same for each of its file groups."""

    def __init__(self, files):
        self.files = {path[len(_OWN) :]: held[0] for path, held in files.items() if path.startswith(_OWN)}
        if ".hoodie/hoodie.properties" not in self.files:
            raise UnreadableError("the property names an index, and there is no metadata table")
        self.named = b"timeline.layout.version=2" in self.files[".hoodie/hoodie.properties"]
        self.done, self._of_table = _completions(self.files, ".hoodie/"), _completions(files, ".hoodie/")
        self._pending = {time for time, at in self._of_table.items() if at is None}
        self._first = min(_writes(self.files), default="")

    def counts(self, time):
        """Whether the files of an instant are visible."""
        archived = time < self._first and time not in self.done
        return (bool(self.done.get(time)) or archived) and time not in self._pending

    def counts_block(self, time):
        """Not if both timelines have archived it (getValidInstantTimestamps). Before 1.0 that of the table decides."""
        if time.startswith("0" * 14) or self._of_table.get(time):
            return True
        return bool(self.done.get(time)) and time not in self._pending and (self.named or len(time) > 17)


def _group(own, index, group, form):
    """Key -> values of a file group's newest slice, oldest first."""
    files, prefix = own.files, f"{index}/"
    here = [path for path in files if path.startswith(prefix)]
    is_base = re.compile(rf"^{index}/{group}_[0-9-]+_(\d+)\.hfile$")
    is_log = re.compile(rf"^{index}/\.{group}_(\d+)\.log\.(\d+)_([0-9-]+)$")
    bases = sorted((m[1], path) for path in here if (m := is_base.match(path)) and own.counts(m[1]))
    base = bases[-1][0] if bases else ""
    logs = sorted((m[1], int(m[2]), m[3], path) for path in here if (m := is_log.match(path)))
    records = {}
    for key, value in _entries(files[bases[-1][1]], None, own.counts_block, form) if bases else ():
        records.setdefault(key, []).append(value)
    for time, _, _, path in logs:
        if (own.done.get(time) or time if own.named else time) >= base:
            for key, value in _entries(files[path], path, own.counts_block, form):
                records.setdefault(key, []).append(value)
    return records


def _completions(files, folder):
    """Instant -> completion time ("" where names have none); None: it is pending."""
    found = {}
    for path in files:
        rest = path[len(folder) :].removeprefix("timeline/")
        if not path.startswith(folder) or "/" in rest or (match := _instant_of(rest)) is None:
            continue
        if match[4] or match[3] == "inflight":
            found.setdefault(match[1], None)
        else:
            found[match[1]] = match[2] or match[1]
    return found


def _writes(own):
    """Times of the writes that are completed: files of older ones are visible."""
    for path in own:
        match = _instant_of(path.removeprefix(".hoodie/").removeprefix("timeline/"))
        if match is not None and path.startswith(".hoodie/") and match[3] in ("commit", "deltacommit") and not match[4]:
            yield match[1]


class _Lists:
    """Records of the lists of files."""

    def decode(self, value, schema):
        return decode_record(value, schema)

    def deleted(self, block):
        return []


class _Keys:
    """Whether a record is there."""

    def decode(self, value, schema):
        return True

    def deleted(self, block):
        if bytes(block.content) == EMPTY_DELETE_BLOCK:
            return []
        return [(key, False) for key in read_deletes(block, pa.schema([]), "a log file").keys.to_pylist()]


class _Locations(_Keys):
    """The partition path and the file group of a key."""

    def decode(self, value, schema):
        record = fastavro.schemaless_reader(BytesIO(value), parsed_schema(schema), None)["recordIndexMetadata"]
        bits = (record["fileIdHighBits"] % 2**64) << 64 | record["fileIdLowBits"] % 2**64
        return record["partitionName"], f"{uuid.UUID(int=bits)}-{record['fileIndex']}"


def _entries(data, log, counts, form):
    if data not in _DECODED:
        if len(_DECODED) > 4000:
            _DECODED.clear()
        parts = []
        if log is None:
            parts.append((None, _records(HFile(data), form)))
        else:
            for place in scan_blocks(BytesIO(data)):
                block = place.block
                if block.type is BlockType.HFILE_DATA:
                    parts.append((block.header[Header.INSTANT_TIME], _records(HFile(bytes(block.content)), form)))
                elif block.type is BlockType.DELETE:
                    parts.append((block.header[Header.INSTANT_TIME], form.deleted(block)))
        _DECODED[data] = parts
    return [entry for time, found in _DECODED[data] if time is None or counts(time) for entry in found]


def _records(part, form):
    return [(key.decode(), form.decode(value, part.schema)) for key, value in part.entries()]

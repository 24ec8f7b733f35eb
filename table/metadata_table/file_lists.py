"""Reads the partition ``files`` of the metadata table: which files the table has (HoodieBackedTableMetadata).

The partition has one file group: a base file (HFile), and log files with blocks of the same form. They are read whole.
Their values are decoded when they are asked for.
"""

import json
from collections.abc import Iterable, Mapping
from functools import lru_cache
from io import BytesIO
from typing import Any

import fastavro

from table.config.properties import parse_properties
from table.config.table_config import PROPERTIES_FILE, TableConfig, config_from_properties, load_table_config
from table.errors import CorruptFileError, StorageError, UnsupportedTableError
from table.files.hfile.read_hfile import HFile
from table.files.log.framing import BlockType, Header, LogBlock, Verdict, scan_blocks
from table.metadata_table.records import (
    ALL_PARTITIONS,
    ListRecord,
    combine,
    key_of,
    partition_path_of,
)
from table.storage.interface import METAFOLDER, FileInfo, Storage, join
from table.timeline.instant import WRITE_ACTIONS
from table.timeline.layout import TimelineLayout, layout_of
from table.timeline.timeline import Timeline, build_timeline
from table.view.file_group import CommittedInstants, FileSlice, build_file_groups, committed_instants

METADATA_FOLDER = join(METAFOLDER, "metadata")
FILES = "files"
_FILES_FOLDER = join(METADATA_FOLDER, FILES)
_MADE = "0" * 14  # begins the times of the instants that made the metadata table
_EMPTY_DELETE_BLOCK = b"\x00\x00\x00\x03\x00\x00\x00\x01\x00"  # Hudi begins each file group with one


class FileLists:
    """The files of a table by partition path, as the metadata table lists them.

    Args:
        base: the base file; None where there are only log files.
        logs: records of the log files by key, oldest first.
    """

    def __init__(self, base: HFile | None, logs: Mapping[str, list[ListRecord]]) -> None:
        self._base, self._logs = base, logs

    def partition_paths(self) -> list[str]:
        """Every partition path, sorted.

        Raises:
            CorruptFileError: the record is damaged.
        """
        return sorted(partition_path_of(name) for name in combine(self._records(ALL_PARTITIONS)))

    def files(self, partition_path: str) -> dict[str, int]:
        """Names of a partition path's files, with their sizes in bytes.

        Raises:
            CorruptFileError: the record is damaged.
        """
        return combine(self._records(key_of(partition_path)))

    def _records(self, key: str) -> Iterable[ListRecord]:
        value = self._base.find(key.encode()) if self._base is not None else None
        if self._base is not None and value:
            yield _decode_record(value, self._base.schema)
        yield from self._logs.get(key, ())


def load_file_lists(storage: Storage, known: Iterable[str]) -> FileLists:
    """Reads the lists of files, and proves that they are whole.

    A writer that does not keep the metadata table up deletes the table's property first, and then its files. So the
    property and the names are looked at again after the files were read.

    Args:
        storage: of the table.
        known: times of the writes that the caller has seen completed; the metadata table must know them.

    Raises:
        UnsupportedTableError: the lists may lack files, or have a form that is not known here.
        CorruptFileError: a file is damaged.
        StorageError: the store fails.
    """
    layout = _layout_of_lists(storage)
    timeline, entries = _list(storage, layout)
    _check_knows(timeline, known)
    committed = committed_instants(timeline, {})
    found = _find_slice(entries, committed)
    base = HFile(storage.read(join(METADATA_FOLDER, found.base_file.path))) if found.base_file else None
    logs: dict[str, list[ListRecord]] = {}
    for log in found.log_files:
        for block in _valid_blocks(storage.read(join(METADATA_FOLDER, log.path)), log.path, committed):
            part = HFile(block.content)
            for key, value in part.entries():
                logs.setdefault(_decode_key(key), []).append(_decode_record(value, part.schema))
    now = load_table_config(storage)
    if now is None or not lists_files(now) or _list(storage, layout)[1] != entries:
        raise UnsupportedTableError("the metadata table was changed while it was read")
    return FileLists(base, logs)


def lists_files(config: TableConfig) -> bool:
    """Whether the table has a metadata table that lists its files, by its properties."""
    return FILES in (name.strip() for name in config.metadata_partitions.split(","))


def _layout_of_lists(storage: Storage) -> TimelineLayout:
    """The timeline layout of the metadata table: Hudi 1.0.2 also keeps one of version 6 in a table of version 8."""
    own = config_from_properties(parse_properties(storage.read(join(METADATA_FOLDER, PROPERTIES_FILE))))
    return layout_of(own.layout_version, own.timeline_folder)


def _list(storage: Storage, layout: TimelineLayout) -> tuple[Timeline, list[FileInfo]]:
    names = storage.list_names(join(METADATA_FOLDER, layout.names.folder))
    timeline = build_timeline((i for i in map(layout.names.parse, names) if i is not None), layout)
    entries = storage.list_dir(_FILES_FOLDER)
    return timeline, sorted((e for e in entries if not e.is_dir), key=lambda entry: entry.name)


def _check_knows(timeline: Timeline, known: Iterable[str]) -> None:
    """Refuses a metadata table that lacks a write: a writer may have ignored it.

    Earlier writes than the first on its timeline were listed when it was made, or are archived there.
    """
    times = {instant.time for instant in timeline.completed_of(*WRITE_ACTIONS)}
    first = min((time for time in times if not time.startswith(_MADE)), default="")
    missed = sorted(time for time in known if time >= first and time not in times)
    if missed:
        raise UnsupportedTableError(f"the metadata table does not know the write {missed[-1]}")


def _find_slice(entries: Iterable[FileInfo], committed: CommittedInstants) -> FileSlice:
    groups = build_file_groups(FILES, entries, committed)
    if len(groups) != 1:
        raise UnsupportedTableError(f"the metadata table has {len(groups)} file groups for files, and should have one")
    return groups[0].merged_slice


def _valid_blocks(data: bytes, path: str, committed: CommittedInstants) -> list[LogBlock]:
    """The blocks of a log file that count, oldest first.

    Raises:
        CorruptFileError: a part of the file is no whole block.
        UnsupportedTableError: it has blocks that a list of files does not have.
    """
    valid: list[LogBlock] = []
    for place in scan_blocks(BytesIO(data)):
        block = place.block
        if place.verdict is not Verdict.WHOLE or block is None:
            raise CorruptFileError(f"{path} of the metadata table is damaged at byte {place.start}: {place.reason}")
        time = block.header.get(Header.INSTANT_TIME, "")
        if block.type is BlockType.COMMAND:
            target = block.header.get(Header.TARGET_INSTANT_TIME, "")
            valid = [one for one in valid if one.header.get(Header.INSTANT_TIME, "") != target]
        elif block.type is BlockType.DELETE and bytes(block.content) == _EMPTY_DELETE_BLOCK:
            continue
        elif block.type is not BlockType.HFILE_DATA or Header.COMPACTED_BLOCK_TIMES in block.header:
            raise UnsupportedTableError(f"{path} of the metadata table has a block of type {block.type.name}")
        elif committed.includes_block(time):
            valid.append(block)
    return valid


def _decode_key(key: bytes) -> str:
    try:
        return key.decode()
    except UnicodeDecodeError as error:
        raise CorruptFileError(f"a key of the metadata table is damaged: {error}") from error


def _decode_record(value: bytes, schema: str) -> ListRecord:
    """Decodes the value of a key.

    Args:
        value: Avro, without a header.
        schema: the writer's Avro schema.

    Raises:
        CorruptFileError: the value does not follow the schema, or is no list of files.
    """
    try:
        found: Any = fastavro.schemaless_reader(BytesIO(value), _parsed(schema), None)
        entries = found["filesystemMetadata"] or {}
        return ListRecord({name: (int(one["size"]), bool(one["isDeleted"])) for name, one in entries.items()})
    except Exception as error:  # fastavro's errors have no common base
        raise CorruptFileError(f"a record of the metadata table is damaged: {error}") from error


@lru_cache(maxsize=8)
def _parsed(schema: str) -> Any:
    return fastavro.parse_schema(json.loads(schema))


Failures = (UnsupportedTableError, CorruptFileError, StorageError, FileNotFoundError)
"""What makes a caller ask the store instead."""

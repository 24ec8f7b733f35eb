"""Builds, parses and orders the names of base files, log files and markers; no other module does (pure; FSUtils).

::

    base file     <file id>_<write token>_<instant>.parquet
    log file      .<file id>_<instant>.log.<version>_<write token>[.cdc]
    marker        <data file>.marker.<CREATE|MERGE|APPEND>
    file id       <uuid>-<n>                n counts the files one bucket rolled over to
    write token   <task>-<stage>-<attempt>  makes the file names of each attempt unique
"""

import re
from dataclasses import dataclass
from functools import lru_cache

from table.storage.interface import METAFOLDER

_BASE = re.compile(r"^([a-zA-Z0-9-]+)_([a-zA-Z0-9-]+)_([0-9]+)(\.[a-zA-Z0-9]+)$")
_LOG = re.compile(r"^\.([^_]+)_([0-9]*)\.log\.(\d+)(?:_((\d+)-(\d+)-(\d+)))?(\.cdc)?$")
_MARKER = re.compile(r"(.+)\.marker\.(CREATE|MERGE|APPEND)", re.DOTALL)

_MAX_JAVA_INT = 2**31 - 1
_NO_DELETES = 2**30  # added to the instant's number; instants whose numbers differ by this much are days apart
BASE_FILE_EXTENSION = ".parquet"
CHANGE_FILE_SUFFIX = ".cdc"


@dataclass(frozen=True, slots=True)
class BaseFileName:
    """The parts of a base file's name."""

    file_id: str
    write_token: str
    instant_time: str
    extension: str = BASE_FILE_EXTENSION

    def __str__(self) -> str:
        return f"{self.file_id}_{self.write_token}_{self.instant_time}{self.extension}"


@dataclass(frozen=True, slots=True)
class LogFileName:
    """The parts of a log file's name.

    In timeline layout 1 `base_instant_time` is the file slice's instant, in layout 2 the instant that wrote the file.

    `suffix` is ``.cdc`` for change files, and "" otherwise.
    """

    file_id: str
    base_instant_time: str
    version: int
    write_token: str
    suffix: str = ""

    def __str__(self) -> str:
        return f".{self.file_id}_{self.base_instant_time}.log.{self.version}_{self.write_token}{self.suffix}"


@dataclass(frozen=True, slots=True)
class MarkerName:
    """A data file that a writer announced before opening it, and the kind of write."""

    data_file: str
    kind: str

    def __str__(self) -> str:
        return f"{self.data_file}.marker.{self.kind}"


def parse_base_file(name: str) -> BaseFileName | None:
    """The parts of a base file's name, or None for any other name."""
    match = _BASE.match(name)
    return BaseFileName(*match.groups()) if match else None


def is_change_file(name: str) -> bool:
    """Whether a file of that name holds changes (CDC), and no rows of the table."""
    return name.endswith(CHANGE_FILE_SUFFIX)


def parse_log_file(name: str) -> LogFileName | None:
    """The parts of a log file's name, or None for any other name."""
    match = _LOG.match(name)
    if match is None:
        return None
    return LogFileName(match[1], match[2], int(match[3]), match[4] or "", match[8] or "")


def file_group_of(name: str) -> str | None:
    """The file id in the name of a base file or log file, or None for any other name."""
    found = parse_base_file(name) or parse_log_file(name)
    return found.file_id if found is not None else None


def file_group_prefixes(file_id: str, *, has_logs: bool) -> tuple[str, ...]:
    """What the names of a file group's files begin with, and those of no other file group.

    Args:
        file_id: the file group.
        has_logs: whether it may have log files.
    """
    return (f"{file_id}_", f".{file_id}_") if has_logs else (f"{file_id}_",)


def parse_marker(name: str) -> MarkerName | None:
    """The parts of a marker's name (a path stays in `data_file`), or None for any other name.

    A rollback deletes the file that a marker names. So a path that leads out of the table or into its metadata is
    refused.
    """
    match = _MARKER.fullmatch(name)
    if match is None:
        return None
    parts = match[1].split("/")
    if parts[0] == METAFOLDER or any(part in ("", ".", "..") or "\0" in part for part in parts):
        return None
    return MarkerName(match[1], match[2])


def build_file_id(uuid: str, number: int = 0) -> str:
    """File id of a new file group (FSUtils.createNewFileId)."""
    return f"{uuid}-{number}"


def log_write_token(write_token: str, instant_time: str, *, has_deletes: bool) -> str:
    """Write token of a log file: a number derived from the instant takes the place of the stage's number.

    In timeline layout 1 the name of a log file does not say which instant wrote it, and two writers may have the same
    task, stage and attempt numbers. Hudi reads each number as an int of Java.

    Args:
        write_token: write token of the attempt.
        instant_time: time of the commit.
        has_deletes: whether the file may hold deletes; `tells_no_deletes` is then false for its name.
    """
    task, _, attempt = write_token.split("-")
    return build_write_token(int(task), _stage_number(instant_time, has_deletes=has_deletes), int(attempt))


def may_be_of_instant(write_token: str, instant_time: str) -> bool:
    """Whether hudistream may have written a log file for an instant: its token has a number derived from the instant.

    Args:
        write_token: write token of the file; "" where its name has none.
        instant_time: time of the commit.
    """
    stage = write_token.split("-")[1:2]
    return bool(stage) and int(stage[0]) in {
        _stage_number(instant_time, has_deletes=deletes) for deletes in (False, True)
    }


def tells_no_deletes(write_token: str, instant_times: frozenset[str]) -> bool:
    """Whether the name of a log file says that it holds no deletes. False for a file of another writer.

    Args:
        write_token: write token of the file.
        instant_times: times of the commits that may have written it.
    """
    stage = write_token.split("-")[1:2]
    return bool(stage) and stage[0] in _stages_without_deletes(instant_times)


@lru_cache(maxsize=4)
def _stages_without_deletes(instant_times: frozenset[str]) -> frozenset[str]:
    return frozenset(str(_stage_number(time, has_deletes=False)) for time in instant_times)


def _stage_number(instant_time: str, *, has_deletes: bool) -> int:
    return (int(instant_time) + (0 if has_deletes else _NO_DELETES)) % _MAX_JAVA_INT


def build_write_token(task: int, stage: int, attempt: int) -> str:
    """Write token of one attempt at a task (FSUtils.makeWriteToken)."""
    return f"{task}-{stage}-{attempt}"

"""The archive of layout 2: Parquet files of completed instants, and manifests that name them (LSMTimeline).

::

    <least time>_<greatest time>_<level>.parquet    one row per completed instant, by the time of its request
    manifest_<n>                                    JSON: the files that count
    _version_                                       the newest n

A writer adds a data file, then writes the next manifest, then the version file. It merges data files of one level into
a file of the next level, and deletes data files that the last three manifests do not name. So a reader always finds a
whole archive: the files that it has listed stay until three more manifests are written.
"""

import json
import re
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from table.errors import CorruptFileError, StorageError
from table.storage.interface import Storage, join
from table.timeline.archived_timeline import ArchivedChange, ArchivedCommit, RetiredFile, up_to
from table.timeline.history_file import Row, decode_rows, distinct_rows, encode_rows, rows_of
from table.timeline.instant import WRITE_ACTIONS, Action
from table.timeline.metadata.avro_commit import decode_avro_commit
from table.timeline.metadata.avro_record import decode_record, read_as, text_of, texts_of
from table.timeline.metadata.commit import CommitMetadata
from table.timeline.metadata.restore import decode_restored

_VERSION_FILE = "_version_"
_MANIFEST = re.compile(r"manifest_(\d+)")
_DATA_FILE = re.compile(r"(\d+)_(\d+)_(\d+)\.parquet")
_WRITES = {action.value for action in WRITE_ACTIONS}
_BATCH_ROWS = 256  # few, because the row of an instant holds its whole commit
_FILES_MERGED = 10  # ``hoodie.timeline.compaction.batch.size``
_MANIFESTS_KEPT = 3


@dataclass(frozen=True)
class HistoryArchive:
    """The archived timeline of a table of layout 2.

    Attributes:
        folder: the archive's, relative to the table.
    """

    storage: Storage
    folder: str

    def list_files(self) -> list[str]:
        """Paths of the archive's files, relative to the table, newest first.

        Raises:
            CorruptFileError: the newest manifest is damaged.
        """
        _, names = self._read_manifest()
        return [join(self.folder, each) for each in sorted(names, key=_times_of, reverse=True)]

    def read_files(self) -> Iterator[list[ArchivedCommit]]:
        """Completed commits of each file, newest file first, oldest commit first.

        Raises:
            CorruptFileError: a file is damaged.
        """
        for path in self.list_files():
            yield [
                _archived(path, time, action, data)
                for time, action, data in self._read_instants(path)
                if action in _WRITES
            ]

    def find_commits(self, time: str) -> list[ArchivedCommit]:
        """See `Archive.find_commits`. Only files whose range of times contains the time are read."""
        for path in self.list_files():
            high, low, _ = _times_of(path.rsplit("/", 1)[-1])
            instants = self._read_instants(path) if low <= time <= high else ()
            writes = (_archived(path, *each) for each in instants if each[1] in _WRITES and each[0] <= time)
            if found := up_to(time, writes):
                return found
        return []

    def read_changes(self) -> Iterator[ArchivedChange]:
        """Completed instants, writes with their files. One file of the archive is in memory at a time.

        Raises:
            CorruptFileError: a file is damaged.
        """
        for path in self.list_files():
            for time, action, data in self._read_instants(path):
                name = _named(path, time, action)
                if action in _WRITES:
                    yield ArchivedChange(time, decode_avro_commit(data, name))
                elif action == Action.ROLLBACK.value:
                    with read_as("rollback", name):
                        undone = texts_of(decode_record("rollback_metadata", data, name).get("commitsRollback"))
                    yield ArchivedChange(time, undone=undone)
                elif action == Action.RESTORE.value and data:
                    yield ArchivedChange(time, undone=decode_restored(data, name))
                else:
                    yield ArchivedChange(time)

    def read_rows(self) -> Iterator[list[Row]]:
        """The archived instants as rows, oldest first. One file of the archive is in memory at a time.

        Raises:
            CorruptFileError: a file is damaged.
        """
        for path in reversed(self.list_files()):
            with self._change_named(path):
                yield decode_rows(self.storage.read(path), path)

    def find_completions(self, times: Collection[str]) -> Mapping[str, str]:
        """Request time -> completion time of archived writes. Writes that are not in the archive are left out.

        Files whose range of times contains none of `times` are not read.

        Args:
            times: request times.

        Raises:
            CorruptFileError: a file is damaged.
        """
        found: dict[str, str] = {}
        for path in self.list_files() if times else ():
            high, low, _ = _times_of(path.rsplit("/", 1)[-1])
            if not any(low <= time <= high for time in times):
                continue
            for row in self._read_rows(path, ["instantTime", "completionTime", "action"]):
                time, completed_at = row["instantTime"], row["completionTime"]
                if time in times and row["action"] in _WRITES and completed_at is not None:
                    found[time] = completed_at
        return found

    def find_passed(
        self, compactions: Collection[str], *, since: str = "", known: Mapping[str, str] | None = None
    ) -> Mapping[str, str]:
        """See `Archive.find_passed`. Reads the times and the action of each instant, not its content."""
        requested, writes = set(compactions), dict[str, str]()
        for path in self.list_files():
            if _times_of(path.rsplit("/", 1)[-1])[0] < since:
                continue
            for row in self._read_rows(path, ["instantTime", "completionTime", "action"]):
                if row["action"] == Action.COMMIT.value:
                    requested.add(row["instantTime"])
                elif row["action"] == Action.DELTA_COMMIT.value and row["completionTime"] is not None:
                    writes[row["instantTime"]] = row["completionTime"]
        ordered = sorted(requested)
        passed = {
            time: completed_at
            for time, completed_at in writes.items()
            if bisect_left(ordered, completed_at) > bisect_right(ordered, time)
        }
        return {**(known or {}), **passed}

    def find_completed_after(self, time: str) -> frozenset[str]:
        """Request times of archived writes that were completed after a time.

        Raises:
            CorruptFileError: a file is damaged.
        """
        return frozenset(
            row["instantTime"]
            for path in self.list_files()
            for row in self._read_rows(path, ["instantTime", "completionTime", "action"])
            if row["action"] in _WRITES and (row["completionTime"] or row["instantTime"]) > time
        )

    def append(self, files: Sequence[RetiredFile], batch: int) -> str:  # noqa: ARG002 as `Archive`
        """Archives files of instants in one data file of level 0, with a new manifest (LSMTimelineWriter.write).

        The caller must hold the table's lock: two processes that write manifests would lose each other's files.

        Args:
            files: in order of instants, lowest state first.
            batch: not used: all instants go into one file.

        Returns:
            Path of the new file, relative to the table.

        Raises:
            CorruptFileError: the newest manifest is damaged.
            StorageError: the store fails, or another process wrote a manifest meanwhile.
        """
        rows = rows_of(files)
        number, named = self._read_manifest()
        name = f"{rows[0].time}_{rows[-1].time}_0.parquet"
        if name in named:  # an archival died before it deleted the instants, which are still on the timeline
            known = decode_rows(self.storage.read(join(self.folder, name)), name)
            rows = distinct_rows((*known, *rows))
        self.storage.put(join(self.folder, name), encode_rows(rows))
        named = list(dict.fromkeys((*named, name)))
        number = self._write_manifest(number, named)
        self._merge(number, named)
        return join(self.folder, name)

    def _merge(self, number: int, named: list[str]) -> None:
        """Merges the oldest files of a level into one of the next level. Deletes files that no kept manifest names."""
        level = 0
        while True:
            of_level = sorted(name for name in named if _times_of(name)[2] == level)
            if not of_level:
                break
            level += 1
            if len(of_level) < _FILES_MERGED:
                continue
            merged = of_level[:_FILES_MERGED]
            rows = distinct_rows(
                row for name in merged for row in decode_rows(self.storage.read(join(self.folder, name)), name)
            )
            name = f"{rows[0].time}_{rows[-1].time}_{level}.parquet"
            self.storage.put(join(self.folder, name), encode_rows(rows))
            named = [*(each for each in named if each not in merged), name]
            number = self._write_manifest(number, named)
        self._delete_unnamed(number)

    def _delete_unnamed(self, number: int) -> None:
        entries = {entry.name for entry in self.storage.list_dir(self.folder)}
        kept = {f"manifest_{n}" for n in range(number - _MANIFESTS_KEPT + 1, number + 1)} & entries
        named = {file for name in kept for file in _files_of(self.storage.read(join(self.folder, name)), name)}
        for name in sorted(entries):
            is_old = (found := _MANIFEST.fullmatch(name)) is not None and int(found[1]) <= number - _MANIFESTS_KEPT
            if is_old or (_DATA_FILE.fullmatch(name) and name not in named):
                self.storage.delete_metafile(join(self.folder, name))

    def _read_manifest(self) -> tuple[int, list[str]]:
        """Number of the newest manifest, and the data files that it names; 0 where there is none."""
        manifests = {
            int(found[1]): entry.name
            for entry in self.storage.list_dir(self.folder)
            if (found := _MANIFEST.fullmatch(entry.name))
        }
        if not manifests:
            return 0, []
        number = self._read_version()
        number = number if number in manifests else max(manifests)
        path = join(self.folder, manifests[number])
        with self._change_named(path):
            return number, _files_of(self.storage.read(path), path)

    def _write_manifest(self, before: int, named: Sequence[str]) -> int:
        """Writes the next manifest, then the version file. Overwrites a manifest that a dead process left."""
        number = before + 1
        sizes = {entry.name: entry.size_bytes for entry in self.storage.list_dir(self.folder)}
        document = {"files": [{"fileName": name, "fileLen": sizes[name]} for name in named]}
        self.storage.put(join(self.folder, f"manifest_{number}"), json.dumps(document, indent=2).encode())
        self.storage.put(join(self.folder, _VERSION_FILE), str(number).encode())
        return number

    def _read_version(self) -> int | None:
        try:
            text = self.storage.read(join(self.folder, _VERSION_FILE)).strip()
        except FileNotFoundError:
            return None
        return int(text) if text.isdigit() else None

    def _read_instants(self, path: str) -> Iterator[tuple[str, str, bytes]]:
        """Time, action and content of the completed file of each instant in a data file."""
        for row in self._read_rows(path, ["instantTime", "action", "metadata"]):
            with read_as("archived instant", path):
                yield text_of(row["instantTime"]), text_of(row["action"]), bytes(row["metadata"] or b"")

    def _read_rows(self, path: str, columns: Sequence[str]) -> Iterator[dict[str, Any]]:
        with self._change_named(path), self.storage.open_input(path) as source:
            try:
                for batch in pq.ParquetFile(source).iter_batches(_BATCH_ROWS, columns=list(columns)):
                    if set(batch.schema.names) != set(columns):
                        raise CorruptFileError(f"{path} is damaged: it does not have the columns {', '.join(columns)}")
                    yield from batch.to_pylist()
            except FileNotFoundError:
                raise
            except (pa.ArrowException, OSError, ValueError) as error:
                raise CorruptFileError(f"{path} is damaged: {error}") from error

    @contextmanager
    def _change_named(self, path: str) -> Iterator[None]:
        try:
            yield
        except FileNotFoundError as error:
            raise StorageError(
                f"{path} of {self.storage.base_uri!r} is not there any more: another writer merged files of the "
                "history while it was read; read again"
            ) from error


def _files_of(data: bytes, name: str) -> list[str]:
    """The data files that a manifest names.

    Raises:
        CorruptFileError: the bytes are not a manifest, or it names a file that is no data file.
    """
    try:
        names = [text_of(entry["fileName"]) for entry in json.loads(data)["files"]]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise CorruptFileError(f"{name} is not the manifest of a history: {error!r}") from error
    strange = [each for each in names if not _DATA_FILE.fullmatch(each)]
    if strange:
        raise CorruptFileError(f"{name} names {strange[0]!r}, which is no file of a history")
    return names


def _times_of(name: str) -> tuple[str, str, int]:
    """Greatest time, least time and level of a data file, from its name."""
    found = _DATA_FILE.fullmatch(name)
    if found is None:
        raise CorruptFileError(f"{name!r} is no file of a history")
    return found[2], found[1], int(found[3])


def _archived(path: str, time: str, action: str, data: bytes) -> ArchivedCommit:
    done = decode_avro_commit(data, _named(path, time, action))
    return ArchivedCommit(time, action, CommitMetadata(operation=done.operation, extra=done.extra))


def _named(path: str, time: str, action: str) -> str:
    return f"{path} ({time}.{action})"

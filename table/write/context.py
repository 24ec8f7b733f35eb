"""The values that a task receives: `WriteContext` (frozen and picklable) for the commit, `Bucket`, `Attempt`."""

from dataclasses import dataclass, field
from enum import Enum

import pyarrow as pa

from table import threads
from table.config.change_images import ChangeImages
from table.files.base.summary import BaseFileSummary
from table.files.column_ranges import Ranges, ranges_of_footer
from table.files.key_changes import KeyChanges
from table.files.markers import APPEND
from table.files.names import BaseFileName
from table.options.groups import BaseFileSettings, LogFileSettings
from table.records.merge import MergeRules
from table.storage.interface import Storage
from table.write.flushes import Flushes


class BucketType(str, Enum):
    """How a bucket changes its file group; the letters are the location tags of Flink's writer."""

    INSERT = "I"
    UPDATE = "U"


@dataclass(frozen=True, slots=True)
class LogSlot:
    """The newest file slice of a merge-on-read table's file group, to which a commit adds log files.

    Attributes:
        base_instant_time: instant in the names of the new log files: in timeline layout 1 the slice's, in layout 2 the
            instant that writes them.
        version: version of the next log file.
        base_file: name of the slice's base file, as write stats name it. "" in a slice that follows a pending
            compaction and has only log files, and in layout 2 if the table has no change files.
        log_files: names of the slice's log files, oldest first, as write stats name them; as `base_file`.
        is_behind_plan: whether a planned compaction makes the next base file without the records of these log files.
        marker: kind of write in the markers of the new log files.
    """

    base_instant_time: str
    version: int
    base_file: str = ""
    log_files: tuple[str, ...] = ()
    is_behind_plan: bool = False
    marker: str = APPEND


@dataclass(frozen=True, slots=True)
class Bucket:
    """One file group that rows are assigned to (BucketInfo).

    Attributes:
        type: INSERT opens a file group, UPDATE writes the next version of one.
        partition_path: "" in a non-partitioned table.
        file_id: id of the file group, with its ``-0``.
        base_file: name of the base file to continue; None for INSERT.
        base_bytes: size of that file; 0: not known.
    """

    type: BucketType
    partition_path: str
    file_id: str
    base_file: str | None = None
    base_bytes: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class ChangeFileSettings:
    """How the change files (``.cdc``) of a table are written.

    Attributes:
        images: what they hold of a row.
        marker: kind of write in their markers. Hudi's rollbacks take no other one for a log file of that layout.
    """

    images: ChangeImages
    marker: str


_MOST_TOLD_BYTES = 4 * 1024 * 1024  # of keys: Spark bounds what all tasks together return
MOST_MOVED_BYTES = 32 * 1024 * 1024  # of keys that all groups of a clustering tell


class Attempt:
    """One attempt at a task: the token in its file names, and the numbers of its rows.

    A row's number is a part of its sequence number, which must be unique within the commit. So the numbers
    continue from file to file. Each attempt begins at 0, because a commit names the files of only one attempt.

    Args:
        write_token: token of this attempt; its first part is the number of the task.
        most_told_bytes: of the keys that it may record; None: as a task of a batch.

    Attributes:
        write_token: token of this attempt.
        most_told_bytes: of the keys that it may record.
        task: number of the task in sequence numbers.
        flushes: files of this attempt that are being flushed to the disk.
    """

    def __init__(self, write_token: str, most_told_bytes: int | None = None) -> None:
        self.write_token = write_token
        self.most_told_bytes = _MOST_TOLD_BYTES if most_told_bytes is None else most_told_bytes
        self.task = int(write_token.split("-", 1)[0])
        self.flushes = Flushes()
        self._numbered = self._told_bytes = 0
        self._lock = threads.make_lock()  # a task may write several files at a time

    def take_numbers(self, count: int) -> int:
        """Reserves `count` row numbers for the caller. Returns the first."""
        with self._lock:
            first = self._numbered
            self._numbered += count
        return first

    def may_tell(self, keys: KeyChanges) -> bool:
        """Whether the attempt may record keys, beside those that it has recorded: the driver bounds what each task
        sends.

        Args:
            keys: what a file group gets and loses.
        """
        with self._lock:
            self._told_bytes += keys.size_bytes
            return self._told_bytes <= self.most_told_bytes


@dataclass(frozen=True)
class WriteContext:
    """All that a worker needs to write its part of one commit.

    Attributes:
        storage: the table's store.
        instant_time: instant time of the commit.
        schema: table columns without meta columns (Arrow), all nullable.
        avro_schema: Avro schema of the meta columns and table columns, as JSON for footers.
        required: columns that must not be null by the table's schema.
        settings: how base files are written.
        log_settings: how log files are written.
        merge: how records of one key are merged.
        key_column: the column whose values are the record keys, unchanged; None if there is none.
        allow_duplicates: whether inserts are written without a search for their keys in the file
            (``hoodie.merge.allow.duplicate.on.inserts``).
        combine_before_insert: whether the records of one key are merged within the batch
            (``hoodie.combine.before.insert``).
        ranged: columns whose least and greatest values write stats record, for the statistics of a metadata table.
        tells_keys: whether write stats name the keys that a file group gets and loses, for a record index.
        has_unique_keys: whether a key is looked up in the whole table, so that it is nowhere else.
        change_files: how change files are written beside base files that continue others; None: none are.
    """

    storage: Storage
    instant_time: str
    schema: pa.Schema
    avro_schema: str
    settings: BaseFileSettings
    log_settings: LogFileSettings = field(default_factory=LogFileSettings)
    required: tuple[str, ...] = ()
    merge: MergeRules = field(default_factory=MergeRules)
    key_column: str | None = None
    allow_duplicates: bool = True
    combine_before_insert: bool = False
    ranged: tuple[str, ...] = ()
    tells_keys: bool = False
    has_unique_keys: bool = True
    change_files: ChangeFileSettings | None = None

    def base_file_name(self, bucket: Bucket, write_token: str) -> str:
        """Name of the base file that this commit writes for a bucket."""
        return str(BaseFileName(bucket.file_id, write_token, self.instant_time))

    def ranges_of(self, summary: BaseFileSummary) -> Ranges | None:
        """The ranges of a base file's columns; None if no column is ranged, or the footer has no bounds."""
        return ranges_of_footer(summary.footer, self.ranged) if self.ranged else None

    def keys_for_stat(self, attempt: Attempt, keys: KeyChanges) -> KeyChanges | None:
        """The keys for a write stat; None where they are not wanted, too many, or would leave a record index wrong.

        A deleted key that may be elsewhere, too, would do so.

        Args:
            attempt: the attempt that records them.
            keys: what a file group gets and loses.
        """
        is_unsure = not self.has_unique_keys and any(map(len, keys.deleted))
        return keys if self.tells_keys and not is_unsure and attempt.may_tell(keys) else None

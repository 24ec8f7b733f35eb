"""WriteContext: what workers receive of a commit, frozen and picklable; Bucket: where rows go; Attempt: who writes."""

from dataclasses import dataclass, field
from enum import Enum

import pyarrow as pa

from table import threads
from table.files.markers import APPEND
from table.files.names import BaseFileName
from table.options.groups import BaseFileSettings, LogFileSettings
from table.records.merge import MergeRules
from table.storage.interface import Storage
from table.write.flushes import Flushes


class BucketType(str, Enum):
    """What a bucket does to its file group; the letters are the location tags of Flink's writer."""

    INSERT = "I"
    UPDATE = "U"


@dataclass(frozen=True, slots=True)
class LogSlot:
    """Where the log files of a file group go on: the newest slice of a merge-on-read table's file group.

    Attributes:
        base_instant_time: what their names carry: in timeline layout 1 the instant of the slice, in layout 2 the
            instant that writes them.
        version: of the next log file.
        base_file: name of the slice's base file, as write stats name it; "" behind a pending compaction, where there
            are log files alone, and in layout 2.
        log_files: names of those that the slice has, oldest first, as write stats name them; none in layout 2.
        is_behind_plan: whether the next base file is made without what they hold, by a compaction that is planned.
        marker: what kind of write announces them.
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
        file_id: with its ``-0``.
        base_file: name of the version to continue; None for INSERT.
        base_bytes: its size, where it is known; 0: it is not.
    """

    type: BucketType
    partition_path: str
    file_id: str
    base_file: str | None = None
    base_bytes: int = field(default=0, compare=False)


class Attempt:
    """One attempt at a task: what its files are named by, and the numbers of the rows it writes.

    A row's number goes into its sequence number, which is to be unique within the commit: the count goes on from
    file to file. Another attempt begins at 0 again; of one of them alone the files are committed.

    Args:
        write_token: this attempt's; its first part is the task.

    Attributes:
        write_token: the token.
        task: the task, as sequence numbers have it.
        flushes: its files on their way to the disk.
    """

    def __init__(self, write_token: str) -> None:
        self.write_token = write_token
        self.task = int(write_token.split("-", 1)[0])
        self.flushes = Flushes()
        self._numbered = 0
        self._lock = threads.make_lock()  # a task may write several files at a time

    def take_numbers(self, count: int) -> int:
        """The first of so many numbers that no other row of the task gets."""
        with self._lock:
            first = self._numbered
            self._numbered += count
        return first


@dataclass(frozen=True)
class WriteContext:
    """All that a worker needs to write its part of one commit.

    Attributes:
        storage: the table's.
        instant_time: the commit's.
        schema: table columns without meta columns (Arrow), all nullable.
        avro_schema: the same with meta columns, as JSON for footers.
        required: columns that must not be null, because the table's schema says so.
        settings: how base files are written.
        log_settings: how log files are written.
        merge: how records of one key become one.
        key_column: the column that is the record key, letter by letter; None where there is none.
        allow_duplicates: inserts never look for their key in the file they join
            (``hoodie.merge.allow.duplicate.on.inserts``).
        combine_before_insert: one record per key within the batch (``hoodie.combine.before.insert``).
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

    def base_file_name(self, bucket: Bucket, write_token: str) -> str:
        """Name of the file this commit writes for a bucket."""
        return str(BaseFileName(bucket.file_id, write_token, self.instant_time))

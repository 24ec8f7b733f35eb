"""WriteContext: the frozen, picklable part of a commit that workers receive; Bucket: where rows go."""

from dataclasses import dataclass, field
from enum import Enum

import pyarrow as pa

from table.files.file_names import BaseFileName
from table.settings import BaseFileSettings
from table.storage import Storage
from table.timeline.instant import Action
from table.write.merge import MergeRules


class BucketType(str, Enum):
    """What a bucket does to its file group; the letters are the location tags of Flink's writer."""

    INSERT = "I"
    UPDATE = "U"


@dataclass(frozen=True, slots=True)
class Bucket:
    """One file group that rows are assigned to (BucketInfo).

    Attributes:
        type: INSERT opens a file group, UPDATE writes the next version of one.
        partition_path: "" in a non-partitioned table.
        file_id: with its ``-0``.
        base_file: name of the version to continue; None for INSERT.
    """

    type: BucketType
    partition_path: str
    file_id: str
    base_file: str | None = None


@dataclass(frozen=True)
class WriteContext:
    """All that a worker needs to write its part of one commit.

    Attributes:
        storage: the table's.
        instant_time: the commit's.
        action: the commit's: ``commit`` or ``replacecommit``.
        schema: table columns without meta columns (Arrow), all nullable.
        avro_schema: the same with meta columns, as JSON for footers.
        required: columns that must not be null, because the table's schema says so.
        settings: how base files are written.
        merge: how records of one key become one.
        key_column: the column that is the record key, letter by letter; None where there is none.
        allow_duplicates: inserts never look for their key in the file they join
            (``hoodie.merge.allow.duplicate.on.inserts``).
        combine_before_insert: one record a key within the batch (``hoodie.combine.before.insert``).
    """

    storage: Storage
    instant_time: str
    schema: pa.Schema
    avro_schema: str
    settings: BaseFileSettings
    required: tuple[str, ...] = ()
    merge: MergeRules = field(default_factory=MergeRules)
    key_column: str | None = None
    allow_duplicates: bool = True
    combine_before_insert: bool = False
    action: Action = Action.COMMIT

    def base_file_name(self, bucket: Bucket, write_token: str) -> str:
        """Name of the file this commit writes for a bucket."""
        return str(BaseFileName(bucket.file_id, write_token, self.instant_time))

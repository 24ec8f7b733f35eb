"""Refuses keys that are only in log files: an index that looks into base files would take them for new and double them.

Writers with a bucket index and Flink's writers put such keys into log files, and so do ours with
``hudistream.new.rows.join.logs``, which the table's properties tell (`ROWS_IN_LOGS`). The table does not record with
which index a file group was written. So a group is checked if it has no base file, if its id begins with a bucket
number, or if the properties tell of such rows. A batch that looks into log files (`streaming.task.log_lookup`) finds
the keys of groups with a base file.
"""

from collections.abc import Iterable

import pyarrow as pa
import pyarrow.compute as pc

from streaming.plan.task_plan import TaskPlan
from streaming.task.slice_reading import reading_of
from table.errors import UnsupportedTableError
from table.files.base.stored_file import StoredBaseFile
from table.index.bucket import is_of_bucket
from table.scan.merge_slice import merge_slice
from table.schema.avro_schema import RECORD_KEY
from table.view.file_group import FileGroup, FileSlice


def refuse_log_only_keys(plan: TaskPlan, groups: Iterable[FileGroup]) -> None:
    """Refuses a batch that looks for keys in base files, if a file group has a key that is only in its log files.

    Args:
        plan: from the driver.
        groups: the file groups of a partition path.

    Raises:
        UnsupportedTableError: such a key was found. The message names the file group and a remedy.
        CorruptFileError, StorageError: a file of such a group cannot be decoded or read.
    """
    joins_logs = plan.logs is not None and plan.logs.joins_logs
    for group in groups:
        is_suspect = (is_of_bucket(group.file_id) or joins_logs) and not plan.looks_into_logs
        if not group.log_files or (group.latest_base_file is not None and not is_suspect):
            continue
        key = _find_key(plan, group.merged_slice)
        if key is not None:
            raise UnsupportedTableError(
                f"file group {group.file_id!r} of partition path {group.partition_path!r} has the key {key!r} in a log "
                "file and not in its base file, as writers with a bucket index (hoodie.index.type=BUCKET), Flink and "
                "hudistream.new.rows.join.logs=true make it: an index that looks for keys in base files would double "
                "it, and would delete no such row. Write with the index that the table was written with "
                "(hoodie.index.type=BUCKET and hoodie.bucket.index.num.buckets=N, or hoodie.index.type=RECORD_INDEX; a "
                "command takes each by --set), or compact it first (`hudistream compact PATH`)"
            )


def _find_key(plan: TaskPlan, found: FileSlice) -> str | None:
    """A key that readers see and the base file does not have."""
    context, held = plan.context, pa.array([], pa.string())
    if found.base_file is not None:
        with StoredBaseFile(context.storage, found.base_file.path, found.base_file.size_bytes) as file:
            parts = [rows.column(RECORD_KEY) for rows in file.read_batches(pa.schema([(RECORD_KEY, pa.string())]))]
        held = pa.chunked_array([chunk for part in parts for chunk in part.chunks], pa.string()).combine_chunks()
    for rows in merge_slice(context.storage, found, reading_of(plan, (RECORD_KEY,))):
        keys = rows.column(RECORD_KEY)
        alone = keys.filter(pc.invert(pc.is_in(keys, value_set=held)))
        if len(alone):
            return str(alone[0].as_py())
    return None

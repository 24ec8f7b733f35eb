"""The keys that a file group gets and loses by changes that go to its log, for a record index.

Whether a key has a row follows from base file and log together. A key that was deleted may come back, and a late delete
deletes nothing. (HoodieTableMetadataUtil.getRevivedAndDeletedKeysFromMergedLogs)
"""

from dataclasses import replace

import pyarrow as pa

from streaming.plan.task_plan import TaskPlan
from streaming.task.slice_reading import reading_of
from table.files.key_changes import KeyChanges, KeyFates
from table.index.key_lookup import positions_of
from table.records.merge import decide_merge, delete_flags
from table.scan.merge_slice import merge_slice
from table.schema.avro_schema import DELETE_MARKER, RECORD_KEY
from table.view.file_group import FileSlice
from table.write.merge_bucket import Changes


def find_key_changes(plan: TaskPlan, file_slice: FileSlice, met: pa.Table, changes: Changes, joined: int) -> KeyChanges:
    """The keys that changes add to a slice, and those that they delete from it.

    The slice is read only if its log deletes a key of the changes, or if ordering values decide on a delete.

    Args:
        plan: from the driver.
        file_slice: base file and log files that readers merge.
        met: as from `streaming.task.fold_logs.read_met_deletes`. None of them is newer than a record of its key.
        changes: records whose keys the slice holds; each key occurs once.
        joined: how many of them, the last ones, are new to the table.

    Raises:
        CorruptFileError: a file is damaged.
        UnsupportedTableError: a log file has a block that is not supported.
        StorageError: a file cannot be read.
    """
    rules, incoming = plan.context.merge, changes.incoming
    deletes = delete_flags(incoming, rules) | changes.removes
    asked = deletes.copy()
    asked[met.column("at").to_numpy()] = True  # other rows replace rows that are there
    new = tuple(incoming.column(RECORD_KEY).slice(len(incoming) - joined).chunks)
    if not len(met) and not (rules.compares and (deletes & ~changes.removes).any()):
        return KeyChanges(new, tuple(incoming.column(RECORD_KEY).filter(pa.array(deletes)).chunks))
    names = [RECORD_KEY, *rules.ordering_fields]
    more = [DELETE_MARKER] if DELETE_MARKER in incoming.column_names else []
    records = incoming.select(list(dict.fromkeys([*names, *more]))).filter(pa.array(asked))
    keys, removes = records.column(RECORD_KEY).combine_chunks(), changes.removes[asked]
    reading = reading_of(plan, tuple(dict.fromkeys(names)))
    fates, as_read = KeyFates(keys), replace(rules, orders_deletes=True)
    for rows in merge_slice(plan.context.storage, file_slice, reading):
        found = positions_of(rows.column(RECORD_KEY), keys)
        outcome = decide_merge(rows, records, found, as_read, removes)
        fates.note(found, outcome.rows[outcome.lost])
    of_deletes = fates.changes(deletes[asked])
    return KeyChanges((*new, *of_deletes.added), of_deletes.deleted)

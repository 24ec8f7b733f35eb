"""New rows in log files of file groups that have a base file, as Flink's writer puts them there."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streaming.task import upsert
from streaming.task.place_rows import Placed, Placer
from table.files.key_changes import KeyChanges
from table.schema.avro_schema import RECORD_KEY
from table.write.context import Bucket, BucketType
from table.write.merge_bucket import Changes

NOWHERE = np.zeros(0, np.int64)


def put_new_rows_into_logs(monkeypatch):
    """From now on new rows of a batch go to the log of a file group of their path. The record index hears of them."""
    place, find_changes, new_keys = Placer.place, upsert.find_key_changes, set()

    def placed(self, rows, removes, located):
        every = list(place(self, rows, removes, located))
        if not self._files:
            return every
        new = [one.inserts for one in every if one.changes is None]
        new_keys.update(key for part in new for key in part.column(RECORD_KEY).to_pylist())
        left = [one for one in every if one.changes is not None]
        file = self._files[0]
        bucket = Bucket(BucketType.UPDATE, file.partition_path, file.file_id, file.name, file.size_bytes)
        mine = next((one for one in left if one.bucket == bucket and one.log is not None), None)
        for inserts in new:
            gone = np.zeros(len(inserts), np.bool_)
            if mine is None:
                changes = Changes(inserts, NOWHERE, NOWHERE, gone)
                mine = Placed(bucket, changes, inserts.slice(0, 0), self._groups.logs[file.file_id])
                left.append(mine)
                continue
            both = pa.concat_tables([mine.changes.incoming, inserts])
            changes = replace(mine.changes, incoming=both, removes=np.concatenate([mine.changes.removes, gone]))
            left[left.index(mine)] = mine = replace(mine, changes=changes)
        return left

    def told(plan, file_slice, met, changes):
        keys = changes.incoming.column(RECORD_KEY)
        is_new = pc.is_in(keys, value_set=pa.array(sorted(new_keys), pa.string()))
        found = find_changes(plan, file_slice, met, changes)
        return KeyChanges((*found.added, *keys.filter(is_new).chunks), found.deleted)

    monkeypatch.setattr(Placer, "place", placed)
    monkeypatch.setattr(upsert, "find_key_changes", told)

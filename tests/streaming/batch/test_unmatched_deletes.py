"""Deletes whose key the table does not have are counted, and told once per sink."""

import pyarrow as pa
import pytest
from structlog.testing import capture_logs

from hudistream import ArrowSink
from streaming.batch.unmatched_deletes import explain_unmatched
from table import read_table
from table.options.choices import IndexType

BUCKETS = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "1"}
LOGS = {"hoodie.datasource.write.table.type": "MERGE_ON_READ"}


def rows(ids, paths, deleted):
    return pa.table({
        "id": list(ids), "p": pa.array(paths, pa.string()), "ts": [1] * len(ids), "v": ["v"] * len(ids),
        "_hoodie_is_deleted": deleted,
    })  # fmt: skip


FIRST = rows("ab", ["x", "x"], [False, False])
CHANGES = rows("abnc", [None, "x", "x", "x"], [True, True, True, False])


@pytest.mark.parametrize(
    ("options", "unmatched", "again", "left"),
    [
        ({}, 2, 3, 2),
        (LOGS, 2, 3, 2),
        (BUCKETS, 2, 3, 2),
        ({**BUCKETS, **LOGS}, 1, 1, 2),  # the one in a path without the bucket; no key is looked up in the others
        ({"hoodie.index.type": "GLOBAL_BLOOM"}, 1, 3, 1),
    ],
    ids=["bloom", "logs", "buckets", "logs of buckets", "global"],
)
def test_a_delete_without_its_partition_column_is_counted(tmp_path, options, unmatched, again, left):
    path = str(tmp_path / "t")
    with capture_logs() as logs, ArrowSink(path, options, key="id", partition_by="p", order_by="ts") as sink:
        counts = [sink.write(batch).deletes_unmatched for batch in (FIRST, CHANGES, CHANGES)]
    assert counts == [0, unmatched, again]
    told = [line["deletes"] for line in logs if line["event"] == "deletes_without_a_row"]
    assert told == [unmatched]
    assert [line.get("deletes_unmatched", 0) for line in logs if line["event"] == "batch_committed"] == counts
    assert len(read_table(path)) == left


def test_a_batch_that_only_misses_commits_nothing_and_counts(tmp_path):
    with ArrowSink(tmp_path / "t", key="id", partition_by="p", order_by="ts") as sink:
        sink.write(FIRST)
        done = sink.delete(rows("abc", ["y"] * 3, [False] * 3))
        assert (done.instant_time, done.deletes_unmatched, done.rows_deleted) == (None, 3, 0)


@pytest.mark.pure
@pytest.mark.parametrize(
    ("fields", "index", "names_path"),
    [(("p",), IndexType.BLOOM, True), (("p",), IndexType.GLOBAL_BLOOM, False), ((), IndexType.BLOOM, False)],
)
def test_the_hint_names_the_partition_column_where_it_can_be_the_cause(fields, index, names_path):
    assert ("REPLICA IDENTITY FULL" in explain_unmatched(fields, index)) == names_path

"""Writes that overlap, in tables of version 8: what a reader sees of which log file, now and as of earlier times."""

import json

import log_files
import pyarrow as pa
import pytest
from by_hand import TableByHand, at, commit, rollback
from log_files import SCHEMA, data_block, delete_block, record, rollback_block

from hudistream import HudiTable
from table import CorruptFileError, InvalidConfigError, StorageError, UnsupportedTableError
from table.config.merge_mode import PAYLOAD_STRATEGY
from table.files.log.framing import Header, LogBlock
from table.schema.avro_schema import to_avro
from table.snapshot import Snapshot


@pytest.fixture
def lake(tmp_path):
    """One insert, requested at 10 and completed at 12."""
    made = TableByHand(tmp_path / "t")
    made.completed(10, 12)
    made.base(10, a="base", b="base")
    return made


def slices(made, as_of=None):
    """Base instant, and the log files' instants, newest slice first."""
    [(_, [group])] = Snapshot.load(made.open(), as_of and at(as_of)).walk_file_groups()
    return [
        (int(found.base_instant_time[-5:]), [int(log.base_instant_time[-5:]) for log in found.log_files])
        for found in group.slices
    ]


def test_a_pending_compaction_opens_no_slice(lake):
    lake.completed(20, 22)
    lake.log(20, a="20")
    lake.pending(30, "compaction", begun=False)
    lake.completed(40, 42)
    lake.log(40, b="40")
    assert slices(lake) == [(10, [20, 40])]
    assert lake.rows() == {"a": "20", "b": "40"}
    assert lake.open().history()["state"].to_pylist() == ["COMPLETED", "REQUESTED", "COMPLETED", "COMPLETED"]


def test_the_base_file_of_a_compaction_that_runs_does_not_count(lake):
    lake.pending(30, "compaction")
    lake.base(30, a="half", b="half")
    lake.completed(40, 42)
    lake.log(40, b="40")
    assert slices(lake) == [(10, [40])]
    assert lake.rows() == {"a": "base", "b": "40"}


def test_a_write_that_ended_after_a_compaction_was_requested_lies_on_top_of_it(lake):
    lake.completed(20, 22)
    lake.log(20, a="20")
    lake.completed(25, 45)  # begun before the compaction's request, and completed while it ran
    lake.log(25, b="25")
    lake.completed(30, 50, "commit")
    lake.base(30, a="20", b="base")  # the compaction knows of the write of 20 alone
    assert slices(lake) == [(30, [25]), (10, [20])]
    assert lake.rows() == {"a": "20", "b": "25"}


def test_a_write_that_ended_before_a_compaction_was_requested_is_in_its_result(lake):
    lake.completed(20, 22)
    lake.log(20, a="20")
    lake.completed(30, 50, "commit")
    lake.base(30, a="compacted", b="compacted")
    assert slices(lake) == [(30, []), (10, [20])]
    assert lake.rows() == {"a": "compacted", "b": "compacted"}


def test_log_files_of_writes_that_are_not_completed_do_not_count(lake):
    lake.pending(20)
    lake.log(20, a="pending")
    lake.log(21, a="undone")  # no instant of it is left
    assert slices(lake) == [(10, [])]
    assert lake.rows() == {"a": "base", "b": "base"}


def test_a_first_write_that_is_pending_is_not_taken_for_one_that_was_retired(tmp_path):
    made = TableByHand(tmp_path / "t")
    made.pending(5)
    made.base(5, a="pending")
    made.completed(10, 12)
    made.base(10, a="base")
    assert slices(made) == [(10, [])]


def test_log_files_alone_form_a_slice_until_there_is_a_base_file(tmp_path):
    made = TableByHand(tmp_path / "t")
    made.completed(10, 12)
    made.log(10, a="10", b="10")
    made.completed(20, 22)
    made.log(20, ts=2, b="20")
    assert slices(made) == [(10, [10, 20])]
    assert made.rows() == {"a": "10", "b": "20"}
    made.completed(30, 35, "commit")
    made.base(30, a="10", b="20")
    made.completed(40, 42)
    made.log(40, ts=3, a="40")
    assert slices(made) == [(30, [40]), (10, [10, 20])]
    assert made.rows() == {"a": "40", "b": "20"}


def test_log_files_are_merged_in_the_order_of_their_requests(tmp_path):
    made = TableByHand(tmp_path / "t", {"hoodie.record.merge.mode": "COMMIT_TIME_ORDERING"})
    made.completed(10, 12)
    made.base(10, a="base", b="base")
    for asked, done in ((20, 40), (21, 30)):
        made.completed(asked, done)
        made.log(asked, ts=-asked, a=str(asked))
    assert made.rows() == {"a": "21", "b": "base"}


@pytest.mark.parametrize(("mode", "expected"), [("EVENT_TIME_ORDERING", "base"), ("COMMIT_TIME_ORDERING", "late")])
def test_the_merge_mode_decides_and_not_the_payload_class(tmp_path, mode, expected):
    payload = {"hoodie.compaction.payload.class": "org.example.Mine", "hoodie.record.merge.mode": mode}
    made = TableByHand(tmp_path / "t", payload)
    made.completed(10, 12)
    made.base(10, a="base")
    made.completed(20, 22)
    made.log(20, ts=-1, a="late")
    assert made.rows() == {"a": expected}


def test_a_payload_class_that_is_known_decides_where_the_mode_says_so(tmp_path):
    said = {"hoodie.record.merge.mode": "CUSTOM", "hoodie.record.merge.strategy.id": PAYLOAD_STRATEGY}
    payload = "org.apache.hudi.common.model.PartialUpdateAvroPayload"
    made = TableByHand(tmp_path / "t", {**said, "hoodie.compaction.payload.class": payload})
    made.completed(10, 12)
    made.base(10, a="base", b="base")
    made.completed(20, 22)
    made.log(20, a=None, b="20")
    assert made.rows() == {"a": "base", "b": "20"}
    made = TableByHand(tmp_path / "u", {**said, "hoodie.compaction.payload.class": "org.example.Mine"})
    made.completed(20, 22)
    made.log(20, a="20")
    with pytest.raises(UnsupportedTableError, match="payload.class=org.example.Mine"):
        made.rows()


def test_a_clustering_replaces_groups_when_it_is_completed(lake):
    lake.pending(20, "clustering")
    assert lake.rows() == {"a": "base", "b": "base"}
    lake.completed(20, 25, "replacecommit", commit("CLUSTER", {"": ["f-0"]}))
    assert lake.rows() == {}
    assert lake.rows(as_of=15) == {"a": "base", "b": "base"}
    [newest] = lake.open().history(limit=1).to_pylist()
    assert (newest["action"], newest["operation"], newest["state"]) == ("replacecommit", "CLUSTER", "COMPLETED")


def test_an_earlier_time_means_the_time_of_the_request(lake):
    """As in Hudi (AbstractTableFileSystemView.getLatestMergedFileSlicesBeforeOrOn)."""
    lake.completed(20, 40)
    lake.log(20, a="20")
    lake.completed(30, 35)
    lake.log(30, b="30")
    assert lake.rows(as_of=12) == {"a": "base", "b": "base"}
    assert lake.rows(as_of=20) == {"a": "20", "b": "base"}
    assert lake.rows(as_of=29) == {"a": "20", "b": "base"}
    assert lake.rows(as_of=30) == lake.rows() == {"a": "20", "b": "30"}


def test_the_schema_is_that_of_the_write_that_was_completed_last(lake):
    wider = json.dumps(to_avro(SCHEMA.append(pa.field("more", pa.int64())), "t"))
    lake.completed(20, 40, content=commit(schema=wider))
    lake.completed(30, 35)
    assert lake.open().schema.names[-1] == "more"
    assert [write.time for write in lake.open().load_timeline().completed_writes] == [at(10), at(30), at(20)]


def test_blocks_of_a_log_compaction_stand_for_those_that_they_name(tmp_path):
    made = TableByHand(tmp_path / "t", {"hoodie.record.merge.mode": "COMMIT_TIME_ORDERING"})
    made.completed(10, 12)
    made.base(10, a="base", b="base", c="base")
    for asked, values in ((20, {"a": "20", "b": "20"}), (21, {"b": "21"}), (22, {"b": "22"})):
        made.completed(asked, asked + 50)
        made.log(asked, **values)
    made.completed(30, 90)
    of_both = data_block(at(30), [record(key, 1, value) for key, value in {"a": "both", "b": "both"}.items()])
    header = {**of_both.header, Header.COMPACTED_BLOCK_TIMES: f"{at(20)},{at(21)}"}
    made.log(30, [LogBlock(of_both.type, header, of_both.content)])
    # the block of 22 came after those that were compacted
    assert made.rows() == {"a": "both", "b": "22", "c": "base"}
    assert made.rows(as_of=22) == {"a": "20", "b": "22", "c": "base"}


def test_deletes_and_rollbacks_of_layout_1_that_came_with_an_upgrade(lake):
    """Log files that version 6 named after their base file keep their names and blocks."""
    lake.completed(20, 22)
    lake.completed(30, 32)
    blocks = [
        data_block(at(20), [record("a", 5, "20")]),
        data_block(at(25), [record("b", 5, "undone")]),
        rollback_block(at(26), at(25)),
        delete_block(at(30), [("a", 6)]),
    ]
    lake.log(10, blocks)
    assert slices(lake) == [(10, [10])]
    assert lake.rows() == {"b": "base"}


def retired(made):
    """A delta commit and a compaction that overlap, both in the history."""
    made.completed(60, 62)
    made.base(10, a="base", b="base")
    made.log(20, a="20")
    made.log(25, b="25")
    made.base(30, a="20", b="base")
    return [(10, 12, "deltacommit", commit()), (20, 22, "deltacommit", commit())], [
        (25, 45, "deltacommit", commit(batch="7")),
        (27, 28, "rollback", rollback(at(26))),
        (29, 29, "clean", b""),
        (30, 50, "commit", commit("COMPACT")),
    ]


def test_the_history_says_when_retired_writes_were_completed(tmp_path):
    made = TableByHand(tmp_path / "t")
    made.history(*retired(made))
    assert slices(made) == [(30, [25]), (10, [20])]
    assert made.rows() == {"a": "20", "b": "25"}


def test_a_write_that_the_history_does_not_know_counts_from_its_request_on(tmp_path):
    made = TableByHand(tmp_path / "t")
    retired(made)
    assert slices(made) == [(30, []), (10, [20, 25])]


def test_the_history_is_not_read_where_it_decides_nothing(lake):
    lake.completed(20, 22)
    lake.log(20, a="20")
    lake.history([(5, 6, "commit", commit())], manifests={1: "damaged"})
    assert lake.rows() == {"a": "20", "b": "base"}


def test_the_history_gives_commits_back(tmp_path):
    made = TableByHand(tmp_path / "t")
    made.history(*retired(made))
    archive = made.open().archived_timeline
    assert [[(one.time, one.action) for one in file] for file in archive.read_files()] == [
        [(at(25), "deltacommit"), (at(30), "commit")],
        [(at(10), "deltacommit"), (at(20), "deltacommit")],
    ]
    assert next(iter(archive.read_files()))[0].metadata.extra["batch"] == "7"
    changes = {change.time: change for change in archive.read_changes()}
    assert changes[at(27)].undone == (at(26),)
    assert changes[at(29)].metadata is None
    assert changes[at(30)].metadata.operation == "COMPACT"
    assert archive.find_completions([at(25), at(29), at(99)]) == {at(25): at(45)}


@pytest.mark.parametrize(("version", "expected"), [("2", [2]), ("1", [1]), ("", [2]), ("x", [2]), ("9", [2])])
def test_the_version_names_the_manifest_and_else_the_newest_one_counts(tmp_path, version, expected):
    made = TableByHand(tmp_path / "t")
    files = [[(1, 1, "commit", b"")], [(2, 2, "commit", b"")]]
    names = made.history(*files)
    made.history(*files, version=version, manifests={1: names[:1], 2: names[1:]})
    archive = made.open().archived_timeline
    assert [int(path.split("/")[-1][12:17]) for path in archive.list_files()] == expected


@pytest.mark.parametrize(("manifest", "error", "said"), [
    ("text", CorruptFileError, "manifest_1 is not the manifest"),
    ([{"fileName": "../../x.parquet"}], CorruptFileError, "manifest_1 names '../../x.parquet'"),
    ([{"fileName": f"{at(1)}_{at(2)}_0.parquet"}], StorageError, "not there any more.*read again"),
    ([{"name": "x"}], CorruptFileError, "manifest_1 is not"),
])  # fmt: skip
def test_a_damaged_history_is_named(tmp_path, manifest, error, said):
    made = TableByHand(tmp_path / "t")
    made.history(manifests={1: manifest})
    with pytest.raises(error, match=said):
        list(made.open().archived_timeline.read_files())


def test_a_damaged_file_of_the_history_is_named(tmp_path):
    made = TableByHand(tmp_path / "t")
    [name] = made.history([(1, 1, "commit", b"")])
    made._write(f".hoodie/timeline/history/{name['fileName']}", b"PAR1 and no more")
    with pytest.raises(CorruptFileError, match=f"{name['fileName']} is damaged"):
        list(made.open().archived_timeline.read_changes())


def test_the_history_of_hudi_is_read(golden):
    archive = HudiTable.open(golden("v8_cow_archived")[0]).archived_timeline
    files = [[commit.time for commit in file] for file in archive.read_files()]
    assert [time for file in reversed(files) for time in file] == sorted(time for file in files for time in file)
    assert len(archive.list_files()) == 3
    changes = list(archive.read_changes())
    writes = [change for change in changes if change.metadata is not None]
    assert all(change.metadata.stats for change in writes)
    assert sum(map(len, files)) == len(writes)
    done = archive.find_completions([change.time for change in writes])
    assert set(done) == {change.time for change in writes}
    assert all(done[time] > time for time in done)


def changed(made, since=None, until=None):
    """Key and value of the rows that a range of completions wrote."""
    known = [None if number is None else at(number) for number in (since, until)]
    return {row["id"]: row["v"] for row in made.open().changes(*known, ["id", "v"]).to_arrow().to_pylist()}


def test_a_range_of_changes_is_one_of_completions(lake):
    lake.completed(20, 40)
    lake.log(20, a="20")
    lake.completed(21, 30)
    lake.log(21, b="21", c="21")
    lake.pending(22)
    lake.log(22, a="pending")
    assert lake.open().newest_instant == at(40)
    assert changed(lake, 12, 39) == {"b": "21", "c": "21"}
    assert changed(lake, 30, 40) == changed(lake, 30) == {"a": "20"}
    assert changed(lake, 12) == {"a": "20", "b": "21", "c": "21"}
    assert changed(lake, 40) == {}
    assert changed(lake, 11, 12) == {"a": "base", "b": "base"}
    assert changed(lake) == lake.rows() == {"a": "20", "b": "21", "c": "21"}
    with pytest.raises(InvalidConfigError, match=f"from {at(12)} to {at(40)}"):
        changed(lake, 5, 11)


def test_the_end_of_a_range_is_the_table_as_it_was_then(tmp_path):
    """A write that began before the range ended and was completed later is not retired: it was pending."""
    made = TableByHand(tmp_path / "t")
    made.completed(5, 100)
    made.base(5, a="5")
    made.completed(10, 12)
    made.base(10, a="10")
    made.completed(20, 22)
    made.log(20, a="20")
    made.completed(30, 90, "commit")
    made.base(30, a="compacted")
    assert changed(made, 0, 12) == {"a": "10"}
    assert changed(made, 12, 50) == {"a": "20"}


def test_changes_in_log_files_that_came_with_an_upgrade_are_found(lake):
    """They are named after their base file, and hold blocks of later writes."""
    lake.completed(20, 22)
    lake.log(10, [data_block(at(20), [record("a", 5, "20", time=at(20))])])
    assert changed(lake, 12) == {"a": "20"}


def test_a_compaction_changes_no_row(lake):
    lake.completed(20, 22)
    lake.log(20, a="20")
    lake.completed(30, 50, "commit")
    log_files.write_base(lake.path, [record("a", 1, "20", time=at(20)), record("b", 0, "base", time=at(10))], at(30))
    assert changed(lake, 12) == {"a": "20"}
    assert changed(lake, 22) == {}


def test_a_range_may_begin_before_the_timeline(tmp_path):
    made = TableByHand(tmp_path / "t")
    made.history([(10, 40, "deltacommit", commit()), (20, 22, "deltacommit", commit())])
    made.completed(60, 62)
    written = {"a": 10, "b": 20, "c": 60, "d": 1}  # the archive does not know of the last one
    log_files.write_base(made.path, [record(key, 0, key, time=at(time)) for key, time in written.items()], at(60))
    assert changed(made, 62) == {}
    assert changed(made, 40) == {"c": "c"}
    assert changed(made, 30) == {"a": "a", "c": "c"}
    assert changed(made, 15) == {"a": "a", "b": "b", "c": "c"}
    assert changed(made) == {key: key for key in written}

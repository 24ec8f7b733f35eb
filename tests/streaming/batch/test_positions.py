"""What commits tell of a stream's sources, and what another query may do with it."""

import json

import pyarrow as pa
import pytest
from engine import Engine, key_set, rows

from hudistream import ArchiveSettings, CleanSettings, HudiTable, read_table, starting_offsets
from streaming.batch.workers import Batch
from table.cli.main import main
from table.errors import BatchOrderError, InvalidConfigError
from table.snapshot import Snapshot
from table.transaction.checkpoint import OUR_KEY
from table.transaction.positions import STREAMER_KEY, position_of


class At:
    """Where the sources stand: what a checkpoint would tell."""

    def __init__(self, start, end):
        self._start, self._end = start, end

    def load_start(self):
        return None if self._start is None else (position_of({"t": {0: self._start}}),)

    def load_end(self):
        return None if self._end is None else (position_of({"t": {0: self._end}}),)


def write(engine, batch_id, numbers, query, start, end):
    batch = Batch(engine.workers(rows(numbers)), batch_id, query, positions=At(start, end))
    return engine.writer.write(batch)


@pytest.fixture
def path(tmp_path):
    """A table that the query `a` wrote up to offset 20, in batches 0 and 1."""
    path = str(tmp_path / "t")
    engine = Engine(path)
    write(engine, 0, range(10), "a", 0, 10)
    write(engine, 1, range(10, 20), "a", 10, 20)
    engine.writer.stop()
    return path


def last_extra(path):
    snapshot = Snapshot.load(HudiTable.open(path))
    return snapshot.commits.read(snapshot.timeline.completed_writes[-1]).extra


def test_commits_tell_where_the_sources_stood_in_our_words_and_in_those_of_hudi(path):
    extra = last_extra(path)
    assert json.loads(extra[OUR_KEY])["default_single_writer"]["positions"] == [{"t": {"0": 20}}]
    assert extra[STREAMER_KEY] == "t,0:20"
    assert starting_offsets(path) == '{"t":{"0":20}}'


def test_a_new_query_goes_on_where_the_table_ends_and_its_batches_are_committed_once(path):
    engine = Engine(path)
    write(engine, 0, range(20, 30), "b", 20, 30)
    assert write(engine, 0, range(20, 30), "b", 20, 30).skipped  # it was killed before Spark noted the batch
    write(engine, 1, range(30, 40), "b", 30, 40)
    engine.writer.stop()
    again = Engine(path)
    assert write(again, 1, range(30, 40), "b", 30, 40).skipped
    write(again, 0, range(40, 50), "c", 40, 50)
    assert key_set(read_table(path)) == sorted(f"k{n}" for n in range(50))
    (row,) = HudiTable.open(path).checkpoints().to_pylist()
    assert (row["batch_id"], row["query_id"], row["epoch"]) == (0, "c", 2)


@pytest.mark.parametrize(("end", "told"), [(26, "offsets 20 to 25 would be lost"), (15, "written a second time")])
def test_a_batch_that_spark_planned_anew_with_other_rows_is_not_skipped(path, end, told):
    with pytest.raises(BatchOrderError, match=told):
        write(Engine(path), 1, range(10, end), "a", 10, end)
    assert len(read_table(path)) == 20
    table = HudiTable.open(path)  # the way out that the error names
    table.roll_back(Snapshot.load(table).timeline.completed_writes[-1].time, force=True)
    write(Engine(path), 1, range(10, end), "a", 10, end)
    assert key_set(read_table(path)) == sorted(f"k{n}" for n in range(end))


@pytest.mark.parametrize(("start", "end"), [(10, 20), (None, None), (10, None)])
def test_a_batch_that_ends_where_it_ended_or_does_not_tell_is_skipped(path, start, end):
    assert write(Engine(path), 1, range(10, 20), "a", start, end).skipped


def test_a_batch_after_one_that_was_skipped_with_other_rows_is_refused(path):
    with pytest.raises(BatchOrderError, match="offsets 20 to 25 would be lost"):
        write(Engine(path), 2, range(26, 30), "a", 26, 30)
    assert write(Engine(path), 2, range(20, 30), "a", None, 30).instant_time


@pytest.mark.parametrize(("start", "told"), [(10, "written a second time"), (25, "would be lost")])
def test_a_new_query_that_begins_elsewhere_is_refused_before_anything_is_requested(path, start, told):
    before = Snapshot.load(HudiTable.open(path)).timeline.instants
    with pytest.raises(BatchOrderError, match=told):
        write(Engine(path), 0, range(20, 30), "b", start, 30)
    assert Snapshot.load(HudiTable.open(path)).timeline.instants == before
    assert len(read_table(path)) == 20


def test_the_query_that_was_replaced_does_not_come_back(path):
    engine = Engine(path)
    write(engine, 0, range(20, 30), "b", 20, 30)
    with pytest.raises(BatchOrderError, match="would be written a second time"):
        write(engine, 2, range(20, 30), "a", 20, 30)
    with pytest.raises(BatchOrderError, match="cannot be compared"):
        engine.write(2, rows(range(20, 30)))  # of the query `q`, which does not tell its checkpoint
    assert len(read_table(path)) == 30


def test_a_batch_that_was_undone_comes_again_from_the_offsets_before_it(path):
    table = HudiTable.open(path)
    table.roll_back(Snapshot.load(table).timeline.completed_writes[-1].time, force=True)
    assert starting_offsets(path) == '{"t":{"0":10}}'
    write(Engine(path), 0, range(10, 20), "b", 10, 20)
    assert key_set(read_table(path)) == sorted(f"k{n}" for n in range(20))


def test_positions_outlive_archival_and_commits_of_other_sinks(tmp_path):
    path = str(tmp_path / "t")
    first = Engine(path)
    write(first, 0, range(10), "a", 0, 10)
    first.writer.stop()
    other = Engine(path, {"hoodie.datasource.write.streaming.checkpoint.identifier": "other"})
    for number in range(12):
        other.write(number, rows(range(100 + number, 101 + number)))
    other.writer.stop()
    table = HudiTable.open(path)
    settings = CleanSettings(commits_retained=1, grace_ms=0)
    table.clean(settings)
    table.archive(ArchiveSettings(min_commits=3, max_commits=4), settings)
    assert len(Snapshot.load(table).timeline.completed_writes) < 8
    engine = Engine(path)
    with pytest.raises(BatchOrderError, match="written a second time"):
        write(engine, 0, range(10), "b", 0, 10)
    write(engine, 0, range(10, 20), "b", 10, 20)
    assert starting_offsets(path) == '{"t":{"0":20}}'
    assert STREAMER_KEY in last_extra(path)


def test_another_sink_has_no_place_although_the_commits_tell_hudis_streamer_one(path):
    assert STREAMER_KEY in last_extra(path)
    assert starting_offsets(path, sink="second", otherwise="earliest") == "earliest"
    with pytest.raises(InvalidConfigError, match="these sinks tell theirs: 'default_single_writer'"):
        starting_offsets(path, sink="second")


def test_the_first_batch_of_a_new_query_is_committed_without_rows_so_that_its_second_one_is_known(path):
    engine = Engine(path)
    assert write(engine, 0, [], "b", 20, 30).instant_time is not None
    write(engine, 1, [], "b", 30, 40)
    assert not write(engine, 2, range(20, 25), "b", 40, 50).skipped
    engine.writer.stop()
    assert starting_offsets(path) == '{"t":{"0":50}}'
    assert key_set(read_table(path)) == sorted(f"k{n}" for n in range(25))


def test_a_table_of_hudis_streamer_is_continued(tmp_path):
    path = str(tmp_path / "t")
    engine = Engine(path)
    engine.write(0, rows(range(3)))
    engine.writer.stop()
    with pytest.raises(InvalidConfigError, match=r"hudistream\.checkpoint\.location"):
        starting_offsets(path)
    assert starting_offsets(path, otherwise="earliest") == "earliest"
    assert starting_offsets(str(tmp_path / "none"), otherwise="latest") == "latest"
    timeline = tmp_path / "t" / ".hoodie"
    (commit,) = timeline.glob("*.commit")
    document = json.loads(commit.read_text())
    document["extraMetadata"] = {STREAMER_KEY: "t,0:8,1:9", "schema": document["extraMetadata"]["schema"]}
    commit.write_text(json.dumps(document))
    assert starting_offsets(path) == '{"t":{"0":8,"1":9}}'
    assert HudiTable.open(path).checkpoints().column("sink").to_pylist() == ["HoodieStreamer"]


def test_where_the_checkpoint_cannot_be_read_nothing_is_recorded_and_the_batch_is_written(tmp_path):
    path = str(tmp_path / "t")
    write(Engine(path), 0, range(5), "a", None, None)
    assert "positions" not in last_extra(path)[OUR_KEY]
    assert STREAMER_KEY not in last_extra(path)


def test_the_command_shows_how_far_each_stream_is(path, capsys):
    assert main(["checkpoint", path]) == 0
    told = capsys.readouterr().out
    assert "batch 1 of query a" in told
    assert '{"t":{"0":20}}' in told
    assert main(["checkpoint", path, "--format", "json"]) == 0
    (sink,) = json.loads(capsys.readouterr().out)["sinks"]
    assert sink["positions"] == ['{"t":{"0":20}}']


def test_a_table_without_streams_says_so(tmp_path, capsys):
    from hudistream import write_hudi

    write_hudi(tmp_path / "t", pa.table({"id": ["a"]}), key="id")
    assert main(["checkpoint", str(tmp_path / "t")]) == 0
    assert "no stream has written this table" in capsys.readouterr().out

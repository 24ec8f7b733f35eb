"""Bad rows that were corrected go back in, each once, whatever dies in between."""

import json

import pyarrow as pa
import pytest

from hudistream import ArrowSink, read_bad_rows, read_table
from streaming.batch import commit_batch, replay
from table.cli.main import main
from table.errors import (
    CommitOutcomeUnknownError,
    CorruptFileError,
    InvalidConfigError,
    InvalidRecordError,
)
from table.hudi_table import HudiTable
from table.quarantine.place import FILE, REPLAYS, ROW

ASIDE = {"hudistream.bad.rows": "quarantine"}


class Died(BaseException):
    """A process that is killed."""


def some(*ids):
    return pa.table({"id": pa.array(ids, pa.string()), "ts": pa.array(range(len(ids)), pa.int64())})


def sink_of(path, options=ASIDE, **more):
    return ArrowSink(path, options, key="id", order_by="ts", operation="upsert", **more)


def corrected(rows, prefix="c"):
    at = rows.column_names.index("id")
    return rows.set_column(at, "id", pa.array([f"{prefix}{number}" for number in range(len(rows))]))


def ids_of(path):
    return sorted(read_table(path).column("id").to_pylist())


@pytest.fixture
def path(tmp_path):
    """A table with two rows, and three rows of two batches put aside."""
    path = str(tmp_path / "t")
    with sink_of(path) as sink:
        sink.write(some("a", None), batch_id=0)
        sink.write(some("b", None, ""), batch_id=1)
    return path


def test_bad_rows_tell_their_place_and_their_reason(path):
    found = read_bad_rows(path)
    assert found.column("_hudistream_batch_id").to_pylist() == [0, 1, 1]
    assert set(found.column("_hudistream_reason").to_pylist()) == {"the record key is null or empty"}
    assert found.column("ts").to_pylist() == [1, 1, 2]
    assert len({*zip(found.column(FILE).to_pylist(), found.column(ROW).to_pylist(), strict=True)}) == 3


def test_a_table_without_bad_rows_has_none(tmp_path):
    path = str(tmp_path / "t")
    with sink_of(path) as sink:
        sink.write(some("a"))
    assert len(read_bad_rows(path)) == 0


def test_each_row_goes_back_in_once(path):
    rows = read_bad_rows(path)
    with sink_of(path) as sink:
        first = sink.replay(corrected(rows.slice(0, 1)))
        assert (first.rows, first.skipped) == (1, False)
        assert len(read_bad_rows(path)) == 2
        again = sink.replay(corrected(rows, "d"))  # the first of them is in the table already
        assert again.rows == 2
        assert sink.replay(corrected(rows, "e")).skipped
    assert ids_of(path) == ["a", "b", "c0", "d1", "d2"]
    assert read_bad_rows(path, replayed=True).column("_hudistream_replayed").to_pylist() == [True] * 3
    assert len(read_bad_rows(path)) == 0


def test_a_process_that_dies_behind_its_commit_has_replayed(path, monkeypatch):
    rows = corrected(read_bad_rows(path))

    def dies(*_):
        raise Died

    with monkeypatch.context() as patched:
        patched.setattr(replay, "mark_replay", dies)
        with pytest.raises(Died), sink_of(path) as sink:
            sink.replay(rows)
    assert ids_of(path) == ["a", "b", "c0", "c1", "c2"]
    assert len(read_bad_rows(path)) == 0
    with sink_of(path) as sink:
        assert sink.replay(rows).skipped
        # other batches and replays do not make it forget
        sink.write(some("z", None), batch_id=2)
        sink.replay(corrected(read_bad_rows(path), "y"))
        assert sink.replay(rows).skipped
    assert ids_of(path) == ["a", "b", "c0", "c1", "c2", "y0", "z"]


def test_a_process_that_dies_before_its_commit_has_not(path, monkeypatch):
    rows = corrected(read_bad_rows(path))

    def dies(*_, **__):
        raise Died

    with monkeypatch.context() as patched:
        patched.setattr(commit_batch, "complete_commit", dies)
        with pytest.raises(Died), sink_of(path) as sink:
            sink.replay(rows)
    assert len(read_bad_rows(path)) == 3
    with sink_of(path) as sink:
        assert sink.replay(rows).rows == 3
    assert len(read_bad_rows(path)) == 0


def test_an_outcome_that_is_not_known_is_settled_by_the_commits(path, monkeypatch):
    rows, complete = corrected(read_bad_rows(path)), commit_batch.complete_commit

    def lost(*arguments):
        complete(*arguments)
        raise CommitOutcomeUnknownError("no answer")

    with monkeypatch.context() as patched:
        patched.setattr(commit_batch, "complete_commit", lost)
        with pytest.raises(CommitOutcomeUnknownError), sink_of(path) as sink:
            sink.replay(rows)
    with sink_of(path) as sink:
        assert sink.replay(rows).skipped
    assert ids_of(path) == ["a", "b", "c0", "c1", "c2"]


def test_a_replay_that_fails_leaves_no_record(path):
    rows = read_bad_rows(path)  # not corrected
    with sink_of(path, {}) as sink, pytest.raises(InvalidRecordError, match="the record key is null or empty"):
        sink.replay(rows)
    assert len(read_bad_rows(path)) == 3
    with sink_of(path) as sink:
        assert sink.replay(rows).bad_rows == 3  # put aside anew
    assert len(read_bad_rows(path)) == 3


def test_a_replay_does_not_touch_the_numbers_of_the_stream(path):
    with sink_of(path) as sink:
        sink.replay(corrected(read_bad_rows(path)))
        assert sink.write(some("b"), batch_id=1).skipped
        assert not sink.write(some("x"), batch_id=2).skipped


@pytest.mark.parametrize("shared", [False, True])
def test_a_sink_that_holds_the_table_replays_between_its_batches(tmp_path, shared):
    path = str(tmp_path / "t")
    more = {"hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL"} if shared else {}
    named = {"hoodie.datasource.write.streaming.checkpoint.identifier": "s"}
    with sink_of(path, {**ASIDE, **named, **more}) as sink:
        sink.write(some("a", None), batch_id=0)
        sink.replay(corrected(read_bad_rows(path)))
        sink.write(some("b"), batch_id=1)
    assert ids_of(path) == ["a", "b", "c0"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda rows: rows.drop_columns([ROW]), "no column _hudistream_row: replay takes"),
        (lambda rows: pa.concat_tables([rows, rows]), "is there twice"),
        (
            lambda rows: rows.set_column(rows.column_names.index(ROW), ROW, pa.array([None, 0, 1], pa.int64())),
            "null in _hudistream_file or _hudistream_row",
        ),
    ],
)
def test_rows_that_do_not_tell_their_place_are_refused(path, change, message):
    with sink_of(path) as sink, pytest.raises(InvalidConfigError, match=message):
        sink.replay(change(corrected(read_bad_rows(path))))
    assert ids_of(path) == ["a", "b"]


def test_a_damaged_record_is_an_error_that_names_it(path):
    with sink_of(path) as sink:
        sink.replay(corrected(read_bad_rows(path)))
    table = HudiTable.open(f"{path}")
    folder = table.storage.base_uri + "_bad_rows"
    from table.storage.local import LocalStorage

    storage = LocalStorage(folder)
    [of_table] = storage.list_dir(REPLAYS)
    for entry in storage.list_dir(f"{REPLAYS}/{of_table.name}"):
        if entry.name.endswith(".json"):
            storage.put(f"{REPLAYS}/{of_table.name}/{entry.name}", b"{}")
    with pytest.raises(CorruptFileError, match="is no record of a replay"):
        read_bad_rows(path)


def test_the_command_shows_reasons_and_examples(path, capsys):
    assert main(["bad-rows", path]) == 0
    text = capsys.readouterr().out
    assert "3 rows: the record key is null or empty" in text
    assert "ts=2" in text
    assert main(["bad-rows", path, "--limit", "1", "--format", "json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["rows"], told["reasons"][0]["rows"], len(told["reasons"][0]["shown"])) == (3, 3, 1)
    with sink_of(path) as sink:
        sink.replay(corrected(read_bad_rows(path)))
    assert main(["bad-rows", path]) == 0
    assert capsys.readouterr().out.strip().startswith("no bad rows; --all lists")
    assert main(["bad-rows", path, "--all"]) == 0
    assert "3 rows" in capsys.readouterr().out

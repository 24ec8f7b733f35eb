"""What a record index says is what the snapshot of its reader has, or it is not used."""

import random
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from engine import Engine, form_of, rows
from record_index import assert_record_index_is_right
from tiers import quick

from hudistream import HudiTable as UserTable
from streaming.batch import record_index as sight
from table import UnsupportedTableError, WriteConflictError, read_table
from table.config.metadata_indexes import RECORD_INDEX
from table.config.table_config import load_table_config
from table.hudi_table import HudiTable
from table.metadata_table import read_record_index
from table.metadata_table.keep import drop_indexes
from table.metadata_table.location_codec import Location
from table.metadata_table.metadata_table import METADATA_FOLDER
from table.metadata_table.read_record_index import RecordIndex, see_record_index
from table.options.groups import CleanSettings
from table.services.clean.clean import clean
from table.services.metadata_table_service import keep_metadata_table_small
from table.storage.local import LocalStorage

BY_INDEX = {
    "hoodie.index.type": "RECORD_INDEX",
    "hoodie.metadata.enable": "true",
    "hoodie.metadata.record.index.enable": "true",
    "hoodie.parquet.small.file.limit": "0",
}


def sink(path, version=8, **more):
    return Engine(path, {**form_of(version, "COPY_ON_WRITE"), **BY_INDEX, **more})


def filled(path, version=8, **more):
    engine = sink(path, version, **more)
    for number in range(4):
        engine.write(number, rows(range(number * 5, number * 5 + 9), ts=number))
    engine.writer.stop()
    return engine


def values(path):
    table = read_table(path, ["id", "p", "ts"])
    found = sorted(tuple(row.values()) for row in table.to_pylist())
    assert len({one[0] for one in found}) == len(found)
    return found


@pytest.mark.parametrize("version", quick(1, [9, 6, 8]))
@pytest.mark.parametrize("moves", ["true", "false"])
def test_batches_by_the_index_leave_what_a_model_says(tmp_path, version, moves):
    """Upserts, late records, deletes, inserts that drop known keys, keys that move; cleans and compactions between."""
    path, draw, model = str(tmp_path / "t"), random.Random(version), {}
    options = {"hoodie.record.index.update.partition.path": moves}
    for number in range(14):
        numbers = draw.sample(range(40), 12)
        shift = draw.choice((0, 1))
        batch = rows(numbers, lambda n, shift=shift: f"p{(n + shift) % 3}", ts=draw.choice((number, number - 3)))
        operation = draw.choice(("upsert", "upsert", "upsert", "delete", "insert")) if number else "upsert"
        told = {**options, "hoodie.datasource.write.operation": operation}
        if operation == "insert":
            told["hoodie.datasource.write.insert.drop.duplicates"] = "true"
        elif operation == "delete":  # in its place: a delete in another partition path deletes the key, too
            batch = rows(numbers, ts=number)
        engine = sink(path, version, **told)
        summary = engine.write(number, batch)
        engine.writer.stop()
        assert summary.lookup.indexed == 12 or summary.instant_time is None
        for row in batch.to_pylist():
            known = model.get(row["id"])
            if operation == "delete":
                model.pop(row["id"], None)
            elif known is None or (operation == "upsert" and row["ts"] >= known[2]):
                model[row["id"]] = (row["id"], row["p"], row["ts"])
        assert [one[::2] for one in values(path)] == sorted(one[::2] for one in model.values())
        if moves == "true":
            assert values(path) == sorted(model.values())
        assert_record_index_is_right(path)
        if number % 5 == 4:
            clean(HudiTable.open(path), CleanSettings(commits_retained=1, grace_ms=0))
            keep_metadata_table_small(HudiTable.open(path), delta_commits=3)


def test_a_batch_reads_only_the_files_that_hold_its_keys(tmp_path):
    path = str(tmp_path / "t")
    engine = filled(path)
    assert len(HudiTable.open(path).load_timeline().completed_writes) == 4
    lookup = engine.write(4, rows([1, 100], ts=9)).lookup
    assert (lookup.keys, lookup.indexed, lookup.files, lookup.pruned_by_filter) == (2, 2, 1, 0)


def test_without_an_index_the_files_are_asked(tmp_path):
    path = str(tmp_path / "t")
    plain = {"hoodie.metadata.enable": "false", "hoodie.metadata.record.index.enable": "false"}
    engine = filled(path, **plain)
    lookup = engine.write(4, rows([1, 100], ts=9)).lookup
    assert (lookup.indexed, lookup.files > 1) == (0, True)


def test_an_index_that_is_dropped_under_a_batch_loses_no_key(tmp_path, monkeypatch):
    """The plan names it, and the task does not find it any more."""
    path = str(tmp_path / "t")
    engine, real = filled(path), RecordIndex.find

    def dropped_first(self, keys, memory):
        table = HudiTable.open(path)
        drop_indexes(table.storage, table.config, frozenset({RECORD_INDEX}), "a test")
        return real(self, keys, memory)

    with monkeypatch.context() as patch:
        patch.setattr(RecordIndex, "find", dropped_first)
        with pytest.raises(WriteConflictError, match=r"hoodie\.properties changed"):
            engine.write(4, rows(range(30), ts=9))
    summary = engine.write(4, rows(range(30), ts=9))
    assert (summary.lookup.indexed, len(values(path))) == (0, 30)


@pytest.mark.parametrize("moment", ["before the files are seen", "behind the first look at the files"])
def test_an_index_that_is_being_dropped_is_not_used(tmp_path, monkeypatch, logs, moment):
    """The property goes first: some files may still lie there."""
    path = str(tmp_path / "t")
    engine = filled(path)
    table = HudiTable.open(path)
    real = sight.see_record_index

    def see(storage, config, known):
        if moment.startswith("before"):
            drop_indexes(table.storage, table.config, frozenset({RECORD_INDEX}), "a test")
            return real(storage, config, known)
        with monkeypatch.context() as patch:

            def dropped(storage):
                drop_indexes(table.storage, table.config, frozenset({RECORD_INDEX}), "a test")
                return load_table_config(storage)

            patch.setattr(read_record_index, "load_table_config", dropped)
            return real(storage, config, known)

    with monkeypatch.context() as patch:
        patch.setattr(sight, "see_record_index", see)
        with pytest.raises(WriteConflictError, match=r"hoodie\.properties changed"):
            engine.write(4, rows(range(30), ts=9))
    summary = engine.write(4, rows(range(30), ts=9))
    assert (summary.lookup.indexed, len(values(path))) == (0, 30)
    assert [one["event"] for one in logs if one["event"] == "record_index_not_used"]


def test_a_key_that_does_not_lie_where_the_index_says_is_looked_for_in_all_files(tmp_path, monkeypatch):
    path = str(tmp_path / "t")
    engine, real = filled(path), RecordIndex.find

    def mixed(self, *given):
        found = real(self, *given)
        return replace(found, locations=tuple(reversed(found.locations)))

    monkeypatch.setattr(RecordIndex, "find", mixed)
    summary = engine.write(4, rows(range(24), ts=9))
    assert (summary.lookup.indexed, len(values(path))) == (0, 24)


def test_a_write_between_index_and_timeline_means_that_files_are_asked(tmp_path, monkeypatch, logs):
    """The index lacks what another writer has committed since it was seen."""
    path = str(tmp_path / "t")
    shared = {"hoodie.write.concurrency.mode": "optimistic_concurrency_control"}
    engine, other = filled(path), sink(path, **shared)
    engine = sink(path, **shared)
    real = sight.see_record_index

    def overtaken(storage, config, known):
        seen = real(storage, config, known)
        monkeypatch.setattr(sight, "see_record_index", real)
        other.write(None, rows(range(100, 110), ts=5))
        return seen

    monkeypatch.setattr(sight, "see_record_index", overtaken)
    summary = engine.write(4, rows(range(100, 112), ts=9))
    assert summary.lookup.indexed == 0
    assert [row for row in values(path) if row[0] >= "k100" and len(row[0]) == 4] == [
        (f"k{number}", f"p{number % 3}", 9) for number in range(100, 112)
    ]
    assert any("does not know the write" in one.get("why", "") for one in logs)


def test_what_the_table_has_not_completed_is_not_in_the_index_of_a_snapshot(tmp_path):
    """A writer tells the index its keys before its commit is visible."""
    path = str(tmp_path / "t")
    engine = filled(path)
    before = HudiTable.open(path).load_timeline()
    engine.write(4, rows(range(100, 110), ts=5))
    engine.writer.stop()
    table = HudiTable.open(path)
    seen = see_record_index(table.storage, table.config, table.known_lists)
    keys = pa.array([f"k{number}" for number in (0, *range(100, 110))])
    assert seen.as_of(table.load_timeline()).find(keys).unknown.tolist() == []
    assert seen.as_of(before).find(keys).unknown.tolist() == list(range(1, 11))


def test_an_index_that_a_writer_did_not_keep_is_refused(tmp_path):
    path = str(tmp_path / "t")
    filled(path)
    table = HudiTable.open(path)
    deltas = sorted((tmp_path / "t" / METADATA_FOLDER / ".hoodie").rglob("*.deltacommit"))
    deltas[-1].unlink()
    seen = see_record_index(table.storage, table.config, table.known_lists)
    with pytest.raises(UnsupportedTableError, match="does not know the write"):
        seen.as_of(table.load_timeline())


@pytest.mark.parametrize("version", [6, 8, 9])
def test_an_index_that_lost_its_last_file_groups_doubles_no_key(tmp_path, version):
    """The hash of a key finds its file group by their number: of half an index, each remaining key is where it was."""
    path = str(tmp_path / "t")
    filled(path, version)
    before = {key for key, _, _ in values(path)}
    for file in Path(path, METADATA_FOLDER, RECORD_INDEX).iterdir():
        if "record-index-000" in file.name and int(file.name.split("record-index-")[1][:4]) >= 5:
            file.unlink()
    report = UserTable.open(path).check()
    assert any("has 5 file groups, and had 10" in finding.text for finding in report.findings)
    engine = sink(path, version)
    engine.write(4, rows(range(26), ts=9))
    engine.writer.stop()
    assert {key for key, _, _ in values(path)} == before | {f"k{number}" for number in range(26)}
    assert UserTable.open(path).check().is_sound


def test_the_files_are_asked_if_the_index_cannot_be_read(tmp_path):
    path = str(tmp_path / "t")
    engine = filled(path)
    for file in (tmp_path / "t" / METADATA_FOLDER / RECORD_INDEX).iterdir():
        file.write_bytes(file.read_bytes()[:-3])
    summary = engine.write(4, rows(range(24), ts=9))
    assert (summary.lookup.indexed, len(values(path))) == (0, 24)


@pytest.fixture
def many_files(tmp_path):
    path = str(tmp_path / "t")
    engine = sink(path)
    for number in range(3):
        engine.write(number, rows(range(60), lambda key: f"p{key % 40}", ts=number))
    engine.writer.stop()
    return path


def opened_by(monkeypatch):
    opened, real = [], LocalStorage.open_input
    monkeypatch.setattr(
        LocalStorage, "open_input", lambda self, path, size=None: opened.append(path) or real(self, path, size)
    )
    return opened


def test_a_lookup_opens_only_the_files_that_the_index_names(many_files, monkeypatch):
    table = UserTable.open(many_files)
    opened = opened_by(monkeypatch)
    found = table.lookup(["k1", "k41", "k59", "k999"], ["id", "ts"])
    assert sorted(found.column("id").to_pylist()) == ["k1", "k41", "k59"]
    assert set(found.column("ts").to_pylist()) == {2}
    assert {path.partition("/")[0] for path in opened if path.endswith(".parquet")} == {"p1", "p19"}


@pytest.mark.parametrize("why", ["it lacks the newest write", "it names a file group that is gone"])
def test_a_lookup_asks_the_files_where_the_index_is_not_of_its_snapshot(many_files, monkeypatch, why):
    real = RecordIndex.find
    if why.startswith("it lacks"):
        deltas = sorted(Path(many_files, METADATA_FOLDER, ".hoodie").rglob("*.deltacommit"))
        deltas[-1].unlink()
    else:
        gone = Location("p1", "gone-0", 0)
        monkeypatch.setattr(RecordIndex, "find", lambda *given: replace(real(*given), locations=(gone,) * 9))
    found = UserTable.open(many_files).lookup(["k1", "k41", "k59"], ["id", "ts"])
    assert sorted(map(tuple, (row.values() for row in found.to_pylist()))) == [("k1", 2), ("k41", 2), ("k59", 2)]


def test_a_lookup_in_an_earlier_snapshot_asks_the_files(many_files, monkeypatch):
    table = UserTable.open(many_files)
    first = min(HudiTable.open(many_files).load_timeline().committed_times)
    monkeypatch.setattr(RecordIndex, "find", lambda *_: pytest.fail("the index was asked"))
    assert table.lookup(["k1"], ["ts"], as_of=first).to_pylist() == [{"ts": 0}]

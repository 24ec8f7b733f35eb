"""A record index names the file group of each key, behind every action, or is gone."""

import contextlib
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from engine import Engine, form_of, leave_a_dead_batch, rows
from record_index import assert_record_index_is_right, locations
from tiers import quick

from hudistream import HudiTable as UserTable
from hudistream import erase
from streaming.batch import micro_batch
from table import UnsupportedTableError, read_table
from table.config.metadata_indexes import FILES, RECORD_INDEX
from table.config.table_config import update_properties
from table.errors import HudiError
from table.files.key_changes import KeyChanges
from table.hudi_table import HudiTable
from table.metadata_table import compact as compact_module
from table.metadata_table import keep
from table.metadata_table import record_index as record_index_module
from table.metadata_table.compact import Compaction
from table.metadata_table.drop import drop_present_metadata_table
from table.metadata_table.index_definitions import DEFINITIONS_FILE
from table.metadata_table.index_keys import group_of_key
from table.metadata_table.metadata_table import MetadataTable, slices_in
from table.metadata_table.read_record_index import RecordIndex
from table.options.groups import CleanSettings
from table.services.check import record_index as check_module
from table.services.check.check import check
from table.services.check.finding import Kind
from table.services.clean.clean import clean
from table.services.metadata_table_service import keep_metadata_table_small
from table.storage.local import LocalStorage
from table.transaction import commit
from table.view.file_group import committed_instants

INDEXED = {"hoodie.metadata.enable": "true", "hoodie.metadata.record.index.enable": "true"}
GLOBAL = {"hoodie.index.type": "GLOBAL_BLOOM"}
GROUPS = 10  # of an index


def sink(path, version=8, **more):
    return Engine(path, {**form_of(version, "COPY_ON_WRITE"), **INDEXED, **GLOBAL, **more})


def indexes(path):
    return HudiTable.open(path).config.metadata_indexes


def indexed_table(path, version=8, **more):
    engine = sink(path, version, **more)
    for number in range(2):  # the second batch makes it
        engine.write(number, rows(range(number, number + 9), ts=number))
    engine.writer.stop()
    assert indexes(path) == {FILES, RECORD_INDEX}
    assert_record_index_is_right(path)
    return engine


@pytest.mark.parametrize("version", quick(1, [9, 6, 8]))
def test_it_follows_batches_deletes_cleans_and_compactions(tmp_path, version):
    path = str(tmp_path / "t")
    engine = indexed_table(path, version)
    for number in range(2, 12):
        engine.write(number, rows(range(3 * number % 12, 3 * number % 12 + 9), ts=number))
        assert_record_index_is_right(path)
        engine.writer.stop()
        if number % 3 == 0:
            gone = rows(range(number, number + 3), ts=number)
            sink(path, version, **{"hoodie.datasource.write.operation": "delete"}).write(None, gone)
            assert_record_index_is_right(path)
        if number % 4 == 3:
            assert clean(HudiTable.open(path), CleanSettings(commits_retained=1, grace_ms=0))
            keep_metadata_table_small(HudiTable.open(path), delta_commits=4)
            assert_record_index_is_right(path)
    assert check(HudiTable.open(path)).is_sound
    own = MetadataTable.open(HudiTable.open(path).storage)
    compacted = [entry for entry in own.list_files(RECORD_INDEX) if entry.name.endswith(".hfile")]
    assert len({entry.name.split("_")[2] for entry in compacted}) >= 2


def test_a_key_that_moves_to_another_partition_path_keeps_one_record(tmp_path):
    path = str(tmp_path / "t")
    engine = indexed_table(path)
    before = locations(path)
    engine.write(2, rows([1, 2, 3, 40], partition=lambda n: "p9", ts=5))
    assert_record_index_is_right(path)
    after = locations(path)
    assert {key for key in after if after[key] != before.get(key)} == {"k1", "k2", "k3", "k40"}
    assert {after[key][0] for key in ("k1", "k2", "k3", "k40")} == {"p9"}
    # back again, and one of them deleted in the same batch
    engine.write(3, rows([1, 2], ts=6))
    assert_record_index_is_right(path)


def test_keys_of_any_text(tmp_path):
    path = str(tmp_path / "t")
    engine = indexed_table(path)
    odd = ["ключ", "日本", "👍 up", "", "a,b:c", "\x7f\x00", "z" * 500]
    table = rows(range(100, 100 + len(odd)), ts=3).set_column(0, "id", pa.array([f"x{text}" for text in odd]))
    engine.write(2, table)
    assert_record_index_is_right(path)
    assert {f"x{text}" for text in odd} <= locations(path).keys()


@pytest.mark.parametrize("operation", ["insert_overwrite", "insert_overwrite_table"])
def test_where_the_keys_of_replaced_files_are_not_known_it_is_dropped(tmp_path, operation, logs):
    path = str(tmp_path / "t")
    engine = indexed_table(path)
    engine.writer.stop()
    sink(path, **{"hoodie.datasource.write.operation": operation}).write(None, rows([1, 4], ts=9))
    assert indexes(path) == {FILES}
    [told] = [entry for entry in logs if entry["event"] == "metadata_indexes_dropped"]
    assert (told["log_level"], told["indexes"]) == ("warning", ["record_index"])
    assert "not known" in told["why"]
    assert check(HudiTable.open(path)).is_sound


def test_too_many_keys_drop_it(tmp_path, monkeypatch, logs):
    path = str(tmp_path / "t")
    engine = indexed_table(path)
    monkeypatch.setattr(record_index_module, "MOST_KEYS", 5)
    engine.write(2, rows(range(100, 106)))
    assert indexes(path) == {FILES}
    assert "6 keys, which are more than 5" in next(e["why"] for e in logs if e["event"] == "metadata_indexes_dropped")
    assert len(read_table(path)) == 16


def test_a_table_with_too_many_rows_gets_none(tmp_path, monkeypatch, logs):
    path = str(tmp_path / "t")
    monkeypatch.setattr("table.metadata_table.make_record_index.MOST_KEYS", 8)
    for number, more in enumerate([{"hoodie.metadata.enable": "false"}, {}]):
        engine = sink(path, **more)
        engine.write(number, rows(range(9), ts=number))
        engine.writer.stop()
    assert indexes(path) == {FILES}
    assert "more than 8 rows" in next(entry["why"] for entry in logs if entry["event"] == "metadata_indexes_not_made")


def test_an_index_of_partition_paths_is_dropped(tmp_path):
    path = str(tmp_path / "t")
    indexed_table(path, 9)
    storage = LocalStorage(path)
    storage.put(DEFINITIONS_FILE, storage.read(DEFINITIONS_FILE).replace(b'"false"', b'"true"'))
    sink(path, 9).write(2, rows([50]))
    assert indexes(path) == {FILES}


def test_a_large_index_is_written_anew_later_and_then_with_all_its_log_files(tmp_path, monkeypatch):
    """Hudi reads no block that is older than a compaction and left out by it, once its commit is archived."""
    path = str(tmp_path / "t")
    engine = indexed_table(path)
    engine.write(2, rows(range(200), ts=2))
    assert keep_metadata_table_small(HudiTable.open(path), delta_commits=1) is Compaction.DONE
    assert_record_index_is_right(path)
    monkeypatch.setattr(compact_module, "_GROWTH", 0)
    for number in range(4):
        engine.write(3 + number, rows([100_000 + number], ts=3))
        assert keep_metadata_table_small(HudiTable.open(path), delta_commits=1) is Compaction.NOT_DUE
    engine.write(7, rows([100_005], ts=3))
    assert keep_metadata_table_small(HudiTable.open(path), delta_commits=1) is Compaction.DONE
    own = MetadataTable.open(LocalStorage(path))
    committed = committed_instants(own.load_timeline(), {})
    slices = slices_in(RECORD_INDEX, own.list_files(RECORD_INDEX), committed)
    last = max(HudiTable.open(path).load_timeline().committed_times)
    assert {log.base_instant_time for one in slices for log in one.log_files} == {last}  # which stays on top
    assert_record_index_is_right(path)


def test_a_table_without_keys_is_refused_or_loses_it_by_its_option(tmp_path):
    path = str(tmp_path / "t")
    options = {**form_of(8, "COPY_ON_WRITE"), "hoodie.metadata.enable": "true", "hoodie.populate.meta.fields": "false"}
    for number in range(2):
        engine = Engine(path, options)
        engine.write(number, rows(range(9), ts=number))
        engine.writer.stop()
    update_properties(LocalStorage(path), {"hoodie.table.metadata.partitions": "files,record_index"})
    with pytest.raises(UnsupportedTableError, match="of these, record_index cannot be maintained"):
        Engine(path, options).write(2, rows([1], ts=2))
    Engine(path, {**options, "hoodie.metadata.global.record.level.index.enable": "false"}).write(2, rows([1], ts=2))
    assert indexes(path) == {FILES}


def test_who_ends_the_commit_of_a_dead_process_drops_it(tmp_path, monkeypatch):
    path = str(tmp_path / "t")
    engine = indexed_table(path)

    def dies(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(commit, "keep_lists", dies)
        with pytest.raises(KeyboardInterrupt):
            engine.write(2, rows([70], ts=3))
        engine.writer.stop()
    sink(path).write(3, rows([71], ts=4))
    assert indexes(path) == {FILES}
    assert {"k70", "k71"} <= set(read_table(path).column("id").to_pylist())
    assert check(HudiTable.open(path)).is_sound


def test_what_a_dead_batch_wrote_is_not_in_it(tmp_path):
    path = str(tmp_path / "t")
    engine = indexed_table(path)
    engine.writer.stop()
    leave_a_dead_batch(sink(path), 2, rows([70], ts=3))
    sink(path).write(3, rows([71], ts=4))
    if RECORD_INDEX in indexes(path):
        assert_record_index_is_right(path)
    assert "k70" not in read_table(path).column("id").to_pylist()


def test_check_finds_keys_that_the_index_lacks_or_has_elsewhere(tmp_path, monkeypatch):
    path = str(tmp_path / "t")
    engine = indexed_table(path)
    real = keep.new_locations

    def forgets(changes, *given):
        """Of the new keys one is left out, and one is put elsewhere."""
        kept = {group: KeyChanges(tuple(keys.filter(pc.not_equal(keys, "k50")) for keys in one.added))
                for group, one in changes.items()}  # fmt: skip
        return real({**kept, ("p0", "elsewhere-0"): KeyChanges((pa.array(["k51"]),))}, *given)

    monkeypatch.setattr(keep, "new_locations", forgets)
    engine.write(2, rows([50, 51]))
    engine.writer.stop()
    report = check(HudiTable.open(path), sample=None)
    [told] = [finding for finding in report.findings if finding.kind is Kind.METADATA_TABLE]
    assert "wrong about 2 keys" in told.text
    assert not report.is_sound
    assert check(HudiTable.open(path), sample=None, repair=True)
    assert not indexes(path)
    assert check(HudiTable.open(path), sample=None).is_sound


@pytest.mark.parametrize("gone", [False, True], ids=["a row that is not there", "a file group that is gone"])
@pytest.mark.parametrize("sample", [None, 20])
def test_check_finds_keys_that_no_row_has(tmp_path, monkeypatch, gone, sample):
    """Hudi's inserts that drop known keys would lose their rows, and its upserts fail where the file group is gone."""
    path = str(tmp_path / "t")
    engine = indexed_table(path)
    real = keep.new_locations
    # a sample looks at the first file group of the index
    left = next(key for key in (f"k{number}" for number in range(90, 999)) if group_of_key(key, GROUPS) == 0)

    def adds(changes, *given):
        """A key that the commit does not write."""
        group = ("p0", "elsewhere-0") if gone else next(iter(changes))
        kept = changes.get(group, KeyChanges(()))
        return real({**changes, group: KeyChanges((*kept.added, pa.array([left])), kept.deleted)}, *given)

    monkeypatch.setattr(keep, "new_locations", adds)
    engine.write(2, rows([50, 51]))
    engine.writer.stop()
    report = check(HudiTable.open(path), sample=sample)
    [told] = [finding for finding in report.findings if finding.kind is Kind.METADATA_TABLE]
    assert f"wrong about 1 keys, among them '{left}', which it has in " in told.text
    assert ("gone" if gone else "where no row has it") in told.text
    assert not report.is_sound


def test_check_of_a_sample_reads_one_file_group_of_the_index(tmp_path, monkeypatch):
    path = str(tmp_path / "t")
    indexed_table(path).writer.stop()
    asked, real = [], RecordIndex.locations
    monkeypatch.setattr(RecordIndex, "locations", lambda self, number: asked.append(number) or real(self, number))
    assert check(HudiTable.open(path)).is_sound
    assert asked == [0]
    monkeypatch.setattr(check_module, "_MOST_BYTES", 1)
    assert check(HudiTable.open(path)).is_sound
    assert asked == [0]
    assert check(HudiTable.open(path), sample=None).is_sound
    assert asked[1:] == list(range(GROUPS))


def test_a_clustering_keeps_it(tmp_path):
    path = str(tmp_path / "t")
    indexed_table(path, **{"hoodie.parquet.small.file.limit": "0"})
    before = sorted(read_table(path).column("id").to_pylist())
    assert UserTable.open(path).cluster("v")
    assert indexes(path) == {FILES, RECORD_INDEX}
    assert_record_index_is_right(path)
    assert sorted(read_table(path).column("id").to_pylist()) == before
    assert check(HudiTable.open(path)).is_sound


BY_PATH = {"hoodie.index.type": "BLOOM"}


def test_a_delete_drops_it_where_the_key_may_be_in_another_partition_path(tmp_path, logs):
    path = str(tmp_path / "t")
    engine = indexed_table(path, **BY_PATH)
    engine.write(2, rows([1], partition=lambda _: "p9", ts=5))
    assert locations(path)["k1"][0] == "p9"
    assert check(HudiTable.open(path), sample=None).is_sound  # it names one of the places
    engine.writer.stop()
    sink(path, **BY_PATH, **{"hoodie.datasource.write.operation": "delete"}).write(None, rows([1]))
    assert indexes(path) == {FILES}
    assert [entry["event"] for entry in logs].count("metadata_indexes_dropped") == 1


def test_of_two_rows_with_one_key_one_may_stay(tmp_path):
    path = str(tmp_path / "t")
    more = {"hoodie.datasource.write.operation": "insert"}
    for ts in (1, 10):
        engine = sink(path, **more)
        engine.write(None, rows([1, 2, 4], ts=ts, partition=lambda _: "p"))
        engine.writer.stop()
    removed = rows([1, 4], ts=5, partition=lambda _: "p")
    sink(path).write(None, removed.append_column("_hoodie_is_deleted", pa.array([True, False])))
    left = read_table(path, ["id", "ts"]).to_pylist()
    assert [row["ts"] for row in left if row["id"] == "k1"] == [10]
    assert "k1" in locations(path)
    assert check(HudiTable.open(path), sample=None).is_sound


def test_a_task_tells_keys_within_a_bound(tmp_path, monkeypatch, logs):
    path = str(tmp_path / "t")
    engine = indexed_table(path)
    monkeypatch.setattr("table.write.context._MOST_TOLD_BYTES", 12)
    engine.write(2, rows(range(100, 103)))
    assert RECORD_INDEX in indexes(path)
    engine.write(3, rows(range(200, 240)))
    assert indexes(path) == {FILES}
    assert "not known" in next(e["why"] for e in logs if e["event"] == "metadata_indexes_dropped")


@pytest.mark.parametrize("is_made", [True, False])
def test_a_key_that_no_hfile_holds_leaves_no_index(tmp_path, is_made):
    path = str(tmp_path / "t")
    long = rows([1], ts=9).set_column(0, "id", pa.array(["x" * 70_000]))
    if is_made:
        engine = indexed_table(path)
    else:
        engine = sink(path, **{"hoodie.metadata.enable": "false"})
        engine.write(0, long)
        engine.writer.stop()
        engine = sink(path)
    engine.write(2, long)
    assert indexes(path) == {FILES}
    assert "x" * 70_000 in read_table(path).column("id").to_pylist()


def test_what_others_write_before_it_is_made_is_in_it(tmp_path, monkeypatch):
    """The index is made from the timeline by which the lists are made, and not from an earlier one."""
    path = str(tmp_path / "t")
    sink(path, **{"hoodie.metadata.enable": "false"}).write(0, rows(range(9)))
    shutil.copytree(path, f"{path}2")
    other = sink(f"{path}2", **{"hoodie.metadata.enable": "false"})
    other.write(1, rows(range(100, 105), ts=2))
    other.writer.stop()
    real = micro_batch.with_lists

    def later(*given):
        for file in Path(f"{path}2").rglob("*"):
            here = Path(path, file.relative_to(f"{path}2"))
            if file.is_file() and ".hudistream" not in str(file) and not here.exists():
                here.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(file, here)
        return real(*given)

    monkeypatch.setattr(micro_batch, "with_lists", later)
    with contextlib.suppress(HudiError):
        sink(path).write(1, rows([200], ts=3))
    assert "k100" in read_table(path).column("id").to_pylist()
    if RECORD_INDEX in indexes(path):
        assert {"k100", "k104"} <= locations(path).keys()


def test_an_erasure_drops_it(tmp_path):
    path, key = str(tmp_path / "t"), "a key that is secret"
    engine = indexed_table(path)
    engine.write(2, rows([1], ts=5).set_column(0, "id", pa.array([key])))
    engine.writer.stop()
    assert erase(path, [key], options={"hudistream.clean.grace.ms": "0"}).is_final
    assert indexes(path) == {FILES}
    assert not [file for file in Path(path).rglob("*") if file.is_file() and key.encode() in file.read_bytes()]


def test_check_finds_an_index_that_is_damaged(tmp_path):
    path = str(tmp_path / "t")
    indexed_table(path).writer.stop()
    for file in Path(path, ".hoodie/metadata/record_index").glob(".record-index-*.log.1_0-*"):
        file.write_bytes(file.read_bytes()[:-9])
    [told] = [one for one in check(HudiTable.open(path), sample=None).findings if one.kind is Kind.METADATA_TABLE]
    assert "cannot be read" in told.text


@pytest.mark.parametrize("is_earlier", [False, True], ids=["of this version", "of an earlier version"])
@pytest.mark.parametrize("version", [6, 8])
def test_a_drop_that_paused_until_the_index_was_made_anew_doubles_no_key(tmp_path, version, is_earlier):
    """It deletes no file of the new index. One of an earlier version does, which is noticed."""
    path, by_index = str(tmp_path / "t"), {"hoodie.index.type": "RECORD_INDEX"}
    engine = indexed_table(path, version, **by_index)
    engine.write(2, rows(range(60), ts=2))

    class Paused(LocalStorage):
        is_over = False

        def delete_metafiles(self, folder, names):
            if not Paused.is_over:
                Paused.is_over = True
                drop_present_metadata_table(LocalStorage(path))
                engine.write(3, rows(range(60), ts=3))
                engine.write(4, rows(range(60, 90), ts=3))
                assert RECORD_INDEX in indexes(path)
            if is_earlier:
                self.delete_metafolder(f"{folder}/{RECORD_INDEX}")
                raise KeyboardInterrupt
            super().delete_metafiles(folder, names)

    with contextlib.suppress(KeyboardInterrupt):
        keep.drop_indexes(Paused(path), HudiTable.open(path).config, frozenset({RECORD_INDEX}), "a test")
    assert Paused.is_over
    assert RECORD_INDEX in indexes(path)
    for number in range(5, 8):
        summary = engine.write(number, rows(range(60 + 10 * number), ts=number))
        assert summary.lookup.indexed == (0 if is_earlier else 60 + 10 * number)
        ids = read_table(path, ["id"]).column("id").to_pylist()
        assert sorted(ids) == sorted(f"k{key}" for key in range(max(90, 60 + 10 * number)))
        assert len(UserTable.open(path).lookup([f"k{key}" for key in range(60)])) == 60
    findings = [finding.text for finding in check(HudiTable.open(path)).findings]
    assert any("has lost files" in text for text in findings) is is_earlier
    if is_earlier:
        keep_metadata_table_small(HudiTable.open(path), delta_commits=1)
        assert not indexes(path)

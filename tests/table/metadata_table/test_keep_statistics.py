"""Statistics of columns are kept up by every action, made where they are asked for, and used by scans."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from engine import STATISTICS, Engine, form_of, leave_a_dead_batch, rows
from tiers import quick

from hudistream import HudiTable as UserTable
from hudistream import write_hudi
from table import read_table
from table.config.metadata_indexes import COLUMN_STATS, FILES, PARTITION_STATS
from table.config.table_config import load_table_config
from table.hudi_table import HudiTable
from table.metadata_table import file_ranges, keep, make
from table.metadata_table.column_stats import StatsCodec
from table.metadata_table.compact import Compaction
from table.metadata_table.drop import drop_metadata_table
from table.metadata_table.groups import read_records
from table.metadata_table.index_definitions import DEFINITIONS_FILE
from table.metadata_table.index_keys import stats_key
from table.metadata_table.metadata_table import METADATA_FOLDER, MetadataTable, slices_in
from table.metadata_table.read_statistics import StatisticsIndex
from table.options.groups import BaseFileSettings, CleanSettings, CompactionSettings
from table.scan.plan import plan_scan
from table.schema.avro_schema import META_COLUMNS, with_meta_columns
from table.services.check.check import check
from table.services.check.finding import Kind
from table.services.clean.clean import clean
from table.services.compaction.compaction import compact
from table.services.metadata_table_service import keep_metadata_table_small
from table.snapshot import Snapshot
from table.storage.local import LocalStorage
from table.transaction import commit
from table.view.file_group import committed_instants

FORMS = [(6, "COPY_ON_WRITE"), (8, "MERGE_ON_READ"), (9, "COPY_ON_WRITE"), (8, "COPY_ON_WRITE"), (9, "MERGE_ON_READ")]
GOLDEN = ["cow_metadata_table", "v8_cow_types", "v9_cow_types", "v8_cow_cleaned", "v9_cow_cleaned", "v8_mor_logs"]


def engine_of(path, version=8, table_type="COPY_ON_WRITE", **more):
    return Engine(path, {**form_of(version, table_type), **STATISTICS, **more})


def indexes(path):
    return HudiTable.open(path).config.metadata_indexes


def columns_of(path):
    return json.loads(Path(path, DEFINITIONS_FILE).read_text())["indexDefinitions"][COLUMN_STATS]["sourceFields"]


def assert_statistics_are_right(path):
    """Each visible file has statistics of each column, which its footer confirms."""
    table = HudiTable.open(path)
    assert COLUMN_STATS in table.config.metadata_indexes
    snapshot = Snapshot.load(table)
    every = (file for _, groups in snapshot.walk_file_groups() for group in groups for file in group.current_files)
    files = [file for file in every if not file.name.endswith(".cdc")]
    index = StatisticsIndex(table.storage, table.config)
    told = index.ranges({one.name: one.type for one in with_meta_columns(snapshot.load_schema())}, files)
    assert told.keys() >= {(file.path, name) for file in files for name in META_COLUMNS[:1]}
    assert check(table, sample=None).is_sound
    return told


@pytest.mark.parametrize("name", GOLDEN)
def test_hudis_own_statistics_are_continued(name, golden, utc):
    path, _ = golden(name)
    before = indexes(path)
    assert COLUMN_STATS in before
    some = read_table(path).drop_columns([n for n in META_COLUMNS if n in read_table(path).column_names]).slice(0, 3)
    for _ in range(2):
        write_hudi(path, some, operation="upsert")
        assert indexes(path) == before
        assert_statistics_are_right(path)
    clean(HudiTable.open(path), CleanSettings(commits_retained=1, grace_ms=0))
    assert_statistics_are_right(path)
    assert keep_metadata_table_small(HudiTable.open(path), delta_commits=2) is Compaction.DONE
    assert indexes(path) == before
    assert_statistics_are_right(path)


@pytest.mark.parametrize(("version", "table_type"), quick(1, FORMS))
def test_statistics_follow_batches_cleans_and_compactions(tmp_path, version, table_type):
    path = str(tmp_path / "t")
    engine = engine_of(path, version, table_type)
    for number in range(12):
        engine.write(number, rows(range(3 * number % 12, 3 * number % 12 + 9), ts=number))
        table = HudiTable.open(path)
        if number == 0:
            assert not table.config.metadata_indexes  # it had no columns before
            continue
        assert table.config.metadata_indexes == {FILES, COLUMN_STATS, *([PARTITION_STATS] if version > 6 else [])}
        assert_statistics_are_right(path)
        if table_type == "MERGE_ON_READ" and number % 4 == 3:
            compact(table, CompactionSettings(delta_commits=1), BaseFileSettings())
            assert_statistics_are_right(path)
        if number % 4 == 3:
            engine.writer.stop()
            assert clean(table, CleanSettings(commits_retained=1, grace_ms=0))
            assert_statistics_are_right(path)
        keep_metadata_table_small(table, delta_commits=4)
        assert_statistics_are_right(path)
    own = MetadataTable.open(table.storage)
    assert len([entry for entry in own.list_files(COLUMN_STATS) if entry.name.endswith(".hfile")]) > 2


@pytest.mark.parametrize(("version", "table_type"), quick(1, [(9, "COPY_ON_WRITE"), *FORMS]))
def test_change_files_have_none(tmp_path, version, table_type):
    path, changes = str(tmp_path / "t"), {"hoodie.table.cdc.enabled": "true"}
    engine = engine_of(path, version, table_type, **changes)
    for number in range(4):
        engine.write(number, rows(range(number, number + 5), ts=number))
    engine.writer.stop()
    assert any(Path(path).rglob("*.cdc"))
    assert_statistics_are_right(path)
    drop_metadata_table(HudiTable.open(path).storage, HudiTable.open(path).config)
    for number in range(4, 6):  # made anew of files among which are change files
        engine.write(number, rows(range(number, number + 5), ts=number))
    engine.writer.stop()
    assert_statistics_are_right(path)


def test_records_of_deleted_files_are_deleted(tmp_path):
    path = str(tmp_path / "t")
    engine = engine_of(path)
    for number in range(4):
        engine.write(number, rows(range(6), ts=number))
    engine.writer.stop()
    [outcome] = clean(HudiTable.open(path), CleanSettings(commits_retained=1, grace_ms=0))
    engine.write(4, rows(range(6), ts=4))  # the last delta commit stays above a compaction
    engine.writer.stop()
    keep_metadata_table_small(HudiTable.open(path), delta_commits=2)
    own = MetadataTable.open(HudiTable.open(path).storage)
    committed = committed_instants(own.load_timeline(), {})
    slices = slices_in(COLUMN_STATS, own.list_files(COLUMN_STATS), committed)
    left = [values[-1].data for one in slices for _, values in read_records(own, one, committed).entries()]
    gone = [name.encode() for names in outcome.deleted.values() for name in names]
    assert gone
    assert left
    assert not [data for data in left for name in gone if name in data]


def test_a_new_column_gets_statistics_and_an_option_ends_them(tmp_path, logs):
    path = str(tmp_path / "t")
    for number in range(2):
        engine_of(path).write(number, rows(range(6), ts=number))
    wider = rows(range(3, 9), ts=2)
    wider = wider.append_column("new", pa.array(range(len(wider)), pa.int64()))
    engine_of(path).write(2, wider)
    assert columns_of(path)[-1] == "new"
    told = assert_statistics_are_right(path)
    assert {column for _, column in told} >= {"new"}
    engine_of(path, **{"hoodie.metadata.index.column.stats.enable": "false"}).write(3, wider)
    assert indexes(path) == {FILES}
    [dropped] = [entry for entry in logs if entry["event"] == "metadata_indexes_dropped"]
    assert dropped["why"] == "hoodie.metadata.index.column.stats.enable=false"


def test_a_column_of_another_type_ends_the_statistics(tmp_path):
    path = str(tmp_path / "t")
    narrow = rows(range(6)).append_column("n", pa.array([1] * 6, pa.int32()))
    for number in range(2):
        engine_of(path).write(number, narrow)
    assert COLUMN_STATS in indexes(path)
    engine_of(path).write(2, rows(range(6), ts=1).append_column("n", pa.array([2**40] * 6, pa.int64())))
    assert indexes(path) == {FILES}


def dies(*_):
    raise KeyboardInterrupt


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_who_ends_the_commit_of_a_dead_process_reads_its_files(tmp_path, table_type, monkeypatch):
    """Its end is decided, and the metadata table is not told."""
    path = str(tmp_path / "t")
    engine = engine_of(path, 8, table_type)
    for number in range(2):
        engine.write(number, rows(range(6), ts=number))
    engine.writer.stop()
    with monkeypatch.context() as patch:
        patch.setattr(keep._Delta, "write", dies)
        with pytest.raises(KeyboardInterrupt):
            engine_of(path, 8, table_type).write(2, rows(range(6), ts=2))
    assert HudiTable.open(path).load_timeline().pending
    Engine(path).write(9, rows([50], ts=9))
    assert len(read_table(path)) == 7
    assert_statistics_are_right(path)


def test_a_type_that_a_dead_process_changed_ends_the_statistics(tmp_path, monkeypatch):
    """The process that ends its commit compares the columns, too; the batch goes on without statistics."""
    path = str(tmp_path / "t")
    narrow = rows(range(6)).append_column("n", pa.array([1] * 6, pa.int32()))
    for number in range(2):
        engine_of(path).write(number, narrow)
    wide = rows(range(6), ts=2).append_column("n", pa.array([2**40] * 6, pa.int64()))
    with monkeypatch.context() as patch:
        patch.setattr(keep, "keep_lists", dies)
        patch.setattr(commit, "keep_lists", dies)
        with pytest.raises(KeyboardInterrupt):
            engine_of(path).write(2, wide)
    engine_of(path).write(3, wide)
    assert indexes(path) == {FILES}
    assert sorted(read_table(path).column("n").to_pylist()) == [2**40] * 6


def test_partition_paths_count_a_null_of_files_without_the_column(tmp_path):
    path = str(tmp_path / "t")
    for number in range(2):
        engine_of(path).write(number, rows(range(6), ts=number))
    wider = rows([50], ts=2).append_column("new", pa.array([7], pa.int64()))
    engine_of(path).write(2, wider)
    table = HudiTable.open(path)
    own = MetadataTable.open(table.storage)
    committed = committed_instants(own.load_timeline(), {})
    [found] = slices_in(PARTITION_STATS, own.list_files(PARTITION_STATS), committed)
    key = stats_key("new", "p2").encode()
    [value] = read_records(own, found, committed).find(key)
    stats = StatsCodec({"new": pa.int64()}, 8, is_typed=False).decode(value.data, value.schema)
    # three rows of the file, and one null more
    assert (stats.range.least, stats.range.greatest, stats.range.values, stats.range.nulls) == (7, 7, 4, 3)


def test_values_of_meta_columns_in_log_files_are_found(tmp_path):
    """They repeat, so tasks hold them in dictionaries."""
    path = str(tmp_path / "t")
    for number in range(4):
        engine_of(path, 8, "MERGE_ON_READ").write(number, rows(range(6), ts=number))
    told = assert_statistics_are_right(path)
    newest = HudiTable.open(path).load_timeline().completed_writes[-1].time
    of_logs = [one for (file, column), one in told.items() if column == "_hoodie_commit_time" and newest in file]
    assert of_logs
    assert {(one.least, one.greatest) for one in of_logs} == {(newest, newest)}


def test_tasks_tell_the_ranges_of_all_their_files(tmp_path, monkeypatch):
    """No file is read again for them."""
    monkeypatch.setattr(file_ranges, "_of_base_file", dies)
    monkeypatch.setattr(file_ranges, "_of_log_file", dies)
    for table_type in ("COPY_ON_WRITE", "MERGE_ON_READ"):
        path = str(tmp_path / table_type)
        engine_of(path, 8, table_type, **{"hoodie.metadata.enable": "false"}).write(0, rows(range(6)))
        engine = engine_of(path, 8, table_type)
        with monkeypatch.context() as patch:
            patch.setattr(make, "make_statistics", lambda *_: {COLUMN_STATS: [[], []], PARTITION_STATS: [[]]})
            engine.write(1, rows(range(6), ts=1))
        engine.write(2, rows(range(6), ts=2))
        assert COLUMN_STATS in indexes(path)
        if table_type == "MERGE_ON_READ":
            compact(HudiTable.open(path), CompactionSettings(delta_commits=1), BaseFileSettings())
            assert COLUMN_STATS in indexes(path)


def test_a_dead_batch_ends_nothing(tmp_path):
    path = str(tmp_path / "t")
    for number in range(2):
        engine_of(path).write(number, rows(range(6), ts=number))
    leave_a_dead_batch(engine_of(path), 2, rows([99]))
    engine_of(path).write(3, rows([5], ts=9))
    assert_statistics_are_right(path)


@pytest.mark.parametrize("form", ["avro", "parquet"])
def test_statistics_are_made_of_log_files_too(tmp_path, form):
    path, off = str(tmp_path / "t"), {"hoodie.metadata.enable": "false"}
    blocks = {"hoodie.logfile.data.block.format": form}
    for number in range(2):
        engine_of(path, 8, "MERGE_ON_READ", **off, **blocks).write(number, rows(range(6), ts=number))
    assert any(found.log_files for found in plan_scan(HudiTable.open(path)).slices)
    engine_of(path, 8, "MERGE_ON_READ", **blocks).write(2, rows(range(6), ts=2))
    told = assert_statistics_are_right(path)
    assert {
        (one.least, one.greatest) for (file, column), one in told.items() if column == "ts" and ".log." in file
    } == {
        (1, 1),
        (2, 2),
    }


def test_statistics_are_not_made_of_what_cannot_be_read(tmp_path, logs):
    path, off = str(tmp_path / "t"), {"hoodie.metadata.enable": "false"}
    for number in range(2):
        engine_of(path, 8, "MERGE_ON_READ", **off).write(number, rows(range(6), ts=number))
    [log] = Path(path, "p0").glob(".*.log.*")
    log.write_bytes(log.read_bytes() + b"#HUDI# torn")
    engine_of(path, 8, "MERGE_ON_READ").write(2, rows([1], ts=2))
    assert indexes(path) == {FILES}
    [told] = [entry for entry in logs if entry["event"] == "metadata_indexes_not_made"]
    assert "is damaged at byte" in told["why"]


def many_files(path, version=8, table_type="COPY_ON_WRITE", **more):
    """A table of many files, each with a range of its own, and few files of statistics."""
    options = {"hoodie.parquet.small.file.limit": "0", "hoodie.datasource.write.operation": "insert", **more}
    engine = engine_of(path, version, table_type, **options)
    for number in range(8):
        batch = rows(range(30 * number, 30 * number + 30), ts=number)
        batch = batch.append_column("n", pa.array(range(100 * number, 100 * number + 30), pa.int64()))
        engine.write(number, batch)
    engine.writer.stop()
    keep_metadata_table_small(HudiTable.open(path), delta_commits=2)
    return HudiTable.open(path)


@pytest.mark.parametrize("version", [6, 9])
def test_a_scan_skips_files_by_statistics(tmp_path, version):
    path = str(tmp_path / "t")
    many_files(path, version)
    whole = UserTable.open(path).scan().to_arrow()
    for condition, skips in [
        (pc.field("n") > 700, 21),
        ((pc.field("n") < 30) | (pc.field("n") == 729), 20),
        (pc.field("n") == 50, 24),
        (pc.field("n").is_null(), 24),
        (pc.field("n") >= 0, 0),
        (pc.field("ts") == 3, 21),
    ]:
        scan = UserTable.open(path).scan(where=condition)
        assert scan.to_arrow().sort_by("id").equals(whole.filter(condition).sort_by("id"))
        assert scan.plan().pruning.files_pruned_by_column_stats == skips
    told = str(UserTable.open(path).scan(where=pc.field("n") == 50).explain())
    assert "skipped by the metadata table's statistics: 24" in told


def test_damaged_statistics_are_not_used_and_are_repaired(tmp_path, logs):
    path = str(tmp_path / "t")
    many_files(path)
    for file in Path(path, METADATA_FOLDER, COLUMN_STATS).glob("*.hfile"):
        file.write_bytes(file.read_bytes()[:-9])
    condition = pc.field("n") > 700
    scan = UserTable.open(path).scan(where=condition)
    assert scan.plan().pruning.files_pruned_by_column_stats == 0
    assert len(scan.to_arrow()) == 29
    told = [entry for entry in logs if entry["event"] == "metadata_table_not_used"]
    assert {entry["log_level"] for entry in told} == {"warning"}
    assert "check PATH --repair" in told[0]["hint"]
    [found] = check(HudiTable.open(path)).findings
    assert found.kind is Kind.METADATA_TABLE
    check(HudiTable.open(path), repair=True)
    assert not indexes(path)


def test_check_finds_statistics_that_lack_a_file_or_a_value(tmp_path):
    path = str(tmp_path / "t")
    many_files(path)
    table = HudiTable.open(path)
    for file in Path(path, METADATA_FOLDER, COLUMN_STATS).glob("*.hfile"):
        file.unlink()
    [found] = check(table).findings
    assert "statistics of the metadata table are wrong" in found.text
    assert "none of the column" in found.text
    assert load_table_config(LocalStorage(path)).metadata_indexes


@pytest.mark.parametrize("version", [8, 9])
def test_check_finds_statistics_of_a_partition_path_that_do_not_cover_a_file(tmp_path, monkeypatch, version):
    """Hudi would not look into the partition path."""
    path = str(tmp_path / "t")
    for number in range(3):
        engine_of(path, version).write(number, rows(range(6), ts=number))
    assert PARTITION_STATS in indexes(path)
    assert check(HudiTable.open(path)).is_sound
    real = keep.new_statistics
    monkeypatch.setattr(keep, "new_statistics", lambda *given: replace(real(*given), of_partitions={}))
    engine_of(path, version).write(3, rows(range(6), ts=99))
    [found] = check(HudiTable.open(path)).findings
    assert re.match(
        r"6 statistics of the metadata table are wrong, among them p\d: the column '.*' ends with", found.text
    )

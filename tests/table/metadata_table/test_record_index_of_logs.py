"""A record index of a merge-on-read table names the file group of each key that has a row, and no other key."""

import random
import shutil

import pyarrow as pa
import pytest
from engine import Engine, form_of
from record_index import assert_record_index_is_right, locations
from tiers import quick

from streaming.task import doubled_keys, log_keys
from table import read_table
from table.config.metadata_indexes import RECORD_INDEX
from table.hudi_table import HudiTable
from table.metadata_table.known_lists import KnownLists
from table.metadata_table.metadata_table import METADATA_FOLDER
from table.metadata_table.read_statistics import StatisticsIndex
from table.options.groups import CleanSettings, CompactionSettings
from table.schema.avro_schema import DELETE_MARKER
from table.services.check.check import check
from table.services.check.finding import Kind
from table.services.clean.clean import clean
from table.services.clustering.command import cluster
from table.services.compaction.compaction import compact, request_compaction
from table.services.metadata_table_service import keep_metadata_table_small

INDEXED = {
    "hoodie.metadata.enable": "true",
    "hoodie.metadata.record.index.enable": "true",
    "hoodie.bloom.index.update.partition.path": "false",
    "hoodie.simple.index.update.partition.path": "false",
    "hoodie.datasource.compaction.async.enable": "false",
}
INDEX_TYPES = ("RECORD_INDEX", "GLOBAL_BLOOM")
PAYLOADS = ("DefaultHoodieRecordPayload", "OverwriteWithLatestAvroPayload", "PartialUpdateAvroPayload")


def sink(path, version=8, index="RECORD_INDEX", **more):
    options = {**form_of(version, "MERGE_ON_READ"), **INDEXED, "hoodie.index.type": index, **more}
    return Engine(path, options)


def batch(numbers, ts, gone=(), paths=3):
    numbers = list(numbers)
    return pa.table(
        {
            "id": [f"k{number}" for number in numbers],
            "p": [f"p{number % paths}" for number in numbers],
            "ts": pa.array([ts] * len(numbers), pa.int64()),
            "v": [f"v{ts}"] * len(numbers),
            DELETE_MARKER: [number in gone for number in numbers],
        }
    )


def indexes(path):
    return HudiTable.open(path).config.metadata_indexes


def held(path):
    found = sorted((row["id"], row["ts"]) for row in read_table(path, ["id", "ts"]).to_pylist())
    assert len({key for key, _ in found}) == len(found), "a key is there twice"
    return found


def take(model, rows, operation, orders):
    for row in rows.to_pylist():
        known = model.get(row["id"])
        is_late = orders and known is not None and row["ts"] < known
        if operation == "delete":
            model.pop(row["id"], None)
        elif row[DELETE_MARKER]:
            if not is_late:
                model.pop(row["id"], None)
        elif not is_late:
            model[row["id"]] = row["ts"]


CASES = [(version, payload, seed) for seed in range(3) for version in (6, 8, 9) for payload in PAYLOADS[:2]]


@pytest.mark.parametrize(("version", "payload", "seed"), quick(1, CASES))
def test_it_follows_updates_deletes_and_keys_that_come_back(tmp_path, version, payload, seed):
    """Ordered deletes, late ones too, deletes by key alone; both indexes in turns; compactions, planned and done."""
    path, draw, model = str(tmp_path / "t"), random.Random(f"{version}{payload}{seed}"), {}
    more = {"hoodie.datasource.write.payload.class": f"org.apache.hudi.common.model.{payload}"}
    if draw.random() < 0.5:
        more["hoodie.parquet.small.file.limit"] = "0"
    for number in range(16):
        numbers = draw.sample(range(24), 9)
        gone = draw.sample(numbers, draw.choice((0, 0, 2, 5))) if number else ()
        rows = batch(numbers, draw.choice((number, number, number - 3)) + 5, gone)
        operation = draw.choice(("upsert", "upsert", "upsert", "delete")) if number else "upsert"
        told = {**more, "hoodie.datasource.write.operation": operation}
        engine = sink(path, version, draw.choice(INDEX_TYPES) if number > 1 else "GLOBAL_BLOOM", **told)
        engine.write(number, rows)
        engine.writer.stop()
        take(model, rows, operation, payload == PAYLOADS[0])
        assert held(path) == sorted(model.items())
        if number:
            assert RECORD_INDEX in indexes(path)
            assert_record_index_is_right(path)
        service = draw.choice(("", "", "request", "compact", "clean", "lists"))
        if service == "request":
            request_compaction(HudiTable.open(path), CompactionSettings(delta_commits=1))
        elif service == "compact":
            compact(path, CompactionSettings(delta_commits=1))
        elif service == "clean":
            clean(HudiTable.open(path), CleanSettings(commits_retained=1, grace_ms=0))
        elif service == "lists":
            keep_metadata_table_small(HudiTable.open(path), delta_commits=3)
        if number:
            assert_record_index_is_right(path)
    assert held(path) == sorted(model.items())
    assert check(HudiTable.open(path)).is_sound


def filled(path, version=8, **more):
    """Nine keys in base files of three partition paths, and an index of them."""
    sink(path, version, **more).write(0, batch(range(9), 5))
    engine = sink(path, version, **more)
    engine.write(1, batch(range(9), 6))
    assert RECORD_INDEX in indexes(path)
    assert_record_index_is_right(path)
    return engine


def count_readings(monkeypatch):
    read, real = [], log_keys.merge_slice
    monkeypatch.setattr(log_keys, "merge_slice", lambda *given: read.append(given[1]) or real(*given))
    return read


@pytest.mark.parametrize("version", [6, 8, 9])
def test_it_is_made_of_a_table_with_log_files(tmp_path, version):
    path = str(tmp_path / "t")
    off = {"hoodie.metadata.enable": "false", "hoodie.metadata.record.index.enable": "false"}
    plain = sink(path, version, "GLOBAL_BLOOM", **off)
    plain.write(0, batch(range(9), 5))
    plain.write(1, batch(range(12), 6, gone=(2, 3)))
    plain.write(2, batch(range(3, 5), 4, gone=(4,)))  # late: k3 comes back, k4 stays
    plain.writer.stop()
    sink(path, version, "GLOBAL_BLOOM").write(3, batch([11], 9))
    assert RECORD_INDEX in indexes(path)
    assert_record_index_is_right(path)
    assert {"k3", "k4", "k11"} <= locations(path).keys()
    assert "k2" not in locations(path)


def test_updates_and_deletes_by_key_read_no_slice(tmp_path, monkeypatch):
    path = str(tmp_path / "t")
    engine = filled(path)
    read = count_readings(monkeypatch)
    engine.write(2, batch(range(9), 7))
    sink(path, **{"hoodie.datasource.write.operation": "delete"}).write(3, batch([1, 4], 8))
    assert not read
    assert_record_index_is_right(path)
    assert len(held(path)) == 7


def test_an_ordered_delete_reads_the_slices_of_its_keys(tmp_path, monkeypatch):
    path = str(tmp_path / "t")
    engine = filled(path)
    read = count_readings(monkeypatch)
    engine.write(2, batch(range(9), 5, gone=(1, 4)))  # late: nothing is deleted
    assert {found.partition_path for found in read} == {"p1"}
    assert_record_index_is_right(path)
    assert len(held(path)) == 9
    engine.write(3, batch([1, 4], 9, gone=(1, 4)))
    assert_record_index_is_right(path)
    assert len(held(path)) == 7


@pytest.mark.parametrize("payload", quick(1, PAYLOADS))
def test_a_key_that_comes_back_has_one_row_whatever_finds_it(tmp_path, payload):
    """By the index it goes to another file group; a lookup in base files finds its deleted row there, too."""
    path = str(tmp_path / "t")
    more = {"hoodie.datasource.write.payload.class": f"org.apache.hudi.common.model.{payload}"}
    more["hoodie.parquet.small.file.limit"] = "0"
    filled(path, **more)
    before = locations(path)
    sink(path, **{**more, "hoodie.datasource.write.operation": "delete"}).write(2, batch([1, 2], 7))
    sink(path, **more).write(3, batch([1], 8))
    assert locations(path)["k1"] != before["k1"]
    files = {}
    for number, index in enumerate(("GLOBAL_BLOOM", "BLOOM", "SIMPLE")):
        sink(path, index=index, **more).write(4 + number, batch([1, 2], 9 + number))
        assert RECORD_INDEX in indexes(path)
        assert_record_index_is_right(path)
        assert dict(held(path))["k1"] == dict(held(path))["k2"] == 9 + number
        files[index] = {key: locations(path)[key][:2] for key in ("k1", "k2")}
    assert len({str(places) for places in files.values()}) == 1
    # deleted in both of its places, and back
    sink(path, index="GLOBAL_BLOOM", **more).write(8, batch([1], 20, gone=(1,)))
    assert "k1" not in dict(held(path))
    for number, index in enumerate(("BLOOM", "RECORD_INDEX")):
        sink(path, index=index, **more).write(9 + number, batch([1], 30))
        assert dict(held(path))["k1"] == 30
        assert_record_index_is_right(path)
    compact(path, CompactionSettings(delta_commits=1))
    assert_record_index_is_right(path)
    assert len(held(path)) == 9


BUCKETS = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2"}


@pytest.mark.parametrize(
    ("more", "gone"), [(BUCKETS, ()), ({"hoodie.index.type": "BLOOM"}, (1,))], ids=["bucket", "bloom"]
)
def test_where_keys_are_not_looked_up_everywhere_it_is_dropped(tmp_path, more, gone, logs):
    """A bucket's log gets keys that are not looked up; a delete in one partition path may leave the key in another."""
    path = str(tmp_path / "t")
    sink(path, **more).write(0, batch(range(9), 5))
    assert RECORD_INDEX in indexes(path)
    assert_record_index_is_right(path)
    sink(path, **more).write(1, batch(range(3), 6, gone))
    assert RECORD_INDEX not in indexes(path)
    assert "not known" in next(entry["why"] for entry in logs if entry["event"] == "metadata_indexes_dropped")


def test_check_finds_a_key_of_a_log_that_it_lacks(tmp_path, monkeypatch):
    path = str(tmp_path / "t")
    engine = filled(path)
    sink(path, **{"hoodie.datasource.write.operation": "delete"}).write(2, batch([1], 7))
    before = str(tmp_path / "before")
    shutil.copytree(tmp_path / "t" / METADATA_FOLDER / RECORD_INDEX, before)
    sink(path, index="GLOBAL_BLOOM").write(3, batch([1], 8))  # back, in the log
    engine.writer.stop()
    assert check(HudiTable.open(path)).is_sound
    shutil.rmtree(tmp_path / "t" / METADATA_FOLDER / RECORD_INDEX)
    shutil.copytree(before, tmp_path / "t" / METADATA_FOLDER / RECORD_INDEX)
    [found] = check(HudiTable.open(path)).findings
    assert "is gone or empty" in found.text
    monkeypatch.setattr(KnownLists, "name_files", lambda *_: ())  # as if the file had never been
    [found] = check(HudiTable.open(path)).findings
    assert found.kind is Kind.METADATA_TABLE
    assert "'k1', which is missing there" in found.text


@pytest.mark.parametrize("version", quick(1, [9, 6, 8]))
@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_a_clustering_moves_keys(tmp_path, version, table_type):
    path, form = str(tmp_path / "t"), {"hoodie.datasource.write.table.type": table_type}
    more = {**form, "hoodie.parquet.small.file.limit": "0"}
    for number in range(4):
        rows = batch(range(number * 6, number * 6 + 9), number, gone=(number * 6 + 1,) if number else ())
        sink(path, version, "GLOBAL_BLOOM", **more).write(number, rows)
    before, kept = locations(path), held(path)
    clustered = cluster(path)
    assert clustered
    assert RECORD_INDEX in indexes(path)
    assert_record_index_is_right(path)
    assert held(path) == kept
    assert all(locations(path)[key] != before[key] for key in before)
    sink(path, version, **more).write(4, batch(range(30), 9))
    assert_record_index_is_right(path)
    assert len(held(path)) == 30
    assert check(HudiTable.open(path)).is_sound


def test_a_clustering_of_too_many_keys_drops_it(tmp_path, monkeypatch):
    path = str(tmp_path / "t")
    filled(path)
    monkeypatch.setattr("table.services.clustering.cluster_group.MOST_MOVED_BYTES", 5)
    cluster(path)
    assert RECORD_INDEX not in indexes(path)
    assert len(held(path)) == 9


def test_check_asks_for_no_statistics_of_a_file_without_rows(tmp_path, monkeypatch):
    """Hudi's compactions write such files, and tell no statistics of them."""
    path = str(tmp_path / "t")
    told = {"hoodie.metadata.index.column.stats.enable": "true"}
    for number, gone in enumerate(((), (), (1, 4, 7))):
        sink(path, index="GLOBAL_BLOOM", **told).write(number, batch(range(9), number, gone))
    compact(path, CompactionSettings(delta_commits=1))
    assert check(HudiTable.open(path)).is_sound
    left_out, real = set(), StatisticsIndex.ranges

    def without_empty_files(*given):
        told = real(*given)
        left_out.update(file for (file, _), known in told.items() if not known.values)
        return {key: known for key, known in told.items() if key[0] not in left_out}

    monkeypatch.setattr(StatisticsIndex, "ranges", without_empty_files)
    assert check(HudiTable.open(path)).is_sound
    assert len(left_out) == 1
    monkeypatch.setattr(StatisticsIndex, "ranges", lambda *_: {})
    assert not check(HudiTable.open(path)).is_sound


@pytest.mark.parametrize("has_index", [True, False], ids=["with an index", "without"])
@pytest.mark.parametrize("index", ["RECORD_INDEX", "GLOBAL_BLOOM", "GLOBAL_SIMPLE", "BLOOM", "SIMPLE"])
def test_an_insert_that_drops_known_keys_keeps_a_row_whose_key_was_deleted(tmp_path, index, has_index):
    path = str(tmp_path / "t")
    off = {"hoodie.metadata.enable": "false", "hoodie.metadata.record.index.enable": "false"}
    more = {} if has_index else off
    for number in range(2):
        sink(path, index=index, **more).write(number, batch(range(9), 5))
    sink(path, index="GLOBAL_BLOOM", **more).write(2, batch([1, 4], 6, gone=(1, 4)))
    told = {
        "hoodie.datasource.write.operation": "insert",
        "hoodie.datasource.write.insert.drop.duplicates": "true",
    }
    sink(path, index=index, **more, **told).write(3, batch([0, 1, 20], 7))
    kept = dict(held(path))
    assert (kept["k0"], kept["k1"], kept["k20"]) == (5, 7, 7)
    assert "k4" not in kept
    if has_index:
        assert RECORD_INDEX in indexes(path)
        assert_record_index_is_right(path)


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_a_table_with_a_key_twice_gets_none(tmp_path, table_type, logs):
    path = str(tmp_path / "t")
    form = {"hoodie.datasource.write.table.type": table_type}
    off = {"hoodie.metadata.enable": "false", "hoodie.metadata.record.index.enable": "false"}
    for number, paths in enumerate((3, 2)):  # k2 goes into another partition path, too
        sink(path, index="BLOOM", **form, **off).write(number, batch([2, 6], 5 + number, paths=paths))
    sink(path, index="GLOBAL_BLOOM", **form).write(2, batch([9], 9))
    assert RECORD_INDEX not in indexes(path)
    told = next(entry["why"] for entry in logs if entry["event"] == "metadata_indexes_not_made")
    assert "has a key twice" in told


@pytest.mark.parametrize(("index", "tasks"), [("GLOBAL_BLOOM", 2), ("BLOOM", 1)])
def test_a_task_lists_a_partition_path_once_for_all_its_doubled_keys(tmp_path, monkeypatch, index, tasks):
    path, more = str(tmp_path / "t"), {"hoodie.parquet.small.file.limit": "0"}
    filled(path, **more)
    sink(path, **{**more, "hoodie.datasource.write.operation": "delete"}).write(2, batch([1, 4, 7], 7))
    for number in (1, 4, 7):  # each in a file group of its own
        sink(path, **more).write(None, batch([number], 8))
    listed, real = [], doubled_keys.list_file_groups
    monkeypatch.setattr(doubled_keys, "list_file_groups", lambda *given: listed.append(given[1]) or real(*given))
    sink(path, index=index, **more).write(3, batch([1, 4, 7], 9))
    assert listed == ["p1"] * tasks
    assert len(held(path)) == 9
    assert_record_index_is_right(path)

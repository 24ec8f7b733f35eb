"""Upserts and deletes without Spark: the table holds what a dictionary would."""

import os
import random

import pyarrow as pa
import pytest
from engine import Engine, rows
from snapshots import contents, list_snapshot_files
from tiers import quick
from values import tuples

from table import InvalidConfigError, InvalidRecordError, SchemaMismatchError
from table.config.table_config import TableConfig
from table.files.base.hudi_footer import filter_of_footer
from table.files.base.stored_file import StoredBaseFile
from table.hudi_table import HudiTable
from table.index import key_cache
from table.index.bucket import bucket_numbers
from table.index.key_lookup import LookupCounts
from table.keys.keygen import check_keys_keep_their_types

UPSERT = {"hoodie.datasource.write.operation": "upsert"}
INDEXES = ["BLOOM", "SIMPLE", "BUCKET"]


def engine(path, **options):
    return Engine(str(path), {**UPSERT, "hoodie.bucket.index.num.buckets": "4", **options})


@pytest.mark.parametrize("index", INDEXES)
def test_one_current_row_a_key(tmp_path, index):
    sink = engine(tmp_path / "t", **{"hoodie.index.type": index})
    sink.write(0, rows(range(100), ts=1))
    summary = sink.write(1, rows(range(50, 150), ts=2, v="new"))
    expected = tuples(rows(range(50), ts=1)) + tuples(rows(range(50, 150), ts=2, v="new"))
    assert contents(tmp_path / "t") == sorted(expected)
    assert (summary.rows, summary.rows_updated, summary.rows_deleted) == (50, 50, 0)
    late = sink.write(2, rows(range(60, 70), ts=1, v="late"))
    assert contents(tmp_path / "t") == sorted(expected)
    assert (late.rows, late.rows_updated) == (0, 0)


@pytest.mark.parametrize("index", INDEXES)
def test_deletes_take_their_keys_and_nothing_else(tmp_path, index):
    options = {"hoodie.index.type": index}
    engine(tmp_path / "t", **options).write(0, rows(range(100), ts=5))
    delete = engine(tmp_path / "t", **options, **{"hoodie.datasource.write.operation": "delete"})
    keys = rows([*range(30), 500], ts=1).select(["id", "p"])
    summary = delete.write(1, keys)
    assert summary.rows_deleted == 30
    assert contents(tmp_path / "t") == sorted(tuples(rows(range(30, 100), ts=5)))
    delete.write(2, rows(range(100)).select(["id", "p"]))
    assert contents(tmp_path / "t") == []
    engine(tmp_path / "t", **options).write(3, rows(range(10), ts=9))
    assert contents(tmp_path / "t") == sorted(tuples(rows(range(10), ts=9)))


def test_a_marked_record_deletes_unless_it_is_late(tmp_path):
    def marked(keys, ts, gone):
        table = rows(keys, ts=ts)
        return table.append_column("_hoodie_is_deleted", pa.array([gone] * len(table)))

    sink = engine(tmp_path / "t")
    sink.write(0, marked(range(10), 5, False))
    summary = sink.write(1, pa.concat_tables([marked(range(3), 6, True), marked(range(3, 6), 4, True)]))
    assert summary.rows_deleted == 3
    assert [row[0] for row in contents(tmp_path / "t")] == [f"k{n}" for n in range(3, 10)]
    assert sink.write(2, marked([77], 6, True)).rows == 0


def test_of_records_of_a_key_in_a_batch_the_newest_stays(tmp_path):
    sink = engine(tmp_path / "t")
    batch = pa.concat_tables([rows([1, 2], ts=3, v="a"), rows([1], ts=2, v="b"), rows([2], ts=3, v="c")])
    sink.write(0, batch)
    assert contents(tmp_path / "t") == [("k1", "p1", 3, "a"), ("k2", "p2", 3, "c")]


def test_a_key_in_several_file_groups_is_updated_in_each(tmp_path):
    insert = Engine(str(tmp_path / "t"), {"hoodie.parquet.small.file.limit": "0"})
    insert.write(0, rows(range(9), lambda _: "p"))
    insert.write(1, rows(range(3), lambda _: "p"))
    summary = engine(tmp_path / "t").write(2, rows(range(5), lambda _: "p", ts=1, v="new"))
    assert summary.rows_updated == 8
    assert [row[3] for row in contents(tmp_path / "t")] == ["new"] * 8 + ["v"] * 4


def test_untouched_row_groups_are_copied(tmp_path):
    sink = engine(tmp_path / "t", **{"hoodie.parquet.block.size": "4000"})
    for number in range(8):
        sink.write(number, rows(range(number * 400, number * 400 + 400), lambda _: "p", ts=1))
    files = list_snapshot_files(HudiTable.open(str(tmp_path / "t")))
    summary = sink.write(8, rows(range(400, 420), lambda _: "p", ts=2, v="new"))
    assert summary.bytes_copied > files[0].size_bytes / 3
    expected = tuples(rows(range(3200), lambda _: "p", ts=1))
    expected[400:420] = tuples(rows(range(400, 420), lambda _: "p", ts=2, v="new"))
    assert contents(tmp_path / "t") == sorted(expected)


def test_inserts_can_leave_out_what_is_there(tmp_path):
    options = {"hoodie.datasource.write.insert.drop.duplicates": "true"}
    sink = Engine(str(tmp_path / "t"), options)
    sink.write(0, rows(range(10), ts=1))
    summary = sink.write(1, rows(range(5, 15), ts=2, v="new"))
    assert summary.rows == 5
    assert contents(tmp_path / "t") == sorted(
        tuples(rows(range(10), ts=1)) + tuples(rows(range(10, 15), ts=2, v="new"))
    )


def test_inserts_lie_in_their_buckets_and_may_come_twice(tmp_path):
    options = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "3"}
    sink = Engine(str(tmp_path / "t"), options)
    for number in range(2):
        sink.write(number, rows(range(60), lambda _: "p", ts=number))
    files = list_snapshot_files(HudiTable.open(str(tmp_path / "t")))
    assert [file.file_id[:8] for file in files] == ["00000000", "00000001", "00000002"]
    assert len(contents(tmp_path / "t")) == 120
    # an upsert finds both rows of each key, which shows that they lie where their hash says
    changes = engine(tmp_path / "t", **options)
    assert changes.write(2, rows(range(60), lambda _: "p", ts=5)).rows_updated == 120


GLOBALS = ["GLOBAL_BLOOM", "GLOBAL_SIMPLE"]


@pytest.mark.parametrize("index", GLOBALS)
@pytest.mark.parametrize("parallelism", [1, 3])
def test_a_key_moves_to_the_partition_path_it_comes_with(tmp_path, index, parallelism):
    sink = engine(tmp_path / "t", **{"hoodie.index.type": index})
    sink.write(0, rows(range(90), ts=5), parallelism)
    moved = rows(range(30), lambda number: f"p{(number + 1) % 3}", ts=6, v="moved")
    late = rows(range(30, 60), lambda number: f"p{(number + 1) % 3}", ts=4, v="late")
    stay = rows(range(60, 90), ts=6, v="stay")
    summary = sink.write(1, pa.concat_tables([moved, late, stay, rows(range(90, 95))]), parallelism)
    expected = tuples(moved) + tuples(rows(range(30, 60), ts=5)) + tuples(stay) + tuples(rows(range(90, 95)))
    assert contents(tmp_path / "t") == sorted(expected)
    assert (summary.rows, summary.rows_updated, summary.rows_deleted) == (35, 30, 30)
    assert summary.lookup.keys == 95


@pytest.mark.parametrize("index", GLOBALS)
def test_a_key_stays_where_it_is_when_it_may_not_move(tmp_path, index):
    kind = index.split("_")[1].lower()
    options = {"hoodie.index.type": index, f"hoodie.{kind}.index.update.partition.path": "false"}
    sink = engine(tmp_path / "t", **options)
    sink.write(0, rows(range(9)))
    sink.write(1, rows(range(9), lambda _: "elsewhere", ts=1, v="new"))
    columns = ["_hoodie_partition_path", "p", "v"]
    # readers show the value of the path, as Hudi does; the file holds the other one
    assert contents(tmp_path / "t", columns) == [(f"p{n}", f"p{n}", "new") for n in (0, 0, 0, 1, 1, 1, 2, 2, 2)]


def test_a_delete_finds_its_key_in_whatever_partition_path(tmp_path):
    options = {"hoodie.index.type": "GLOBAL_BLOOM"}
    engine(tmp_path / "t", **options).write(0, rows(range(9)))
    delete = engine(tmp_path / "t", **options, **{"hoodie.datasource.write.operation": "delete"})
    assert delete.write(1, rows(range(5), lambda _: "elsewhere").select(["id", "p"])).rows_deleted == 5
    assert [row[0] for row in contents(tmp_path / "t")] == ["k5", "k6", "k7", "k8"]


@pytest.mark.parametrize("index", INDEXES)
def test_a_path_with_most_of_the_work_is_shared_by_tasks(tmp_path, monkeypatch, index):
    monkeypatch.setattr("streaming.plan.routes.SMALL_BATCH_BYTES", 0)
    monkeypatch.setattr("streaming.plan.routes.HOT_SHARE", 0.5)  # files as small as these weigh about the same
    sink = engine(tmp_path / "t", **{"hoodie.index.type": index, "hoodie.parquet.max.file.size": "9000"})
    known = {}
    for number in range(6):
        keys = range(number * 40, number * 40 + 120)
        batch = rows(keys, lambda key: "hot" if key % 10 else "cold", ts=number, v=f"b{number}")
        sink.write(number, batch, 2)
        known |= {row[0]: row for row in tuples(batch)}
        assert contents(tmp_path / "t") == sorted(known.values())
    assert sink.plans[-1].changes.apart
    assert sink.plans[-1].routes.slots_of("hot") == 2


def test_a_file_that_cannot_hold_a_key_is_not_read_beyond_its_footer(tmp_path, monkeypatch):
    read = []
    original = StoredBaseFile.read_keys
    monkeypatch.setattr(
        StoredBaseFile, "read_keys", lambda file, groups: read.append(file.path) or original(file, groups)
    )
    insert = Engine(str(tmp_path / "t"), {"hoodie.parquet.small.file.limit": "0"})
    for number in range(5):
        insert.write(number, rows(range(number * 100 + 100, number * 100 + 150), lambda _: "p"))
    options = {"hudistream.index.cache.bytes": "0"}
    by_range = engine(tmp_path / "t", **options).write(5, rows([303, 399], lambda _: "p", ts=1))
    assert by_range.lookup == LookupCounts(keys=2, files=5, pruned_by_range=4, read=1)
    assert len(read) == 1
    # ranges are of no use with keys like these: every file but the one is pruned by its filter
    other = Engine(str(tmp_path / "u"), {"hoodie.parquet.small.file.limit": "0"})
    for number in range(5):
        other.write(number, rows(range(number, 500, 5), lambda _: "p"))
    read.clear()
    by_filter = engine(tmp_path / "u", **options).write(5, rows([2, 7, 12], lambda _: "p", ts=1))
    assert (by_filter.lookup.read, by_filter.lookup.false_positives) == (1, 0)
    assert by_filter.lookup.pruned_by_range + by_filter.lookup.pruned_by_filter == 4
    assert len(read) == 1
    unpruned = engine(tmp_path / "u", **options, **{"hoodie.index.type": "SIMPLE"})
    assert unpruned.write(6, rows([2], lambda _: "p", ts=2)).lookup.read == 5


@pytest.mark.parametrize("index", INDEXES)
def test_what_a_worker_remembers_serves_later_batches_and_changes_nothing(tmp_path, monkeypatch, index):
    monkeypatch.setattr(key_cache, "_of_process", key_cache.ProcessCaches())
    read = []
    original = StoredBaseFile.read_keys
    monkeypatch.setattr(
        StoredBaseFile, "read_keys", lambda file, groups: read.append(file.path) or original(file, groups)
    )
    known = {}
    sink = engine(tmp_path / "t", **{"hoodie.index.type": index})
    for number in range(6):
        batch = rows(range(number * 7, number * 7 + 40), ts=number, v=f"b{number}")
        sink.write(number, batch)
        known |= {row[0]: row for row in tuples(batch)}
    assert contents(tmp_path / "t") == sorted(known.values())
    # what this process wrote it knows: no key column is read
    assert read == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"hoodie.datasource.write.precombine.field": "where"}, "precombine.field=where: a column of type struct"),
        (
            {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.hash.field": "v"},
            "'v' is not one of the record key fields",
        ),
        (
            {"hoodie.index.type": "BUCKET", "hoodie.datasource.write.operation": "bulk_insert"},
            "would not lie in their buckets",
        ),
        ({"hoodie.index.type": "HBASE"}, "HBASE: this index is not supported; use one of BLOOM"),
        ({"hoodie.datasource.write.payload.class": "com.acme.Mine"}, "com.acme.Mine: this payload is not supported"),
    ],
)
def test_what_an_upsert_cannot_do_is_said_before_anything_is_written(tmp_path, options, message):
    batch = rows(range(3)).append_column("where", pa.array([{"x": 1}] * 3))
    with pytest.raises(InvalidConfigError) as error:
        engine(tmp_path / "t", **options).write(0, batch)
    assert message in str(error.value)
    assert not os.path.isdir(tmp_path / "t") or HudiTable.open(tmp_path / "t").load_timeline().instants == ()


def test_another_number_of_buckets_is_named(tmp_path):
    options = {"hoodie.index.type": "BUCKET"}
    engine(tmp_path / "t", **options).write(0, rows(range(100)))
    with pytest.raises(InvalidConfigError, match=r"num\.buckets=2 contradicts the table, which has 4"):
        engine(tmp_path / "t", **options, **{"hoodie.bucket.index.num.buckets": "2"}).write(1, rows(range(9)))
    with pytest.raises(InvalidConfigError, match=r"num\.buckets=8 contradicts the table, which has 4"):
        engine(tmp_path / "t", **options, **{"hoodie.bucket.index.num.buckets": "8"}).write(1, rows(range(9)))


def test_a_null_ordering_value_is_a_bad_row(tmp_path):
    batch = rows(range(3)).set_column(2, "ts", pa.array([1, None, 1], pa.int64()))
    with pytest.raises(InvalidRecordError, match=r"1 rows cannot be stored.*the ordering field ts is null"):
        engine(tmp_path / "t").write(0, batch)
    with pytest.raises(InvalidRecordError, match="the ordering field ts is null"):
        engine(tmp_path / "t", **{"hoodie.index.type": "GLOBAL_SIMPLE"}).write(0, batch)


@pytest.mark.parametrize(
    "memory", ["3000", pytest.param("100000000", marks=pytest.mark.slow)], ids=["lot by lot", "in memory"]
)
@pytest.mark.parametrize("index", quick(2, ["GLOBAL_BLOOM", "BUCKET", "BLOOM", "SIMPLE", "GLOBAL_SIMPLE"]))
def test_random_changes_give_what_a_dictionary_gives(tmp_path, monkeypatch, index, memory):
    monkeypatch.setattr("streaming.plan.routes.SMALL_BATCH_BYTES", 0)
    rng = random.Random(f"{index} {memory}")
    options = {
        "hoodie.index.type": index,
        "hudistream.task.memory.bytes": memory,
        "hoodie.parquet.max.file.size": "12000",
    }
    sink = engine(tmp_path / "t", **options)
    delete = engine(tmp_path / "t", **options, **{"hoodie.datasource.write.operation": "delete"})
    delete.writer.lease = sink.writer.lease  # as the same sink's `write` with another operation
    everywhere = index in GLOBALS
    known = {}
    for number in range(8):
        records = [
            (
                f"k{rng.randrange(300)}",
                f"p{rng.choice('aaaab')}",
                number * 10 + rng.randrange(-12, 10),
                f"b{number}-{row}",
            )
            for row in range(rng.randrange(1, 250))
        ]
        batch = pa.table(dict(zip(("id", "p", "ts", "v"), zip(*records, strict=True), strict=True)))
        if number in (3, 6):
            delete.write(None, batch.slice(0, 60), 2)
            gone = {(row[0], "" if everywhere else row[1]) for row in records[:60]}
            known = {key: row for key, row in known.items() if key not in gone}
        sink.write(number, batch, 2)
        newest = {}
        for row in records:
            key = (row[0], "" if everywhere else row[1])
            if key not in newest or row[2] >= newest[key][2]:
                newest[key] = row
        known |= {key: row for key, row in newest.items() if key not in known or row[2] >= known[key][2]}
        assert contents(tmp_path / "t") == sorted(known.values()), number
    files = list_snapshot_files(HudiTable.open(str(tmp_path / "t")))
    assert len({file.file_id for file in files}) == len(files) > 2


@pytest.mark.hudi
@pytest.mark.parametrize("fields", [["id"], ["a", "b"], ["b"], ["x"]], ids=",".join)
def test_keys_lie_in_the_buckets_that_hudi_computes(hudi, fields):
    keys = [
        "k1",
        "",
        "user:1",
        "a,1",
        "2026-01-01 10:11:12",
        "a:1,b:2",
        "a:1,2,b:__null__",
        "b:__empty__,a:q",
    ]
    keys += ["a:10:11:12,b:3", "id:k,1", "sträng", "日本,b:x", "😀", "a:,b:", "x" * 300, "1:2,3:4"]
    if "b" in fields:
        keys.append("a:1,b:x:y,z")  # Hudi 1.0.2 never returns when it is to pass over such a value
    found = bucket_numbers(pa.array(keys), 97, fields).tolist()
    assert dict(zip(keys, found, strict=True)) == dict(zip(keys, hudi.buckets(keys, fields, 97), strict=True))


@pytest.mark.parametrize("index", GLOBALS)
def test_inserts_leave_out_what_another_partition_path_has(tmp_path, index):
    options = {"hoodie.datasource.write.insert.drop.duplicates": "true", "hoodie.index.type": index}
    sink = Engine(str(tmp_path / "t"), options)
    sink.write(0, rows([1, 2], lambda _: "a"))
    sink.write(1, rows([1, 3], lambda _: "b", v="new"))
    assert contents(tmp_path / "t") == [("k1", "a", 0, "v"), ("k2", "a", 0, "v"), ("k3", "b", 0, "new")]


def test_inserts_into_buckets_heed_what_inserts_heed_elsewhere(tmp_path):
    options = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2"}
    batch = rows([1, 2]).set_column(2, "ts", pa.array([1, None], pa.int64()))
    Engine(str(tmp_path / "t"), options).write(0, batch)
    unique = Engine(str(tmp_path / "t"), {**options, "hoodie.merge.allow.duplicate.on.inserts": "false"})
    unique.write(1, rows([1, 2, 3], ts=5, v="new"))
    assert contents(tmp_path / "t") == sorted(tuples(rows([1, 2, 3], ts=5, v="new")))


def test_a_delete_does_not_look_at_other_columns(tmp_path):
    engine(tmp_path / "t").write(0, rows(range(6)))
    delete = engine(tmp_path / "t", **{"hoodie.datasource.write.operation": "delete"})
    delete.write(1, rows(range(3)).set_column(2, "ts", pa.array(["no number"] * 3)))
    assert [row[0] for row in contents(tmp_path / "t")] == ["k3", "k4", "k5"]


def test_a_delete_whose_keys_would_be_spelled_differently_is_refused(tmp_path):
    engine(tmp_path / "t").write(0, rows(range(6)))
    delete = engine(tmp_path / "t", **{"hoodie.datasource.write.operation": "delete"})
    with pytest.raises(SchemaMismatchError, match="column 'id' is int64, the table has string"):
        delete.write(1, pa.table({"id": [1, 2], "p": ["p1", "p2"]}))
    assert len(contents(tmp_path / "t")) == 6


def test_a_file_that_lost_all_its_rows_takes_new_ones(tmp_path):
    options = {"hoodie.merge.allow.duplicate.on.inserts": "false"}
    Engine(str(tmp_path / "t"), options).write(0, rows(range(5), lambda _: "p"))
    engine(tmp_path / "t", **{"hoodie.datasource.write.operation": "delete"}).write(1, rows(range(5), lambda _: "p"))
    assert contents(tmp_path / "t") == []
    Engine(str(tmp_path / "t"), options).write(2, rows(range(3), lambda _: "p"))
    engine(tmp_path / "t").write(3, rows(range(2, 4), lambda _: "p", ts=1))
    assert [row[0] for row in contents(tmp_path / "t")] == ["k0", "k1", "k2", "k3"]


def test_a_filter_that_deletes_have_filled_is_built_anew(tmp_path):
    sink = engine(tmp_path / "t")
    delete = engine(tmp_path / "t", **{"hoodie.datasource.write.operation": "delete"})
    delete.writer.lease = sink.writer.lease
    for number in range(12):
        sink.write(number, rows(range(number * 100, number * 100 + 100), lambda _: "p"))
        delete.write(None, rows(range(number * 100, number * 100 + 90), lambda _: "p").select(["id", "p"]))
    [file] = list_snapshot_files(HudiTable.open(str(tmp_path / "t")))
    with StoredBaseFile(HudiTable.open(str(tmp_path / "t")).storage, file.path) as stored:
        bloom = filter_of_footer(stored.footer, 100_000)
    strangers = pa.array([f"stranger {number}" for number in range(20_000)])
    assert bloom.may_contain(strangers).sum() < 20


@pytest.mark.parametrize("column", ["id", "p"])
def test_columns_of_the_key_keep_their_type(column):
    config = TableConfig("t", ("id",), ("p",))
    table = pa.schema([("id", pa.float64()), ("p", pa.float64()), ("v", pa.float64())])
    batch = [pa.field(name, pa.int64() if name in (column, "v") else pa.float64()) for name in table.names]
    with pytest.raises(SchemaMismatchError, match=f"column '{column}' is int64, the table has double"):
        check_keys_keep_their_types(config, pa.schema(batch), table)
    check_keys_keep_their_types(config, table, table)


@pytest.mark.parametrize("index", ["BLOOM", "SIMPLE", "BUCKET", "GLOBAL_BLOOM"])
def test_how_long_the_index_took_is_told_and_measured(tmp_path, index):
    import prometheus_client

    from streaming.metrics import PrometheusMetrics

    path = str(tmp_path / index)  # older versions of pytest give a folder's name again, and metrics stay
    metrics = PrometheusMetrics()

    def measured(what, part):
        return prometheus_client.REGISTRY.get_sample_value(
            f"hudistream_index_seconds_{part}", {"table": path, "what": what}
        )

    added = Engine(path, {"hoodie.index.type": index, "hoodie.bucket.index.num.buckets": "4"}).write(0, rows(range(90)))
    metrics(added)
    assert (added.index_lookup_seconds, measured("lookup", "count")) == (0, None) or index == "BUCKET"
    changed = engine(path, **{"hoodie.index.type": index}).write(1, rows(range(80, 100), ts=1))
    metrics(changed)
    assert changed.index_lookup_seconds == pytest.approx(changed.lookup.spent_ms / 1000, abs=1e-5)
    assert changed.index_update_seconds == pytest.approx(changed.lookup.update_ms / 1000, abs=1e-5)
    assert 0 < changed.index_update_seconds < 10
    assert 0 < changed.index_lookup_seconds < 10
    for what, seconds in (("lookup", changed.index_lookup_seconds), ("update", changed.index_update_seconds)):
        assert measured(what, "count") == 1
        assert measured(what, "sum") == pytest.approx(seconds)

"""The sink on S3, over HTTP: a real client against moto's server."""

import gc
import random
import threading

import pyarrow as pa
import pytest
from engine import OPTIONS, Engine, key_set, rows, undo_nothing
from needs import require
from s3_server import race_of_creators, s3_options

from streaming import ArrowSink, HudiSink
from table import InvalidConfigError, StorageError, archive, clean, read_table
from table.clock import parse_instant_time
from table.hudi_table import HudiTable
from table.metadata_table.file_lists import load_file_lists
from table.metadata_table.metadata_table import MetadataTable
from table.options.groups import KEEP_LATEST_FILE_VERSIONS, ArchiveSettings, CleanSettings
from table.scan.read_plan import read_rows
from table.scan.scan import make_scan
from table.storage.byte_ranges import ByteRange
from table.storage.opening import open_storage
from table.timeline.instant import Action


@pytest.fixture(scope="module")
def s3():
    """Options for fsspec, and an empty bucket called `lake`."""
    with s3_options() as options:
        yield options


def test_only_one_of_two_puts_creates_an_object_empty_ones_too(s3):
    storage = open_storage("s3a://lake/put", s3)
    for name, data in (("full", b"1"), ("empty", b"")):
        assert storage.create_exclusive(name, data)
        assert not storage.create_exclusive(name, b"2")
        assert storage.read(name) == data
    [won] = race_of_creators("s3a://lake/put", s3, "raced")
    assert storage.read("raced") == won
    assert {entry.name for entry in storage.list_dir("")} == {"full", "empty", "raced"}
    assert all(entry.modified_ms > 0 for entry in storage.list_dir(""))


def test_a_server_that_ignores_the_condition_is_refused_before_anything_is_created(s3, monkeypatch):
    storage = open_storage("s3a://lake/ignored", {**s3, "default_block_size": 7 << 20})  # an instance of its own
    inner = type(storage._fs)._call_s3

    async def forgetful(self, method, *given, **named):
        named.pop("IfNoneMatch", None)
        return await inner(self, method, *given, **named)

    monkeypatch.setattr(type(storage._fs), "_call_s3", forgetful)
    with pytest.raises(InvalidConfigError, match="honours If-None-Match"):
        storage.create_exclusive("a", b"1")
    assert storage.list_tree("") == {}


def test_what_another_process_wrote_is_seen_whatever_was_listed_before(s3):
    path = "s3a://lake/seen"
    here, elsewhere = open_storage(path, s3), open_storage(path, {**s3, "default_block_size": 6 << 20})
    assert here._fs is not elsewhere._fs  # each knows of its own writes alone, as in two processes
    here.put("p/a", b"1")
    assert [entry.name for entry in here.list_dir("p")] == ["a"]
    assert set(here.list_tree("")) == {"p/a"}
    elsewhere.put("p/a", b"longer")
    elsewhere.put("p/b", b"2")
    assert here.open_input("p/b").read() == b"2"
    assert here.open_input("p/a").read() == b"longer"
    assert here._fs.exists(here._full("p/b"))
    assert {entry["name"].rsplit("/")[-1] for entry in here._fs.ls(here._full("p"), detail=True)} == {"a", "b"}


def test_a_file_of_a_known_size_is_not_asked_for_it(s3, monkeypatch):
    storage = open_storage("s3a://lake/sized", s3)
    engine = Engine(storage)
    engine.write(0, rows(range(30)))
    asked = []
    kind = type(storage._fs)
    call = kind._call_s3
    monkeypatch.setattr(
        kind,
        "_call_s3",
        lambda self, method, *a, **k: asked.append((method, k.get("Key"))) or call(self, method, *a, **k),
    )
    assert read_table("s3a://lake/sized", storage_options=s3).num_rows == 30
    assert [key for method, key in asked if method == "head_object" and key.endswith(".parquet")] == []
    assert any(key.endswith(".parquet") for method, key in asked if method == "get_object")
    monkeypatch.undo()
    plan = make_scan(HudiTable.open("s3a://lake/sized", s3)).plan()
    for found in plan.slices:
        storage.delete(found.base_file.path)
    with pytest.raises(StorageError, match="was deleted while it was read"):
        read_rows(plan)


def test_batches_rollback_and_replay_on_s3(s3):
    path = "s3a://lake/engine"
    Engine(open_storage(path, s3)).write(0, rows(range(30)))

    class Died(BaseException):
        pass

    def dies(plan, table):
        inner(plan, table)
        raise Died

    engine = Engine(open_storage(path, s3))
    inner, engine.distribute = engine.distribute, dies
    undo_nothing(engine.writer)
    with pytest.raises(Died):
        engine.write(1, rows(range(30, 60)))
    assert key_set(read_table(path, storage_options=s3)) == key_set(rows(range(30)))
    Engine(open_storage(path, s3)).write(1, rows(range(30, 60)))
    assert Engine(open_storage(path, s3)).write(1, rows(range(30, 60))).skipped
    assert key_set(read_table(path, storage_options=s3)) == key_set(rows(range(60)))
    timeline = HudiTable.open(path, s3).load_timeline()
    assert len(timeline.completed_of(Action.ROLLBACK)) == 1
    assert timeline.pending == ()
    storage = open_storage(path, s3)
    assert storage.list_dir(".hoodie/.temp") == []
    assert storage.list_dir(".hoodie/.heartbeat") == []


@pytest.mark.spark
def test_the_sink_unchanged_on_s3(s3, spark):
    path = "s3a://lake/spark/events"
    sink = HudiSink(path, OPTIONS, storage_options=s3)
    for batch_id in range(3):
        frame = spark.range(batch_id * 50, batch_id * 50 + 50).selectExpr(
            "concat('k', id) id", "concat('p', id % 3) p", "id ts", "'v' v"
        )
        sink(frame, batch_id)
    assert sink.last_batch.files_topped_up == 3
    assert key_set(read_table(path, storage_options=s3)) == sorted(f"k{n}" for n in range(150))
    hudi_rs = require("hudi")
    url = s3["client_kwargs"]["endpoint_url"]
    table = (
        hudi_rs.HudiTableBuilder.from_base_uri("s3://lake/spark/events")
        .with_options(
            {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_ENDPOINT_URL": url,
             "AWS_REGION": "eu-west-1", "AWS_ALLOW_HTTP": "true"}
        )
        .build()
    )  # fmt: skip
    assert sum(batch.num_rows for batch in table.read()) == 150


def test_a_copy_is_made_by_the_store_itself(s3, monkeypatch):
    storage = open_storage("s3://lake/copied", s3)
    content = bytes(range(256)) * 24_000  # more than the least part of a multipart upload
    storage.put("a", content)
    asked = []
    fs = storage._fs
    call = fs.call_s3
    monkeypatch.setattr(fs, "call_s3", lambda method, **given: asked.append((method, given)) or call(method, **given))
    cat = fs.cat_file

    def whole(path, start=None, end=None, **how):
        return cat(path, **how) if start is end is None else pytest.fail("the old bytes travel")

    monkeypatch.setattr(fs, "cat_file", whole)
    for length in (len(content), 5 * 1024 * 1024 + 1):
        asked.clear()
        stage = storage.stage("20260101000000000", "b")
        sink = storage.open_copy("a", [ByteRange(0, length)], "b", stage)
        assert sink.tell() == length
        for _ in range(3):
            sink.write(b"x" * 4_000_000)
        sink.write(b"end")
        assert sink.tell() == length + 12_000_003
        sink.close()
        assert not storage.exists("b")
        storage.publish("b", stage, sink)
        assert [method for method, _ in asked if method.startswith("upload")] == [
            "upload_part_copy",
            "upload_part",
            "upload_part",
        ]
        assert storage.read("b") == content[:length] + b"x" * 12_000_000 + b"end"
        assert storage.delete("b")
    monkeypatch.undo()
    small = storage.open_copy("a", [ByteRange(0, 1000)], "c")
    small.write(b"end")
    small.close()
    assert storage.read("c") == content[:1000] + b"end"
    with pytest.raises(StorageError, match="copy 'missing'"):
        storage.open_copy("missing", [ByteRange(0, len(content))], "d")
    with pytest.raises((StorageError, FileNotFoundError)):
        storage.open_copy("missing", [ByteRange(0, 10)], "d")
    assert not storage.exists("d")


def test_a_file_that_was_let_go_of_is_not_uploaded_when_it_is_freed(s3):
    storage = open_storage("s3://lake/let-go", s3)
    storage.put("short", b"1234")
    output = storage.open_output("a")
    output.write(b"half")
    storage.discard("a", None, output)
    with pytest.raises(StorageError):
        storage.open_copy("short", [ByteRange(0, 9)], "b")
    del output
    gc.collect()
    assert not storage.exists("a")
    assert not storage.exists("b")


@pytest.mark.parametrize(
    ("pieces", "calls"),
    [
        ([(0, 5_500_000), (5_600_000, 6_000_000)], ["copy", "copy", ""]),
        ([(10, 100), (200, 11_000_000)], ["", "copy", ""]),  # the small one grows into a part of its own
        ([(0, 2_500_000), (2_600_000, 3_000_000), (5_700_000, 6_000_000)], ["", "copy", ""]),  # much waits already
        ([(10, 100), (200, 6_000_000)], [""]),  # too little behind it for S3 to copy
        ([(0, 6_000_000), (6_000_100, 200), (7_000_000, 4_000_000)], ["copy", ""]),
        ([(5, 3_000_000), (3_000_005, 3_000_000)], ["copy", ""]),  # neighbours are one piece
    ],
)
def test_pieces_of_an_object_are_put_together(s3, monkeypatch, pieces, calls):
    storage = open_storage("s3://lake/pieces", s3)
    content = random.Random(2).randbytes(12_000_000)
    storage.put("a", content)
    asked = []
    call = storage._fs.call_s3
    monkeypatch.setattr(storage._fs, "call_s3", lambda method, **given: asked.append(method) or call(method, **given))
    stage = storage.stage("20260101000000000", "b")
    sink = storage.open_copy("a", [ByteRange(*piece) for piece in pieces], "b", stage)
    expected = b"".join(content[start : start + length] for start, length in pieces)
    assert sink.tell() == len(expected)
    sink.write(b"end")
    sink.close()
    storage.publish("b", stage, sink)
    assert storage.read("b") == expected + b"end"
    prefix = "upload_part"
    assert [method[len(prefix) + 1 :] for method in asked if method.startswith(prefix)] == calls


def test_files_grow_by_copying_on_s3(s3):
    path = "s3a://lake/grown"
    options = {"hoodie.parquet.max.file.size": str(100 << 20), "hoodie.parquet.block.size": "400000"}
    rng = random.Random(1)
    wide = [rng.randbytes(400).hex() for _ in range(18_000)]

    def batch(first, count):
        table = rows(range(first, first + count), lambda _: "p0")
        return table.set_column(3, "v", pa.array(wide[first : first + count]))

    engine = Engine(open_storage(path, s3), options, batch_rows=500)
    engine.write(0, batch(0, 17_000))
    summary = engine.write(1, batch(17_000, 1000))
    assert (summary.files_topped_up, summary.reencoded) == (1, {})
    assert summary.bytes_copied > 5 * 1024 * 1024
    assert read_table(path, storage_options=s3).num_rows == 18_000


def test_folders_of_a_table_are_listed_side_by_side(s3, monkeypatch):
    from table.view.store_listing import StorageListing

    storage = open_storage("s3a://lake/wide", s3)
    Engine(storage).write(0, rows(range(40), lambda number: f"a/p{number % 20}"))
    under_way, most, lock = [0], [0], threading.Lock()
    inner = type(storage).list_dir

    def counted(self, path):
        with lock:
            under_way[0] += 1
            most[0] = max(most[0], under_way[0])
        try:
            return inner(self, path)
        finally:
            with lock:
                under_way[0] -= 1

    monkeypatch.setattr(type(storage), "list_dir", counted)
    assert StorageListing(storage).list_partition_paths() == sorted(f"a/p{number}" for number in range(20))
    assert most[0] > 1


def test_cleaning_on_s3_deletes_in_bulk(s3, monkeypatch):
    path = "s3a://lake/cleaned"
    storage = open_storage(path, s3)
    engine = Engine(storage)
    for number in range(6):
        engine.write(number, rows(range(10 * number, 10 * number + 10)))
    table = HudiTable.open(path, s3)
    wanted = key_set(read_table(path, storage_options=s3))
    asked = []
    fs = storage._fs
    call = fs.call_s3
    monkeypatch.setattr(fs, "call_s3", lambda method, *a, **k: asked.append(method) or call(method, *a, **k))
    (outcome,) = clean(table, CleanSettings(commits_retained=2, grace_ms=0))
    assert sum(map(len, outcome.deleted.values())) == 9
    assert not outcome.failed
    assert asked.count("delete_objects") == 3, set(asked)  # one a partition
    assert "delete_object" not in asked
    assert key_set(read_table(path, storage_options=s3)) == wanted
    archive(table, ArchiveSettings(min_commits=3, max_commits=4), CleanSettings(commits_retained=2, grace_ms=0))
    assert len(table.load_timeline().completed_writes) == 3
    engine.write(6, rows([100]))
    assert len(key_set(read_table(path, storage_options=s3))) == len(wanted) + 1


@pytest.mark.slow
@pytest.mark.parametrize("strange", ["x[1]", "?", "*"])
def test_partition_paths_that_look_like_patterns_take_nothing_else_with_them_on_s3(s3, strange):
    path = f"s3a://lake/pattern{ord(strange[0])}{len(strange)}"
    storage = open_storage(path, s3)
    upsert = Engine(storage, {"hoodie.datasource.write.operation": "upsert"})
    for number in range(3):
        upsert.write(number, rows(range(30), lambda key: [strange, "A", "x1"][key % 3], ts=number))
    upsert.writer.stop()
    table = HudiTable.open(path, s3)
    (outcome,) = clean(table, CleanSettings(commits_retained=1, grace_ms=0))
    assert [len(outcome.deleted[name]) for name in (strange, "A", "x1")] == [1, 1, 1]
    assert not outcome.failed
    assert key_set(read_table(path, storage_options=s3)) == key_set(rows(range(30)))
    emptying = {"hoodie.datasource.write.operation": "insert_overwrite_table"}
    Engine(storage, emptying, query_id=None).write(None, rows(range(30, 60), lambda key: ["A", "x1"][key % 2]))
    clean(table, CleanSettings(policy=KEEP_LATEST_FILE_VERSIONS, versions_retained=1, grace_ms=0))
    assert storage.list_dir(strange) == []
    assert key_set(read_table(path, storage_options=s3)) == key_set(rows(range(30, 60)))


@pytest.mark.slow
def test_delta_commits_and_compaction_on_s3(s3):
    path = "s3://lake/deltas"
    options = {
        "hoodie.datasource.write.table.type": "MERGE_ON_READ",
        "hoodie.datasource.write.operation": "upsert",
        "hoodie.compact.inline": "true",
        "hoodie.compact.inline.max.delta.commits": "3",
    }
    storage = open_storage(path, s3)
    engine = Engine(storage, options)
    for number in range(5):
        engine.write(number, rows(range(number, number + 9), ts=number, v=str(number)))
    engine.writer.stop()
    found = {row["id"]: row["v"] for row in read_table(path, storage_options=s3).to_pylist()}
    assert found == {f"k{n}": str(min(n, 4)) for n in range(13)}
    done = {entry.name: entry.modified_ms for entry in storage.list_dir(".hoodie")}
    for name in [name for name in done if name.endswith((".deltacommit", ".commit"))]:
        # whole seconds, as they are shown to whoever reads log files
        assert done[name] // 1000 * 1000 >= parse_instant_time(name.partition(".")[0]), name
    assert sum(name.endswith(".commit") for name in done) == 1


@pytest.mark.slow
@pytest.mark.parametrize("version", [6, 8])
def test_lists_of_files_are_maintained_on_s3(s3, version):
    """Made, told by batches, compacted, cleaned and archived; a reader takes them and lists no data folder."""
    path = f"s3a://lake/lists{version}"
    options = {
        "hoodie.metadata.enable": "true",
        "hoodie.write.table.version": str(version),
        "hoodie.metadata.compact.max.delta.commits": "3",
        "hoodie.clean.async": "false",
        "hoodie.clean.commits.retained": "1",
        "hudistream.clean.grace.ms": "0",
    }
    options |= {"hoodie.datasource.write.operation": "upsert", "hoodie.clean.automatic": "true"}
    with ArrowSink(path, {**OPTIONS, **options}, s3) as sink:
        for number in range(9):
            sink.write(rows(range(number, number + 6), ts=number))
    table = HudiTable.open(path, s3)
    assert table.config.metadata_partitions == "files"
    own = MetadataTable.open(table.storage)
    assert any("_0-0-0_2" in entry.name for entry in own.list_files() if entry.name.endswith(".hfile"))
    lists = load_file_lists(table.storage, [instant.time for instant in table.load_timeline().completed_writes])
    found = {one: lists.files(one) for one in lists.partition_paths()}
    stored = {
        one: {e.name: e.size_bytes for e in entries if not e.is_dir and not e.name.startswith(".hoodie")}
        for one, entries in table.store_listing.walk()
    }
    assert found == stored
    assert len(key_set(read_table(path, storage_options=s3))) == 14

"""Rows that were erased lie in no file of the table, or the report names the file and the reason."""

import io
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudistream import ArrowSink, HudiTable, InvalidConfigError, erase, read_table
from streaming.cli.main import main
from streaming.router.aside import OWN_FOLDER, Waiting, put_aside
from streaming.router.split import Piece
from table.config.table_config import load_table_config
from table.files.bloom.bloom_filter import decode_filter
from table.files.hfile.read_hfile import HFile
from table.files.log.framing import BlockType, scan_blocks
from table.metadata_table.keep import drop_indexes
from table.options.groups import ArchiveSettings
from table.storage.opening import open_storage

FORMS = [("cow", 6), ("mor", 6), ("cow", 8), ("mor", 9)]
AT_ONCE = {"hudistream.clean.grace.ms": "0"}
SECRET = "the secret of 4711"


def fill(path, table_type, version, **more):
    options = {"hoodie.write.table.version": str(version), "hoodie.table.services.enabled": "false", **more}
    with ArrowSink(path, options, key="id", order_by="ts", table_type=table_type) as sink:
        for batch in range(4):
            users = [f"u{n}" for n in range(12)] + ["4711"]
            told = [f"v{batch}"] * 12 + [f"{SECRET} {batch}"]
            sink.write(pa.table({"id": users, "ts": [batch] * 13, "v": told}))
    assert holds_secret(path)


def holds_secret(path):
    """Files whose rows hold the secret, visible or not: Parquet files are read whole, other files by their bytes."""
    found = []
    for file in Path(path).rglob("*"):
        if file.is_file() and file.suffix == ".parquet":
            found += [file] if any(SECRET in str(v) for v in pq.read_table(file).to_pylist()) else []
        elif file.is_file() and SECRET.encode() in file.read_bytes():
            found.append(file)
    return found


@pytest.mark.parametrize(("table_type", "version"), FORMS)
def test_no_file_holds_the_rows(tmp_path, table_type, version):
    path = str(tmp_path / "t")
    fill(path, table_type, version)
    done = erase(path, where=[("id", "=", "4711")], options=AT_ONCE)
    assert (done.keys, done.deleted, done.is_final, done.traces) == (1, 1, True, ())
    assert not holds_secret(path)
    assert sorted(read_table(path).column("id").to_pylist()) == sorted(f"u{n}" for n in range(12))
    again = erase(path, ["4711"], options=AT_ONCE)
    assert (again.deleted, again.instant_time, again.is_final) == (0, None, True)


@pytest.mark.parametrize("table_type", ["cow", "mor"])
def test_what_holds_a_file_is_named(tmp_path, table_type):
    path = str(tmp_path / "t")
    fill(path, table_type, 6)
    savepoint = HudiTable.open(path).create_savepoint()
    done = erase(path, ["4711"], options=AT_ONCE)
    assert (done.deleted, done.is_final) == (1, False)
    assert {trace.why for trace in done.traces} == {"stays: a savepoint holds it"}
    assert all(trace.rows == 1 for trace in done.traces if trace.path.endswith(".parquet"))
    assert holds_secret(path)
    HudiTable.open(path).delete_savepoint(savepoint)
    assert erase(path, ["4711"], options=AT_ONCE).is_final
    assert not holds_secret(path)


def test_readers_have_their_time(tmp_path):
    path = str(tmp_path / "t")
    fill(path, "cow", 6)
    done = erase(path, ["4711"], options={"hudistream.clean.readers.max.share": "1000"})
    assert not done.is_final
    assert all("grace" in trace.why for trace in done.traces), done.traces
    assert len(done.traces) == len(holds_secret(path))


def test_bad_rows_are_counted(tmp_path):
    path = str(tmp_path / "t")
    fill(path, "cow", 6)
    options = {"hudistream.bad.rows": "quarantine"}
    with ArrowSink(path, options, key="id", order_by="ts") as sink:
        rows = pa.table({"id": ["4711", "u1"], "ts": pa.array([None, 9], pa.int64()), "v": ["x", "y"]})
        assert sink.write(rows).bad_rows == 1
    done = erase(path, ["4711"], options=AT_ONCE)
    assert (done.traces, done.bad_rows, done.is_final) == ((), 1, False)


def of_rows(path, folder, replace_key=None, **columns):
    """A sink that puts rows without an order aside."""
    options = {"hudistream.bad.rows": "quarantine", "hudistream.bad.rows.path": folder}
    with ArrowSink(path, options, order_by="ts") as sink:
        assert sink.write(pa.table({"ts": pa.array([None], pa.int64()), **columns})).bad_rows == 1


def test_bad_rows_are_looked_for_where_the_options_say(tmp_path):
    path, aside = str(tmp_path / "t"), str(tmp_path / "aside")
    fill(path, "cow", 6)
    of_rows(path, aside, id=["4711"], v=["x"])
    told = {**AT_ONCE, "hudistream.bad.rows.path": aside}
    done = erase(path, ["4711"], options=told)
    assert (done.bad_rows, done.is_final, done.unknown) == (1, False, ())
    untold = erase(path, ["4711"], options=AT_ONCE)
    assert (untold.bad_rows, untold.is_final) == (0, False)
    assert "give hudistream.bad.rows.path" in untold.unknown[0], "a commit names a file that is not beside the table"
    shutil.rmtree(aside)
    assert erase(path, ["4711"], options=told).is_final, "the files were deleted"


def test_bad_rows_of_a_key_of_several_columns(tmp_path):
    path = str(tmp_path / "t")
    with ArrowSink(path, key=["id", "sub"], order_by="ts") as sink:
        sink.write(pa.table({"id": ["a", "4711"], "sub": ["1", "1"], "ts": [1, 1]}))
    of_rows(path, None, id=["4711"], sub=["1"])
    of_rows(path, None, id=["4711"], sub=["2"])
    done = erase(path, ["id:4711,sub:1"], options=AT_ONCE)
    assert (done.deleted, done.bad_rows, done.is_final) == (1, 1, False)


def test_bad_rows_without_a_key_may_be_of_anybody(tmp_path):
    path = str(tmp_path / "t")
    fill(path, "cow", 6)
    of_rows(path, None, id=pa.array([None], pa.string()), v=[SECRET])
    done = erase(path, ["4711"], options=AT_ONCE)
    assert (done.bad_rows, done.is_final) == (0, False)
    assert "no record key is known of 1 bad rows" in done.unknown[0]


def test_rows_that_wait_in_a_router_are_counted(tmp_path):
    path = str(tmp_path / "t")
    fill(path, "cow", 6)
    own = open_storage(str(tmp_path / OWN_FOLDER))
    put_aside(own, waiting("other", {"id": ["4711"]}))
    assert erase(path, ["4711"], options=AT_ONCE).is_final
    put_aside(own, waiting("t", {"id": ["4711", "u1"]}))
    done = erase(path, ["4711"], options=AT_ONCE)
    assert (done.waiting_rows, done.unknown, done.is_final) == (1, (), False)


def test_rows_that_wait_with_their_key_in_another_column_are_not_known(tmp_path):
    path = str(tmp_path / "t")
    fill(path, "cow", 6)
    put_aside(open_storage(str(tmp_path / OWN_FOLDER)), waiting("t", {"after": [{"id": "4711"}]}))
    done = erase(path, ["4711"], options=AT_ONCE)
    assert (done.waiting_rows, done.is_final) == (0, False)
    assert "rows that wait" in done.unknown[0]


def test_a_folder_beside_the_table_that_cannot_be_read_is_not_known(tmp_path):
    path = str(tmp_path / "t")
    fill(path, "cow", 6)
    record = tmp_path / OWN_FOLDER / "aside" / "other" / f"{1:020d}.json"
    record.parent.mkdir(parents=True)
    record.write_text("no record")
    done = erase(path, ["4711"], options=AT_ONCE)
    assert (done.deleted, done.traces, done.is_final) == (1, (), False)
    assert f"{OWN_FOLDER} cannot be searched" in done.unknown[0]


def waiting(name, columns):
    rows, sink = pa.table(columns), pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as stream:
        stream.write_table(rows)
    data = sink.getvalue().to_pybytes()
    return Waiting(name, 3, "query", (Piece(name, len(rows), len(data), frozenset(columns), None, data),), "why")


INDEXES = {
    "hoodie.metadata.enable": "true",
    "hoodie.metadata.index.column.stats.enable": "true",
    "hoodie.metadata.record.index.enable": "true",
}


@pytest.mark.parametrize(("table_type", "version"), FORMS)
@pytest.mark.parametrize(
    "deleted_before", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["erased", "deleted before"]
)
@pytest.mark.parametrize(
    "more",
    [
        {},
        {"hoodie.bloom.index.filter.type": "DYNAMIC_V0"},
        {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2"},
        INDEXES,
    ],
    ids=["fitted", "dynamic", "bucket", "indexes"],
)
def test_nothing_that_is_derived_from_a_key_is_left(tmp_path, table_type, version, deleted_before, more):
    path, key = str(tmp_path / "t"), "zz.4711"
    options = {
        "hoodie.write.table.version": str(version),
        "hoodie.table.services.enabled": "false",
        "hoodie.parquet.block.size": "60000",  # several row groups: most are copied
        **AT_ONCE,
        **more,
    }
    with ArrowSink(path, options, key="id", order_by="ts", table_type=table_type) as sink:
        for batch in range(2):
            users = [f"u{n:05d}" for n in range(3000)] + [key]
            sink.write(pa.table({"id": users, "ts": [batch] * 3001, "v": [f"v{user}" for user in users]}))
        if deleted_before:
            sink.delete(where=[("id", "=", key)])
    assert derived_from(path, key)
    done = erase(path, [key], options=options)
    assert (done.deleted, done.is_final, done.traces) == (0 if deleted_before else 1, True, ())
    assert not derived_from(path, key)
    assert len(read_table(path)) == 3000
    assert not HudiTable.open(path).check().findings


def derived_from(path, key):
    """Where a key is, decoded or derived: rows, dictionaries, statistics, entries and filters of footers, HFiles."""
    found = []
    for file in (each for each in Path(path).rglob("*") if each.is_file()):
        if key.encode() in file.read_bytes() + b"".join(unpacked(file)):
            found.append((file.name, "bytes"))
        if file.suffix == ".parquet" and ".hoodie" not in file.parts:
            found += [(file.name, what) for what in derived_in(pq.ParquetFile(file), key)]
    return found


def unpacked(file):
    """Keys and values of the HFiles in a file of the metadata table."""
    if file.suffix == ".hfile":
        yield from (part for entry in HFile(file.read_bytes()).entries() for part in entry)
    elif ".hoodie/metadata" in str(file) and ".log." in file.name:
        for place in scan_blocks(io.BytesIO(file.read_bytes())):
            if place.block.type is BlockType.HFILE_DATA:
                yield from (part for entry in HFile(bytes(place.block.content)).entries() for part in entry)


def derived_in(file, key):
    for column in file.read().columns:
        if any(key in str(value) for value in column.to_pylist()):
            yield "rows"
    footer = file.metadata
    for group in range(footer.num_row_groups):
        for column in range(footer.num_columns):
            told = footer.row_group(group).column(column).statistics
            if told is not None and told.has_min_max and key in f"{told.min}{told.max}":
                yield "statistics"
    entries = {name.decode(): value.decode() for name, value in footer.metadata.items()}
    bloom = decode_filter(entries["org.apache.hudi.bloomfilter"], entries.get("hoodie_bloom_filter_type_code"), 0)
    if bloom.may_contain(pa.array([key])).any():
        yield "filter"
    if any(key in value for value in entries.values()):
        yield "entries"


def test_a_key_that_moved_is_told_by_no_footer_of_its_earlier_partition_paths(tmp_path):
    path, key = str(tmp_path / "t"), "zz.4711"
    options = {"hoodie.index.type": "GLOBAL_BLOOM", "hoodie.table.services.enabled": "false", **AT_ONCE}
    users = [f"u{n:04d}" for n in range(900)]
    with ArrowSink(path, options, key="id", partition_by="city", order_by="ts") as sink:
        sink.write(pa.table({"id": users, "city": ["a", "b", "c"] * 300, "ts": [0] * 900}))
        for batch, city in enumerate(("a", "b", "c")):
            sink.write(pa.table({"id": [key], "city": [city], "ts": [batch]}))
    assert len(derived_from(path, key)) > 1
    assert erase(path, [key], options=options).is_final
    assert not derived_from(path, key)


def test_a_file_that_no_commit_names_is_looked_at(tmp_path):
    path = str(tmp_path / "t")
    fill(path, "cow", 6)
    [held] = [file for file in holds_secret(path) if file.suffix == ".parquet"][:1]
    stray = held.with_name(f"11111111-2222-3333-4444-555555555555-0_0-0-0_{'9' * 17}.parquet")
    shutil.copy(held, stray)
    done = erase(path, ["4711"], options=AT_ONCE)
    assert [trace.path for trace in done.traces] == [stray.name]
    assert "no completed commit names it" in done.traces[0].why


@pytest.mark.parametrize("archived", [False, True], ids=["active", "archived"])
@pytest.mark.parametrize("version", [6, 8])
def test_partition_paths_without_rows_are_traces_of_their_own(tmp_path, version, archived):
    path = str(tmp_path / "t")
    options = {
        "hoodie.write.table.version": str(version),
        "hoodie.table.services.enabled": "false",
        "hoodie.metadata.enable": str(not archived),  # archival waits for compactions of a metadata table
        **AT_ONCE,
    }
    with ArrowSink(path, options, key="id", partition_by="city", order_by="ts") as sink:
        sink.write(pa.table({"id": ["u1", "4711"], "city": ["köln", "süd dorf"], "ts": [0, 0]}))
        for batch in range(1, 6 if archived else 1):
            sink.write(pa.table({"id": ["u1"], "city": ["köln"], "ts": [batch]}))
    HudiTable.open(path).write_manifest("delta")
    if archived:
        HudiTable.open(path).archive(ArchiveSettings(min_commits=1, max_commits=2, batch=2))
    done = erase(path, ["4711"], options=options)
    assert (done.deleted, done.traces, done.rows_are_gone, done.is_final) == (1, (), True, False)
    [left] = done.partition_traces
    assert left.partition_path == "süd dorf"
    places = {place.replace(".hoodie/timeline/history", ".hoodie/archived") for place in left.places}
    assert "süd dorf" in places
    assert any(place.startswith("_delta_log/") for place in places)
    assert any(place.startswith(".hoodie/metadata/files/") for place in places) != archived
    assert any(".commit" in place for place in places)
    assert any(place.startswith(".hoodie/archived/") for place in places) == archived
    again = erase(path, ["4711"], options=options)
    assert (again.rows_are_gone, again.is_final) == (True, False), "it may have been the path of an erased row"


def test_a_partition_path_in_which_rows_remain_is_no_trace(tmp_path):
    path = str(tmp_path / "t")
    with ArrowSink(path, key="id", partition_by="city", order_by="ts") as sink:
        sink.write(pa.table({"id": ["u1", "4711"], "city": ["x", "x"], "ts": [0, 0]}))
    assert erase(path, ["4711"], options=AT_ONCE).is_final


@pytest.mark.parametrize("version", ["9", "6"])
@pytest.mark.parametrize("way", ["erase", "erase by bloom filters", "delete", "delete without the index"])
def test_rows_that_lie_in_log_files_alone_are_deleted(tmp_path, version, way):
    path = str(tmp_path / "t")
    options = {
        "hoodie.write.table.version": version,
        "hoodie.metadata.enable": "true",
        "hoodie.metadata.record.index.enable": "true",
        "hoodie.index.type": "RECORD_INDEX",
        "hoodie.datasource.compaction.async.enable": "false",
        "hudistream.new.rows.join.logs": "true",
    }
    with ArrowSink(path, options, key="id", order_by="ts", table_type="mor") as sink:
        for told, users in (("old", range(6)), (SECRET, range(6, 12))):
            sink.write(pa.table({"id": [f"u{n}" for n in users], "ts": [0] * 6, "v": [told] * 6}))
    assert len(list(Path(path).glob("*.parquet"))) == 1
    if "by" in way or "without" in way:
        config = load_table_config(HudiTable.open(path).storage)
        drop_indexes(HudiTable.open(path).storage, config, frozenset({"record_index"}), "test")
    if way.startswith("delete"):
        assert HudiTable.open(path).delete([("v", "=", SECRET)]).rows_deleted == 6
    else:
        done = erase(path, where=[("v", "=", SECRET)], options=AT_ONCE)
        assert (done.keys, done.deleted, done.rows_are_gone) == (6, 6, True)
        assert not holds_secret(path)
    assert sorted(read_table(path)["id"].to_pylist()) == [f"u{n}" for n in range(6)]


def test_a_key_with_a_comma_is_one_key(tmp_path, capsys):
    path = str(tmp_path / "t")
    with ArrowSink(path, key="id") as sink:
        sink.write(pa.table({"id": ["Doe,John", "Doe", "John"]}))
    now = ("--set", "hudistream.clean.grace.ms=0")
    assert main(["erase", path, "--keys", "Doe,John", *now]) == 0
    assert read_table(path)["id"].to_pylist() == ["Doe", "John"]
    capsys.readouterr()
    assert main(["erase", path, "--keys", "John,Doe", *now]) == 1
    told = capsys.readouterr().out
    assert "no row of the newest snapshot had the key 'John,Doe'" in told
    assert "if it is a list, write --keys John Doe" in told
    assert read_table(path)["id"].to_pylist() == ["Doe", "John"]


def test_the_command(tmp_path, capsys):
    path = str(tmp_path / "t")
    fill(path, "cow", 6)
    assert main(["erase", path]) == 2
    waits = ["--set", "hudistream.clean.readers.max.share=1000"]
    assert main(["erase", path, "--where", "id=4711", *waits]) == 1
    assert "not final yet" in capsys.readouterr().out
    assert main(["erase", path, "--keys", "4711", "unknown", "--set", "hudistream.clean.grace.ms=0"]) == 0
    assert "no file of the table holds these rows" in capsys.readouterr().out
    assert not holds_secret(path)
    with pytest.raises(InvalidConfigError, match="keys, or where"):
        erase(path)

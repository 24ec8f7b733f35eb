"""Commit JSON, Avro plans, file names, markers, partition metadata: against what real Hudi wrote, and round trip."""

import glob
import json
import os

import fastavro
import pytest
from engine import Engine, rows
from hypothesis import given
from hypothesis import strategies as st

from table import read_table
from table.errors import CorruptFileError
from table.files.markers import create_marker, delete_markers, list_marked_instants, list_markers
from table.files.names import (
    BaseFileName,
    LogFileName,
    MarkerName,
    parse_base_file,
    parse_log_file,
    parse_marker,
)
from table.files.partition_metadata import format_partition_metadata
from table.storage.local import LocalStorage
from table.timeline.metadata.commit import CommitMetadata, WriteStat, decode_commit, encode_commit
from table.timeline.metadata.rollback import (
    RollbackMetadata,
    RollbackPlan,
    RollbackRequest,
    decode_rollback_metadata,
    decode_rollback_plan,
    encode_rollback_metadata,
    encode_rollback_plan,
)

NAMES = ["cow_insert_partitioned", "cow_upsert_delete", "cow_insert_overwrite", "streaming_sink", "mor_avro_logs"]


@pytest.mark.parametrize("name", NAMES)
def test_every_field_that_hudi_writes_survives_or_is_written(golden, name):
    path, _ = golden(name)
    files = [f for kind in ("commit", "deltacommit", "replacecommit") for f in glob.glob(f"{path}/.hoodie/*.{kind}")]
    assert files
    for file in files:
        with open(file, "rb") as handle:
            data = handle.read()
        theirs, ours = json.loads(data), json.loads(encode_commit(decode_commit(data)))
        assert ours.keys() >= theirs.keys() - {"partitionToReplaceFileIds"}
        assert ours.get("partitionToReplaceFileIds", {}) == theirs.get("partitionToReplaceFileIds", {})
        assert ours["extraMetadata"] == theirs["extraMetadata"]
        assert ours["operationType"] == theirs["operationType"]
        for partition, stats in theirs["partitionToWriteStats"].items():
            for mine, their in zip(ours["partitionToWriteStats"][partition], stats, strict=True):
                assert mine.keys() >= their.keys()
                for key in ("fileId", "path", "prevCommit", "prevBaseFile", "numWrites", "numInserts", "numDeletes",
                            "numUpdateWrites", "totalWriteBytes", "fileSizeInBytes", "partitionPath", "logFiles",
                            "baseFile"):  # fmt: skip
                    assert mine.get(key) == their.get(key), key


def test_an_empty_commit_says_nothing():
    assert decode_commit(b"") == CommitMetadata(operation="UNKNOWN")


@pytest.mark.parametrize("data", [b"{", b"[]", b'{"partitionToWriteStats": [1]}'])
def test_a_broken_commit_is_named(data):
    with pytest.raises(CorruptFileError, match="x.commit"):
        decode_commit(data, "x.commit")


text = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
stats = st.builds(
    WriteStat, text, text, text, text, st.none() | text, *[st.integers(0, 2**60)] * 7, create_ms=st.integers(0, 9)
)


@given(st.lists(stats, max_size=5), text, st.dictionaries(text, text), st.dictionaries(text, st.tuples(text)))
def test_commit_metadata_round_trips(written, operation, extra, replaced):
    order = sorted(written, key=lambda stat: stat.partition_path)
    before = CommitMetadata(tuple(order), operation or "INSERT", extra, replaced)
    after = decode_commit(encode_commit(before))
    assert sorted(map(repr, after.stats)) == sorted(map(repr, before.stats))
    assert (after.operation, after.extra, after.replaced) == (before.operation, extra, replaced)


def test_hudis_rollback_is_read(golden):
    path, _ = golden("cow_rolled_back")
    [plan_file] = glob.glob(f"{path}/.hoodie/*.rollback.requested")
    with open(plan_file, "rb") as file:
        plan = decode_rollback_plan(file.read())
    assert (plan.instant_time, plan.action) == ("20261121163038434", "commit")
    assert sorted(request.partition_path for request in plan.requests) == ["asia", "eu", "newpart", "us"]
    with open(plan_file.removesuffix(".requested"), "rb") as file:
        done = decode_rollback_metadata(file.read())
    assert done.instant_time == plan.instant_time
    assert sum(map(len, done.deleted.values())) == 4


def test_rollback_files_round_trip_and_have_hudis_schema(golden):
    path, _ = golden("cow_rolled_back")
    plan = RollbackPlan("1", "commit", (RollbackRequest("p", "f", "1", ("/t/p/a.parquet",)),))
    assert decode_rollback_plan(encode_rollback_plan(plan)) == plan
    done = RollbackMetadata("2", 5, "1", "commit", {"p": ("/t/p/a.parquet",)})
    assert decode_rollback_metadata(encode_rollback_metadata(done)) == done
    for kind, ours in (
        ("rollback.requested", encode_rollback_plan(plan)),
        ("rollback", encode_rollback_metadata(done)),
    ):
        [theirs] = glob.glob(f"{path}/.hoodie/*.{kind}")
        assert fields_of(theirs) == fields_of_bytes(ours)


def fields_of(file):
    with open(file, "rb") as handle:
        return fields_of_bytes(handle.read())


def fields_of_bytes(data):
    import io

    def names(schema):
        if isinstance(schema, list):
            return [names(branch) for branch in schema]
        if not isinstance(schema, dict):
            return schema
        if schema["type"] == "record":
            return [schema["name"].rsplit(".", 1)[-1], [(f["name"], names(f["type"])) for f in schema["fields"]]]
        return [schema["type"], names(schema.get("items") or schema.get("values"))]

    def plain(shape):
        # Java's string class is an annotation, not another type
        if isinstance(shape, list) and len(shape) == 2 and shape[0] == "string":
            return "string"
        return [plain(item) for item in shape] if isinstance(shape, (list, tuple)) else shape

    def unnamed(shape):
        if isinstance(shape, str):
            return shape.rsplit(".", 1)[-1]
        return [unnamed(item) for item in shape] if isinstance(shape, list) else shape

    return unnamed(plain(names(fastavro.reader(io.BytesIO(data)).writer_schema)))


@pytest.mark.parametrize("data", [b"", b"Obj", b"Obj\x01" + b"x" * 50])
def test_a_broken_plan_is_named(data):
    with pytest.raises(CorruptFileError):
        decode_rollback_plan(data)


ids = st.uuids().map(lambda u: f"{u}-0")
tokens = st.tuples(*[st.integers(0, 9999)] * 3).map(lambda t: "-".join(map(str, t)))
times = st.integers(10**16, 10**17 - 1).map(str)


@given(ids, tokens, times)
def test_base_file_names_round_trip(file_id, token, time):
    name = BaseFileName(file_id, token, time)
    assert parse_base_file(str(name)) == name
    assert parse_log_file(str(name)) is None


@given(ids, times, st.integers(1, 999), tokens)
def test_log_file_names_round_trip(file_id, time, version, token):
    name = LogFileName(file_id, time, version, token)
    assert parse_log_file(str(name)) == name
    assert parse_base_file(str(name)) is None


@given(
    text.filter(lambda t: "\0" not in t and not {"", ".", ".."} & {*t.split("/")}),
    st.sampled_from(["CREATE", "MERGE", "APPEND"]),
)
def test_marker_names_round_trip(data_file, kind):
    assert parse_marker(str(MarkerName(data_file, kind))) == MarkerName(data_file, kind)


@pytest.mark.parametrize("name", ["tmp123.parquet", ".hoodie_partition_metadata", "a_b.parquet", "a_b_c.parquet"])
def test_other_files_are_no_base_files(name):
    assert parse_base_file(name) is None


def test_both_marker_encodings_are_read(golden):
    for name, time, marked in (
        ("cow_with_failed_inflight", "20261121163022511", None),
        ("cow_with_failed_inflight_direct", "20261121163419066", None),
    ):
        path, _ = golden(name)
        markers = list_markers(LocalStorage(path), time)
        orphans = sorted(os.path.relpath(file, path) for file in glob.glob(f"{path}/*/*_{time}.parquet"))
        assert [marker.data_file for marker in markers] == orphans
        assert len(orphans) == 4
        assert {marker.kind for marker in markers} == {"MERGE", "CREATE"}, marked


def test_markers_are_listed_and_deleted(tmp_path):
    storage = LocalStorage(str(tmp_path))
    create_marker(storage, "20260101000000001", MarkerName("a/b/x.parquet", "CREATE"))
    create_marker(storage, "20260101000000001", MarkerName("y.parquet", "MERGE"))
    assert list_marked_instants(storage) == ["20260101000000001"]
    assert [str(m) for m in list_markers(storage, "20260101000000001")] == [
        "a/b/x.parquet.marker.CREATE",
        "y.parquet.marker.MERGE",
    ]
    delete_markers(storage, "20260101000000001")
    delete_markers(storage, "20260101000000001")
    assert list_marked_instants(storage) == []


@pytest.mark.parametrize(("path", "depth"), [("", 0), ("eu", 1), ("2023/11/14", 3)])
def test_partition_metadata_has_its_depth(path, depth):
    text = format_partition_metadata("20261121162941248", path, 1_795_277_388_000).decode()
    assert text == (
        f"#partition metadata\n#Sat Nov 21 16:09:48 UTC 2026\ncommitTime=20261121162941248\npartitionDepth={depth}\n"
    )


@pytest.mark.parametrize(
    "data_file",
    ["../other/f.parquet", "p/../../f.parquet", "/etc/f.parquet", "p//f.parquet", "./f.parquet", ".hoodie/x", "p/\0"],
)
def test_a_marker_of_a_path_out_of_the_table_is_none(tmp_path, data_file):
    assert parse_marker(f"{data_file}.marker.CREATE") is None
    time, folder = "20260101000000001", tmp_path / "t" / ".hoodie" / ".temp" / "20260101000000001"
    folder.mkdir(parents=True)
    names = [f"{data_file}.marker.CREATE", "p/a-0_0-0-0_20260101000000001.parquet.marker.CREATE"]
    (folder / "MARKERS.type").write_text("TIMELINE_SERVER_BASED")
    (folder / "MARKERS0").write_text("\n".join(names))
    assert [str(marker) for marker in list_markers(LocalStorage(str(tmp_path / "t")), time)] == names[1:]


@pytest.mark.parametrize("partition", [" lead", "trail ", "\u00a0"])
def test_a_partition_path_with_white_space_is_written_and_its_markers_are_found(tmp_path, partition):
    path = str(tmp_path / "t")
    for batch in range(2):
        Engine(path).write(batch, rows(range(batch, batch + 3), lambda _: partition))
    assert set(read_table(path, meta_columns=True).column("_hoodie_partition_path").to_pylist()) == {partition}

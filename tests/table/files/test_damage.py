"""Files damaged at random: whoever reads them says which one is damaged, and nothing else happens."""

import io
import os
from contextlib import contextmanager, suppress

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from engine import Engine, rows
from hypothesis import given, settings
from hypothesis import strategies as st
from tiers import examples

from table.errors import CorruptFileError, HudiError
from table.files.base.hudi_footer import filter_of_footer, stored_bounds
from table.files.base.stored_file import StoredBaseFile
from table.files.log.avro_data import encode_avro_content, read_avro_records
from table.files.log.delete_block import encode_deletes, read_deletes
from table.files.log.framing import BlockType, Header, LogBlock
from table.hudi_table import HudiTable
from table.options.groups import ArchiveSettings, CleanSettings
from table.scan.read_table import read_table
from table.schema.avro_schema import from_avro
from table.services.archival.archival import archive
from table.storage.interface import join
from table.storage.local import LocalStorage
from table.timeline.active_timeline import read_instant
from table.timeline.archive_log import encode_log_block, read_log_records
from table.timeline.archived_timeline import read_archived_commits
from table.timeline.metadata.avro_record import decode_record
from table.timeline.metadata.clean import (
    CleanMetadata,
    CleanPlan,
    decode_clean_metadata,
    decode_clean_plan,
    encode_clean_metadata,
    encode_clean_plan,
)
from table.timeline.metadata.commit import decode_commit
from table.timeline.metadata.compaction import (
    CompactionOperation,
    CompactionPlan,
    decode_compaction_plan,
    encode_compaction_plan,
)
from table.timeline.metadata.restore import RestorePlan, decode_restore_plan, encode_restore_plan
from table.timeline.metadata.rollback import (
    RollbackMetadata,
    RollbackPlan,
    RollbackRequest,
    decode_rollback_metadata,
    decode_rollback_plan,
    encode_rollback_metadata,
    encode_rollback_plan,
)
from table.timeline.metadata.savepoint import SavepointMetadata, decode_savepoint, encode_savepoint

TIME, FILES = (
    "20260101000000001",
    ("/t/p/a-0_0-0-0_20260101000000001.parquet", "/t/p/b-0_0-0-0_20260101000000001.parquet"),
)
COMPACTION = CompactionPlan((CompactionOperation("p", "a-0", TIME, "a-0.parquet", (".a-0.log.1_0-0-0",), {"X": 1.0}),))
LOG_SCHEMA = (
    """{"type": "record", "name": "r", "fields": [{"name": "a", "type": "string"}, {"name": "b", "type": "long"}]}"""
)


def decode_delete_block(data, file):
    """Deletes of a block, as a reader of a slice takes them."""
    return read_deletes(
        LogBlock(BlockType.DELETE, {Header.INSTANT_TIME: TIME}, data), pa.schema([("ts", pa.int64())]), file
    )


def decode_data_block(data, file):
    """Records of a block of rows."""
    header = {Header.INSTANT_TIME: TIME, Header.SCHEMA: LOG_SCHEMA}
    return list(read_avro_records(LogBlock(BlockType.AVRO_DATA, header, data), file))


CLEAN = CleanPlan("KEEP_LATEST_COMMITS", (TIME, "commit"), TIME, {"p": FILES}, ("q",), (TIME,))
AVRO = {
    "clean plan": (decode_clean_plan, encode_clean_plan(CLEAN)),
    "clean": (decode_clean_metadata, encode_clean_metadata(CleanMetadata(TIME, 7, CLEAN, {"p": FILES}, {"p": ("x",)}))),
    "rollback plan": (
        decode_rollback_plan,
        encode_rollback_plan(RollbackPlan(TIME, "commit", (RollbackRequest("p", "a-0", TIME, FILES),))),
    ),
    "rollback": (
        decode_rollback_metadata,
        encode_rollback_metadata(RollbackMetadata(TIME, 7, TIME, "commit", {"p": FILES})),
    ),
    "savepoint": (decode_savepoint, encode_savepoint(SavepointMetadata("me", 7, "why", {"p": FILES}))),
    "restore plan": (decode_restore_plan, encode_restore_plan(RestorePlan(TIME, ((TIME, "commit"),)))),
    "compaction plan": (decode_compaction_plan, encode_compaction_plan(COMPACTION)),
    "deletes": (
        decode_delete_block,
        encode_deletes(pa.array(["a", "b"]), "p", pa.table({"ts": pa.array([1, None], pa.int64())})),
    ),
    "rows of a log": (decode_data_block, encode_avro_content(LOG_SCHEMA, [{"a": "x", "b": 1}, {"a": "y", "b": 2}])),
    "requested replace": (lambda data, file: decode_record("requested_replace", data, file), encode_clean_plan(CLEAN)),
}


@contextmanager
def named_or_fine(file, kind=CorruptFileError):
    said = None
    try:
        yield
    except kind as error:
        said = str(error)
    assert said is None or file in said


# where in the file, as a share of it, and what comes there
edits = st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.binary(max_size=3), st.integers(0, 4)), max_size=4)
cuts = st.none() | st.floats(0, 1)


def damaged(data, changes, cut):
    found = bytearray(data)
    for share, new, length in changes:
        at = int(share * len(found))
        found[at : at + length] = new
    return bytes(found if cut is None else found[: int(cut * len(found))])


@pytest.mark.parametrize("kind", AVRO)
@given(edits, cuts)
@settings(max_examples=examples(150), deadline=2000)
def test_a_damaged_plan_is_named_or_read(kind, changes, cut):
    decode, data = AVRO[kind]
    with named_or_fine("20260101000000002.some.plan", HudiError):
        decode(damaged(data, changes, cut), "20260101000000002.some.plan")


# damage to the schema that the file brings along: such a field is not there, or is another
@pytest.mark.parametrize("kind", [kind for kind in AVRO if kind != "requested replace"])
def test_a_plan_without_its_fields_is_named(kind):
    decode, data = AVRO[kind]
    for at in range(len(data)):
        for flip in (1, 32):
            with named_or_fine("x.plan", HudiError):
                decode(data[:at] + bytes([data[at] ^ flip]) + data[at + 1 :], "x.plan")


@pytest.fixture(scope="module")
def commit(tmp_path_factory):
    path = str(tmp_path_factory.mktemp("damage") / "t")
    Engine(path).write(0, rows(range(9)))
    table = HudiTable.open(path)
    return read_instant(table.storage, table.load_timeline().completed_writes[-1])


@given(edits, cuts)
@settings(max_examples=examples(300), deadline=2000)
def test_a_damaged_commit_is_named_or_read(commit, changes, cut):
    with named_or_fine("20260101000000002.commit"):
        metadata = decode_commit(damaged(commit, changes, cut), "20260101000000002.commit")
        assert all(isinstance(value, str) for value in metadata.extra.values())
        assert metadata.file_groups is not None
        with suppress(CorruptFileError):
            from_avro(metadata.extra.get("schema", "{}"))


@pytest.mark.parametrize(
    "text",
    [
        "[]", "7", "{", "[" * 100_000,
        '{"partitionToWriteStats": {"p": [{"fileId": 7}]}}', '{"extraMetadata": {"a": 7}}',
        '{"partitionToWriteStats": {"p": [{"numWrites": "7"}]}}',
        '{"operationType": 7}', '{"partitionToWriteStats": 7}',
        '{"partitionToReplaceFileIds": {"p": [7]}}', '{"partitionToWriteStats": {"p": [{"runtimeStats": [7]}]}}',
    ],
)  # fmt: skip
def test_a_commit_of_another_form_is_named(text):
    with pytest.raises(CorruptFileError, match="x.commit"):
        decode_commit(text.encode(), "x.commit")


NESTED = pa.table(
    {
        "_hoodie_record_key": [f"k{n:03}" for n in range(90)],
        "_hoodie_commit_time": ["1"] * 90,
        "n": pa.array(range(90), pa.int64()),
        "l": pa.array([[1, None], [], None] * 30, pa.list_(pa.int32())),
        "s": pa.array([{"a": 1, "b": "x"}, None] * 45),
        "f": pa.array([1.5] * 90),
        "b": pa.array([True, None, False] * 30),
    }
)


def parquet(**options):
    sink = io.BytesIO()
    pq.write_table(NESTED, sink, row_group_size=40, **options)
    return sink.getvalue()


PARQUET = {
    "plain": parquet(),
    "with page indexes": parquet(write_page_index=True, compression="zstd"),
    "without statistics": parquet(write_statistics=False, use_dictionary=False, version="1.0"),
}


def read_all(folder):
    with StoredBaseFile(LocalStorage(folder), "x.parquet") as file:
        assert file.row_bytes > 0
        stored_bounds(file.footer)
        filter_of_footer(file.footer, 100)
        file.read_keys(range(len(file.group_rows)))
        return sum(map(len, file.read_batches(NESTED.schema)))


@pytest.mark.parametrize("kind", PARQUET)
@given(edits, st.booleans())
@settings(max_examples=examples(150), deadline=5000)
def test_a_damaged_parquet_file_is_named_or_read_and_the_process_lives(tmp_path_factory, kind, changes, in_footer):
    data = PARQUET[kind]
    start = len(data) - 8 - int.from_bytes(data[-8:-4], "little") if in_footer else 0
    # bytes within the footer change, its length stays
    same = [(share, bytes(new), len(new)) for share, new, _ in changes] if in_footer else changes
    folder = str(tmp_path_factory.getbasetemp())
    end = data[-8:] if in_footer else b""
    changed = data[:start] + damaged(data[start : len(data) - len(end)], same, None) + end
    with open(join(folder, "x.parquet"), "wb") as file:
        file.write(changed)
    with named_or_fine("x.parquet", HudiError):
        read_all(folder)


@given(edits, st.booleans())
@settings(max_examples=examples(200), deadline=5000)
def test_a_damaged_file_of_ours_is_named_or_read(tmp_path_factory, changes, in_footer):
    folder = str(tmp_path_factory.getbasetemp())
    path = join(folder, "ours")
    if not LocalStorage(path).exists("good.parquet"):
        Engine(join(path, "t")).write(0, rows(range(50), partition=lambda _: "p"))
        [entry] = [e for e in LocalStorage(join(path, "t")).list_dir("p") if e.name.endswith(".parquet")]
        LocalStorage(path).put("good.parquet", LocalStorage(join(path, "t")).read(join("p", entry.name)))
    data = LocalStorage(path).read("good.parquet")
    start = len(data) - 8 - int.from_bytes(data[-8:-4], "little") if in_footer else 0
    LocalStorage(path).put("x.parquet", data[:start] + damaged(data[start:], changes, None))
    with named_or_fine("x.parquet", HudiError):
        read_all(path)


@given(edits, cuts)
@settings(max_examples=examples(150), deadline=2000)
def test_a_damaged_log_is_named_or_read(changes, cut):
    data = encode_log_block(LOG_SCHEMA, [{"a": "x", "b": 1}, {"a": "y", "b": 2}])
    with named_or_fine("archive.1"):
        list(read_log_records(damaged(data, changes, cut), "archive.1"))


def test_an_archive_with_records_of_another_kind_is_named(tmp_path):
    path = str(tmp_path / "t")
    Engine(path).write(0, rows(range(3)))
    schema = """{"type": "record", "name": "r", "fields": [{"name": "actionState", "type": "string"},
        {"name": "hoodieCommitMetadata", "type": {"type": "map", "values": "long"}}]}"""
    block = encode_log_block(schema, [{"actionState": "COMPLETED", "hoodieCommitMetadata": {"extraMetadata": 7}}])
    storage = LocalStorage(path)
    storage.put(".hoodie/archived/.commits_.archive.1_1-0-1", block)
    with pytest.raises(CorruptFileError, match="archive.1_1-0-1"):
        list(read_archived_commits(HudiTable.open(path).archived_timeline))


@pytest.mark.parametrize("text", ['{"partitionToWriteStats": {"p": [{"fileId": {"a": 1}}]}}', "[7]", '{"a"'])
def test_an_instant_that_cannot_be_archived_is_named(tmp_path, text):
    path = str(tmp_path / "t")
    for batch in range(4):
        Engine(path).write(batch, rows(range(batch, batch + 1)))
    table = HudiTable.open(path)
    first = table.load_timeline().completed_writes[0]
    table.storage.put(f".hoodie/{first.file_name}", text.encode())
    os.remove(f"{path}/.hoodie/.hudistream/ends/{first.time}.commit")  # else its content is archived
    with pytest.raises(CorruptFileError, match=first.file_name):
        archive(table, ArchiveSettings(min_commits=1, max_commits=2), CleanSettings(grace_ms=0))
    assert table.load_timeline().completed_writes[0] == first


def test_a_damaged_file_of_the_snapshot_is_named(tmp_path):
    path = str(tmp_path / "t")
    Engine(path).write(0, rows(range(50), partition=lambda _: "p"))
    storage = LocalStorage(path)
    [name] = [entry.name for entry in storage.list_dir("p") if entry.name.endswith(".parquet")]
    storage.put(f"p/{name}", storage.read(f"p/{name}")[:-100])
    with pytest.raises(CorruptFileError, match=name):
        read_table(path)

"""Updates copy the chunks of a row group that they leave alone."""

import os
import random

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from engine import OPTIONS, Engine
from every_type import EVERY_TYPE, comparable, random_batch
from oracles import hudi_rs
from snapshots import live_files
from tiers import quick
from values import rows_of, shown

import table.files.base.copied_groups as copying
import table.files.base.joined_file as joining
from table import read_table
from table.columns.memory_size import rows_bytes
from table.columns.same_values import same_column
from table.errors import CorruptFileError
from table.files.base.repeated_columns import file_schema
from table.files.base.stored_file import StoredBaseFile
from table.files.parquet.footer import find_footer
from table.files.parquet.patched_group import GAP_BYTES, _copy, near_ranges, write_patched_group
from table.files.parquet.row_group_writer import RowGroupWriter
from table.files.parquet.row_groups import with_chunks
from table.files.parquet.thrift_compact import I32, Field, decode_struct, encode_struct
from table.options.groups import BaseFileSettings
from table.records.merge import MergeRules, changed_columns, decide_merge
from table.storage.byte_ranges import ByteRange
from table.storage.local import LocalStorage
from table.write.merge_plan import MergePlan, plan_merge

UPSERT = {"hoodie.datasource.write.operation": "upsert", "hoodie.parquet.block.size": "20000"}
PAYLOAD = "hoodie.datasource.write.payload.class"
PAYLOADS = ["DefaultHoodieRecordPayload", "OverwriteWithLatestAvroPayload", "PartialUpdateAvroPayload"]


@pytest.mark.parametrize(
    ("group_rows", "touched", "losing", "new_rows", "patched", "decoded"),
    [
        ([1000, 1000], [0, 1], [], 0, (0, 1), ()),
        ([1000, 1000], [1], [], 0, (1,), ()),
        ([1000, 1000], [0, 1], [1], 0, (0,), (1,)),
        ([1000, 1000], [0, 1], [0, 1], 0, (), (0, 1)),
        ([1000, 124], [0, 1], [], 0, (0,), (1,)),  # less than an eighth of a full one
        ([1000, 125], [0, 1], [], 0, (0, 1), ()),
        ([10, 20, 30], [0, 2], [], 5, (), (0, 1, 2)),
        # new rows make a full row group together with the small ones, touched or not
        ([1000, 300, 300], [0], [], 5, (0,), (1, 2)),
        ([1000, 300, 300], [1], [], 5, (), (1, 2)),
        ([1000, 300, 300], [0, 1], [], 5, (0,), (1, 2)),
        ([1000], [], [], 5, (), ()),
        ([2000, 2001], [0, 1], [], 0, (0,), (1,)),  # more than two full ones are not held in memory
        # small ones stay behind large ones, where the next merge finds them
        ([1000, 100, 500, 100], [0], [], 0, (0, 1, 3), ()),
        ([100, 1000, 100], [1], [], 0, (1, 2), ()),
        # what is decoded comes last, and takes small ones along
        ([1000, 1000, 100], [0, 1], [1], 0, (0,), (1, 2)),
        ([1000, 10, 10, 10, 1000], [0, 1], [], 0, (0, 2, 3), (1,)),
    ],
)
def test_what_becomes_of_row_groups(group_rows, touched, losing, new_rows, patched, decoded):
    plan = plan_merge(group_rows, touched, losing, new_rows, row_bytes=1_000, row_group_bytes=1_000_000)
    assert plan == MergePlan(patched, decoded)


@pytest.mark.parametrize(
    ("first", "second", "kind", "expected"),
    [
        ([1, None], [1, None], pa.int64(), True),
        ([1, None], [1, 2], pa.int64(), False),
        ([0.0], [-0.0], pa.float64(), False),
        ([0.0], [-0.0], pa.float32(), False),
        ([float("nan"), None], [float("nan"), None], pa.float64(), True),
        ([float("nan")], [None], pa.float64(), False),
        (["a", None], ["a", None], pa.dictionary(pa.int32(), pa.string()), True),
        (["a", "b"], ["b", "a"], pa.dictionary(pa.int32(), pa.string()), False),
        ([[1, None], []], [[1, None], []], pa.list_(pa.int64()), True),
        ([[1, None], []], [[1, None], None], pa.list_(pa.int64()), False),
        ([{"a": 1}], [{"a": None}], pa.struct([("a", pa.int64())]), False),
        ([[("k", 1)]], [[("k", 1)]], pa.map_(pa.string(), pa.int64()), True),
        ([[1.0, None], None], [[1.0, None], None], pa.list_(pa.float64()), True),
        ([[1.0], []], [[], [1.0]], pa.list_(pa.float64()), False),
        ([[0.0]], [[-0.0]], pa.list_(pa.float64()), False),
        ([[]], [None], pa.list_(pa.float64()), False),
        ([{"a": [1.5]}, None], [{"a": [1.5]}, None], pa.struct([("a", pa.list_(pa.float32()))]), True),
        ([{"a": [0.0]}], [{"a": [-0.0]}], pa.struct([("a", pa.list_(pa.float32()))]), False),
        ([{"a": None}], [None], pa.struct([("a", pa.float32())]), False),
        ([[("k", 1.0)], None], [[("k", 1.0)], None], pa.map_(pa.string(), pa.float64()), True),
        ([[("k", 0.0)]], [[("k", -0.0)]], pa.map_(pa.string(), pa.float64()), False),
        ([[("k", 1.0)]], [[("j", 1.0)]], pa.map_(pa.string(), pa.float64()), False),
    ],
)
def test_values_are_the_same_bit_by_bit(first, second, kind, expected):
    pieces = pa.array([*first, *first], kind)  # one that is cut from a longer one
    columns = pa.chunked_array([pieces.slice(len(first))]), pa.chunked_array([pa.array(second, kind)])
    assert same_column(*columns) is expected
    assert same_column(*reversed(columns)) is expected


def test_only_columns_in_which_a_row_changes_are_written():
    stored = pa.table({"ts": [5, 5, 5], "same": ["a", "b", "c"], "other": [1, 2, 3]})
    incoming = pa.table({"ts": [4, 6], "same": ["late", "b"], "other": [9, 20], "not stored": [0, 0]})
    outcome = decide_merge(stored, incoming, np.array([0, 1, -1]), MergeRules(ordering_fields=("ts",)))
    assert changed_columns(stored, outcome).to_pydict() == {"ts": [5, 6, 5], "other": [1, 20, 3]}
    assert outcome.updated == 1
    late = decide_merge(stored, incoming, np.array([0, -1, -1]), MergeRules(ordering_fields=("ts",)))
    assert changed_columns(stored, late).num_columns == 0


def row_groups_of(path):
    [file] = live_files(path)
    metadata = pq.read_metadata(file)
    return [metadata.row_group(number).num_rows for number in range(metadata.num_row_groups)]


@pytest.mark.parametrize("together", quick(1, [True, False]))
def test_row_groups_do_not_pile_up(tmp_path, patches, together):
    path = str(tmp_path / "t")
    options = {"hoodie.datasource.write.operation": "upsert", "hoodie.parquet.block.size": "4000000"}

    def make(first, count, ts):
        keys = [f"k{number:08}" for number in range(first, first + count)]
        texts = [f"{number:0100}" for number in range(first, first + count)]
        return pa.table({"id": keys, "p": ["p"] * count, "ts": [ts] * count, "v": texts})

    def write(number, batch):
        Engine(path, options, batch_rows=100_000).write(number, batch, parallelism=1)

    write(0, make(0, 20_000, 0))
    total, most = 20_000, 0
    for number in range(1, 41):
        if together or number % 2:
            more = make(total, 1_500, number)
            total += 1_500
            write(2 * number, pa.concat_tables([make(5, 1, number), more]) if together else more)
        else:
            write(2 * number, make(5, 1, number))
        most = max(most, len(row_groups_of(path)) - total // 10_000)
    assert len(patches) > 10
    assert most < 9, row_groups_of(path)
    assert len(read_table(path, meta_columns=True)) == total


def test_the_width_of_a_row_is_that_of_stored_rows(tmp_path):
    path = str(tmp_path / "t")
    count = 20_000
    rows = pa.table(
        {
            "id": [f"k{number:08}" for number in range(count)],
            "p": ["p"] * count,
            "ts": [0] * count,
            "often": [f"{number % 7:050}" for number in range(count)],
            "list": [[number, number] for number in range(count)],
            "price": pa.array(range(count), pa.int32()).cast(pa.decimal128(12, 2)),
        }
    )
    Engine(path, batch_rows=count).write(0, rows, parallelism=1)
    [file] = live_files(path)
    with StoredBaseFile(LocalStorage(os.path.dirname(file)), os.path.basename(file)) as stored:
        whole = pa.concat_tables(stored.read_batches(file_schema(pq.read_schema(file).remove_metadata())))
        assert stored.row_bytes == pytest.approx(rows_bytes(whole) / count, rel=0.2)


def test_a_key_can_be_what_orders_records(tmp_path, patches):
    for payload in PAYLOADS:
        path = str(tmp_path / payload)
        options = {**UPSERT, PAYLOAD: f"org.apache.hudi.common.model.{payload}"}
        options["hoodie.datasource.write.precombine.field"] = "id"
        batch = random_batch(random.Random(1), 0, 400)
        Engine(path, options).write(0, batch, parallelism=1)
        again = batch.set_column(batch.schema.get_field_index("text"), "text", pa.array(["new"] * 400))
        Engine(path, options).write(1, again, parallelism=1)
        assert comparable(read_table(path, meta_columns=True)) == comparable(again)
    assert len(patches) >= 6


def check_footer(file):
    """Totals and places of what no reader would miss."""
    raw = open(file, "rb").read()
    groups = decode_struct(raw[find_footer(raw[-8:], len(raw)) : -8])[4].value.values
    for group in groups:
        metas = [chunk[3].value for chunk in group[1].value.values]
        assert group[2].value == sum(meta[6].value for meta in metas)
        assert group[6].value == sum(meta[7].value for meta in metas)
        assert group[5].value == min(meta[n].value for meta in metas[:1] for n in (9, 11) if n in meta)
        assert all(chunk[2].value == 0 for chunk in group[1].value.values)


@pytest.fixture
def patches(monkeypatch):
    """What was patched: row groups with the columns that were written."""
    seen = []

    def write(sink, stored, group, rows, *others):
        seen.append(rows.column_names)
        return write_patched_group(sink, stored, group, rows, *others)

    monkeypatch.setattr(copying, "write_patched_group", write)
    return seen


def changed(batch, rng, by, columns=()):
    """Rows again, with a later (or earlier) time and these columns otherwise."""
    fresh = random_batch(rng, 0, len(batch))
    for name in columns:
        batch = batch.set_column(batch.schema.get_field_index(name), name, fresh.column(name))
    return batch.set_column(2, "ts", pc.add(batch.column("ts"), by))


def chunk_bytes(path, group, column):
    metadata = pq.read_metadata(path).row_group(group)
    chunk = next(c for c in map(metadata.column, range(metadata.num_columns)) if c.path_in_schema.startswith(column))
    start = chunk.dictionary_page_offset if chunk.has_dictionary_page else chunk.data_page_offset
    with open(path, "rb") as file:
        file.seek(start)
        return file.read(chunk.total_compressed_size)


def test_chunks_that_an_update_leaves_alone_are_the_same_bytes(tmp_path, patches, monkeypatch):
    path, rng = str(tmp_path / "t"), random.Random(1)
    batch = random_batch(rng, 0, 400)
    Engine(path, UPSERT).write(0, batch, parallelism=1)
    [older] = live_files(path)
    groups = pq.read_metadata(older).num_row_groups
    assert groups > 1
    decoded, copied = [], []
    read, read_bytes = StoredBaseFile.read_batches, StoredBaseFile.read_bytes
    monkeypatch.setattr(
        StoredBaseFile, "read_bytes", lambda file, *extent: copied.append(extent) or read_bytes(file, *extent)
    )
    monkeypatch.setattr(
        StoredBaseFile,
        "read_batches",
        lambda file, schema, *rest: decoded.append(schema.names) or read(file, schema, *rest),
    )
    summary = Engine(path, UPSERT).write(1, changed(batch.slice(0, 400), rng, 1000, ["text"]), parallelism=1)
    monkeypatch.undo()
    [newer] = live_files(path)
    written = ["_hoodie_commit_time", "_hoodie_commit_seqno", "ts", "text"]
    # the lookup reads record keys, the merge first what decides, then what may change
    merged = [names for names in decoded if names != ["_hoodie_record_key"]]
    assert merged[0] == ["ts"]
    assert not {"_hoodie_record_key", "id", "_hoodie_partition_path"} & {name for names in merged for name in names}
    assert patches == [written] * groups
    # chunks that lie side by side are read together: between those that are written anew there are four runs
    assert 0 < len(copied) <= 4 * groups
    for group in range(groups):
        for name in ("_hoodie_record_key", "_hoodie_partition_path", "id", "price", "tags", "counts"):
            assert chunk_bytes(older, group, name) == chunk_bytes(newer, group, name), name
        assert chunk_bytes(older, group, "text") != chunk_bytes(newer, group, "text")
    assert (summary.rows_updated, summary.reencoded) == (400, {})
    check_footer(newer)
    assert os.path.getsize(newer) > summary.bytes_copied > 0.4 * os.path.getsize(newer)


def test_row_groups_that_only_late_records_meet_are_copied_whole(tmp_path, patches):
    path, rng = str(tmp_path / "t"), random.Random(1)
    batch = random_batch(rng, 0, 400)
    Engine(path, UPSERT).write(0, batch, parallelism=1)
    summary = Engine(path, UPSERT).write(1, changed(batch, rng, -1000, EVERY_TYPE.names[3:]), parallelism=1)
    assert not any(patches)
    assert len(patches) > 1
    assert summary.rows_updated == 0
    assert comparable(read_table(path, meta_columns=True)) == comparable(batch)


def merge_in_memory(known, batch, payload):
    """What the table holds after a batch, by a dictionary."""
    for row in batch.to_pylist():
        old = known.get(row["id"])
        if old is None:
            known[row["id"]] = row
        elif payload == "PartialUpdateAvroPayload":
            newer, older = (row, old) if row["ts"] >= old["ts"] else (old, row)
            known[row["id"]] = {name: older[name] if newer[name] is None else newer[name] for name in newer}
        elif payload == "OverwriteWithLatestAvroPayload" or row["ts"] >= old["ts"]:
            known[row["id"]] = row


def change_many_times(path, seed, payload, batches=12):
    """One file group: updates of some columns, inserts, deletes, late records; returns what it should hold."""
    rng, known, total = random.Random(seed), {}, 0
    cache_bytes = str((seed + 1) % 2 * (64 << 20))
    for number in range(batches):
        options = {
            **UPSERT,
            PAYLOAD: f"org.apache.hudi.common.model.{payload}",
            "hoodie.parquet.block.size": str(rng.choice([5_000, 20_000, 100_000])),
            "hudistream.verify.share": "1",
            "hudistream.index.cache.bytes": cache_bytes,
        }
        sink = Engine(path, options, batch_rows=rng.choice([50, 1000]))
        fresh = random_batch(rng, total, rng.choice([0, 1, 30, 200]) if number else 500)
        total += len(fresh)
        kept = list(known.values())
        some = pa.Table.from_pylist(rng.sample(kept, min(len(kept), rng.choice([1, 10, 200]))), EVERY_TYPE)
        updates = changed(some, rng, rng.choice([5, -5, 1000]), rng.sample(EVERY_TYPE.names[3:], rng.randrange(14)))
        batch = pa.concat_tables([fresh, updates])
        sink.write(2 * number, batch, parallelism=1)
        merge_in_memory(known, batch, payload)
        if number % 4 == 3:
            removed = pa.Table.from_pylist(rng.sample(list(known.values()), 3), EVERY_TYPE)
            delete = Engine(path, {**options, "hoodie.datasource.write.operation": "delete"})
            delete.write(2 * number + 1, removed, parallelism=1)
            for key in removed.column("id").to_pylist():
                del known[key]
        found = read_table(path, meta_columns=True)
        expected = pa.Table.from_pylist(list(known.values()), EVERY_TYPE)
        assert comparable(found) == comparable(expected), (seed, number)
        assert found.column("_hoodie_record_key").to_pylist() == found.column("id").to_pylist()
    return known


@pytest.mark.parametrize(
    ("seed", "payload"),
    [
        (0, PAYLOADS[0]),
        *(pytest.param(0, payload, marks=pytest.mark.slow) for payload in PAYLOADS[1:]),
        *(pytest.param(seed, payload, marks=pytest.mark.slow) for seed in (1, 2) for payload in PAYLOADS),
    ],
)
def test_random_changes_give_what_a_dictionary_gives(tmp_path, patches, seed, payload):
    path = str(tmp_path / "t")
    change_many_times(path, seed, payload)
    assert len(patches) > 5
    [file] = live_files(path)
    check_footer(file)
    whole = pq.read_table(file)
    assert set(whole.column("_hoodie_file_name").to_pylist()) == {os.path.basename(file)}
    assert len(set(whole.column("_hoodie_commit_seqno").to_pylist())) == len(whole)
    # pruned by the statistics of each row group
    middle = int(np.median(whole.column("ts").to_numpy()))
    for condition in (pc.field("ts") >= middle, pc.field("text") == "日本", pc.field("day").is_null()):
        found = pq.read_table(file, filters=condition)
        assert comparable(found) == comparable(whole.filter(condition))


@pytest.mark.slow
@pytest.mark.hudi
@pytest.mark.usefixtures("utc")
def test_patched_files_are_read_and_upserted_by_others_and_we_go_on(hudi, tmp_path, patches):
    path, rng = str(tmp_path / "t"), random.Random(5)
    known = change_many_times(path, 5, PAYLOADS[0])
    assert len(patches) > 5
    wanted = shown(rows_of(read_table(path, meta_columns=True)))
    assert len(wanted) == len(known)
    assert shown(hudi.read(path)) == wanted
    assert shown(rows_of(hudi_rs.read(path))) == wanted
    some = pa.Table.from_pylist(rng.sample(list(known.values()), 100), EVERY_TYPE)
    hudi.write(path, changed(some, rng, 10**7), {**OPTIONS, **UPSERT, "hoodie.index.type": "BLOOM"})
    assert len(read_table(path, meta_columns=True)) == len(known)
    summary = Engine(path, UPSERT).write(2000, changed(some, rng, 2 * 10**7, ["text"]), parallelism=1)
    assert (summary.rows_updated, summary.reencoded) == (100, {"other writer": 1})
    before = len(patches)
    summary = Engine(path, UPSERT).write(2001, changed(some, rng, 3 * 10**7, ["text"]), parallelism=1)
    assert (summary.rows_updated, summary.reencoded) == (100, {})
    assert len(patches) > before
    assert shown(hudi.read(path)) == shown(rows_of(read_table(path, meta_columns=True)))


def test_a_patched_file_in_doubt_is_encoded_anew_under_its_name(tmp_path, patches, monkeypatch, logs):
    path, rng = str(tmp_path / "t"), random.Random(1)
    batch = random_batch(rng, 0, 400)
    Engine(path, UPSERT).write(0, batch, parallelism=1)
    monkeypatch.setattr(joining, "find_problem", lambda *_: "a chunk at 7 begins before 9")
    again = changed(batch.slice(0, 300), rng, 1000, ["text"])
    more = random_batch(rng, 400, 20)
    summary = Engine(path, UPSERT).write(1, pa.concat_tables([again, more]), parallelism=1)
    assert patches
    assert summary.reencoded == {"in doubt: a chunk at 7 begins before 9": 1}
    assert (summary.rows, summary.rows_updated) == (20, 300)
    assert "copied_file_discarded" in [entry["event"] for entry in logs]
    assert comparable(read_table(path, meta_columns=True)) == comparable(
        pa.concat_tables([again, batch.slice(300), more])
    )


def test_what_does_not_fit_is_not_written(tmp_path):
    path, rng = str(tmp_path / "t"), random.Random(1)
    Engine(path, UPSERT).write(0, random_batch(rng, 0, 400), parallelism=1)
    [file] = live_files(path)
    with StoredBaseFile(LocalStorage(os.path.dirname(file)), os.path.basename(file)) as stored:
        size = os.path.getsize(file)
        assert b"".join(stored.read_bytes(size - 4, 4)) == b"PAR1"
        with pytest.raises(CorruptFileError, match=r"parquet of .* cannot be copied: it ends 16 bytes early"):
            list(stored.read_bytes(size - 4, 20))
        group = decode_struct(stored.footer.groups[0].raw)
        with pytest.raises(CorruptFileError, match="1 rows in the place of"):
            write_patched_group(
                pa.BufferOutputStream(), stored, group, pa.table({"ts": [1]}), BaseFileSettings(), "_hoodie_file_name"
            )


def test_a_chunk_takes_the_place_of_its_column_only():
    sink = pa.BufferOutputStream()
    schema = pa.schema([("a", pa.int64()), ("b", pa.int64())])
    writer = RowGroupWriter(sink, schema, BaseFileSettings())
    writer.write(pa.table({"a": [1], "b": [2]}, schema=schema))
    group = writer.finish()[0][0].decoded
    chunks = group[1].value.values
    assert with_chunks(group, chunks) == group
    with pytest.raises(CorruptFileError, match="does not fit"):
        with_chunks(group, chunks[::-1])


@pytest.mark.parametrize("block", ["3000", "20000000"], ids=["written by a larger bound", "small"])
def test_row_groups_of_another_size_are_merged_whole(tmp_path, patches, block):
    path, rng = str(tmp_path / "t"), random.Random(1)
    batch = random_batch(rng, 0, 400)
    Engine(path, UPSERT).write(0, batch, parallelism=1)
    again = changed(batch, rng, 1000, ["text"])
    Engine(path, {**UPSERT, "hoodie.parquet.block.size": block}).write(1, again, parallelism=1)
    assert patches == []
    assert comparable(read_table(path, meta_columns=True)) == comparable(again)


@pytest.mark.parametrize(
    ("ranges", "together"),
    [
        ([], []),
        ([(4, 10)], [1]),
        ([(4, 10), (14, 5), (300, 7)], [3]),
        ([(4, 10), (14 + GAP_BYTES, 5)], [2]),
        ([(4, 10), (15 + GAP_BYTES, 5), (30 + GAP_BYTES, 1)], [1, 2]),
    ],
)
def test_chunks_are_read_together_when_little_lies_between_them(ranges, together):
    wanted = [ByteRange(*piece) for piece in ranges]
    near = near_ranges(wanted)
    assert [len(pieces) for pieces in near] == together
    assert [piece for pieces in near for piece in pieces] == wanted


@pytest.mark.parametrize("piece_bytes", [1, 3, 7, 100])
def test_what_lies_between_chunks_is_left_out_wherever_the_read_is_cut(piece_bytes):
    page = encode_struct({1: Field(I32, 0), 2: Field(I32, 3), 3: Field(I32, 3)}) + b"abc"
    one, three = len(page), 3 * len(page)
    data = b"gap." + page + b"..." + page + b"......" + page + page + page + b"the end"
    first, second, third = 4, 7 + one, 13 + 2 * one

    class Stored:
        path = "f"

        def read_bytes(self, start, length):
            for at in range(start, start + length, piece_bytes):
                yield data[at : min(at + piece_bytes, start + length)]

    sink = pa.BufferOutputStream()
    _copy(Stored(), [ByteRange(first, one), ByteRange(second, one), ByteRange(third, three)], sink)
    assert sink.getvalue().to_pybytes() == 5 * page


def test_large_row_groups_of_which_some_columns_have_dictionaries(tmp_path, patches):
    rng = np.random.default_rng(3)
    path, known = str(tmp_path / "t"), {}
    options = {"hoodie.datasource.write.operation": "upsert", "hoodie.parquet.block.size": "3000000"}
    first, count = 0, 24_000
    for number in range(6):
        fresh = np.arange(first, first + (count if not number else 500))
        first += len(fresh)
        keys = np.concatenate([fresh, rng.choice(first - len(fresh), 300 if number else 0, replace=False)])
        size = len(keys)
        batch = pa.table(
            {
                "id": [f"k{key}" for key in keys],
                "p": ["p"] * size,
                "ts": pa.array(np.full(size, number), pa.int64()),
                "unlike": rng.integers(0, 2**62, size) if number % 2 else np.arange(size),
                "alike": [f"kind {kind}" for kind in rng.integers(0, 50, size)],
                "same": [f"{key:030}" for key in keys],
            }
        )
        Engine(path, options, batch_rows=5000).write(number, batch, parallelism=1)
        known |= {row["id"]: row for row in batch.to_pylist()}
        found = read_table(path, meta_columns=True).select(batch.column_names).to_pylist()
        assert sorted(found, key=repr) == sorted(known.values(), key=repr)
    assert len(patches) > 5
    assert all("alike" in names and "same" not in names for names in patches)

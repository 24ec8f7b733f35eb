"""Columns of text keep their dictionaries in a merge, and what is written is what their strings would have become."""

import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from engine import Engine
from hypothesis import given, settings
from hypothesis import strategies as st
from snapshots import live_files

import table.files.parquet.dictionary_choice as choice_module
import table.files.parquet.dictionary_statistics as statistics_module
import table.files.parquet.row_group_writer as writer_module
import table.write.merge_bucket as merge_module
from table import read_table
from table.files.base.stored_file import StoredBaseFile
from table.files.parquet.carried_dictionaries import settled_dictionaries, with_dictionaries
from table.files.parquet.dictionary_choice import columns_with_dictionary

PAYLOAD = "hoodie.datasource.write.payload.class"
PAYLOADS = ["DefaultHoodieRecordPayload", "OverwriteWithLatestAvroPayload", "PartialUpdateAvroPayload"]
PLACES = {"RLE_DICTIONARY", "PLAIN_DICTIONARY"}
TEXT = pa.dictionary(pa.int32(), pa.string())
ROWS = 3_000


@given(
    values=st.lists(st.none() | st.sampled_from(["", "a", "b", "日本", "c" * 5000]), max_size=50),
    other=st.lists(st.none() | st.sampled_from(["", "x", "a"]), max_size=10),
)
def test_no_value_is_kept_that_is_not_in_use(values, other):
    both = pa.chunked_array([pa.array([*values, *other]).cast(TEXT).slice(0, len(values)), pa.array([], TEXT)])
    settled = settled_dictionaries(pa.table({"v": both})).column("v")
    assert settled.to_pylist() == values
    used = {value for value in values if value is not None}
    assert [set(chunk.dictionary.to_pylist()) for chunk in settled.chunks] == [used]
    assert len(settled.chunk(0).dictionary) == len(used)


@pytest.mark.parametrize("kinds", [1, 300, 3_000, 20_000, 100_000])
@pytest.mark.parametrize("width", [4, 40, 400])
def test_a_dictionary_stays_where_its_strings_would_get_one(kinds, width):
    numbers = np.random.default_rng(1).integers(0, kinds, 30_000)
    texts = pa.chunked_array([pa.array([f"{number:0{width}}" for number in numbers])])
    settled = settled_dictionaries(pa.table({"v": texts.dictionary_encode()}))
    wanted = kinds <= 30_000 // 2 and columns_with_dictionary(pa.table({"v": texts})) == ["v"]
    assert pa.types.is_dictionary(settled.schema.field(0).type) == wanted
    assert settled.column(0).cast(pa.string()).equals(texts)


def test_a_dictionary_that_arrow_would_give_up_is_not_kept(monkeypatch):
    monkeypatch.setattr(choice_module, "DICTIONARY_BYTES", 50)
    few = pa.table({"v": pa.chunked_array([pa.array(["a" * 10, "b" * 10, None])]).dictionary_encode()})
    many = pa.table({"v": pa.chunked_array([pa.array([f"{n:010}" for n in range(5)])]).dictionary_encode()})
    assert settled_dictionaries(few).schema.field(0).type == TEXT
    assert settled_dictionaries(many).schema.field(0).type == pa.string()


def test_text_alone_comes_as_a_dictionary():
    schema = pa.schema([pa.field("a", pa.string(), nullable=False), ("b", pa.string()), ("c", pa.int64())])
    expected = pa.schema([pa.field("a", TEXT, nullable=False), ("b", pa.string()), ("c", pa.int64())])
    assert with_dictionaries(schema, {"a", "c"}) == expected


def texts(seed, count, kinds, width, nulls):
    """Texts of so many kinds, the empty one among them."""
    rng = np.random.default_rng(seed)
    words = ["", *(f"{number:0{width}}" for number in range(1, kinds))]
    numbers, gone = rng.integers(0, kinds, count), rng.random(count) < nulls
    return pa.array([None if is_gone else words[n] for n, is_gone in zip(numbers, gone, strict=True)], pa.string())


def batch_of(seed, numbers, ts, shapes):
    """Rows with a column of text for each shape."""
    columns = {
        "id": [f"k{number:06}" for number in numbers],
        "p": ["p"] * len(numbers),
        "ts": pa.array([ts] * len(numbers), pa.int64()),
    }
    columns |= {f"c{place}": texts(seed + place, len(numbers), *shape) for place, shape in enumerate(shapes)}
    return pa.table(columns)


def chunks_of(file):
    """What the footer says of each chunk, but for the file's own name."""
    metadata, found = pq.read_metadata(file), []
    for group in range(metadata.num_row_groups):
        for number in range(metadata.num_columns):
            chunk = metadata.row_group(group).column(number)
            stats = chunk.statistics
            bounds = (stats.min, stats.max, stats.null_count) if stats and stats.has_min_max else None
            if chunk.path_in_schema != "_hoodie_file_name":
                nulls = stats.null_count if stats else None
                found.append((group, chunk.path_in_schema, chunk.num_values, set(chunk.encodings), bounds, nulls))
    return found


def merge(path, payload, batches, carried):
    """The rows and the chunks of a file after these batches, with text carried in dictionaries or not."""
    options = {
        "hoodie.datasource.write.operation": "upsert",
        "hoodie.parquet.block.size": "400000",
        PAYLOAD: f"org.apache.hudi.common.model.{payload}",
    }
    with pytest.MonkeyPatch.context() as patch:
        if not carried:
            patch.setattr(StoredBaseFile, "columns_in_dictionaries", lambda *_: frozenset())
        for number, batch in enumerate(batches):
            Engine(path, options, batch_rows=1000).write(number, batch, parallelism=1)
    [file] = live_files(path)
    names = [name for name in pq.read_schema(file).names if name not in ("_hoodie_file_name", "_hoodie_commit_time")]
    rows = pq.read_table(file, columns=[name for name in names if name != "_hoodie_commit_seqno"])
    assert read_table(path).num_rows == len(rows)
    return rows, [chunk for chunk in chunks_of(file) if not chunk[1].startswith("_hoodie_commit")]


SHAPE = st.tuples(
    st.sampled_from([1, 3, 40, 600, 5000]),  # kinds
    st.sampled_from([1, 12, 60]),  # width
    st.sampled_from([0.0, 0.3, 1.0]),  # nulls
)


@settings(max_examples=6, deadline=None)
@given(
    seed=st.integers(0, 1000),
    shapes=st.lists(st.tuples(SHAPE, SHAPE), min_size=2, max_size=5),
    payload=st.sampled_from(PAYLOADS),
    share=st.sampled_from([1, 10, 300, ROWS]),
    limit=st.sampled_from([4 << 20, 20_000, 2_000]),  # of a dictionary: smaller ones are given up half way
    late=st.booleans(),
    told=st.sampled_from([1, 16_384]),  # rows from which on we make the statistics of dictionaries
)
def test_a_merge_writes_what_it_writes_of_strings(seed, shapes, payload, share, limit, late, told):
    rng = np.random.default_rng(seed)
    stored, fresh = [first for first, _ in shapes], [second for _, second in shapes]
    batches = [batch_of(seed, range(ROWS), 5, stored)]
    for number in range(2):
        some = rng.choice(ROWS, share, replace=False)
        updates = batch_of(seed + 100 * number, some, 4 if late and number else 6 + number, fresh)
        batches.append(pa.concat_tables([updates, batch_of(seed, [ROWS + number], 9, fresh)]))
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(choice_module, "DICTIONARY_BYTES", limit)
        patch.setattr(writer_module, "DICTIONARY_BYTES", limit)
        patch.setattr(choice_module, "TOLD_ROWS", told)
        patch.setattr(statistics_module, "TOLD_ROWS", told)
        rows, chunks = merge(str(Path(folder) / "carried"), payload, batches, carried=True)
        expected, expected_chunks = merge(str(Path(folder) / "plain"), payload, batches, carried=False)
    assert rows.equals(expected)
    assert chunks == expected_chunks


def test_chunks_with_values_beside_their_dictionary_are_read_as_strings(tmp_path, monkeypatch):
    monkeypatch.setattr(choice_module, "DICTIONARY_BYTES", 10_000)
    monkeypatch.setattr(writer_module, "DICTIONARY_BYTES", 10_000)
    shapes = [(40, 12, 0.1), (2_500, 12, 0.0)]
    path = str(tmp_path / "t")
    batch = batch_of(1, range(ROWS), 5, shapes)
    merge(path, PAYLOADS[0], [batch], carried=True)
    [file] = live_files(path)
    chunk = pq.read_metadata(file).row_group(0).column(pq.read_schema(file).names.index("c1"))
    assert {"PLAIN", "RLE_DICTIONARY"} <= set(chunk.encodings)
    read = []
    known = merge_module.with_dictionaries
    monkeypatch.setattr(merge_module, "with_dictionaries", lambda *given: read.append(known(*given)) or read[-1])
    again = batch_of(2, range(ROWS), 6, shapes)
    options = {"hoodie.datasource.write.operation": "upsert", "hoodie.parquet.block.size": "400000"}
    Engine(path, options, batch_rows=1000).write(9, again, parallelism=1)
    kinds = {f.name: f.type for schema in read for f in schema}
    assert (kinds["c0"], kinds["c1"], kinds["ts"]) == (TEXT, pa.string(), pa.int64())
    assert read_table(path).sort_by("id").select(["c0", "c1"]).equals(again.sort_by("id").select(["c0", "c1"]))


@pytest.mark.parametrize(
    "kind",
    [
        pa.dictionary(pa.int8(), pa.string()),
        pa.dictionary(pa.int64(), pa.large_string()),
        pa.dictionary(pa.int32(), pa.large_string()),
        pa.large_string(),
    ],
    ids=str,
)
def test_updates_may_come_as_any_dictionary(tmp_path, kind):
    from streaming.arrow_sink import ArrowSink

    path, first = str(tmp_path / "t"), batch_of(1, range(ROWS), 5, [(40, 12, 0.1)])
    sink = ArrowSink(path, {"hoodie.parquet.block.size": "300000"}, key="id", partition_by="p", order_by="ts")
    sink.write(first)
    some = batch_of(2, range(0, ROWS, 3), 6, [(90, 14, 0.2)])
    sink.write(some.set_column(3, "c0", some.column("c0").cast(kind)))
    wanted = {row["id"]: row["c0"] for rows in (first, some) for row in rows.to_pylist()}
    found = read_table(path)
    assert dict(zip(found["id"].to_pylist(), found["c0"].to_pylist(), strict=True)) == wanted


def encodings_of(path):
    """For each column the encodings of its chunks, in the file that is alone in a table."""
    [file] = live_files(path)
    metadata, found = pq.read_metadata(file), {}
    for group in range(metadata.num_row_groups):
        for number in range(metadata.num_columns):
            chunk = metadata.row_group(group).column(number)
            found.setdefault(chunk.path_in_schema, set()).add(frozenset(chunk.encodings) - {"RLE"})
    return found


def test_a_wide_update_chooses_encodings_as_a_new_file_does(tmp_path):
    count = 90_000

    def made(numbers, ts):
        rng = np.random.default_rng(ts)
        columns = {
            "id": [f"k{number:06}" for number in numbers],
            "p": ["p"] * len(numbers),
            "ts": pa.array([ts] * len(numbers), pa.int64()),
            "seq": pa.array(numbers * 10 + rng.integers(0, 10, len(numbers))),
            "seen": pa.array(1_750_000_000_000_000 + numbers * 1000).cast(pa.timestamp("us", "UTC")),
            "wide": pa.array(rng.integers(0, 1 << 62, len(numbers))),
            "kind": [f"kind {kind}" for kind in rng.integers(0, 50, len(numbers))],
            "text": [f"{value:020}" for value in rng.integers(0, 1 << 62, len(numbers))],
        }
        return pa.table(columns)

    options = {
        "hoodie.datasource.write.operation": "upsert",
        "hoodie.parquet.block.size": "4000000",
    }
    path, new = str(tmp_path / "t"), str(tmp_path / "new")
    first, again = made(np.arange(count), 1), made(np.arange(0, count, 10), 2)
    Engine(path, options, batch_rows=count).write(0, first, parallelism=1)
    Engine(path, options, batch_rows=count).write(1, again, parallelism=1)
    rows = read_table(path).select(first.column_names).sort_by("id")
    Engine(new, options, batch_rows=count).write(0, rows, parallelism=1)
    changed, fresh = encodings_of(path), encodings_of(new)
    assert {name: changed[name] for name in first.column_names[2:]} == {
        name: fresh[name] for name in first.column_names[2:]
    }

"""One chunk under two names: the record key, and the column that holds the same text."""

import dataclasses
import os

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from engine import SCHEMA, Engine
from needs import require
from oracles import hudi_rs
from snapshots import live_files

from table import read_table
from table.files.base.continued import continue_file
from table.files.base.repeated_columns import constant_column, file_schema
from table.files.base.stored_file import StoredBaseFile
from table.files.base.writer import BaseFileWriter
from table.files.parquet.copy_checks import find_problem
from table.files.parquet.footer import find_footer
from table.files.parquet.row_groups import distinct_extents
from table.files.parquet.shared_chunk import encode_lead_page, find_shared_column
from table.files.parquet.thrift_compact import decode_struct
from table.options.choices import Codec
from table.options.groups import BaseFileSettings
from table.schema.avro_schema import RECORD_KEY, with_meta_columns
from table.storage.local import LocalStorage

SHARED = {"hudistream.parquet.shared.key.chunk": "true", "hoodie.parquet.block.size": "200000"}
UPSERT = {"hoodie.datasource.write.operation": "upsert"}
META = with_meta_columns(SCHEMA)
SETTINGS = BaseFileSettings(shared_key_chunk=True, row_group_bytes=200_000)


def batch_of(first, count, ts=0, partitions=1):
    """Rows whose keys are long and not in order."""
    numbers = range(first, first + count)
    return pa.table(
        {
            "id": [f"{number * 7919 % 100_003:08}-key-{number:08}" for number in numbers],
            "p": [f"p{number % partitions}" for number in numbers],
            "ts": pa.array([ts] * count, pa.int64()),
            "v": [f"{ts}-{number % 50}" for number in numbers],
        },
        schema=SCHEMA,
    )


def stamped(batch, keys=None):
    """Rows with meta columns, as a base file has them."""
    columns = [pa.array(["m"] * len(batch))] * 5 + list(batch.columns)
    columns[2] = batch.column("id") if keys is None else keys
    for at in (0, 3, 4):
        columns[at] = constant_column("m", len(batch))
    return pa.Table.from_arrays(columns, schema=file_schema(META))


def write_file(folder, name, batches, older=None, settings=SETTINGS):
    """Writes a base file of these pieces, each with its row groups; what came of it."""
    storage = LocalStorage(str(folder))
    stored = StoredBaseFile(storage, older) if older else None
    writer = BaseFileWriter(storage, name, META, "{}", settings, continue_file(stored, META, settings))
    for batch in batches:
        writer.write(batch)
    summary = writer.close()
    if stored is not None:
        stored.close()
    return summary


def shares(file):
    """For each row group: whether record keys and column are the same pages."""
    metadata = pq.read_metadata(file)
    found = []
    for group in map(metadata.row_group, range(metadata.num_row_groups)):
        chunks = {chunk.path_in_schema: chunk for chunk in map(group.column, range(group.num_columns))}
        key, column = chunks[RECORD_KEY], chunks["id"]
        found.append(key.data_page_offset == column.data_page_offset)
        if found[-1]:
            # readers that tell chunks apart by where they begin
            starts = {chunk.dictionary_page_offset or chunk.data_page_offset for chunk in chunks.values()}
            assert len(starts) == len(chunks)
            assert key.num_values == column.num_values == group.num_rows
    return found


def dead_bytes(file):
    """Bytes between magic and footer that belong to no chunk."""
    metadata = pq.read_metadata(file)
    extents = [
        (chunk.dictionary_page_offset or chunk.data_page_offset, chunk.total_compressed_size)
        for group in map(metadata.row_group, range(metadata.num_row_groups))
        for chunk in map(group.column, range(group.num_columns))
    ]
    live = sum(length for _, length in distinct_extents(extents))
    return os.path.getsize(file) - metadata.serialized_size - 12 - live


def by_key(rows):
    return rows.select(SCHEMA.names).sort_by("id")


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        ({RECORD_KEY: pa.array(["a" * 50] * 99), "x": pa.array(["b" * 50] * 99), "k": pa.array(["a" * 50] * 99)}, "k"),
        ({RECORD_KEY: pa.array(["a" * 50] * 99), "k": pa.array(["a" * 50] * 98 + ["b"])}, None),
        ({RECORD_KEY: pa.array(["a" * 50] * 99), "k": pa.array(["a" * 50] * 98 + [None])}, None),
        ({RECORD_KEY: pa.array(["a" * 50] * 98 + [None]), "k": pa.array(["a" * 50] * 98 + [None])}, None),
        ({RECORD_KEY: pa.array(["a" * 50] * 99), "k": pa.array([b"a" * 50] * 99)}, None),
        ({RECORD_KEY: pa.array(["a"] * 99), "k": pa.array(["a"] * 99)}, None),  # not worth it
        ({RECORD_KEY: pa.array(["1"] * 9999), "k": pa.array([1] * 9999)}, None),
        ({"k": pa.array(["a" * 50] * 99)}, None),
        ({RECORD_KEY: pa.array([], pa.string()), "k": pa.array([], pa.string())}, None),
    ],
)
def test_only_a_column_with_the_same_text_shares_the_chunk(columns, expected):
    assert find_shared_column(pa.table(columns)) == expected


def test_a_required_column_has_other_levels_than_the_key_and_does_not_share():
    schema = pa.schema([(RECORD_KEY, pa.string()), pa.field("k", pa.string(), nullable=False)])
    assert find_shared_column(pa.table([["a" * 50] * 99] * 2, schema=schema)) is None


def test_shared_bytes_count_once():
    # a chunk, one that is its end, one in front of them, one behind
    assert distinct_extents([(100, 50), (110, 40), (20, 80), (150, 1)]) == [(20, 80), (100, 50), (150, 1)]


@pytest.mark.parametrize("codec", list(Codec))
def test_keys_are_there_once_and_read_under_both_names(tmp_path, codec):
    batch = batch_of(0, 20_000)
    settings = dataclasses.replace(SETTINGS, codec=codec)
    once = write_file(tmp_path, "once.parquet", [stamped(batch)], settings=settings)
    apart = dataclasses.replace(settings, shared_key_chunk=False)
    twice = write_file(tmp_path, "twice.parquet", [stamped(batch)], settings=apart)
    once_file, twice_file = str(tmp_path / "once.parquet"), str(tmp_path / "twice.parquet")
    assert all(shares(once_file))
    assert not any(shares(twice_file))
    assert len(shares(once_file)) > 3
    key = sum(
        chunk.total_compressed_size
        for group in map(pq.read_metadata(twice_file).row_group, range(len(shares(twice_file))))
        for chunk in [group.column(2)]
    )
    assert twice.size_bytes - once.size_bytes > 0.95 * key
    assert pq.read_table(once_file) == pq.read_table(twice_file)
    # the bounds are those of a column of its own
    for number in range(len(shares(once_file))):
        mine, theirs = (pq.read_metadata(file).row_group(number).column(2) for file in (once_file, twice_file))
        assert mine.statistics.to_dict() == theirs.statistics.to_dict()
        assert mine.path_in_schema == theirs.path_in_schema == RECORD_KEY


def test_the_footer_counts_stored_bytes_once_and_says_that_no_value_is_in_the_dictionary(tmp_path):
    write_file(tmp_path, "a.parquet", [stamped(batch_of(0, 20_000))])
    raw = (tmp_path / "a.parquet").read_bytes()
    groups = decode_struct(raw[find_footer(raw[-8:], len(raw)) : -8])[4].value.values
    for group in groups:
        metas = {chunk[3].value[3].value.values[0].decode(): chunk[3].value for chunk in group[1].value.values}
        assert group[2].value == sum(meta[6].value for meta in metas.values())
        assert group[6].value == sum(meta[7].value for name, meta in metas.items() if name != "id")
        key, column = metas[RECORD_KEY], metas["id"]
        lead, lead_memory_bytes = encode_lead_page(Codec.ZSTD)
        assert raw[key[11].value : key[9].value] == lead
        assert (key[7].value - column[7].value, key[6].value - column[6].value) == (len(lead), lead_memory_bytes)
        # pages by type (2: dictionary, 0: data) and encoding (0: plain): filters must not take the dictionary for all
        pages = [(page[1].value, page[2].value, page[3].value) for page in key[13].value.values]
        assert pages == [
            (2, 0, 1),
            *((page[1].value, page[2].value, page[3].value) for page in column[13].value.values),
        ]
        assert {kind for kind, encoding, _ in pages if encoding == 0} == {0, 2}


def test_a_row_group_is_found_by_the_place_of_its_first_column(tmp_path):
    """Readers that split files take the row groups whose middle lies in their part: first column, half of the bytes."""
    write_file(tmp_path, "a.parquet", [stamped(batch_of(0, 20_000))])
    write_file(tmp_path, "b.parquet", [stamped(batch_of(20_000, 20_000))], "a.parquet")
    metadata = pq.read_metadata(tmp_path / "b.parquet")
    ends = 0
    for group in map(metadata.row_group, range(metadata.num_row_groups)):
        chunks = [group.column(number) for number in range(group.num_columns)]
        start = chunks[0].dictionary_page_offset or chunks[0].data_page_offset
        # the chunk of file names may have moved to the end of the file
        last = max(c.data_page_offset + c.total_compressed_size for c in chunks if c.path_in_schema == "v")
        assert ends <= start < last
        total = sum(chunk.total_compressed_size for chunk in chunks)
        keys = next(chunk for chunk in chunks if chunk.path_in_schema == RECORD_KEY)
        assert start + total // 2 < keys.data_page_offset + keys.total_compressed_size
        ends = start


def test_rows_whose_key_is_not_the_column_end_the_sharing(tmp_path):
    pieces = [batch_of(0, 5_000), batch_of(5_000, 5_000), batch_of(10_000, 5_000)]
    others = pa.chunked_array([pa.array([f"other key number {number}" for number in range(5_000)])])
    written = [stamped(pieces[0]), stamped(pieces[1], others), stamped(pieces[2])]
    storage = LocalStorage(str(tmp_path))
    writer = BaseFileWriter(storage, "a.parquet", META, "{}", SETTINGS)
    for rows in written:
        writer.write(rows)
        writer._flush()
    writer.close()
    found = shares(str(tmp_path / "a.parquet"))
    assert found == sorted(found[:2], reverse=True) + found[2:]
    assert True in found
    assert False in found
    whole = pq.read_table(tmp_path / "a.parquet")
    assert whole.column("id") == pa.concat_tables(pieces).column("id")
    keys = [rows.column(RECORD_KEY) for rows in written]
    assert whole.column(RECORD_KEY) == pa.chunked_array([chunk for column in keys for chunk in column.chunks])


def test_chunks_that_lie_over_each_other_are_a_problem_unless_the_key_is_one_of_them(tmp_path):
    summary = write_file(tmp_path, "a.parquet", [stamped(batch_of(0, 3_000))])
    metadata = pq.read_metadata(tmp_path / "a.parquet")
    data_end = summary.size_bytes - summary.footer_bytes
    assert find_problem(metadata, 3_000, data_end) is None
    assert "begins before" in find_problem(_Renamed(metadata, RECORD_KEY, "v"), 3_000, data_end)


class _Renamed:
    """A footer in which two columns have each other's names."""

    def __init__(self, held, *names):
        self._held, self._names = held, dict(zip(names, reversed(names), strict=True))

    def __getattr__(self, name):
        value = getattr(self._held, name)
        if name in ("row_group", "column"):
            return lambda number: _Renamed(value(number), *self._names)
        return self._names.get(value, value) if name == "path_in_schema" else value


def test_top_ups_and_updates_keep_one_chunk(tmp_path):
    path = str(tmp_path / "t")
    options = {**UPSERT, **SHARED, "hudistream.verify.share": "1"}
    engine = Engine(path, options, batch_rows=100_000)
    held = batch_of(0, 20_000)
    engine.write(0, held, parallelism=1)
    first_size = os.path.getsize(live_files(path)[0])
    patched = 0
    for number in range(1, 8):
        if number % 2:
            fresh = batch_of(len(held), 1_500, number)
            held = pa.concat_tables([held, fresh])
        else:
            fresh = held.take(pa.array(range(number, len(held), 997))).set_column(
                2, "ts", pa.array([number] * len(range(number, len(held), 997)), pa.int64())
            )
            gone = pc.is_in(held.column("id"), fresh.column("id"))
            held = pa.concat_tables([held.filter(pc.invert(gone)), fresh])
            patched += 1
        summary = engine.write(number, fresh, parallelism=1)
        assert (summary.files_topped_up, summary.reencoded) == (1, {})
        [file] = live_files(path)
        assert all(shares(file)), number
        # a chunk of file names a group; before version 18 Arrow writes each description behind its chunk, too
        assert dead_bytes(file) <= 2000 * len(shares(file))
    assert patched == 3
    assert by_key(read_table(path)) == by_key(held)
    assert os.path.getsize(file) < 2 * first_size


def test_files_with_and_without_shared_chunks_continue_each_other(tmp_path):
    path = str(tmp_path / "t")
    apart, together = ({**UPSERT, **SHARED, "hudistream.parquet.shared.key.chunk": on} for on in ("false", "true"))
    held = batch_of(0, 10_000)
    Engine(path, apart, batch_rows=100_000).write(0, held, parallelism=1)
    assert not any(shares(live_files(path)[0]))
    for number, options in enumerate((together, apart, together), 1):
        fresh = pa.concat_tables([batch_of(10_000 * number, 10_000, number), batch_of(5, 1, number)])
        kept = held.filter(pc.invert(pc.is_in(held.column("id"), fresh.column("id"))))
        held = pa.concat_tables([kept, fresh])
        summary = Engine(path, options, batch_rows=100_000).write(number, fresh, parallelism=1)
        assert (summary.files_topped_up, summary.reencoded) == (1, {})
    found = shares(live_files(path)[0])
    assert True in found
    assert False in found
    assert by_key(read_table(path)) == by_key(held)


def test_record_keys_have_chunks_of_their_own_unless_they_are_not_to(tmp_path):
    path = str(tmp_path / "t")
    Engine(path, batch_rows=100_000).write(0, batch_of(0, 10_000), parallelism=1)
    assert not any(shares(live_files(path)[0]))


@pytest.fixture
def table_path(tmp_path):
    """A table with shared chunks: written, topped up, updated in place. And what it holds."""
    path = str(tmp_path / "t")
    engine = Engine(path, {**UPSERT, **SHARED}, batch_rows=100_000)
    engine.write(0, batch_of(0, 20_000, partitions=2), parallelism=1)
    engine.write(1, batch_of(20_000, 3_000, 1, partitions=2), parallelism=1)
    engine.write(2, batch_of(100, 10, 2, partitions=2), parallelism=1)
    assert all(share for file in live_files(path) for share in shares(file))
    held = {row["id"]: row for row in batch_of(0, 23_000, partitions=2).to_pylist()}
    for first, count, ts in ((20_000, 3_000, 1), (100, 10, 2)):
        held |= {row["id"]: row for row in batch_of(first, count, ts, partitions=2).to_pylist()}
    return path, pa.Table.from_pylist(list(held.values()), SCHEMA)


def test_arrow_duckdb_and_hudi_rs_read_shared_chunks(table_path):
    path, held = table_path
    files, wanted = live_files(path), by_key(held)
    key = held.column("id")[777].as_py()
    assert by_key(hudi_rs.read(path)) == wanted
    assert by_key(ds.dataset(files).to_table()) == wanted
    for name in ("id", RECORD_KEY):
        assert ds.dataset(files).to_table(filter=pc.field(name) == key).num_rows == 1
    duckdb = require("duckdb")
    rows = duckdb.sql(f"SELECT * FROM read_parquet({files!r})")  # noqa: F841 DuckDB finds it by its name
    assert by_key(duckdb.sql("SELECT * FROM rows").to_arrow_table().cast(ds.dataset(files).schema)) == wanted
    for condition, count in {
        f"id = '{key}'": 1,
        f"_hoodie_record_key = '{key}' AND id = '{key}'": 1,
        "id <> _hoodie_record_key": 0,
    }.items():
        assert duckdb.sql(f"SELECT count(*) FROM rows WHERE {condition}").fetchall() == [(count,)]


@pytest.mark.parametrize("scheme", ["", "file://"])  # from memory, and as Polars reads object stores
def test_polars_reads_shared_chunks(table_path, scheme):
    path, held = table_path
    polars = require("polars")
    rows = polars.scan_parquet([scheme + file for file in live_files(path)])
    key = held.column("id")[777].as_py()
    whole = rows.collect().to_arrow().select(SCHEMA.names).cast(SCHEMA)
    assert by_key(whole) == by_key(held)
    for condition, count in (
        (polars.col("id") == key, 1),
        ((polars.col(RECORD_KEY) == key) & (polars.col("id") == key), 1),
        (polars.col("id") != polars.col(RECORD_KEY), 0),
    ):
        assert rows.filter(condition).collect().height == count

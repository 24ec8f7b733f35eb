"""The next version of a base file by copying: what is copied, what falls back, and that every reader agrees."""

import dataclasses
import io
import os
import random

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from engine import OPTIONS, SCHEMA, Engine, key_set, rows
from every_type import EVERY_TYPE, comparable, random_batch
from needs import require
from oracles import hudi_rs
from snapshots import live_files
from tiers import quick
from values import rows_of, shown

import table.files.base.joined_file as joining
from table import read_table
from table.errors import CorruptFileError, StorageError
from table.files.base.continued import continue_file
from table.files.base.hudi_footer import AVRO_SCHEMA_KEY, MAX_KEY, MIN_KEY, filter_of_footer
from table.files.base.repeated_columns import constant_column, file_schema
from table.files.base.stored_file import StoredBaseFile
from table.files.base.writer import BaseFileWriter, CopyInDoubtError
from table.files.parquet.footer import SEAL_KEY, decode_footer, find_footer
from table.files.parquet.name_chunk import encode_name_chunk
from table.files.parquet.row_group_writer import RowGroupWriter
from table.files.parquet.row_groups import chunks_of
from table.options.groups import BaseFileSettings
from table.schema.avro_schema import META_COLUMNS, with_meta_columns
from table.storage.byte_ranges import ByteRange
from table.storage.local import LocalStorage


def top_up_fifty_times(path, rng, top_ups=50):
    """One file group, topped up with all kinds of sizes; returns what it holds."""
    written, total, ways = [], 0, {"copied": 0, "encoded": 0}
    for number in range(top_ups + 1):
        options = {
            # from a row group a row to all in one
            "hoodie.parquet.block.size": str(rng.choice([2000, 20_000, 200_000, 32 << 20])),
            "hudistream.verify.share": "1",
        }
        engine = Engine(path, options, batch_rows=rng.choice([3, 50, 1000]))
        batch = random_batch(rng, total, rng.choice([1, 2, 7, 40, 200]))
        summary = engine.write(number, batch, parallelism=1)
        total += len(batch)
        written.append(batch)
        if number:
            assert (summary.files_topped_up, summary.reencoded) == (1, {})
            ways["copied" if summary.bytes_copied > 4 else "encoded"] += 1
    assert ways["copied"] > top_ups / 3
    return pa.concat_tables(written)


@pytest.mark.parametrize("seed", quick(1, range(3)))
def test_fifty_top_ups_read_equal_in_arrow_and_duckdb(tmp_path, seed):
    path = str(tmp_path / "t")
    expected = top_up_fifty_times(path, random.Random(seed))
    (file,) = live_files(path)
    whole = pq.read_table(file)
    assert comparable(whole) == comparable(expected)
    assert set(whole.column("_hoodie_file_name").to_pylist()) == {os.path.basename(file)}
    seqnos = whole.column("_hoodie_commit_seqno").to_pylist()
    assert len(set(seqnos)) == len(seqnos)
    metadata = pq.read_metadata(file)
    assert [metadata.row_group(n).num_rows for n in range(metadata.num_row_groups)].count(0) == 0
    # pruned by the statistics of each row group
    middle = len(expected) // 2
    for condition in (pc.field("ts") >= middle, pc.field("text") == "日本", pc.field("day").is_null()):
        found = ds.dataset(file).to_table(columns=["id", "text"], filter=condition)
        assert sorted(found.to_pylist(), key=str) == sorted(
            expected.filter(condition).select(["id", "text"]).to_pylist(), key=str
        )
    duckdb = require("duckdb")
    reference = str(tmp_path / "reference.parquet")
    pq.write_table(expected, reference)
    names = ", ".join(f'"{name}"' for name in EVERY_TYPE.names)
    for condition in ("true", f"ts < {middle}", "text = '日本'", "small > 0 AND day IS NULL"):
        ours, theirs = (f"SELECT {names} FROM read_parquet('{f}') WHERE {condition}" for f in (file, reference))
        for one, other in ((ours, theirs), (theirs, ours)):
            assert duckdb.sql(f"SELECT count(*) FROM ({one} EXCEPT ALL {other})").fetchall() == [(0,)]


@pytest.mark.slow
@pytest.mark.hudi
@pytest.mark.usefixtures("utc")
def test_fifty_top_ups_are_read_and_upserted_by_hudi_and_we_go_on(hudi, tmp_path):
    path = str(tmp_path / "t")
    rng = random.Random(7)
    expected = top_up_fifty_times(path, rng)
    wanted = shown(rows_of(read_table(path)))
    assert len(wanted) == len(expected)
    assert shown(hudi.read(path)) == wanted
    assert shown(rows_of(hudi_rs.read(path))) == wanted
    middle = len(expected) // 2
    found = hudi.read(path, columns=["id", "text"], where=f"ts >= {middle} AND text IS NOT NULL")
    kept = expected.filter((pc.field("ts") >= middle) & pc.field("text").is_valid())
    assert sorted((row["id"], row["text"]) for row in found) == sorted(
        zip(kept.column("id").to_pylist(), kept.column("text").to_pylist(), strict=True)
    )
    # Hudi prunes by our filters and ranges, and must find every key it updates
    changed = expected.take(pa.array(range(0, len(expected), 5)))
    changed = changed.set_column(2, "ts", pc.add(changed.column("ts"), 10_000_000))
    hudi.write(path, changed, {**OPTIONS, "hoodie.datasource.write.operation": "upsert", "hoodie.index.type": "BLOOM"})
    keys = read_table(path).column("id").to_pylist()
    assert len(keys) == len(set(keys)) == len(expected)
    assert sum(ts >= 10_000_000 for ts in read_table(path).column("ts").to_pylist()) == len(changed)
    more = random_batch(rng, len(expected), 30)
    summary = Engine(path).write(99, more, parallelism=1)
    assert summary.reencoded == {"other writer": 1}  # once: then the file is ours
    again = Engine(path).write(100, random_batch(rng, len(expected) + 30, 30), parallelism=1)
    assert (again.files_topped_up, again.reencoded) == (1, {})
    assert shown(hudi.read(path)) == shown(rows_of(read_table(path)))
    assert len(shown(hudi.read(path))) == len(expected) + 60


META = with_meta_columns(SCHEMA)
SETTINGS = BaseFileSettings(row_group_bytes=20_000)


def stamped(table, name):
    count = len(table)
    values = ["20260101000000000", None, None, "p0", name]
    columns = [pa.array([value] * count, pa.string()) for value in values]
    columns[1] = pa.array([f"s{number}" for number in range(count)])
    columns[2] = table.column("id").combine_chunks()
    return pa.Table.from_arrays([*columns, *table.columns], names=[*META_COLUMNS, *table.column_names])


def write_file(folder, name, table, stored=None, settings=SETTINGS, schema=META, storage=None):
    storage = storage or LocalStorage(str(folder))
    if stored is None:
        writer = BaseFileWriter(storage, name, schema, "{}", settings)
        writer.write(stamped(table, name))
        return writer.close()
    with StoredBaseFile(storage, stored) as old:
        older, new = continue_file(old, schema, settings), stamped(table, name)
        writer = BaseFileWriter(storage, name, schema, "{}", settings, older)
        writer.write(new)
        return writer.close()


def ids(folder, name):
    return sorted(pq.read_table(os.path.join(folder, name)).column("id").to_pylist())


def test_entries_of_the_footer_cover_old_and_new_rows(tmp_path):
    write_file(tmp_path, "a.parquet", rows(range(300, 400)))
    summary = write_file(tmp_path, "b.parquet", rows([*range(10), *range(900, 910)]), "a.parquet")
    assert (summary.reason, summary.rows) == (None, 120)
    assert 0 < summary.copied_bytes < summary.size_bytes
    footer = StoredBaseFile(LocalStorage(str(tmp_path)), "b.parquet").footer
    entries = footer.key_values
    assert (entries[MIN_KEY], entries[MAX_KEY], entries[AVRO_SCHEMA_KEY]) == ("k0", "k909", "{}")
    bloom = filter_of_footer(footer, 100_000)
    keys = pa.array(ids(tmp_path, "b.parquet"))
    assert bloom.may_contain(keys).all()
    assert not bloom.may_contain(pa.array([f"other{n}" for n in range(1000)])).any()


def test_the_filter_is_extended_while_its_headroom_lasts_and_then_made_anew_from_all_keys(tmp_path):
    write_file(tmp_path, "0.parquet", rows(range(100)))
    sizes = []
    for number in range(1, 6):
        at = 100 * 2 ** (number - 1)
        write_file(tmp_path, f"{number}.parquet", rows(range(at, 2 * at)), f"{number - 1}.parquet")
        bloom = filter_of_footer(StoredBaseFile(LocalStorage(str(tmp_path)), f"{number}.parquet").footer, 100_000)
        sizes.append(bloom.bits)
        assert bloom.may_contain(pa.array([f"k{n}" for n in range(2 * at)])).all()
    assert sizes == sorted(sizes)
    assert sizes[-1] > 8 * sizes[0]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda _: {}, None),
        (lambda _: {"settings": dataclasses.replace(SETTINGS, codec="snappy", codec_level=None)}, "other codec"),
        (lambda _: {"schema": pa.schema([*META, ("extra", pa.int64())])}, "other schema"),
        (lambda old: pq.write_table(pq.read_table(old), old) or {}, "other writer"),
        (lambda old: pq.write_table(pq.read_table(old), old, write_page_index=True) or {}, "other writer"),
        (lambda old: (require("duckdb") and duckdb_copy(old)) or {}, "other writer"),
    ],
)
def test_what_cannot_be_copied_is_encoded_anew_and_says_why(tmp_path, change, reason):
    write_file(tmp_path, "a.parquet", rows(range(300)))
    arguments = change(str(tmp_path / "a.parquet"))
    table = rows(range(300, 310))
    if "schema" in arguments:
        table = table.append_column("extra", pa.array(range(10), pa.int64()))
    summary = write_file(tmp_path, "b.parquet", table, "a.parquet", **arguments)
    assert summary.reason == reason
    assert (summary.copied_bytes > 4) == (reason is None)
    assert ids(tmp_path, "b.parquet") == sorted(rows(range(310)).column("id").to_pylist())
    # and the file made of it can be copied from now on
    settings = arguments.get("settings", SETTINGS)
    again = write_file(tmp_path, "c.parquet", table, "b.parquet", settings, arguments.get("schema", META))
    assert again.reason is None
    assert again.copied_bytes > 4


def duckdb_copy(file):
    duckdb = require("duckdb")
    duckdb.sql(f"COPY (SELECT * FROM read_parquet('{file}')) TO '{file}.new' (FORMAT parquet)")
    os.replace(file + ".new", file)


def test_an_encrypted_or_foreign_file_is_an_error_that_names_it(tmp_path):
    write_file(tmp_path, "a.parquet", rows(range(10)))
    whole = (tmp_path / "a.parquet").read_bytes()
    for content, message in (
        (whole[:-4] + b"PARE", "encrypted"),
        (b"PAR1", "not a whole Parquet file"),
        (b"", "not a whole Parquet file"),
        (b"hello world, no Parquet", "does not end as a Parquet file"),
    ):
        (tmp_path / "bad.parquet").write_bytes(content)
        with pytest.raises(CorruptFileError, match=message) as caught:
            write_file(tmp_path, "b.parquet", rows(range(5)), "bad.parquet")
        assert "bad.parquet" in str(caught.value)


@pytest.mark.parametrize("seed", range(4))
def test_flipped_and_cut_footers_never_make_a_wrong_file(tmp_path, seed):
    rng = random.Random(seed)
    for number in range(0, 300, 60):
        previous = f"{number - 60}.parquet" if number else None
        write_file(tmp_path, f"{number}.parquet", rows(range(number, number + 60)), previous)
    whole = (tmp_path / "240.parquet").read_bytes()
    start = find_footer(whole[-8:], len(whole))
    wanted = sorted(rows(range(310)).column("id").to_pylist())
    outcomes = {"error": 0, "right": 0}
    for _ in range(250):
        data = bytearray(whole)
        if rng.random() < 0.2:
            data = data[: rng.randint(start, len(whole) - 1)]
        else:
            for _ in range(rng.randint(1, 3)):
                data[rng.randint(start, len(data) - 1)] ^= 1 << rng.randint(0, 7)
        (tmp_path / "flipped.parquet").write_bytes(bytes(data))
        try:
            write_file(tmp_path, "next.parquet", rows(range(300, 310)), "flipped.parquet")
        except (CorruptFileError, StorageError):
            outcomes["error"] += 1
            continue
        outcomes["right"] += 1
        made = pq.read_table(tmp_path / "next.parquet")
        assert sorted(made.column("id").to_pylist()) == wanted
        assert pq.read_table(tmp_path / "next.parquet", filters=[("id", "==", "k305")]).num_rows == 1
        assert pq.read_table(tmp_path / "next.parquet", filters=[("id", "==", "k5")]).num_rows == 1
    assert outcomes["error"] > 200


class LyingStorage(LocalStorage):
    """Its files lose a byte of their footer when they are read back."""

    lies = 1

    def open_input(self, path, size=None):
        if path.startswith("b") and LyingStorage.lies:
            LyingStorage.lies -= 1
            data = bytearray(self.read(path))
            data[-100] ^= 1
            return pa.BufferReader(bytes(data))
        return super().open_input(path, size)


def test_a_copy_in_doubt_is_named(tmp_path, logs):
    LyingStorage.lies = 1
    storage = LyingStorage(str(tmp_path))
    write_file(tmp_path, "a.parquet", rows(range(300)))
    with pytest.raises(CopyInDoubtError, match="in doubt: the store holds another footer than was written"):
        write_file(tmp_path, "b.parquet", rows(range(300, 310)), "a.parquet", storage=storage)
    assert [entry["event"] for entry in logs] == ["copied_file_discarded"]


@pytest.fixture
def one_doubt(monkeypatch):
    """The first file of copied parts that is checked is found faulty."""
    faults, find = ["a chunk at 7 begins before 9"], joining.find_problem
    monkeypatch.setattr(joining, "find_problem", lambda *about: faults.pop() if faults else find(*about))


@pytest.mark.usefixtures("one_doubt")
def test_a_copy_in_doubt_is_encoded_anew_under_its_name(tmp_path, logs):
    path = str(tmp_path / "t")
    Engine(path).write(0, rows(range(300), lambda _: "p"))
    summary = Engine(path).write(1, rows(range(300, 310), lambda _: "p"), parallelism=1)
    assert summary.reencoded == {"in doubt: a chunk at 7 begins before 9": 1}
    assert (summary.rows, summary.files_topped_up) == (10, 1)
    assert key_set(read_table(path)) == key_set(rows(range(310)))
    assert [entry["event"] for entry in logs].count("copied_file_discarded") == 1


@pytest.mark.usefixtures("one_doubt")
def test_a_copy_in_doubt_with_too_many_new_rows_fails_the_batch_and_nothing_is_lost(tmp_path):
    path, small = str(tmp_path / "t"), {"hoodie.parquet.block.size": "20000"}
    Engine(path, small).write(0, rows(range(300), lambda _: "p"))
    with pytest.raises(StorageError, match="begins before 9.: run the batch again"):
        Engine(path, small).write(1, rows(range(300, 5000), lambda _: "p"), parallelism=1)
    assert key_set(read_table(path)) == key_set(rows(range(300)))
    Engine(path, small).write(1, rows(range(300, 5000), lambda _: "p"), parallelism=1)
    assert key_set(read_table(path)) == key_set(rows(range(5000)))


def test_a_damaged_page_is_found_when_every_file_is_verified(tmp_path):
    write_file(tmp_path, "a.parquet", rows(range(2000)))
    with open(tmp_path / "a.parquet", "r+b") as file:
        file.seek(300)
        file.write(b"\xff" * 200)
    checked = dataclasses.replace(SETTINGS, verify_share=1.0)
    with pytest.raises(CopyInDoubtError, match="differs from its checksum"):
        write_file(tmp_path, "b.parquet", rows(range(2000, 2010)), "a.parquet", checked)


def test_dead_bytes_do_not_pile_up(tmp_path):
    write_file(tmp_path, "0.parquet", rows(range(50)))
    for number in range(1, 120):
        write_file(tmp_path, f"{number}.parquet", rows(range(50 * number, 50 * number + 50)), f"{number - 1}.parquet")
    metadata = pq.read_metadata(tmp_path / "119.parquet")
    groups = [metadata.row_group(n) for n in range(metadata.num_row_groups)]
    live = sum(group.column(n).total_compressed_size for group in groups for n in range(group.num_columns))
    raw = (tmp_path / "119.parquet").read_bytes()
    footer_bytes = len(raw) - find_footer(raw[-8:], len(raw))
    dead = len(raw) - footer_bytes - live
    # one chunk of file names a group, once; before version 18 Arrow writes each chunk's description behind it, too
    assert 0 <= dead < 1000 * len(groups)


def test_the_seal_is_the_last_entry_and_says_where_row_groups_are(tmp_path):
    write_file(tmp_path, "a.parquet", rows(range(2000)))
    raw = (tmp_path / "a.parquet").read_bytes()
    start = find_footer(raw[-8:], len(raw))
    footer = decode_footer(raw[start:-8])
    metadata = pq.read_metadata(tmp_path / "a.parquet")
    assert [group.rows for group in footer.groups] == [
        metadata.row_group(n).num_rows for n in range(metadata.num_row_groups)
    ]
    assert len(footer.groups) > 1
    assert SEAL_KEY in metadata.metadata
    assert footer.codec == "zstd"


@pytest.mark.parametrize("kernel", [True, False])
def test_the_first_bytes_of_a_file_are_copied(tmp_path, monkeypatch, kernel):
    if not kernel:
        monkeypatch.delattr(os, "copy_file_range", raising=False)
    storage = LocalStorage(str(tmp_path))
    content = random.Random(1).randbytes(3_000_001)
    (tmp_path / "a").write_bytes(content)
    for length in (0, 1, 4096, 2_999_999, len(content)):
        sink = storage.open_copy("a", [ByteRange(0, length)], "b")
        assert sink.tell() == length
        sink.write(b"end")
        assert sink.tell() == length + 3
        sink.close()
        assert (tmp_path / "b").read_bytes() == content[:length] + b"end"
    sink = storage.open_copy("a", [ByteRange(5, 7), ByteRange(100, 0), ByteRange(50, 2_000_000), ByteRange(1, 3)], "b")
    sink.close()
    assert (tmp_path / "b").read_bytes() == content[5:12] + content[50:2_000_050] + content[1:4]
    with pytest.raises(StorageError, match="ends after 3000001 bytes, 3000002 were to be read"):
        storage.open_copy("a", [ByteRange(0, len(content) + 1)], "c")


@pytest.mark.parametrize("refused", [False, True])
def test_a_large_file_leaves_the_page_cache_once_it_is_copied_and_a_small_one_stays(tmp_path, monkeypatch, refused):
    let_go = []

    def advise(descriptor, start, length, advice):
        let_go.append((os.fstat(descriptor).st_ino, start, length, advice))
        if refused:
            raise OSError("not on this file system")

    # a system that takes no such advice is given one: what is tested is what we ask for
    monkeypatch.setattr(os, "posix_fadvise", advise, raising=False)
    monkeypatch.setattr(os, "POSIX_FADV_DONTNEED", 4, raising=False)
    storage = LocalStorage(str(tmp_path))
    for size in (1_000_000, 2_000_000):
        (tmp_path / str(size)).write_bytes(bytes(size))
        storage.open_copy(str(size), [ByteRange(0, size - 10)], "b").close()
    assert let_go == [((tmp_path / "2000000").stat().st_ino, 0, 0, 4)]


def test_a_system_that_takes_no_advice_about_its_page_cache_copies_all_the_same(tmp_path, monkeypatch):
    monkeypatch.delattr(os, "posix_fadvise", raising=False)
    (tmp_path / "a").write_bytes(bytes(2_000_000))
    LocalStorage(str(tmp_path)).open_copy("a", [ByteRange(0, 2_000_000)], "b").close()
    assert (tmp_path / "b").stat().st_size == 2_000_000


@pytest.mark.parametrize("rows_of_group", [1, 3, 100_000])
@pytest.mark.parametrize("length", [40, 75, 127, 128, 129, 300])
def test_the_chunk_made_of_a_form_is_the_one_that_arrow_would_write(length, rows_of_group):
    field = file_schema(pa.schema([pa.field("_hoodie_file_name", pa.string())])).field(0)
    schema, settings, start = pa.schema([field]), BaseFileSettings(codec="none", codec_level=None), 5_000
    name = ("0123456789abcdef-" * 20)[:length]
    sink = io.BytesIO(bytes(start))
    sink.seek(start)
    groups = RowGroupWriter(sink, schema, settings)
    groups.write(pa.table([constant_column(name, rows_of_group)], schema=schema))
    group = groups.finish()[0][0].decoded
    for _ in range(2):
        data, chunk = encode_name_chunk(name, rows_of_group, start, field, BaseFileSettings())
        assert data == sink.getvalue()[start:]
        assert chunk == chunks_of(group)[0]

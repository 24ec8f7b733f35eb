"""Rows that name no table: refused by name, or put aside once."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from streaming.batch.workers import Batch
from streaming.router.nameless import check_nameless, open_folder, put_nameless_aside
from streaming.router.routed_table import gather
from streaming.router.split import NAME_COLUMN, SplitRules, Splitter, decode_piece
from streaming.task.in_process import InProcessWorkers
from table.errors import InvalidRecordError
from table.options.choices import BadRows
from table.options.write_groups import BadRowSettings
from table.storage.local import LocalStorage

SCHEMA = pa.schema([("id", pa.int64()), ("a", pa.string())])
NAMES = ["x", None, "../y", "x", "", "a\nb", "z/" * 200, ".h"]
QUARANTINE = BadRowSettings(action=BadRows.QUARANTINE)


@pytest.fixture
def storage(tmp_path):
    return LocalStorage(str(tmp_path / "own"))


def split(storage, names=NAMES, memory_bytes=1 << 20, texts=None):
    """The pieces of one task, as the driver gets them."""
    count = len(names)
    rows = {
        "id": pa.array(range(count), pa.int64()),
        "a": pa.array(["v"] * count) if texts is None else texts,
        NAME_COLUMN: pa.array(names, pa.string()) if isinstance(names, list) else names,
    }
    splitter = Splitter(storage, "staged/0", SCHEMA, SplitRules(None, memory_bytes))
    found = list(splitter.run(pa.table(rows).to_batches()))
    return gather([decode_piece({**one.to_pylist()[0]}) for one in found])


def batch_of(batch_id=3, query_id="q"):
    return Batch(InProcessWorkers(SCHEMA.empty_table()), batch_id, query_id)


def put(storage, folder, own, batch=None):
    put_nameless_aside(storage, own.pieces, LocalStorage(str(folder)), batch or batch_of(), "s")


def read(folder):
    return [row for file in sorted(folder.glob("*.parquet")) for row in pq.read_table(file).to_pylist()]


def test_rows_that_name_a_table_come_without_the_name_and_the_others_with_what_they_name(storage):
    found = split(storage)
    assert list(found["x"].pieces[0].open(storage).read_all().column_names) == ["id", "a"]
    own = found[None].pieces[0].open(storage).read_all()
    assert own.to_pydict() == {"id": [1, 2, 4, 5, 6, 7], "a": ["v"] * 6, NAME_COLUMN: [*NAMES[1:3], *NAMES[4:]]}


@pytest.mark.parametrize("memory_bytes", [0, 1 << 20], ids=["in files", "in the results of tasks"])
def test_the_error_names_the_values_and_the_ways_out(storage, memory_bytes):
    own = split(storage, memory_bytes=memory_bytes)[None]
    with pytest.raises(InvalidRecordError) as refused:
        check_nameless(storage, own.pieces, 8, 3, BadRowSettings())
    said = str(refused.value)
    assert said.startswith("6 rows of batch 3 name no table, for example null, '../y', '', 'a\\nb', 'z/z/")
    assert "'.h'" not in said  # five are shown, and long ones cut
    assert len(said) < 900
    assert "set hudistream.bad.rows=quarantine; nothing of the batch is visible" in said


def test_more_than_the_greatest_share_is_refused(storage):
    own = split(storage)[None]
    check_nameless(storage, own.pieces, 8, 3, QUARANTINE)
    check_nameless(storage, own.pieces, 8, 3, BadRowSettings(action=BadRows.QUARANTINE, max_share=0.75))
    with pytest.raises(InvalidRecordError, match=r"6 of 8 rows of batch 3 name no table, for example null.* 0\.750"):
        check_nameless(storage, own.pieces, 8, 3, BadRowSettings(action=BadRows.QUARANTINE, max_share=0.7))


@pytest.mark.parametrize("memory_bytes", [0, 1 << 20], ids=["in files", "in the results of tasks"])
def test_they_are_put_aside_with_all_their_columns_and_the_reason(storage, tmp_path, logs, memory_bytes):
    put(storage, tmp_path / "bad", split(storage, memory_bytes=memory_bytes)[None])
    rows = read(tmp_path / "bad")
    assert [row["id"] for row in rows] == [1, 2, 4, 5, 6, 7]
    assert [row[NAME_COLUMN] for row in rows] == [*NAMES[1:3], *NAMES[4:]]
    assert {(row["_hudistream_batch_id"], row["_hudistream_sink"]) for row in rows} == {(3, "s")}
    assert all("name of the table" in row["_hudistream_reason"] for row in rows)
    assert [one["rows"] for one in logs if one["event"] == "rows_quarantined"] == [6]
    assert [path.suffix for path in (tmp_path / "bad").rglob("*") if path.is_file()] == [".parquet"]


def test_a_batch_that_comes_again_replaces_its_file_and_others_have_their_own(storage, tmp_path):
    own = split(storage)[None]
    for batch in (batch_of(), batch_of(), batch_of(query_id="p"), batch_of(4)):
        put(storage, tmp_path / "bad", own, batch)
    assert len(read(tmp_path / "bad")) == 18


def test_outside_a_stream_nothing_is_replaced(storage, tmp_path):
    """A number alone does not tell that a batch comes again."""
    for names in (["/"], ["//"]):
        put(storage, tmp_path / "bad", split(storage, names)[None], batch_of(query_id=None))
    assert {row[NAME_COLUMN] for row in read(tmp_path / "bad")} == {"/", "//"}


def test_bytes_that_are_no_text_are_made_readable(storage, tmp_path):
    odd = pa.StringArray.from_buffers(1, pa.py_buffer(b"\0\0\0\0\2\0\0\0"), pa.py_buffer(b"a\xff"))
    put(storage, tmp_path / "bad", split(storage, odd, texts=odd)[None])
    assert [(row["a"], row[NAME_COLUMN]) for row in read(tmp_path / "bad")] == [("a\\xff", "a\\xff")]


def test_they_lie_below_the_root_unless_an_option_names_a_folder(tmp_path):
    root = LocalStorage(str(tmp_path))
    assert open_folder(root, None, {}) == LocalStorage(str(tmp_path / "_bad_rows"))
    assert open_folder(root, f"{tmp_path}/o#1", {}) == LocalStorage(f"{tmp_path}/o#1")

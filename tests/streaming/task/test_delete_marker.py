"""The column ``_hoodie_is_deleted``: what it does with each operation, and which types it may have."""

import pyarrow as pa
import pytest

from hudistream import ArrowSink, HudiTable, SchemaMismatchError
from table.schema import evolution

GONE = "_hoodie_is_deleted"
SCHEMA = pa.schema([("id", pa.string()), ("ts", pa.int64()), (GONE, pa.bool_())])
QUIET = {"hoodie.datasource.compaction.async.enable": "false", "hoodie.clean.automatic": "false"}
EACH_TYPE = pytest.mark.parametrize("table_type", ["cow", "mor"])


def records(*rows):
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in rows], SCHEMA)


def ids(path):
    return sorted(HudiTable.open(path).scan(["id"]).to_arrow()["id"].to_pylist())


@EACH_TYPE
@pytest.mark.parametrize(
    ("operation", "combines", "left"),
    [
        ("insert", "false", ["a", "d"]),
        ("insert", "true", ["a", "d"]),
        ("bulk_insert", "false", ["a", "d"]),
        ("insert_overwrite", "false", ["d"]),
        ("insert_overwrite", "true", ["d"]),
        ("insert_overwrite_table", "true", ["d"]),
        ("upsert", "false", ["a", "d"]),
    ],
)
def test_a_record_that_deletes_its_key_is_no_row(tmp_path, table_type, operation, left, combines):
    path, more = str(tmp_path / "t"), {**QUIET, "hoodie.combine.before.insert": combines}
    with ArrowSink(path, more, key="id", order_by="ts", table_type=table_type) as sink:
        sink.write(records(("a", 1, False)))
        summary = sink.write(records(("c", 2, True), ("d", 2, None)), operation=operation)
    assert ids(path) == left
    assert (summary.rows, summary.deletes_unmatched) == (1, 1)


@pytest.mark.parametrize("operation", ["insert", "bulk_insert"])
def test_a_batch_of_such_records_alone_changes_nothing(tmp_path, operation):
    path = str(tmp_path / "t")
    with ArrowSink(path, QUIET, key="id", order_by="ts") as sink:
        sink.write(records(("a", 1, False)))
        sink.write(records(("b", 2, True), ("b", 3, True)), operation=operation)
    assert ids(path) == ["a"]


@EACH_TYPE
@pytest.mark.parametrize("kind", [pa.int64(), pa.string(), pa.float64()])
def test_a_marker_of_another_type_is_refused(tmp_path, table_type, kind):
    path = str(tmp_path / "t")
    marked = records(("a", 2, True)).set_column(2, GONE, pa.array([1]).cast(kind))
    with (
        pytest.raises(SchemaMismatchError, match=f"'{GONE}' is {kind}, and must be boolean"),
        ArrowSink(path, key="id", order_by="ts", table_type=table_type) as sink,
    ):
        sink.write(marked)
    with ArrowSink(path, QUIET, key="id", order_by="ts", table_type=table_type) as sink:
        sink.write(records(("a", 1, None)).drop_columns([GONE]))
        with pytest.raises(SchemaMismatchError, match=f"'{GONE}' is {kind}, and must be boolean"):
            sink.write(marked)
        sink.write(records(("a", 2, True)))
    assert ids(path) == []


@EACH_TYPE
def test_a_table_that_has_one_all_the_same_is_read_and_goes_on(tmp_path, table_type, monkeypatch):
    """Hudi takes the values of such a column for no deletes (HoodieRecord.isDelete), and so do we."""
    path = str(tmp_path / "t")
    monkeypatch.setattr(evolution, "_check_new_names", lambda *_: None)
    marked = records(("a", 1, None), ("b", 1, None)).set_column(2, GONE, pa.array([1, 0]))
    with ArrowSink(path, QUIET, key="id", order_by="ts", table_type=table_type) as sink:
        sink.write(marked)
        monkeypatch.undo()
        sink.write(marked.slice(1))
        assert ids(path) == ["a", "b"]
    HudiTable.open(path).compact() if table_type == "mor" else None
    assert ids(path) == ["a", "b"]

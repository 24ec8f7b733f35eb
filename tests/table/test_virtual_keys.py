"""Tables whose rows have null meta columns: every operation, what they refuse, and what lies in their files."""

import glob

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from engine import Engine, rows

from hudistream import HudiTable
from streaming import erase
from streaming.arrow_sink import ArrowSink
from streaming.validators import NullShare
from table import InvalidConfigError, UnsupportedTableError, read_table
from table.options.groups import BaseFileSettings
from table.schema.avro_schema import META_COLUMNS
from table.services.check.check import check
from table.services.rewriting import Rewriting
from table.snapshot import Snapshot

VIRTUAL = {"hoodie.populate.meta.fields": "false"}
OPERATION = "hoodie.datasource.write.operation"


def table_of(path, count=20, **options):
    Engine(str(path), {**VIRTUAL, **options}).write(None, rows(range(count), v="old"))
    return str(path)


def values(path):
    return dict(zip(*(read_table(path)[name].to_pylist() for name in ("id", "v")), strict=True))


def files_of(path):
    return sorted(glob.glob(f"{path}/p*/*.parquet"))


@pytest.mark.parametrize("index", ["BLOOM", "SIMPLE", "GLOBAL_BLOOM", "GLOBAL_SIMPLE"])
def test_rows_are_updated_added_and_deleted_by_the_keys_of_their_columns(tmp_path, index):
    path, chosen = table_of(tmp_path / "t"), {"hoodie.index.type": index}
    Engine(path, {**chosen, OPERATION: "upsert"}).write(1, rows(range(10, 30), ts=1, v="new"))
    Engine(path, {**chosen, OPERATION: "upsert"}).write(2, rows(range(25, 31), ts=2, v="newer"))
    Engine(path, {**chosen, OPERATION: "delete"}).write(3, rows(range(5)))
    wanted = {f"k{n}": "old" for n in range(5, 10)} | {f"k{n}": "new" for n in range(10, 25)}
    assert values(path) == wanted | {f"k{n}": "newer" for n in range(25, 31)}
    assert check(HudiTable.open(path)).findings == ()


def test_files_have_null_meta_columns_and_neither_filter_nor_key_range(tmp_path):
    path = table_of(tmp_path / "t")
    Engine(path, {OPERATION: "upsert"}).write(1, rows(range(10, 30), ts=1, v="new"))
    for file in files_of(path):
        stored = pq.read_table(file)
        assert stored.column_names[:5] == list(META_COLUMNS)
        assert all(stored.column(name).null_count == len(stored) for name in META_COLUMNS)
        assert not [key for key in pq.read_metadata(file).metadata if b"bloom" in key or b"record_key" in key]


def test_row_groups_are_copied_when_rows_are_added(tmp_path):
    small = {"hoodie.parquet.block.size": "1000"}
    path = table_of(tmp_path / "t", 3_000, **small)
    summary = Engine(path, small).write(1, rows(range(3_000, 3_003), v="new"))
    assert summary.bytes_copied > 0
    assert len(values(path)) == 3_003


@pytest.mark.parametrize("several", [("id", "ts"), ("n",), ("id", "s.a")])
def test_keys_of_several_columns_of_numbers_and_of_structs(tmp_path, several):
    def batch(ids, v):
        return pa.table(
            {
                "id": [f"k{n}" for n in ids],
                "n": pa.array(ids, pa.int32()),
                "ts": pa.array([n % 2 for n in ids], pa.int64()),
                "s": [{"a": n // 2} for n in ids],
                "v": [v] * len(ids),
            }
        )

    path = str(tmp_path / "t")
    ArrowSink(path, VIRTUAL, key=several, operation="upsert").write(batch(range(6), "old"))
    ArrowSink(path, key=several, operation="upsert").write(batch(range(3, 9), "new"))
    assert values(path) == {f"k{n}": "old" if n < 3 else "new" for n in range(9)}


@pytest.mark.parametrize("operation", ["insert_overwrite", "insert_overwrite_table", "bulk_insert"])
def test_other_operations(tmp_path, operation):
    path = table_of(tmp_path / "t")
    Engine(path, {OPERATION: operation}).write(None, rows(range(100, 103), v="new"))
    added = {"k100": "new", "k101": "new", "k102": "new"}
    kept = {} if operation.startswith("insert_overwrite") else {f"k{n}": "old" for n in range(20)}
    assert values(path) == kept | added


def test_rows_are_deleted_by_a_condition(tmp_path):
    path = table_of(tmp_path / "t")
    with ArrowSink(path) as sink:
        assert sink.delete(where=[("id", "in", ["k1", "k2", "k99"])]).rows_deleted == 2
    assert sorted(values(path)) == sorted(f"k{n}" for n in range(20) if n not in (1, 2))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"hoodie.datasource.write.table.type": "MERGE_ON_READ"}, "use COPY_ON_WRITE"),
        ({"hoodie.index.type": "BUCKET"}, "SIMPLE and GLOBAL_SIMPLE"),
        ({"hoodie.clustering.inline": "true"}, "hoodie.clustering.inline=true"),
        ({"hoodie.merge.allow.duplicate.on.inserts": "false"}, "use hoodie.datasource.write.operation=upsert"),
    ],
)
def test_what_needs_meta_columns_is_refused_before_the_table_is_made(tmp_path, options, said):
    with pytest.raises(InvalidConfigError, match=said):
        table_of(tmp_path / "t", **options)
    assert not (tmp_path / "t").exists()


@pytest.mark.parametrize("value", ["true", "false"])
def test_a_table_keeps_the_choice_that_it_was_made_with(tmp_path, value):
    path = str(tmp_path / "t")
    Engine(path, VIRTUAL if value == "true" else {}).write(None, rows(range(3)))
    with pytest.raises(InvalidConfigError, match=f"hoodie.populate.meta.fields={value} contradicts the table"):
        Engine(path, {"hoodie.populate.meta.fields": value}).write(1, rows(range(3)))


@pytest.mark.parametrize(
    ("ask", "said"),
    [
        (lambda path: HudiTable.open(path).changes("0").to_arrow(), "do not say which commit wrote them"),
        (lambda path: HudiTable.open(path).cluster(), "cannot be clustered"),
        (lambda path: erase(path, ["k1"]), "cannot be searched for erased keys"),
        (lambda path: HudiTable.open(path).lookup(["k1"]), "keeps no record keys"),
    ],
)
def test_questions_that_need_meta_columns_are_refused(tmp_path, ask, said):
    path = table_of(tmp_path / "t")
    with pytest.raises(UnsupportedTableError, match=said):
        ask(path)
    assert len(values(path)) == 20


def test_a_validator_that_reads_the_rows_of_the_batch_is_refused_and_nothing_is_visible(tmp_path):
    path = table_of(tmp_path / "t")
    sink = ArrowSink(path, operation="insert", validators=[NullShare("v", 0.5)])
    with sink, pytest.raises(UnsupportedTableError, match="RowCount reads no rows"):
        sink.write(rows(range(30, 33)))
    assert len(values(path)) == 20


def test_a_file_is_read_again_after_it_was_written_though_the_cache_knew_the_older_one(tmp_path):
    path = table_of(tmp_path / "t")
    writer = Engine(path, {OPERATION: "upsert"})
    for number in range(1, 5):
        writer.write(number, rows(range(number * 4, number * 4 + 8), ts=number, v=f"v{number}"))
    assert len(values(path)) == len(read_table(path)) == 24


@pytest.mark.parametrize("given", [BaseFileSettings(), BaseFileSettings(has_meta_fields=False)], ids=["none", "false"])
def test_the_table_and_no_setting_says_whether_a_service_writes_meta_columns(tmp_path, given):
    path = str(tmp_path / "t")
    Engine(path).write(None, rows(range(3)))
    snapshot = Snapshot.load(HudiTable.open(path))
    assert Rewriting.of(snapshot, "20260101000000000", given, "clustered").context.settings.has_meta_fields

"""Folders in which no row can match are not listed, and no row is lost by that."""

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from counting import data_folders
from faults import FaultyStorage, Fuse
from hypothesis import given
from hypothesis import strategies as st

from hudistream import ArrowSink, HudiTable
from table.config.table_config import TableConfig
from table.scan.partition_guarantee import guarantees_below
from table.scan.predicate import parse_where, which_may_hold
from table.storage.local import LocalStorage

SCHEMA = pa.schema(
    [("_hoodie_partition_path", pa.string()), ("id", pa.string()), ("p", pa.string()), ("n", pa.int64())]
)
TEXTS = st.text(alphabet="ab/0-.Z", min_size=1, max_size=5).filter(lambda text: "//" not in f"/{text}/")
OPERATORS = st.sampled_from(["=", "!=", "<", "<=", ">", ">="])


def config(**more):
    return TableConfig("t", ("id",), **{"partition_fields": ("p",), **more})


def may_hold(settings, where, folder):
    predicate = parse_where(where, SCHEMA)
    return bool(which_may_hold(predicate.expression, guarantees_below(settings, SCHEMA, folder), SCHEMA))


@given(TEXTS, OPERATORS, TEXTS, st.booleans())
def test_no_folder_above_a_row_that_matches_is_left_out(value, operator, sought, is_styled):
    path = f"p={value}" if is_styled else value
    row = pa.table({"_hoodie_partition_path": [path], "id": ["k"], "p": [value], "n": [1]}, schema=SCHEMA)
    where = [("p", operator, sought)]
    if not row.filter(parse_where(where, SCHEMA).expression).num_rows:
        return
    segments = path.split("/")
    for depth in range(1, len(segments) + 1):
        assert may_hold(config(hive_style=is_styled), where, "/".join(segments[:depth]))


@pytest.mark.parametrize(
    ("where", "folder", "kept"),
    [
        ([("p", "=", "a")], "a", True),
        ([("p", "=", "a")], "b", False),
        ([("p", "=", "a/b")], "a", True),
        ([("p", "=", "a/b")], "a/b", True),  # the first segment alone decides
        ([("p", "in", ["x", "a"])], "a", True),
        ([("p", "in", ["x", "y"])], "a", False),
        ([("p", ">", "b")], "a", False),
        ([("p", ">", "a")], "a", True),  # a/x is greater
        ([("p", "<", "a")], "a", False),
        ([("p", "=", "a")], "__HIVE_DEFAULT_PARTITION__", True),
        ([("n", "=", 1)], "b", True),
        ([[("p", "=", "a")], [("n", "=", 1)]], "b", True),
        ([("p", "=", "a"), ("n", "=", 1)], "b", False),
    ],
)
def test_a_folder_is_left_out_where_its_first_segment_contradicts(where, folder, kept):
    assert may_hold(config(), where, folder) is kept


@pytest.mark.parametrize(
    ("more", "folder", "kept"),
    [
        ({"url_encode": True}, "a", False),  # a slash would be encoded: a/b cannot be below
        ({"hive_style": True}, "p=b", False),
        ({"hive_style": True}, "b", True),  # not of this table's rules
        ({"keygen_type": "TIMESTAMP"}, "b", True),
        ({"keygen_type": "CUSTOM"}, "b", True),
        ({"partition_fields": ("n",)}, "7", True),  # the condition is on p
        ({"partition_fields": ("p", "n")}, "b", False),
        ({"partition_fields": ("p", "n")}, "a", True),
        ({"drop_partition_columns": True}, "b", True),
    ],
)
def test_what_is_not_certain_leaves_nothing_out(more, folder, kept):
    assert may_hold(config(**more), [("p", "=", "a/b")], folder) is kept


def test_a_scan_of_one_partition_lists_that_folder_alone(tmp_path):
    path = str(tmp_path / "t")
    rows = pa.table({"id": [f"k{n}" for n in range(60)], "p": [f"p{n % 30}" for n in range(60)], "ts": range(60)})
    with ArrowSink(path, key="id", partition_by="p", order_by="ts") as sink:
        sink.write(rows)
    fuse = Fuse()
    table = HudiTable(FaultyStorage(LocalStorage(path), fuse), HudiTable.open(path).config)
    found = table.scan(columns=["id"], where=[("p", "=", "p7")]).to_arrow()
    assert sorted(found.column("id").to_pylist()) == ["k37", "k7"]
    assert set(data_folders(fuse.calls)) <= {"", "p7"}
    told = table.scan(where=[("p", "=", "p7")]).explain()
    assert (told.pruning.partitions, told.pruning.files_in_pruned_partitions) == (30, 29)


@pytest.mark.parametrize("is_styled", ["true", "false"])
def test_values_with_slashes_are_found(tmp_path, is_styled):
    path, values = str(tmp_path / "t"), ["a", "a/b", "a/b/c", "b", "a0"]
    options = {"hoodie.datasource.write.hive_style_partitioning": is_styled}
    rows = pa.table({"id": [f"k{n}" for n in range(5)], "p": values, "ts": range(5)})
    with ArrowSink(path, options, key="id", partition_by="p", order_by="ts") as sink:
        sink.write(rows)
    table = HudiTable.open(path)
    for where in ([("p", "=", "a/b")], [("p", "=", "a")], [("p", ">", "a")], [("p", "in", ["a/b/c", "b"])]):
        kept = rows.filter(parse_where(where, rows.schema).expression).column("id").to_pylist()
        assert sorted(table.scan(columns=["id"], where=where).to_arrow().column("id").to_pylist()) == sorted(kept)
    assert pc.unique(rows.column("p")).to_pylist() == values

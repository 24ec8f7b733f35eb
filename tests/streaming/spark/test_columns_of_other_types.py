"""Batches whose columns have other types than the table's: Spark's sink and the one without Spark answer alike."""

import re

import pyarrow as pa
import pytest
from tiers import quick

from hudistream import HudiTable
from streaming import ArrowSink, HudiSink
from streaming.spark.schema import to_arrow_schema
from table import InvalidRecordError, SchemaMismatchError

pytestmark = pytest.mark.spark

BIG = 1_790_000_000_000_000_001
TABLE = (
    f"SELECT 'a' id, {BIG}L n, CAST(1 AS INT) i, CAST(1.50 AS DECIMAL(10,2)) d, map('k', 1L) m, array('x') l, "
    "named_struct('f', 1L) s, true b, TIMESTAMP '2024-03-01 12:30:00' t"
)
# what a batch has; what the row is then, or what the error says
CASES = [
    (
        "'b' id, 7.0D n, CAST(NULL AS DOUBLE) i, CAST(2.5 AS DECIMAL(38,18)) d, NULL m, NULL b, array(NULL) l",
        {"n": 7, "i": None, "d": "2.50", "m": None, "b": None, "l": [None]},
    ),
    ("'b' id, 0.5D n", (InvalidRecordError, r"'n' is double.*int64: the row with the key 'b' has 0\.5.*'Int64'")),
    ("'b' id, NULL fresh", (SchemaMismatchError, "'fresh' has no type of its own")),
    ("'b' id, 7.0D n, CAST(NULL AS DOUBLE) i", {"n": 7, "i": None}),
    ("'b' id, CAST(7 AS FLOAT) n, 2.0D i, named_struct('f', 3.0D) s", {"n": 7, "i": 2, "s": {"f": 3}}),
    ("'b' id, NULL n, NULL d, NULL m, NULL s, NULL b, NULL t, array() l", {"n": None, "t": None, "s": None, "l": []}),
    ("'b' id, array(NULL) l, map('k', NULL) m, named_struct('f', NULL) s", {"l": [None], "s": {"f": None}}),
    ("'b' id, CAST(2.5 AS DECIMAL(3,1)) d", {"d": "2.50"}),
    ("'b' id, 7L d", {"d": "7.00"}),
    ("'b' id, double('NaN') n", (InvalidRecordError, "the key 'b' has nan, which is no number.*'Int64'")),
    ("'b' id, CAST(16777218 AS FLOAT) i", (InvalidRecordError, "the key 'b' has 16777218.0, and beyond 16777216")),
    ("'b' id, named_struct('f', 0.5D) s", (InvalidRecordError, r"'s\.f' is double.*'b' has 0\.5")),
    ("'b' id, CAST(2.505 AS DECIMAL(12,3)) d", (InvalidRecordError, r"'d' is decimal.*'b' has 2\.505")),
    ("'b' id, 100000000L d", (InvalidRecordError, "'b' has 100000000, which decimal128")),
    ("'b' id, array(named_struct('f', 1L)) l", (SchemaMismatchError, "'l.element' is struct")),
    ("'b' id, 1.5D d", (SchemaMismatchError, "'d' is double, the table has decimal128")),
]


def rows_of(path):
    return {row["id"]: row for row in HudiTable.open(path).scan().to_arrow().to_pylist()}


def answer(sink, path, rows):
    """The row that the batch leaves, or the error; what was there stays."""
    before, commits = rows_of(path), len(HudiTable.open(path).load_timeline().completed_writes)
    schema = HudiTable.open(path).schema
    try:
        sink.write(rows)
    except (InvalidRecordError, SchemaMismatchError) as error:
        assert (rows_of(path), HudiTable.open(path).schema) == (before, schema)
        assert len(HudiTable.open(path).load_timeline().completed_writes) == commits
        return type(error), str(error).partition(" (instant")[0]
    found = rows_of(path)
    assert found["a"] == before["a"]
    assert HudiTable.open(path).schema == schema
    return found["b"]


@pytest.mark.parametrize(("table_type", "cases"), quick(1, [("cow", CASES[:3]), ("mor", CASES), ("cow", CASES[3:])]))
def test_both_sinks_take_and_refuse_the_same(spark, tmp_path, table_type, cases):
    options = {"hudistream.schema.mode": "reconcile", "hoodie.clean.automatic": "false"}
    given = {"key": "id", "operation": "upsert", "table_type": table_type}
    paths = str(tmp_path / "spark"), str(tmp_path / "arrow")
    with ArrowSink(paths[1], options, **given) as arrow:
        sinks = HudiSink(paths[0], options, **given), arrow
        for case, wanted in [(TABLE, None), *((f"SELECT {columns}", found) for columns, found in cases)]:
            frame = spark.sql(case)
            records = [row.asDict(recursive=True) for row in frame.collect()]
            rows = pa.Table.from_pylist(records, to_arrow_schema(frame.schema))
            if wanted is None:
                for sink, batch in zip(sinks, (frame, rows), strict=True):
                    sink.write(batch)
                continue
            ours, theirs = (answer(*each) for each in zip(sinks, paths, (frame, rows), strict=True))
            assert ours == theirs
            if isinstance(wanted, tuple):
                assert ours[0] is wanted[0]
                assert re.search(wanted[1], ours[1])
            else:
                shown = {name: str(ours[name]) if name == "d" else ours[name] for name in wanted}
                assert shown == wanted
        sinks[0].stop()

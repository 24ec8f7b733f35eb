"""Changes of a table's columns: the same verdict as Hudi 1.0.2's, and the same rows."""

import datetime as dt
import decimal

import pyarrow as pa
import pytest
from engine import OPTIONS, Engine
from oracles.hudi import HudiError
from tiers import slow

from table import SchemaMismatchError, read_table

pytestmark = pytest.mark.hudi

TYPES = {
    "int": (pa.int32(), [1, -7]),
    "long": (pa.int64(), [2**40, 3]),
    "float": (pa.float32(), [1.5, 1e10]),
    "double": (pa.float64(), [0.1, 1e-7]),
    "text": (pa.string(), ["x", "é"]),
    "binary": (pa.binary(), [b"x", b"yz"]),
    "date": (pa.date32(), [dt.date(2020, 1, 2), dt.date(1999, 12, 31)]),
    "price": (pa.decimal128(10, 2), [decimal.Decimal("1.25"), decimal.Decimal("-3.00")]),
    "flag": (pa.bool_(), [True, False]),
}
NUMBERS = ("int", "long", "float", "double", "text")
PAIRS = [(one, other) for one in NUMBERS for other in NUMBERS if one != other]
PAIRS += [
    ("text", "price"),
    ("text", "date"),
    ("binary", "text"),
    ("int", "binary"),
    ("binary", "long"),
    ("int", "price"),
]
PAIRS += [("flag", "text"), ("date", "text"), ("price", "text")]
A, B = pa.struct([("a", pa.int64())]), pa.struct([("a", pa.int64()), ("b", pa.string())])
NESTED = {
    "new field": ((A, [{"a": 1}, {"a": 2}]), (B, [{"a": 1, "b": "q"}, {"a": 2, "b": None}])),
    "new field in a list": ((pa.list_(A), [[{"a": 1}], []]), (pa.list_(B), [[{"a": 1, "b": "q"}], None])),
    "new field in a map": (
        (pa.map_(pa.string(), A), [[("k", {"a": 1})], []]),
        (pa.map_(pa.string(), B), [[("k", {"a": 1, "b": "q"})], None]),
    ),
    "wider field": ((pa.struct([("a", pa.int32())]), [{"a": 1}, None]), (A, [{"a": 1}, {"a": 2}])),
    "field missing": ((B, [{"a": 1, "b": "q"}, None]), (A, [{"a": 1}, {"a": 2}])),
}
FILL, RECONCILE = "hoodie.write.set.null.for.missing.columns", "hoodie.datasource.write.reconcile.schema"


def batch(keys, **columns):
    fixed = {"id": keys, "p": ["p"] * len(keys), "ts": pa.array([1] * len(keys), pa.int64())}
    return pa.table({**fixed, **{name: pa.array(values, kind) for name, (kind, values) in columns.items()}})


def outcome(write, read, first, second, refusal):
    write(0, first)
    try:
        write(1, second)
    except refusal:
        return "refused"
    rows = read()
    names = [name for name in rows.column_names if not name.startswith("_hoodie")]
    return sorted(repr(sorted(row.items())) for row in rows.select(names).to_pylist())


def check(hudi, tmp_path, first, second, extra=None):
    options = {**OPTIONS, "hoodie.datasource.write.operation": "upsert", "hoodie.index.type": "SIMPLE", **(extra or {})}
    ours, theirs = str(tmp_path / "ours"), str(tmp_path / "theirs")
    sink = Engine(ours, options)
    found = outcome(sink.write, lambda: read_table(ours), first, second, SchemaMismatchError)
    wanted = outcome(
        lambda _, rows: hudi.write(theirs, rows, options), lambda: read_table(theirs), first, second, HudiError
    )
    assert found == wanted


@pytest.mark.parametrize("pair", [pytest.param(pair, marks=pytest.mark.slow) for pair in PAIRS], ids="-to-".join)
def test_changes_of_type(hudi, tmp_path, pair):
    first, second = (TYPES[name] for name in pair)
    # ours makes numbers text, and integers floats, on request alone
    to = "numbers.to.text" if pair[1] == "text" else "integers.to.floats"
    asked = {f"hudistream.schema.{to}": "true"}
    check(hudi, tmp_path, batch(["a", "b"], x=first), batch(["b", "c"], x=second), asked)


@pytest.mark.parametrize("change", [pytest.param(name, marks=pytest.mark.slow) for name in NESTED])
def test_changes_within_a_column(hudi, tmp_path, change):
    first, second = NESTED[change]
    check(hudi, tmp_path, batch(["a", "b"], x=first), batch(["b", "c"], x=second))


@pytest.mark.parametrize(
    ("first", "second", "extra"),
    [
        slow(({}, {"x": TYPES["text"]}, {})),
        ({"x": TYPES["text"], "y": TYPES["int"]}, {"y": TYPES["long"]}, {FILL: "true"}),
        slow(({"x": TYPES["text"], "y": TYPES["int"]}, {"y": TYPES["long"]}, {})),
        slow(({"x": TYPES["text"], "y": TYPES["int"]}, {"y": TYPES["int"]}, {RECONCILE: "true"})),
        slow(({"x": TYPES["text"]}, {"y": TYPES["int"]}, {FILL: "true"})),
    ],
    ids=["new", "missing and filled", "missing", "missing and reconciled", "new and missing and filled"],
)
def test_columns_that_come_and_stay_away(hudi, tmp_path, first, second, extra):
    check(hudi, tmp_path, batch(["a", "b"], **first), batch(["b", "c"], **second), extra)

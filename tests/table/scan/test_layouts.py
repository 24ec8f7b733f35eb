"""No answer depends on how rows lie in files: each type and operator, before and after compaction and clustering.

Each reader gives what it gives over the same rows in memory. A page of Python says what a scan has to give.
"""

import operator
import struct
from datetime import date, datetime, timezone
from decimal import Decimal

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hudistream import ArrowSink, HudiTable
from table.errors import UnsupportedTableError
from table.scan.polars_source import scan_hudi

NAN, INF = float("nan"), float("inf")
UTC = timezone.utc
FLOATS = [0.0, -0.0, 1.0, 3.0, NAN, INF, -INF]
VALUES = {
    pa.float32(): FLOATS,
    pa.float64(): [*FLOATS, 1e300],
    pa.int32(): [-(2**31), -1, 0, 1, 2**31 - 1],
    pa.int64(): [-(2**63), 0, 3, 2**63 - 1],
    pa.string(): ["", "a", "b", "é", "\uffff", "😀"],
    pa.binary(): [b"", b"\x00", b"\x7f", b"\x80", b"\xff"],
    pa.bool_(): [False, True],
    pa.date32(): [date(1, 1, 1), date(1969, 12, 31), date(2024, 2, 29)],
    pa.timestamp("us", "UTC"): [datetime(1900, 1, 1, tzinfo=UTC), datetime(2024, 1, 2, 3, 4, 5, 6, tzinfo=UTC)],
    pa.decimal128(9, 2): [Decimal("-1.00"), Decimal("0.00"), Decimal("12.34")],
}
KINDS = {"cow": {}, "mor": {"hoodie.datasource.write.table.type": "MERGE_ON_READ"}}
# each kind with one type of table in `make test`, with both in `make test-all`
EACH_ONCE = [
    pytest.param(kind, table, marks=[] if (number + 2 * place) % 4 == 1 else [pytest.mark.slow], id=f"{table}-{kind}")
    for number, kind in enumerate(VALUES)
    for place, table in enumerate(KINDS)
]
COMPARED = {
    "=": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge
}  # fmt: skip
TINY = {"hoodie.parquet.block.size": "1", "hoodie.parquet.small.file.limit": "0"}  # a row group for each row


def same_bits(left, right):
    """As `isin` compares: NaN equals itself, and zeros have signs."""
    if isinstance(left, float):
        return struct.pack("<d", left) == struct.pack("<d", right)
    return left == right


def wants(value, term):
    """Whether a scan shows a row with this value: Arrow's comparisons, and SQL's nulls."""
    _, spelled, operand = term
    if spelled in ("in", "not in"):
        if spelled == "not in" and not operand:
            return True
        if value is None or (spelled == "not in" and None in operand):
            return False
        return any(same_bits(value, one) for one in operand if one is not None) is (spelled == "in")
    return value is not None and operand is not None and COMPARED[spelled](value, operand)


def terms_of(kind):
    values = st.sampled_from(VALUES[kind])
    lists = st.lists(values | st.none(), max_size=3, unique_by=repr)
    return st.one_of(
        st.tuples(st.just("x"), st.sampled_from(list(COMPARED)), values | st.none()),
        st.tuples(st.just("x"), st.sampled_from(["in", "not in"]), lists),
    )


def sql_of(term, kind):
    """A term for DuckDB, with its operands; None where DuckDB has none for it."""
    _, spelled, operand = term
    if spelled in ("in", "not in"):
        return (f"x {spelled} ({', '.join('?' * len(operand))})", operand) if operand else None
    return f"x {spelled} ?", [operand]


def polars_of(term, kind):
    name = pl.col("x")
    _, spelled, operand = term
    if spelled in ("in", "not in"):
        listed = name.is_in(pl.from_arrow(pa.array(operand, kind)))
        return listed if spelled == "in" else ~listed
    series = pl.from_arrow(pa.array([operand], kind))
    return COMPARED[spelled](name, pl.lit(series[0], dtype=series.dtype))


def ids(found):
    return sorted(found)


def check_readers(path, rows, terms, kind):
    """All readers, over the newest snapshot."""
    table = HudiTable.open(path)
    memory, view = duckdb.connect(), duckdb.connect()
    memory.register("given", rows)
    memory.execute("create table t as select * from given")
    view.execute("set threads = 1")
    table.to_duckdb(view)
    frame = pl.from_arrow(rows)
    assert ids(table.lookup(["k0", "k1", "nobody"], ["id"])["id"].to_pylist()) == ["k0", "k1"]
    for term in terms:
        want = ids(row["id"] for row in rows.to_pylist() if wants(row["x"], term))
        scan = table.scan(["id", "x"], [term])
        assert ids(scan.to_arrow()["id"].to_pylist()) == want, term
        assert table.count([term]) == len(want), term
        assert ids(key for batch in table.scan(["id"], [term]).to_batches() for key in batch["id"].to_pylist()) == want
        try:
            found = scan.to_dataset().to_table()["id"].to_pylist()
        except UnsupportedTableError:
            found = want  # it says so, and how to read
        assert ids(found) == want, term
        asked = sql_of(term, kind)
        if asked is not None:
            text, operands = f"select id from t where {asked[0]}", asked[1]
            by_duckdb = [ids(row[0] for row in c.execute(text, operands).fetchall()) for c in (view, memory)]
            assert by_duckdb[0] == by_duckdb[1], term
        condition = polars_of(term, kind)
        by_polars = scan_hudi(path).filter(condition).select("id").collect()["id"].to_list()
        assert ids(by_polars) == ids(frame.filter(condition)["id"].to_list()), term


@pytest.mark.parametrize(("kind", "table_type"), EACH_ONCE)
def test_answers_do_not_depend_on_the_layout(tmp_path_factory, kind, table_type):
    @given(st.data())
    @settings(max_examples=2, deadline=None, suppress_health_check=list(HealthCheck))
    def check(data):
        some = st.sampled_from(VALUES[kind]) | st.none()
        few = st.sampled_from(data.draw(st.lists(some, min_size=1, max_size=3), "few"))  # so that bounds meet
        values = data.draw(st.lists(few, min_size=2, max_size=8), "values")
        terms = data.draw(st.lists(terms_of(kind), min_size=4, max_size=8), "terms")
        options = {**KINDS[table_type], **data.draw(st.sampled_from([{}, TINY]), "layout")}
        path = str(tmp_path_factory.mktemp("layout") / "t")
        rows = pa.table({"id": [f"k{n}" for n in range(len(values))], "x": pa.array(values, kind)})
        cut = data.draw(st.integers(0, len(values)), "cut")
        with ArrowSink(path, {**options, "hoodie.compact.inline": "false"}, key="id", operation="upsert") as sink:
            for part in (rows.slice(0, cut), rows.slice(cut), rows.slice(0, 2)):
                if len(part):
                    sink.write(part)
        check_readers(path, rows, terms, kind)
        table = HudiTable.open(path)
        if table_type == "mor":
            table.compact()
            check_readers(path, rows, terms, kind)
        table.cluster("x" if not pa.types.is_binary(kind) else None)
        check_readers(path, rows, terms, kind)

    check()


@pytest.mark.parametrize(
    "condition",
    [
        pc.field("x") != 3.0,
        ~(pc.field("x") < 5.0),
        pc.field("x").is_nan(),
        ~pc.field("x").isin([3.0]),
        pc.field("x").isin([-0.0, 7.0]),
        pc.field("x").isin([0.0, 7.0]),
        pc.field("x") <= INF,
        (pc.field("x") != 3.0) & (pc.field("n") > 1),
        (pc.field("x") != 3.0) & (pc.field("y") != 3.0),
        pc.field("s", "f") != 3.0,
        pc.field("x").is_null(nan_is_null=True),
        pc.if_else(pc.field("x") > 1.0, False, True),
    ],
    ids=str,
)
@pytest.mark.parametrize("size", [3, 100])
def test_an_expression_gives_what_it_gives_in_memory(tmp_path, condition, size, monkeypatch):
    values = [3.0, NAN, 3.0, None, NAN, 3.0, 0.0, 0.0, 0.0, -0.0, -0.0, -0.0, NAN, NAN, NAN, 1.0, 5.0, INF]
    columns = {
        "id": [f"{n:02}" for n in range(len(values))],
        "x": pa.array(values),
        "y": pa.array(values[::-1], pa.float32()),
        "n": [n % 4 for n in range(len(values))],
        "s": pa.array([{"f": value} for value in values]),
    }
    rows = pa.table(columns)
    path = str(tmp_path / "t")
    with ArrowSink(path, key="id", operation="insert") as sink:
        sink.write(rows)
    [file] = tmp_path.glob("t/*.parquet")
    want = ids(rows.filter(condition)["id"].to_pylist())
    assert ids(HudiTable.open(path).scan(["id"], condition).to_arrow()["id"].to_pylist()) == want
    # whoever wrote the file: Arrow, which copies our entries into its own footer, with the bounds of the numbers
    stored = pq.ParquetFile(file).read()
    pq.write_table(stored, file, row_group_size=size)
    table = HudiTable.open(path)
    assert ids(table.scan(["id"], condition).to_arrow()["id"].to_pylist()) == want
    assert table.count(condition) == len(want)


@pytest.mark.parametrize(
    "where",
    [
        [[("x", "in", [0.0])], [("id", "=", "none")]],
        [[("x", "in", [0.0])], [("y", "in", [7.0])]],
        [("x", "in", [0.0]), ("y", "in", [0.0])],
        [("x", "in", [0.0]), ("z", "in", [NAN])],
        [[("x", "in", [0.0]), ("z", "!=", 3.0)], [("y", "=", 7.0)]],
    ],
    ids=str,
)
def test_a_zero_is_found_beside_what_other_columns_may_hold(tmp_path, where):
    path = str(tmp_path / "t")
    with ArrowSink(path, key="id", operation="insert") as sink:
        sink.write(pa.table({"id": ["a", "b"], "x": [0.0, 0.0], "y": [0.0, 0.0], "z": [NAN, NAN]}))
    table = HudiTable.open(path)
    assert ids(table.scan(["id"], where).to_arrow()["id"].to_pylist()) == ["a", "b"]
    assert table.count(where) == 2


@pytest.mark.parametrize("stored", [0.0, -0.0])
@pytest.mark.parametrize("asked", [0.0, -0.0])
@pytest.mark.parametrize("operator", ["in", "not in"])
def test_zeros_are_counted_as_they_are_shown(tmp_path, stored, asked, operator):
    """A chunk of zeros has one bound, and Arrow counts by it as if each row had that sign."""
    path = str(tmp_path / "t")
    with ArrowSink(path, key="id", operation="insert") as sink:
        sink.write(pa.table({"id": ["a", "b"], "x": [stored, stored]}))
    where, is_same = [("x", operator, [asked])], str(stored) == str(asked)
    table = HudiTable.open(path)
    assert table.count(where) == len(table.scan(where=where).to_arrow()) == (2 if is_same == (operator == "in") else 0)

"""Batches with other columns than the table's: the schema that comes of it, and the rows."""

import decimal
import io
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from engine import Engine, rows

from table import SchemaMismatchError, read_table
from table.columns.cast import cast_column, java_text
from table.schema.avro_schema import from_avro, schema_json
from table.schema.evolution import (
    ADD,
    RECONCILE,
    STRICT,
    coarser_columns,
    evolve_schema,
    merged_type,
    rounds,
    widened_columns,
)
from table.storage.local import LocalStorage
from table.timeline.active_timeline import load_timeline

I32, I64, F32, F64, TEXT = pa.int32(), pa.int64(), pa.float32(), pa.float64(), pa.string()
TABLE = pa.schema([("id", TEXT), ("n", I64)])
MAP, LIST = pa.map_(TEXT, pa.field("value", I64)), pa.list_(pa.field("element", TEXT))


def struct(**columns):
    return pa.struct(list(columns.items()))


def test_a_new_tables_columns_are_all_nullable():
    batch = pa.schema([pa.field("id", TEXT, nullable=False)])
    assert evolve_schema(batch, None) == pa.schema([("id", TEXT)])


@pytest.mark.parametrize("mode", [STRICT, ADD, RECONCILE])
def test_the_tables_schema_wins_over_order_and_nullability(mode):
    batch = pa.schema([("n", I64), pa.field("id", TEXT, nullable=False)])
    assert evolve_schema(batch, TABLE, mode) == TABLE


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ([("id", TEXT)], "column 'n' is missing"),
        ([("id", TEXT), ("n", I64), ("x", I64)], "column 'x' is new"),
        ([("id", TEXT), ("n", I32)], "column 'n' is int32, the table has int64"),
        ([("id", TEXT), ("N", I64), ("n", I64)], "twice"),
        ([("id", TEXT), ("_hoodie_file_name", TEXT)], "_hoodie_file_name"),
        ([("id", TEXT), ("n", pa.large_list(I64))], "'n' has the type large_list"),
        ([("id", TEXT), ("a b", I64)], "'a b'"),
        ([], "no columns"),
    ],
)
def test_what_a_strict_table_refuses_is_named(columns, message):
    with pytest.raises(SchemaMismatchError, match=message):
        evolve_schema(pa.schema(columns), TABLE, STRICT)


@pytest.mark.parametrize(
    ("table", "batch", "merged"),
    [
        (I64, I32, I64),
        (I32, I64, I64),
        (I64, F32, F32),
        (F32, F64, F64),
        (pa.decimal128(10, 2), pa.decimal128(5, 1), pa.decimal128(10, 2)),
        (pa.decimal128(10, 2), pa.decimal128(12, 4), pa.decimal128(10, 2)),
        (pa.decimal128(10, 2), I64, pa.decimal128(10, 2)),
        (pa.timestamp("ms", "UTC"), pa.timestamp("us", "UTC"), pa.timestamp("ms", "UTC")),
        *((kind, pa.null(), kind) for kind in (I32, TEXT, pa.bool_(), pa.date32(), struct(a=I64), MAP, LIST)),
        (LIST, pa.list_(pa.null()), LIST),
        (struct(a=I64, b=TEXT), struct(a=pa.null(), b=pa.null()), struct(a=I64, b=TEXT)),
        (MAP, pa.map_(TEXT, pa.null()), MAP),
        (I32, TEXT, TEXT),
        (TEXT, F64, TEXT),
        (TEXT, pa.date32(), TEXT),
        (pa.binary(), TEXT, pa.binary()),
        (struct(a=I64), struct(b=TEXT, a=I64), struct(a=I64, b=TEXT)),
        (struct(a=I32), struct(a=I64), struct(a=I64)),
        (
            pa.list_(struct(a=I64)),
            pa.list_(struct(a=I64, b=TEXT)),
            pa.list_(pa.field("element", struct(a=I64, b=TEXT))),
        ),
        (pa.map_(TEXT, I32), pa.map_(TEXT, I64), pa.map_(TEXT, pa.field("value", I64))),
    ],
)
def test_columns_grow_at_any_depth(table, batch, merged):
    grows = {"numbers_to_text": True, "integers_to_floats": True}
    found = evolve_schema(pa.schema([("x", batch), ("new", TEXT)]), pa.schema([("x", table)]), **grows)
    assert found == pa.schema([("x", merged), ("new", TEXT)])


@pytest.mark.parametrize("mode", [STRICT, ADD, RECONCILE])
@pytest.mark.parametrize("number", [I32, I64, F32, F64, pa.decimal128(10, 2)])
@pytest.mark.parametrize("turned", [False, True])
def test_the_ordering_field_never_becomes_text(mode, number, turned):
    batch, table = (pa.schema([("ts", kind), ("n", kind)]) for kind in ([number, TEXT] if turned else [TEXT, number]))
    with pytest.raises(SchemaMismatchError, match=r"column 'ts' is .*'10' is less than '9'; cast it to"):
        evolve_schema(batch, table, mode, ordering_fields=["ts"])
    # columns that order nothing, and other types, are as they were
    if mode != STRICT and merged_type(table.types[0], batch.types[0]) is not None:
        grows = {"numbers_to_text": True}
        assert evolve_schema(batch, table, mode, **grows).types == [TEXT, TEXT]
        assert evolve_schema(batch, table, mode, ordering_fields=["other"], **grows).types == [TEXT, TEXT]


@pytest.mark.parametrize("mode", [ADD, RECONCILE])
@pytest.mark.parametrize("number", [I32, I64, F32, F64])
def test_numbers_become_text_only_on_request(mode, number):
    batch, table = pa.schema([("n", TEXT)]), pa.schema([("n", number)])
    with pytest.raises(
        SchemaMismatchError, match=f"column 'n' is string, the table has {number}.*numbers.to.text=true"
    ):
        evolve_schema(batch, table, mode)
    assert evolve_schema(batch, table, mode, numbers_to_text=True) == batch
    nested = evolve_schema(pa.schema([("x", struct(a=I64))]), pa.schema([("x", struct(a=TEXT))]), mode)
    assert nested.field("x").type == struct(a=TEXT)  # numbers of a batch still become text where the table has text
    with pytest.raises(SchemaMismatchError, match=r"column 'x\.a' is string"):
        evolve_schema(pa.schema([("x", struct(a=TEXT))]), pa.schema([("x", struct(a=number))]), mode)


@pytest.mark.parametrize("mode", [ADD, RECONCILE])
@pytest.mark.parametrize("floats", [F32, F64])
def test_integers_become_floats_only_on_request(mode, floats):
    for integers in (I32, I64):
        batch, table = (pa.schema([("n", kind), ("s", struct(a=kind))]) for kind in (floats, integers))
        assert evolve_schema(batch, table, mode) == table
        assert evolve_schema(batch, table, mode, integers_to_floats=True) == batch
        assert evolve_schema(table, batch, mode) == batch  # integers of a batch still become floats of the table


def test_a_strict_table_takes_only_what_has_no_type_of_its_own_and_microseconds():
    for table, batch in [
        (I64, pa.null()), (LIST, pa.list_(pa.null())), (pa.timestamp("ms", "UTC"), pa.timestamp("us", "UTC")),
    ]:  # fmt: skip
        assert evolve_schema(pa.schema([("x", batch)]), pa.schema([("x", table)]), STRICT).types == [table]
    for table, batch in [(I64, F64), (pa.decimal128(10, 2), pa.decimal128(5, 2)), (pa.decimal128(10, 2), I32)]:
        with pytest.raises(SchemaMismatchError, match="mode=add, which takes values that the column holds"):
            evolve_schema(pa.schema([("x", batch)]), pa.schema([("x", table)]), STRICT)


@pytest.mark.parametrize(
    ("column", "path"),
    [
        (pa.null(), "new"),
        (pa.list_(pa.null()), "new.element"),
        (pa.map_(TEXT, pa.null()), "new.value"),
        (struct(a=I64, b=pa.list_(struct(c=pa.null()))), "new.b.element.c"),
    ],
)
def test_a_column_without_a_type_that_the_table_does_not_know_is_named(column, path):
    batch = pa.schema([("new", column)])
    for table in (None, pa.schema([("id", TEXT)]), pa.schema([("new", struct(a=I64))])):
        if table is None or table.names == ["id"] or pa.types.is_struct(column):
            with pytest.raises(SchemaMismatchError, match=rf"'{path}' has no type of its own.*cast it to a type"):
                evolve_schema(batch, table, RECONCILE)


@pytest.mark.parametrize(
    ("column", "path"),
    [(struct(), "x"), (struct(a=I64, b=struct()), "x.b"), (pa.list_(pa.map_(TEXT, struct())), "x.element.value")],
)
def test_a_struct_without_fields_is_refused_by_its_path(column, path):
    for table in (None, TABLE):
        with pytest.raises(SchemaMismatchError, match=f"'{path}' is a struct without fields"):
            evolve_schema(pa.schema([("id", TEXT), ("x", column)]), table, RECONCILE)


def nested(depth, kinds):
    kind = I64
    for number in range(depth):
        wrap = kinds[number % len(kinds)]
        kind = {"s": struct(a=kind), "l": pa.list_(kind), "m": pa.map_(TEXT, kind)}[wrap]
    return kind


@pytest.mark.parametrize(("kinds", "most"), [("s", 63), ("l", 49), ("m", 31), ("slm", 47)])
def test_columns_are_refused_that_are_nested_deeper_than_readers_read(kinds, most):
    deepest = pa.schema([("x", nested(most, kinds))])
    written = io.BytesIO()
    rows = deepest.empty_table()
    pq.write_table(rows, written, store_schema=False)
    assert evolve_schema(deepest, None).names == pq.read_table(pa.BufferReader(written.getvalue())).column_names
    for table in (None, TABLE):
        with pytest.raises(SchemaMismatchError, match="'x' is nested .* levels deep"):
            evolve_schema(pa.schema([("id", TEXT), ("x", nested(most + 1, kinds))]), table, RECONCILE)


def test_columns_of_milliseconds_are_found_at_any_depth():
    coarse, fine = ([
        ("at", pa.timestamp(unit, "UTC")), ("other", pa.timestamp("us", "UTC")),
        ("s", struct(at=pa.timestamp(unit, "UTC"), n=I64)),
        ("m", pa.map_(TEXT, pa.list_(pa.timestamp(unit, "UTC")))), ("n", I64),
    ] for unit in ("ms", "us"))  # fmt: skip
    assert coarser_columns(pa.schema(fine), pa.schema(coarse)) == ["at", "s.at", "m.value.element"]
    assert coarser_columns(pa.schema(fine), pa.schema(fine)) == coarser_columns(pa.schema(fine), TABLE) == []
    assert from_avro(schema_json(pa.schema(coarse), "t")).field("at").type == pa.timestamp("ms", "UTC")


def test_the_ordering_field_may_grow_as_a_number_and_dates_may_become_text():
    for table, batch, merged in [(I32, I64, I64), (I64, F64, I64), (TEXT, pa.date32(), TEXT)]:
        found = evolve_schema(pa.schema([("ts", batch)]), pa.schema([("ts", table)]), ordering_fields=["ts"])
        assert found.field("ts").type == merged


@pytest.mark.parametrize("mode", [STRICT, ADD, RECONCILE])
def test_a_batch_whose_ordering_field_is_text_is_refused_and_leaves_nothing(tmp_path, mode):
    path = str(tmp_path / "t")
    options = {"hoodie.datasource.write.operation": "upsert", "hudistream.schema.mode": mode}
    Engine(path, options).write(0, rows(range(3), ts=9, v="nine"))
    text = rows(range(3), v="ten").set_column(2, "ts", pa.array(["10"] * 3))
    with pytest.raises(SchemaMismatchError, match="cast it to int64 before the sink"):
        Engine(path, options).write(1, text)
    Engine(path, options).write(1, rows(range(3), ts=10, v="ten"))
    assert set(read_table(path).column("v").to_pylist()) == {"ten"}


@pytest.mark.parametrize(
    ("table", "batch", "message"),
    [
        (pa.bool_(), I64, "'x' is int64, the table has bool"),
        (I64, pa.date32(), r"'x' is date32\[day\], the table has int64"),
        (struct(a=I64, b=TEXT), struct(a=I64), "'x.b' is missing"),
        (pa.list_(I64), pa.list_(pa.bool_()), "'x.element' is bool"),
        (I64, pa.decimal128(12, 0), "'x' is decimal"),
        (pa.decimal128(10, 2), F64, "'x' is double"),
        (pa.decimal128(10, 2), TEXT, "'x' is string"),
        (TEXT, pa.binary(), "'x' is binary"),
        (pa.date32(), TEXT, "'x' is string"),
        (struct(a=I64), I64, "'x' is int64, the table has struct"),
        (struct(a=I64), struct(A=I64), "'x.A' differs from the table's 'a' in case alone"),
    ],
)
def test_a_refused_change_shows_what_differs(table, batch, message):
    with pytest.raises(SchemaMismatchError, match=message):
        evolve_schema(pa.schema([("x", batch)]), pa.schema([("x", table)]))


def test_what_a_batch_lacks_is_null_when_that_is_wanted():
    batch = pa.schema([("id", TEXT), ("new", TEXT)])
    wanted = pa.schema([*TABLE, pa.field("new", TEXT)])
    assert evolve_schema(batch, TABLE, RECONCILE) == wanted
    assert evolve_schema(batch, TABLE, ADD, fill_missing=True) == wanted
    required = pa.schema([*TABLE, pa.field("must", I64, nullable=False)])
    with pytest.raises(SchemaMismatchError, match="'must' is missing and must not be null"):
        evolve_schema(batch, required, RECONCILE)


def test_what_two_types_become_does_not_depend_on_what_came_before():
    types = [I32, I64, F32, F64, TEXT, pa.binary(), pa.date32(), pa.decimal128(5, 2), pa.bool_()]
    for one in types:
        for other in types:
            merged = merged_type(one, other)
            if merged is not None and merged != one:
                assert merged_type(merged, one) == merged
                assert merged_type(merged, other) in (merged, None)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.1, "0.1"), (1e-7, "1.0E-7"), (1e10, "1.0E10"), (0.001, "0.001"), (0.0001, "1.0E-4"), (1e7, "1.0E7"),
        (9999999.0, "9999999.0"), (123456.789, "123456.789"), (-0.0, "-0.0"), (100.0, "100.0"),
        (-1.234e-5, "-1.234E-5"),
        (float("nan"), "NaN"), (float("-inf"), "-Infinity"),
    ],
)  # fmt: skip
def test_numbers_become_the_text_that_java_makes_of_them(value, text):
    assert java_text(value) == text


@pytest.mark.parametrize("start", [0, 1])
def test_nested_columns_get_their_new_fields(start):
    old = pa.struct([("a", I32), ("l", pa.list_(struct(x=I64))), ("m", pa.map_(TEXT, struct(x=I64)))])
    new = pa.struct(
        [("a", TEXT), ("l", pa.list_(struct(x=I64, y=TEXT))), ("m", pa.map_(TEXT, struct(x=I64, y=F64))), ("z", I64)]
    )
    values = [
        {"a": 1, "l": [{"x": 1}, None], "m": [("k", {"x": 5})]},
        None,
        {"a": None, "l": None, "m": None},
        {"a": 4, "l": [], "m": []},
        {"a": 5, "l": [{"x": None}], "m": [("q", None), ("r", {"x": 6})]},
    ]
    column = pa.chunked_array([pa.array([{"a": 0, "l": [{"x": 9}], "m": [("0", None)]}, *values], old).slice(start)])
    found = cast_column(column, new).to_pylist()[1 - start :]
    assert found == [
        {"a": "1", "l": [{"x": 1, "y": None}, None], "m": [("k", {"x": 5, "y": None})], "z": None},
        None,
        {"a": None, "l": None, "m": None, "z": None},
        {"a": "4", "l": [], "m": [], "z": None},
        {"a": "5", "l": [{"x": None, "y": None}], "m": [("q", None), ("r", {"x": 6, "y": None})], "z": None},
    ]


@pytest.mark.parametrize("stored", [F64, F32, pa.decimal128(9, 2)])
def test_columns_of_nulls_change_their_type(stored):
    assert cast_column(pa.chunked_array([pa.nulls(2, stored)]), TEXT).to_pylist() == [None, None]
    listed = pa.chunked_array([pa.array([[]], pa.list_(stored))])
    assert cast_column(listed, pa.list_(TEXT)).to_pylist() == [[]]


def test_numbers_are_widened_as_java_widens_them():
    prices = pa.chunked_array([pa.array([decimal.Decimal("1.50"), None], pa.decimal128(9, 2))])
    assert cast_column(prices, TEXT).to_pylist() == ["1.50", None]
    assert cast_column(pa.chunked_array([pa.array([2**40 + 1, None])]), F32).to_pylist() == [float(2**40), None]


BEFORE_1970 = [-1, -1000, -1001, 0, 999, 1000, 1001, None]  # microseconds


def test_values_are_cast_where_the_type_holds_them():
    dec = decimal.Decimal
    for kind, values, wanted, found in [
        (F64, [2.0**53, -(2.0**53), -0.0, None], I64, [2**53, -(2**53), 0, None]),
        (F32, [2.0**24, None], I32, [2**24, None]),
        (pa.decimal128(5, 2), [dec("1.50"), None], pa.decimal128(10, 3), [dec("1.500"), None]),
        (pa.decimal128(20, 4), [dec("1.5000"), dec("-9.9900")], pa.decimal128(3, 2), [dec("1.50"), dec("-9.99")]),
        (I64, [2**63 - 1, -(2**63)], pa.decimal128(19, 0), [dec(2**63 - 1), dec(-(2**63))]),
        (I32, [99, None], pa.decimal128(4, 2), [dec("99.00"), None]),
        (pa.timestamp("us"), BEFORE_1970, pa.timestamp("ms"), [-1, -1, -2, 0, 0, 1, 1, None]),
        (pa.null(), [None, None], struct(a=LIST), [None, None]),
        (pa.list_(pa.null()), [[], None, [None]], LIST, [[], None, [None]]),
        (struct(a=F64), [{"a": 7.0}, None], struct(a=I64, b=TEXT), [{"a": 7, "b": None}, None]),
    ]:
        cast = cast_column(pa.chunked_array([pa.array(values, kind)]).slice(1), wanted)
        shown = cast.cast(pa.int64()) if pa.types.is_timestamp(wanted) else cast
        assert (cast.type, shown.to_pylist()) == (wanted, found[1:])


def test_values_are_refused_where_the_type_does_not_hold_them():
    dec = decimal.Decimal
    for kind, value, wanted in [
        (F64, 0.5, I64), (F64, 2.0**53 + 2, I64), (F64, float("nan"), I64), (F64, float("inf"), I64),
        (F64, 2.0**31, I32), (F32, 2.0**24 + 2, I64), (pa.decimal128(5, 2), dec("1.55"), pa.decimal128(10, 1)),
        (pa.decimal128(12, 2), dec("123456789.00"), pa.decimal128(10, 2)), (I64, 100, pa.decimal128(4, 2)),
        (pa.list_(F64), [1.0, 0.5], pa.list_(I64)),
    ]:  # fmt: skip
        with pytest.raises(pa.ArrowInvalid):
            cast_column(pa.chunked_array([pa.array([None, value], kind)]), wanted)


@pytest.mark.parametrize("operation", ["insert", "upsert"])
def test_a_table_grows_with_its_batches(tmp_path, operation):
    asked = {"hudistream.schema.mode": "reconcile", "hudistream.schema.integers.to.floats": "true"}
    sink = Engine(str(tmp_path / "t"), {"hoodie.datasource.write.operation": operation, **asked})
    sink.write(0, rows(range(5)))
    wide = rows(range(10, 13), ts=1).append_column("extra", pa.array([1, None, 3]))
    sink.write(1, wide)
    sink.write(2, rows(range(20, 22)).drop_columns(["v"]))
    sink.write(3, rows(range(30, 31)).append_column("extra", pa.array([2.5])))
    found = {row["id"]: row for row in read_table(tmp_path / "t", ["id", "v", "extra"]).to_pylist()}
    assert found["k0"] == {"id": "k0", "v": "v", "extra": None}
    assert found["k10"] == {"id": "k10", "v": "v", "extra": 1.0}
    assert found["k20"] == {"id": "k20", "v": None, "extra": None}
    assert found["k30"] == {"id": "k30", "v": "v", "extra": 2.5}


MARKER = "_hoodie_is_deleted"


@pytest.mark.parametrize("mode", [STRICT, ADD, RECONCILE])
@pytest.mark.parametrize("nullable", [True, False])
def test_a_batch_may_lack_the_delete_marker(mode, nullable):
    table = TABLE.append(pa.field(MARKER, pa.bool_(), nullable))
    assert evolve_schema(TABLE, table, mode) == table


@pytest.mark.parametrize(
    "column", [pa.field(MARKER, TEXT), pa.field("x", pa.bool_()), pa.field("s", struct(**{MARKER: pa.bool_()}))]
)
def test_only_the_delete_marker_may_be_lacking(column):
    batch = TABLE.append(pa.field("s", struct(y=I64))) if column.name == "s" else TABLE
    with pytest.raises(SchemaMismatchError, match="is missing"):
        evolve_schema(batch, TABLE.append(column))


@pytest.mark.parametrize("mode", [STRICT, ADD, RECONCILE])
@pytest.mark.parametrize("index", ["BLOOM", "GLOBAL_SIMPLE"])
def test_a_batch_without_the_delete_marker_deletes_nothing(tmp_path, mode, index):
    options = {"hoodie.index.type": index, "hudistream.schema.mode": mode}
    engine = Engine(str(tmp_path / "t"), {"hoodie.datasource.write.operation": "upsert", **options})
    batch = rows(range(6))
    engine.write(0, batch.append_column(MARKER, pa.array([False] * 6)))
    engine.write(1, batch.slice(0, 2).append_column(MARKER, pa.array([True] * 2)))
    summary = engine.write(2, rows([1, 2, 7], ts=1, v="new"))
    assert (summary.rows, summary.rows_updated, summary.rows_deleted) == (2, 1, 0)
    found = {row["id"]: (row["v"], row[MARKER]) for row in read_table(str(tmp_path / "t")).to_pylist()}
    new, old = ("new", None), ("v", False)
    assert found == {"k1": new, "k2": new, "k3": old, "k4": old, "k5": old, "k7": new}
    engine.write(3, rows([3], ts=1).append_column(MARKER, pa.array([True])))
    assert "k3" not in read_table(str(tmp_path / "t")).column("id").to_pylist()


def test_where_the_delete_marker_must_not_be_null_it_is_false(tmp_path):
    path = str(tmp_path / "t")
    options = {"hoodie.datasource.write.operation": "upsert"}
    Engine(path, options).write(0, rows(range(3)).append_column(MARKER, pa.array([False] * 3)))
    require(path, MARKER)
    Engine(path, options).write(1, rows([1, 5], ts=1))
    assert read_table(path).column(MARKER).to_pylist() == [False] * 4


def require(path, name):
    """As Hudi writes a column that has a default and is not nullable."""
    storage = LocalStorage(path)
    instant = load_timeline(storage).completed_writes[0]
    commit = json.loads(storage.read(f".hoodie/{instant.file_name}"))
    schema = json.loads(commit["extraMetadata"]["schema"])
    (column,) = [field for field in schema["fields"] if field["name"] == name]
    column.update(type="boolean", default=False)
    commit["extraMetadata"]["schema"] = json.dumps(schema)
    storage.put(f".hoodie/{instant.file_name}", json.dumps(commit).encode())


@pytest.mark.parametrize(
    ("before", "after", "found"),
    [
        ([("id", TEXT), ("n", I32)], [("id", TEXT), ("n", I64)], [("n", I32, I64)]),
        ([("id", TEXT), ("n", I32)], [("id", TEXT), ("n", I32)], []),
        ([("id", I32)], [("id", I64), ("n", I64)], []),
        (None, [("id", TEXT), ("n", I64)], []),
    ],
)
def test_which_columns_are_widened(before, after, found):
    pairs = widened_columns(None if before is None else pa.schema(before), pa.schema(after), ["n", "gone"])
    assert [(old.name, old.type, new.type) for old, new in pairs] == found


@pytest.mark.parametrize(("before", "after"), [(I32, F32), (I32, F64), (I64, F32), (I64, F64), (I32, I64), (F32, F64)])
def test_a_widening_rounds_where_two_integers_become_one_float(before, after):
    numbers = [2**24 + 1, 2**31 - 1] if before in (I32, F32) else [2**24 + 1, 2**53 + 1]
    near = [(number - 1, number) for number in numbers]
    became = [
        cast_column(pa.chunked_array([pa.array(pair).cast(before, safe=False)]), after).to_pylist() for pair in near
    ]
    assert rounds(before, after) == (before != F32 and any(low == high for low, high in became))


@pytest.mark.parametrize("name", ["_hoodie_operation", "_hoodie_x", "_HOODIE_IS_DELETED"])
def test_new_columns_with_names_of_hudi_are_refused(name):
    batch = pa.schema([("id", pa.string()), (name, pa.string())])
    for table in (None, batch.remove(1)):
        with pytest.raises(SchemaMismatchError, match=f"the column '{name}': names that begin with _hoodie_"):
            evolve_schema(batch, table)
    assert evolve_schema(batch, batch).names == batch.names  # a table of another engine that has it goes on


@pytest.mark.parametrize(("kind", "place"), [
    (pa.struct([("a", pa.int64()), ("a", pa.string())]), "s"),
    (pa.list_(pa.struct([("b", pa.struct([("a", pa.int64()), ("A", pa.int64())]))])), "s.*.b"),
])  # fmt: skip
def test_a_struct_with_two_fields_of_one_name_in_any_case_is_refused(kind, place):
    with pytest.raises(SchemaMismatchError, match=f"the column '{place}' has the field 'a' twice"):
        evolve_schema(pa.schema([("id", pa.string()), ("s", kind)]), None)


@pytest.mark.parametrize("name", ["_hoodie_record_key", "_HOODIE_RECORD_KEY", "_Hudistream_slot"])
def test_names_that_table_and_sink_use_themselves_are_refused_in_any_case(name):
    with pytest.raises(SchemaMismatchError, match=f"'{name}', a name that the table or the sink uses itself"):
        evolve_schema(pa.schema([("id", pa.string()), (name, pa.string())]), None)

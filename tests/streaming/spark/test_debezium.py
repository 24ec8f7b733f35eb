"""Debezium's events as rows: every kind of event, and the ones that cannot be read."""

import base64
import json
from datetime import date, datetime, timezone
from decimal import Decimal

import pytest
from tiers import slow

from hudistream import HudiSink, InvalidConfigError, debezium, read_table

UNLOGGED = "__debezium_unavailable_value"
SCHEMA = "id bigint, d date, t timestamp, n timestamp_ntz, m decimal(10,2), s string"
ROW = {"id": 1, "d": 19000, "t": 1700000000123456, "n": 1700000000123456, "m": "12.50", "s": "x"}


def event(op, before, after, lsn=5, **more):
    return {"before": before, "after": after, "op": op, "ts_ms": 1, "source": {"lsn": lsn, "db": "shop"}, **more}


def kafka(spark, values):
    rows = [(None if value is None else json.dumps(value).encode(), "t", 0, at) for at, value in enumerate(values)]
    return spark.createDataFrame(rows, "value binary, topic string, partition int, offset long")


def rows_of(spark, values, schema=SCHEMA, **how):
    return [row.asDict() for row in debezium(kafka(spark, values), schema, **how).collect()]


def test_every_kind_of_event_becomes_a_row_or_is_none(spark):
    text = {**ROW, "d": "2022-01-08", "t": "2023-11-14T22:13:20.123456Z", "m": 12.5}
    found = rows_of(
        spark,
        [
            event("r", None, ROW, 1),
            {"schema": {"type": "struct"}, "payload": event("u", ROW, text, 2)},
            event("d", {"id": 2}, None, 3),
            None,  # a tombstone
            event("m", None, None, 4),  # a message in the log
        ],
    )
    moment = datetime.fromisoformat("2023-11-14T22:13:20.123456")
    assert [(row["_event_lsn"], row["_change_operation_type"], row["_hoodie_is_deleted"]) for row in found] == [
        (1, "r", False), (2, "u", False), (3, "d", True),
    ]  # fmt: skip
    for row in found[:2]:
        assert (row["id"], row["d"], row["n"], row["s"]) == (1, date(2022, 1, 8), moment, "x")
        assert row["t"].astimezone(timezone.utc).replace(tzinfo=None) == moment
        assert row["m"] == Decimal("12.50")
    assert (found[2]["id"], found[2]["s"]) == (2, None)


def test_milliseconds_are_asked_for(spark):
    millis = {"id": 1, "t": 1700000000123, "n": 1700000000123}
    (row,) = rows_of(spark, [event("c", None, millis)], "id bigint, n timestamp_ntz", timestamp_unit="ms")
    assert row["n"] == datetime.fromisoformat("2023-11-14T22:13:20.123000")


def test_numbers_are_decimals_as_they_stand(spark):
    whole = Decimal("123456789012345678.91")
    schema = "id bigint, m decimal(20,2), l array<decimal(20,2)>"
    for given in (str(whole), f'"{whole}"'):
        text = json.dumps(event("c", None, {"id": 1, "m": "M", "l": ["M"]})).replace('"M"', given)
        frame = spark.createDataFrame([(text,)], "value string")
        (row,) = debezium(frame, schema).collect()
        assert (row["m"], row["l"]) == (whole, [whole])


NESTED = (
    "id bigint, l array<timestamp>, s struct<d: date, `it's`: date, n: array<struct<n: timestamp_ntz, v: int>>>, "
    "m map<string, date>"
)


def test_times_within_lists_structs_and_maps_are_read_as_others_are(spark):
    nested = {
        "id": 1,
        "l": [1700000000123456, None, "2023-11-14T22:13:20.123456Z"],
        "s": {"d": 19000, "it's": 19000, "n": [{"n": 1700000000123456, "v": 3}]},
        "m": {"a": "2022-01-08", "b": None},
    }
    moment = datetime.fromisoformat("2023-11-14T22:13:20.123456")
    row, none = rows_of(spark, [event("c", None, nested), event("c", None, {"id": 2})], NESTED)
    assert row["l"][1] is None
    assert [one.astimezone(timezone.utc).replace(tzinfo=None) for one in row["l"][::2]] == [moment, moment]
    assert (row["s"]["d"], row["s"]["n"]) == (date(2022, 1, 8), [(moment, 3)])
    assert row["m"] == {"a": date(2022, 1, 8), "b": None}
    assert [none[name] for name in ("l", "s", "m")] == [None] * 3
    for name, wrong in {"l": ["soon"], "s": {"n": [{"n": "soon"}]}, "m": {"a": "soon"}}.items():
        with pytest.raises(Exception, match=f"t-0-0: {name} cannot be read as"):
            rows_of(spark, [event("c", None, {"id": 1, name: wrong})], NESTED)


def test_the_order_of_mysql_is_that_of_its_log(spark):
    places = [("bin.000009", 900, None), ("bin.000010", 4, 0), ("bin.000010", 1000, 2), ("bin.000010", 1000, 10)]
    values = [
        {"before": None, "after": {"id": 1}, "op": "c", "source": {"file": file, "pos": pos, "row": row}}
        for file, pos, row in places
    ]
    found = [row["_event_seq"] for row in rows_of(spark, values, "id bigint", connector="mysql")]
    assert found == sorted(found)
    assert len(set(found)) == len(places)


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ("no object", "it is not JSON, or a value in it does not fit"),
        slow(({"a": 1}, "it has no `op`")),
        slow((event("c", None, {**ROW, "id": "one"}), "does not fit the schema")),
        (event("c", None, {**ROW, "m": "AJk="}), "decimals need decimal.handling.mode=string"),
        slow((event("c", None, {**ROW, "m": 123456789012}), "does not fit the schema")),
        slow((event("c", None, {**ROW, "d": "soon"}), "d cannot be read as date")),
        (event("u", None, {**ROW, "s": UNLOGGED}), "Postgres did not log the value of s"),
    ],
)
def test_an_event_that_cannot_be_read_fails_with_its_place_and_without_its_values(spark, value, told):
    with pytest.raises(Exception, match="t-0-1: ") as error:
        rows_of(spark, [event("c", None, ROW), value])
    assert told in str(error.value)
    assert "AJk=" not in str(error.value).split("\n\tat ")[0]


@pytest.mark.parametrize(
    ("kind", "placeholder"),
    [
        ("binary", base64.b64encode(UNLOGGED.encode()).decode()),
        ("array<string>", [UNLOGGED]),
        ("array<int>", [*UNLOGGED.encode()]),
        ("array<bigint>", [*UNLOGGED.encode()]),
        ("map<string, string>", {UNLOGGED: UNLOGGED}),
    ],
)
def test_a_value_that_postgres_did_not_log_is_no_value_of_any_type(spark, kind, placeholder):
    def rows(value):
        return debezium(kafka(spark, [event("u", None, {"v": value})]), f"v {kind}")

    with pytest.raises(Exception, match="Postgres did not log the value of v"):
        rows(placeholder).collect()
    usual = {"binary": "QQ==", "map<string, string>": {"a": "b"}}.get(kind, ["1"] if "string" in kind else [1])
    assert rows(usual).collect()[0].v is not None
    assert rows(None).collect()[0].v is None


@pytest.mark.parametrize(
    ("how", "told"), [({"connector": "db2"}, "mariadb, mysql, postgresql"), ({"timestamp_unit": "s"}, "us")]
)
def test_arguments_that_do_not_fit_are_refused(spark, how, told):
    with pytest.raises(InvalidConfigError, match=told):
        rows_of(spark, [], **how)
    with pytest.raises(InvalidConfigError, match="no column 'value'"):
        debezium(spark.range(1), SCHEMA)


def test_late_changes_do_not_win_and_deleted_rows_are_gone(spark, tmp_path):
    values = [
        event("c", None, {"id": 1, "s": "a"}, 1),
        event("u", None, {"id": 1, "s": "c"}, 3),
        event("u", None, {"id": 1, "s": "b"}, 2),  # arrives late, with the same ts_ms
        event("c", None, {"id": 2, "s": "a"}, 4),
        event("d", {"id": 2}, None, 5),
    ]
    sink = HudiSink(tmp_path / "t", key="id", order_by="_event_lsn")
    sink.write(debezium(kafka(spark, values), "id bigint, s string"))
    assert read_table(tmp_path / "t", columns=["id", "s"]).to_pylist() == [{"id": 1, "s": "c"}]

"""Avro values with a schema registry, as text and as rows of a table. The registry is a stand-in."""

import base64
import io
import json
import threading
from contextlib import contextmanager
from datetime import date, datetime, timezone
from decimal import Decimal
from http.server import BaseHTTPRequestHandler, HTTPServer

import fastavro
import pytest
from tiers import slow

from hudistream import HudiSink, InvalidConfigError, avro_to_json, debezium, read_table
from streaming.task import registry as registry_module

pytestmark = pytest.mark.spark
MONEY = {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2}
ROW = {
    "type": "record", "name": "Value", "fields": [
        {"name": "id", "type": "long"},
        {"name": "m", "type": ["null", MONEY], "default": None},
        {"name": "s", "type": ["null", "string"], "default": None},
    ],
}  # fmt: skip
NEWER = {**ROW, "fields": [*ROW["fields"], {"name": "more", "type": ["null", "string"], "default": None}]}


def envelope(row):
    source = {"type": "record", "name": "Source", "fields": [{"name": "lsn", "type": "long"}]}
    fields = [
        {"name": "before", "type": ["null", row]},
        {"name": "after", "type": ["null", "Value"]},
        {"name": "source", "type": source},
        {"name": "op", "type": "string"},
    ]
    return {"type": "record", "name": "Envelope", "fields": fields}


@contextmanager
def serve_registry(schemas, subjects=None, token=None, refusals=()):
    """A registry with schemas by number, and by subject and version. Yields its address and the paths asked for.

    The first requests get the statuses of `refusals`.
    """
    asked, refusing = [], list(refusals)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.path)
            found = {f"/schemas/ids/{number}": answer for number, answer in schemas.items()}
            found |= {f"/subjects/{name}": answer for name, answer in (subjects or {}).items()}
            answer = found.get(self.path)
            if refusing:
                self.send_response(refusing.pop(0))
                self.end_headers()
                return
            status = 401 if token and self.headers.get("Authorization") != token else 200 if answer else 404
            self.send_response(status)
            self.end_headers()
            self.wfile.write(json.dumps(answer or {}).encode())

        def log_message(self, *_):
            """Says nothing."""

    server = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", asked
    finally:
        server.shutdown()
        server.server_close()


def told(schema):
    return {"schema": json.dumps(schema)}


def encode(number, schema, record):
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(json.loads(json.dumps(schema))), record)
    return b"\0" + number.to_bytes(4, "big") + out.getvalue()


def kafka(spark, values):
    rows = [(None if value is None else bytearray(value), "t", 0, at) for at, value in enumerate(values)]
    return spark.createDataFrame(rows, "value binary, topic string, partition int, offset long")


def test_debeziums_events_in_avro_are_rows_of_a_table_whatever_version_wrote_them(spark, tmp_path):
    """A snapshot, an update by a newer schema, a delete, a tombstone."""
    old, new = envelope(ROW), envelope(NEWER)
    event = {"before": None, "source": {"lsn": 1}, "op": "c"}
    updated = {"id": 1, "m": Decimal("-0.07"), "s": "ü", "more": "x"}
    values = [
        encode(7, old, {**event, "after": {"id": 1, "m": Decimal("12.50"), "s": "a"}}),
        encode(7, old, {**event, "after": {"id": 2, "m": None, "s": "b"}}),
        encode(70_000, new, {**event, "source": {"lsn": 2}, "op": "u", "after": updated}),
        encode(7, old, {**event, "source": {"lsn": 3}, "op": "d", "before": {"id": 2}, "after": None}),
        None,
    ]  # fmt: skip
    with serve_registry({7: told(old), 70_000: told(new)}) as (address, _):
        rows = debezium(
            avro_to_json(kafka(spark, values), address), "id bigint, m decimal(10,2), s string, more string"
        )
        HudiSink(tmp_path / "t", key="id", order_by="_event_lsn").write(rows)
    found = read_table(tmp_path / "t", columns=["id", "m", "s", "more"]).to_pylist()
    assert found == [updated]


MICROS = {"type": "long", "logicalType": "timestamp-micros"}
KINDS = [
    (MONEY, Decimal("3.10"), "3.10"),
    ({"type": "int", "logicalType": "date"}, date(2024, 2, 29), "2024-02-29"),
    (MICROS, datetime(2024, 1, 1, 0, 0, 0, 5, timezone.utc), "2024-01-01T00:00:00.000005+00:00"),
    ("bytes", b"\0\xff", base64.b64encode(b"\0\xff").decode()),
    ({"type": "map", "values": "long"}, {"a": 1}, {"a": 1}),
    ({"type": "array", "items": ["null", "string"]}, [None, "é"], [None, "é"]),
    ({"type": "enum", "name": "E", "symbols": ["A", "B"]}, "B", "B"),
    ("double", 1.5, 1.5),
    ("boolean", True, True),
]  # fmt: skip


def test_every_kind_of_value_has_its_text(spark):
    fields = [{"name": f"c{at}", "type": kind} for at, (kind, _, _) in enumerate(KINDS)]
    schema = {"type": "record", "name": "R", "fields": fields}
    record = {f"c{at}": value for at, (_, value, _) in enumerate(KINDS)}
    with serve_registry({3: told(schema)}) as (address, _):
        [row] = avro_to_json(kafka(spark, [encode(3, schema, record)]), address).collect()
    assert json.loads(row.value) == {f"c{at}": text for at, (_, _, text) in enumerate(KINDS)}
    assert (row.topic, row.partition, row.offset) == ("t", 0, 0)


def test_schemas_that_refer_to_others_are_read_and_each_is_asked_for_once():
    inner = {"type": "record", "name": "Inner", "namespace": "a", "fields": [{"name": "x", "type": "long"}]}
    outer = {"type": "record", "name": "Outer", "fields": [{"name": "inner", "type": "a.Inner"}]}
    answer = {**told(outer), "references": [{"name": "a.Inner", "subject": "a/Inner", "version": 2}]}
    written = b"\0" + (9).to_bytes(4, "big") + b"\x0e"
    batch = registry_module.pa.RecordBatch.from_pydict({"value": [written, written]})
    with serve_registry({9: answer}, {"a%2FInner/versions/2": told(inner)}) as (address, asked):
        [read] = registry_module.read_values(registry_module.Registry(address), "value", [batch])
    assert read.column("value").to_pylist() == ['{"inner": {"x": 7}}'] * 2
    assert asked == ["/schemas/ids/9", "/subjects/a%2FInner/versions/2"]


INNER = {"type": "record", "name": "Inner", "fields": [{"name": "x", "type": "long"}]}


@pytest.mark.parametrize(
    ("schema", "record", "text"),
    [
        (["null", "Inner"], b"\x02\x0e", '{"x": 7}'),  # several kinds of events in one topic
        ("Inner", b"\x0e", '{"x": 7}'),
        ({"type": "array", "items": "Inner"}, b"\x02\x0e\0", '[{"x": 7}]'),
        # more digits than the schema has, which fastavro rounds
        ({**MONEY, "precision": 4}, b"\x08" + (12_345_678).to_bytes(4, "big"), '"123456.78"'),
        ({"type": "fixed", "name": "F", "size": 2, "logicalType": "decimal", "precision": 2}, b"\xff\xfe", '"-2"'),
        ({"type": "long", "logicalType": "timestamp-nanos"}, b"\x03", '"1969-12-31T23:59:59.999999998Z"'),
        ({"type": "long", "logicalType": "local-timestamp-nanos"}, b"\x02", '"1970-01-01T00:00:00.000000001"'),
        ({"type": "string", "logicalType": "uuid"}, b"\x04No", '"No"'),
    ],
)
def test_what_fastavro_would_round_or_forget(schema, record, text):
    answer = {**told(schema), "references": [{"name": "Inner", "subject": "inner", "version": 1}]}
    batch = registry_module.pa.RecordBatch.from_pydict({"value": [b"\0" + (9).to_bytes(4, "big") + record]})
    with serve_registry({9: answer}, {"inner/versions/1": told(INNER)}) as (address, _):
        [read] = registry_module.read_values(registry_module.Registry(address), "value", [batch])
    assert read.column("value").to_pylist() == [text]


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (b'{"op": "c"}', "t-0-1 cannot be read: it does not begin with a byte 0"),
        slow((b"\0\0", "t-0-1 cannot be read: it does not begin with a byte 0")),
        slow((b"\0\0\0\0\x05", "t-0-1 cannot be read")),  # ends within the record
        (b"\0\0\0\0\x06x", "refuses .*/schemas/ids/6: 404"),
        slow((b"\0\0\0\0\x08x", "schema 8 .* is of type PROTOBUF; only Avro is decoded")),
    ],
)
def test_a_value_that_cannot_be_read_fails_the_batch_with_its_place(spark, tmp_path, value, said):
    schema = {"type": "record", "name": "R", "fields": [{"name": "id", "type": "string"}]}
    good = encode(5, schema, {"id": "a"})
    answers = {5: told(schema), 8: {"schema": "", "schemaType": "PROTOBUF"}}
    with serve_registry(answers) as (address, _):
        rows = avro_to_json(kafka(spark, [good, value]), address).selectExpr("value id", "'p' p")
        with pytest.raises(Exception, match=said):
            HudiSink(tmp_path / "t", key="id").write(rows)
    assert not (tmp_path / "t").exists() or not read_table(tmp_path / "t").num_rows


def test_a_registry_that_asks_for_a_name_gets_it_and_one_that_is_away_is_told(spark, monkeypatch):
    schema = {"type": "record", "name": "R", "fields": [{"name": "id", "type": "string"}]}
    value = encode(4, schema, {"id": "a"})
    token = "Basic " + base64.b64encode(b"me:secret").decode()
    with serve_registry({4: told(schema)}, token=token) as (address, _):
        with pytest.raises(Exception, match="refuses .* 401"):
            avro_to_json(kafka(spark, [value]), address).collect()
        assert avro_to_json(kafka(spark, [value]), address, user=("me", "secret")).count() == 1
    monkeypatch.setattr(registry_module.clock, "sleep_s", lambda _: None)
    away = registry_module.Registry("http://127.0.0.1:9")
    with pytest.raises(InvalidConfigError, match=r"does not answer at http://127.0.0.1:9/schemas/ids/4"):
        away.load_schema(4)
    assert "secret" not in repr(registry_module.Registry("http://x", {"Authorization": token}))


def test_a_registry_that_has_too_much_to_do_is_asked_again(monkeypatch):
    monkeypatch.setattr(registry_module.clock, "sleep_s", lambda _: None)
    schema = {"type": "record", "name": "R", "fields": []}
    with serve_registry({4: told(schema)}, refusals=[429, 503, 408]) as (address, asked):
        [value] = registry_module.Registry(address).load_schema(4)["fields"]
    assert value["type"]["name"] == "R"
    assert len(asked) == 4


def test_arguments_that_do_not_fit_are_refused(spark):
    with pytest.raises(InvalidConfigError, match=r"no column 'value' of bytes \(it has id bigint\)"):
        avro_to_json(spark.range(1), "http://x")
    with pytest.raises(InvalidConfigError, match="give its address"):
        avro_to_json(kafka(spark, []), "registry:8081")

"""What the sink's constructor makes of its options; no session is needed for it."""

import pickle

import pyarrow as pa
import pytest
from structlog.testing import capture_logs

from hudistream import ArrowSink, HudiTable
from streaming import HudiSink
from table import WriteOptions
from table.errors import InvalidConfigError
from table.options.operation import Operation

KEY, PATH, ORDER, OPERATION = (
    "hoodie.datasource.write." + name
    for name in ("recordkey.field", "partitionpath.field", "precombine.field", "operation")
)
SHORT = {"key": "id", "partition_by": "day", "order_by": "ts", "operation": "upsert"}
LONG = {KEY: "id", PATH: "day", ORDER: "ts", OPERATION: "upsert"}


def test_short_names_strings_and_typed_options_make_the_same_sink(tmp_path):
    keys = {"record_key_fields": "id", "partition_fields": "day", "ordering_fields": "ts"}
    sinks = [
        HudiSink(tmp_path / "t", **SHORT),
        HudiSink(tmp_path / "t", LONG),
        HudiSink(tmp_path / "t", LONG, **SHORT),
        HudiSink(tmp_path / "t", WriteOptions(operation="upsert", keys=keys)),
        HudiSink(tmp_path / "t", WriteOptions(operation="UPSERT"), key="id", partition_by=["day"], order_by="ts"),
    ]
    sinks += [pickle.loads(pickle.dumps(sink)) for sink in sinks]
    assert {sink._options for sink in sinks} == {sinks[0]._options}
    assert sinks[0]._options.operation is Operation.UPSERT


def test_a_contradiction_is_refused_when_the_sink_is_made(tmp_path):
    with pytest.raises(InvalidConfigError, match=r"key=id and .*recordkey\.field=uuid say different things"):
        HudiSink(tmp_path / "t", {KEY: "uuid"}, key="id")


def test_inserts_into_the_logs_of_buckets_are_refused_when_the_sink_is_made(tmp_path):
    """Readers keep one row per key there; the table's own type counts where the options do not name it."""
    given = {"key": "id", "operation": "insert", "index": "bucket"}
    for sink in (HudiSink, ArrowSink):
        with pytest.raises(InvalidConfigError, match=r"operation=insert .*not keep every row.*operation=upsert"):
            sink(tmp_path / "t", **given, table_type="mor")
        sink(tmp_path / "t", {"hoodie.merge.allow.duplicate.on.inserts": "false"}, **given, table_type="mor")
        sink(tmp_path / "t", **given, table_type="cow")
    rows = pa.table({"id": ["a"]})
    with ArrowSink(tmp_path / "t", key="id", index="bucket", table_type="mor") as sink:
        sink.write(rows)
        with pytest.raises(InvalidConfigError, match="not keep every row"):
            sink.write(rows, operation="insert")
    with ArrowSink(tmp_path / "t", **given) as sink, pytest.raises(InvalidConfigError, match="not keep every row"):
        sink.write(rows)
    assert HudiTable.open(tmp_path / "t").count() == 1


@pytest.mark.parametrize(
    ("given", "is_told"),
    [
        ({"operation": "insert", "table_type": "mor"}, True),
        ({"operation": "bulk_insert", "table_type": "mor"}, True),
        ({"operation": "upsert", "table_type": "mor"}, False),
        ({"operation": "insert", "table_type": "cow"}, False),
    ],
)
def test_a_merge_on_read_table_that_gets_no_log_files_is_told(tmp_path, given, is_told):
    with capture_logs() as logs:
        HudiSink(tmp_path / "t", key="id", **given)
    assert ("table_type_without_effect" in [line["event"] for line in logs]) == is_told


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({OPERATION: "insert", ORDER: "ts"}, ["ordering_field_without_effect"]),
        ({ORDER: "ts"}, []),
        ({OPERATION: "insert"}, []),
        ({OPERATION: "upsert", ORDER: "ts"}, []),
        ({OPERATION: "insert", ORDER: "ts", "hoodie.combine.before.insert": "true"}, []),
        ({OPERATION: "insert", ORDER: "ts", "hoodie.merge.allow.duplicate.on.inserts": "false"}, []),
    ],
)
def test_an_ordering_field_that_orders_nothing_is_told_once(tmp_path, options, told):
    with capture_logs() as logs:
        sink = HudiSink(tmp_path / "t", {KEY: "id", **options})
        pickle.loads(pickle.dumps(sink))
    assert [line["event"] for line in logs] == told
    assert all(line["log_level"] == "info" and line["ordering_field"] == "ts" for line in logs)

"""The example `openlineage.py`: what a lineage service hears of each batch."""

import json
import pickle
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pyarrow as pa
import pytest
from engine import OPTIONS, rows

from examples.openlineage import OpenLineageEvents, dataset_of
from hudistream import ArrowSink, InvalidConfigError, SchemaMismatchError

TABLE_FACETS = {"version", "schema"}


@pytest.mark.parametrize(("address", "namespace", "name"), [
    ("s3://bucket/lake/t", "s3://bucket", "lake/t"),
    ("kafka://broker:9092/topic", "kafka://broker:9092", "topic"),
    ("abfss://box@account.dfs.core.windows.net/t", "abfss://box@account.dfs.core.windows.net", "t"),
    ("gs://bucket", "gs://bucket", "/"),
    ("/data/lake/t", "file", "/data/lake/t"),
    ("file:///data/lake/t", "file", "/data/lake/t"),
])  # fmt: skip
@pytest.mark.pure
def test_datasets_are_named_by_the_rules_of_openlineage(address, namespace, name):
    assert dataset_of(address) == {"namespace": namespace, "name": name}


def test_each_batch_is_a_run_and_columns_are_told_when_they_are_new(tmp_path):
    path, events = str(tmp_path / "t"), []
    lineage = OpenLineageEvents(events.append, job="orders", inputs=["kafka://broker:9092/orders"])
    sink = ArrowSink(path, OPTIONS, callbacks=[lineage], on_failure=[lineage])
    sink.write(rows(range(5)), 0)
    sink.write(rows(range(5, 7)), 1)
    sink.write(rows(range(5, 7)), 1)  # skipped: not told
    sink.write(rows(range(7, 8)).append_column("n", [pa.array([1])]), 2)
    with pytest.raises(SchemaMismatchError):
        sink.write(rows(range(3)).drop_columns(["v"]), 3)
    sink.stop()
    assert [event["eventType"] for event in events] == ["COMPLETE", "COMPLETE", "COMPLETE", "FAIL"]
    assert [{*event["outputs"][0]["facets"]} for event in events] == [TABLE_FACETS, {"version"}, TABLE_FACETS, set()]
    first, _, third, failed = events
    assert first["job"]["name"] == "orders"
    assert first["inputs"] == [{"namespace": "kafka://broker:9092", "name": "orders"}]
    [output] = first["outputs"]
    assert (output["namespace"], output["name"]) == ("file", path)
    assert output["outputFacets"]["outputStatistics"]["rowCount"] == 5
    assert output["outputFacets"]["outputStatistics"]["size"] > 0
    assert {"name": "ts", "type": "int64"} in output["facets"]["schema"]["fields"]
    assert {"name": "n", "type": "int64"} in third["outputs"][0]["facets"]["schema"]["fields"]
    assert "column 'v' is missing" in failed["run"]["facets"]["errorMessage"]["message"]
    assert len({event["run"]["runId"] for event in events}) == 4
    assert all(json.dumps(event) and event["eventTime"].endswith("+00:00") for event in events)


def test_events_are_posted_with_the_key_and_an_error_fails_no_batch(tmp_path):
    heard, answers = [], [201, 500]

    class Service(BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            heard.append((self.path, self.headers["Authorization"], json.loads(body)))
            self.send_response(answers[len(heard) - 1])
            self.end_headers()

        def log_message(self, *given):
            pass

    with HTTPServer(("127.0.0.1", 0), Service) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        lineage = OpenLineageEvents(f"http://127.0.0.1:{server.server_port}/", job="orders", api_key="k3y")
        assert "k3y" not in repr(lineage)
        sink = ArrowSink(str(tmp_path / "t"), OPTIONS, callbacks=[pickle.loads(pickle.dumps(lineage))])
        sink.write(rows(range(3)), 0)
        assert sink.callback_failures == 0
        sink.write(rows(range(3, 6)), 1)  # the service fails
        assert sink.callback_failures == 1
        server.shutdown()
        sink.write(rows(range(6, 9)), 2)  # and is gone
        assert sink.callback_failures == 2
        sink.stop()
    assert [(path, key) for path, key, _ in heard] == [("/api/v1/lineage", "Bearer k3y")] * 2
    assert heard[0][2]["outputs"][0]["outputFacets"]["outputStatistics"]["rowCount"] == 3


def test_an_address_of_another_kind_is_refused():
    with pytest.raises(InvalidConfigError, match="send='ftp://x': give the address of the service"):
        OpenLineageEvents("ftp://x", job="j")

"""A batch that changes the table's columns is told: in the log, in the summary, in the history, and counted."""

from unittest import mock

import pyarrow as pa
import pytest
from engine import Engine, rows

from hudistream import HudiTable
from streaming import metrics
from streaming.batch import summary


def test_added_and_wider_columns_are_told_once(tmp_path, monkeypatch):
    pytest.importorskip("prometheus_client")
    path, warn = str(tmp_path / "t"), mock.Mock()
    monkeypatch.setattr(summary.log, "warning", warn)
    engine = Engine(path, {"hoodie.datasource.write.operation": "upsert"})
    plain = rows(range(3))
    wider = plain.append_column("w", pa.array([1, 2, 3], pa.int32()))
    widest = plain.append_column("w", pa.array([1, 2, 3], pa.int64()))
    told = [
        engine.write(number, batch).schema_changes for number, batch in enumerate([plain, plain, wider, wider, widest])
    ]
    added, grown = ("column w added (int32)",), ("column w was int32, is int64",)
    assert told == [(), (), added, (), grown]
    assert [call.kwargs["changes"] for call in warn.call_args_list] == [list(added), list(grown)]
    assert [call.args for call in warn.call_args_list] == [("schema_changed",)] * 2
    history = HudiTable.open(path).history().to_pylist()
    assert [row["schema_changes"] for row in history] == [list(grown), None, list(added), None, None]
    counts = metrics.PrometheusMetrics()
    before = counter(path)
    counts(summary.BatchSummary(path, 1, "1", schema_changes=added))
    assert counter(path) - before == 1


def counter(path):
    from prometheus_client import REGISTRY

    return REGISTRY.get_sample_value("hudistream_schema_changes_total", {"table": path}) or 0

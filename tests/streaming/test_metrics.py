"""The series that operators alert on, and the alerts and the dashboard that name them."""

import json
import pickle
import re
import time
from pathlib import Path

import prometheus_client
import pyarrow as pa
import pytest
import yaml

from streaming import metrics as of_process
from streaming.arrow_sink import ArrowSink
from streaming.batch import progress
from streaming.metrics import PrometheusMetrics
from table.errors import InvalidConfigError
from table.hudi_table import HudiTable
from table.snapshot import Snapshot
from table.storage.local import LocalStorage

MONITORING = Path(__file__).parent.parent.parent / "examples" / "monitoring"
CLEANING = {"hoodie.clean.automatic": "true", "hoodie.clean.commits.retained": "1", "hudistream.clean.grace.ms": "0"}


def value(name, path, **labels):
    return prometheus_client.REGISTRY.get_sample_value(name, {"table": path, **labels})


def write(path, metrics, numbers, options=None, **more):
    with ArrowSink(path, options, key="id", order_by="ts", operation="upsert", callbacks=[metrics], **more) as sink:
        for number in numbers:
            sink.write(pa.table({"id": ["a", "b"], "ts": [number, number]}), batch_id=number)
            sink.services.wait()


def test_a_batch_says_when_it_was_committed_and_how_long_it_took(tmp_path):
    path, before = str(tmp_path / "t"), time.time()
    metrics = pickle.loads(pickle.dumps(PrometheusMetrics()))
    write(path, metrics, range(3))
    assert before <= value("hudistream_last_commit_timestamp_seconds", path) <= time.time()
    assert value("hudistream_last_batch_id", path) == 2
    assert value("hudistream_batch_seconds_count", path) == 3
    assert value("hudistream_batch_seconds_sum", path) > 0
    write(path, metrics, [2])  # skipped
    assert value("hudistream_batch_seconds_count", path) == 3
    assert value("hudistream_live_files", path) is None


def test_a_batch_that_runs_long_is_seen_while_it_runs(tmp_path, monkeypatch):
    monkeypatch.setattr(progress, "PROGRESS_S", 0.02)
    path, running, seen = str(tmp_path / "t"), "hudistream_batch_running_seconds", []
    read = LocalStorage.read

    def waits(self, asked, *given, **named):
        end = time.monotonic() + 5
        while not value(running, path) and not seen and time.monotonic() < end:
            time.sleep(0.01)
        seen.append(value(running, path))
        return read(self, asked, *given, **named)

    monkeypatch.setattr(LocalStorage, "read", waits)
    write(path, PrometheusMetrics(), range(1))
    assert 0 < seen[0] < 5
    assert value(running, path) == 0


def test_the_files_are_looked_at_after_cleaning_and_not_more_often_than_asked(tmp_path, monkeypatch):
    path, looks = str(tmp_path / "t"), []
    look = of_process.load_health
    monkeypatch.setattr(of_process, "load_health", lambda table: looks.append(1) or look(table))
    write(path, PrometheusMetrics(health_every_s=3600), range(3), CLEANING)
    assert len(looks) == 1
    assert value("hudistream_live_files", path) == 1
    write(path, PrometheusMetrics(health_every_s=1e-6), range(3, 6), CLEANING)
    assert len(looks) == 4
    assert value("hudistream_live_bytes", path) > 0
    assert value("hudistream_small_files", path) == 1
    assert value("hudistream_superseded_bytes", path) > 0
    assert value("hudistream_pending_compactions", path) == 0
    assert value("hudistream_active_instants", path) == 6


def test_log_files_are_counted(tmp_path):
    path = str(tmp_path / "t")
    options = {"hoodie.clean.automatic": "false", "hoodie.archive.automatic": "false",
               "hoodie.compact.inline.max.delta.commits": "50"}  # fmt: skip
    write(path, PrometheusMetrics(health_every_s=1e-6), range(3), options, table_type="MERGE_ON_READ")
    groups = [group for _, found in Snapshot.load(HudiTable.open(path)).walk_file_groups() for group in found]
    logs = sum(len(group.merged_slice.log_files) for group in groups)
    assert value("hudistream_live_log_files", path) == value("hudistream_log_files_total", path) == logs == 2
    assert value("hudistream_live_log_bytes", path) > 0


@pytest.mark.parametrize("seconds", [0, -1, float("nan")])
def test_a_time_between_looks_is_above_zero(seconds):
    with pytest.raises(InvalidConfigError, match="health_every_s="):
        PrometheusMetrics(health_every_s=seconds)


def known_names():
    of_process._load_series()
    return {sample.name for family in prometheus_client.REGISTRY.collect() for sample in family.samples} | {
        f"{family.name}{ending}"
        for family in prometheus_client.REGISTRY.collect()
        for ending in ({"counter": ["_total"], "histogram": ["_bucket", "_sum", "_count"]}.get(family.type, [""]))
    }


def test_alerts_and_dashboard_name_series_that_there_are():
    alerts = yaml.safe_load((MONITORING / "alerts.yml").read_text())
    rules = [rule for group in alerts["groups"] for rule in group["rules"]]
    dashboard = json.loads((MONITORING / "grafana.json").read_text())
    asked = [rule["expr"] for rule in rules]
    asked += [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    named = {name for expression in asked for name in re.findall(r"hudistream_\w+", expression)}
    assert len(named) > 20
    assert named <= known_names()
    assert all({"summary", "description"} == rule["annotations"].keys() for rule in rules)
    assert len({rule["alert"] for rule in rules}) == len(rules)


def test_the_guide_lists_every_series():
    guide = (MONITORING.parent.parent / "docs/guides/monitoring.md").read_text()
    of_process._load_series()
    families = {f.name for f in prometheus_client.REGISTRY.collect() if f.name.startswith("hudistream_")}
    assert [name for name in sorted(families) if name not in guide] == []

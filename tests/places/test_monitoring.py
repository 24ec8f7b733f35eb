"""The alerts and the dashboard beside a real Prometheus, over a running stream. Prometheus is built by Go."""

import json
import os
import subprocess
import sys
import time
import urllib.parse
import urllib.request
from pathlib import Path

import pytest
from servers import free_port, wait_for
from stores import go_install

pytestmark = [pytest.mark.slow, pytest.mark.places]
ROOT = Path(__file__).parents[2]
MONITORING = ROOT / "examples" / "monitoring"
MODULE, VERSION = "github.com/prometheus/prometheus/cmd", "v0.313.5"  # Prometheus 3.13.5
GOOD_BATCHES = 30
PATIENCE_S = 120


def built(name):
    return go_install(f"{MODULE}/{name}", VERSION, is_plain=False)


def expressions(node):
    """The queries of a dashboard."""
    if isinstance(node, dict):
        if "expr" in node:
            yield node["expr"]
        for child in node.values():
            yield from expressions(child)
    elif isinstance(node, list):
        for child in node:
            yield from expressions(child)


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory):
    """Asks a Prometheus that scrapes a stream: a function from a path of its API to the answer's data."""
    folder = tmp_path_factory.mktemp("monitoring")
    port, scraped = free_port(), free_port()
    config = folder / "prometheus.yml"
    config.write_text(
        json.dumps(
            {
                "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
                "rule_files": [str(MONITORING / "alerts.yml")],
                "scrape_configs": [
                    {"job_name": "stream", "static_configs": [{"targets": [f"127.0.0.1:{scraped}"]}]},
                ],
            }
        )
    )
    server = [
        built("prometheus"), f"--config.file={config}", f"--storage.tsdb.path={folder / 'data'}",
        f"--web.listen-address=127.0.0.1:{port}",
    ]  # fmt: skip
    job = [
        sys.executable, str(Path(__file__).with_name("monitored_job.py")), str(folder / "t"), str(folder / "c"),
        str(scraped), str(GOOD_BATCHES),
    ]  # fmt: skip
    path = {**os.environ, "PYTHONPATH": str(ROOT)}

    def ask(where, **given):
        address = f"http://127.0.0.1:{port}/api/v1/{where}?{urllib.parse.urlencode(given)}"
        with urllib.request.urlopen(address, timeout=10) as answer:
            said = json.load(answer)
        assert said["status"] == "success", said
        return said["data"]

    with open(folder / "server.log", "w") as told, open(folder / "job.log", "w") as said:
        running = [
            subprocess.Popen(server, stdout=told, stderr=told),
            subprocess.Popen(job, stdout=said, stderr=said, env=path),
        ]
        try:
            wait_for(port, running[0], folder / "server.log")
            wait_for(scraped, running[1], folder / "job.log")
            yield ask
        finally:
            for one in running:
                one.kill()
                one.wait()


def until(holds):
    """What a function says as soon as it is true."""
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        found = holds()
        if found:
            return found
        time.sleep(1)
    raise AssertionError("it did not happen in time")


def test_promtool_accepts_the_rules():
    done = subprocess.run(
        [built("promtool"), "check", "rules", "--lint-fatal", str(MONITORING / "alerts.yml")],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "SUCCESS: 8 rules found" in done.stdout


def test_each_query_of_the_dashboard_has_an_answer(prometheus):
    until(lambda: prometheus("query", query="hudistream_cleans_total > 0")["result"])
    until(lambda: prometheus("query", query="hudistream_live_files > 0")["result"])
    asked = list(expressions(json.loads((MONITORING / "grafana.json").read_text())))
    assert len(asked) > 15
    for expression in asked:
        found = prometheus("query", query=expression.replace("$table", ".*"))
        assert found["result"], expression


def test_rules_are_evaluated_and_a_failure_fires_an_alert(prometheus):
    def firing():
        groups = prometheus("rules")["groups"]
        rules = [rule for group in groups for rule in group["rules"]]
        assert {rule["health"] for rule in rules} <= {"ok", "unknown"}, rules
        return {rule["name"]: rule for rule in rules if rule["state"] == "firing"}

    assert "HudistreamBatchesFail" not in firing()
    until(lambda: prometheus("query", query='hudistream_batches_total{outcome="failed"} > 1')["result"])
    alert = until(lambda: firing().get("HudistreamBatchesFail"))["alerts"][0]
    assert "/t fail" in alert["annotations"]["summary"]
    assert {"HudistreamServicesFail", "HudistreamBadRows"}.isdisjoint(firing())

"""What a stream says while it runs: one short line per batch, on standard error, and what a long batch says."""

import gc
import os
import subprocess
import sys
import textwrap
import time

import pytest
from engine import Engine, rows

from streaming import ArrowSink
from streaming.batch import progress
from streaming.batch.failed_batch import BatchProgress
from table.config.table_config import PROPERTIES_FILE
from table.storage.local import LocalStorage
from table.transaction.lease import LEASE_FOLDER


def ran(code, tmp_path):
    """What a process writes whose batches clean and archive; its table is the variable `path`."""
    begin = f"""
        import logging, sys
        from engine import Engine, rows
        path = {str(tmp_path / "t")!r}
        upkeep = {{"hoodie.clean.automatic": "true", "hoodie.clean.async.enabled": "false",
                  "hoodie.clean.commits.retained": "1", "hoodie.archive.automatic": "true",
                  "hoodie.keep.min.commits": "3", "hoodie.keep.max.commits": "4",
                  "hoodie.datasource.write.operation": "upsert"}}
        engine = Engine(path, upkeep)
    """
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(begin) + textwrap.dedent(code)],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr.splitlines()


def test_one_short_line_per_batch_whatever_else_it_does(tmp_path):
    out, err = ran("for number in range(8): engine.write(number, rows(range(9)))", tmp_path)
    assert out == ""
    said = [line for line in err if " WARNING " not in line]
    assert [line.split()[2] for line in said] == ["table_created", *["batch_committed"] * 8]
    first, last = said[1], said[-1]
    for part in (f"table={tmp_path / 't'}", "batch_id=0", "instant_time=2", "rows=9 updated=0 deleted=0 files=3"):
        assert part in first
    assert "rows=0 updated=9 deleted=0 files=3" in last
    assert "seconds=" in last
    assert len(last) < 200 + len(str(tmp_path))


@pytest.mark.slow
def test_a_batch_without_rows_and_a_replayed_one_have_their_line_too(tmp_path):
    code = "engine.write(0, rows(range(9))); engine.write(0, rows(range(9))); engine.write(1, rows([]))"
    err = ran(code, tmp_path)[1]
    events = [line.split()[2] for line in err if " WARNING " not in line]
    assert events == ["table_created", "batch_committed", "batch_skipped", "batch_empty"]


@pytest.mark.slow
def test_the_rest_is_there_for_whoever_asks(tmp_path):
    code = """
        logging.basicConfig(stream=sys.stdout, level=logging.DEBUG, format="%(levelname)s %(name)s %(message)s")
        for number in range(8): engine.write(number, rows(range(9)))
    """
    out, err = ran(code, tmp_path)
    assert err == []
    for event in ("commit_begun", "commit_completed", "batch_summary", "file_cleaned", "instants_archived"):
        assert any(line.startswith("DEBUG hudistream.") and f" {event} " in line for line in out.splitlines()), event
    assert out.count("INFO hudistream.sink batch_committed") == 8


def test_a_long_batch_says_its_phase_and_what_is_known_of_it(tmp_path, monkeypatch, logs):
    monkeypatch.setattr(progress, "PROGRESS_S", 0.02)
    engine = Engine(str(tmp_path / "t"))
    distribute, commit = engine.distribute, engine.writer._committer.commit

    def slow(inner):
        def run(*args):
            time.sleep(0.1)
            done = inner(*args)
            time.sleep(0.1)
            return done

        return run

    engine.distribute, engine.writer._committer.commit = slow(distribute), slow(commit)
    engine.write(0, rows(range(9)))
    said = [entry for entry in logs if entry["event"] == "batch_running"]
    writing = [entry for entry in said if entry["phase"] == "write"]
    committing = [entry for entry in said if entry["phase"] == "commit"]
    order = ["open", "lease", "recover", "plan", "write", "commit", "after"]
    assert [entry["phase"] for entry in said] == sorted((entry["phase"] for entry in said), key=order.index)
    assert len(writing) >= 2
    assert len(committing) >= 2
    for entry in writing:  # nothing is made up of what is not known
        assert set(entry) == {"event", "log_level", "table", "batch_id", "instant_time", "phase", "seconds"}
    assert {(entry["rows"], entry["updated"], entry["files"]) for entry in committing} == {(9, 0, 3)}
    assert said[-1]["seconds"] > said[0]["seconds"]


@pytest.mark.parametrize(
    ("call", "where", "phase"),
    [("read", PROPERTIES_FILE, "open"), ("list_dir", LEASE_FOLDER, "lease"), ("list_dir", ".hoodie/.temp", "recover")],
)
def test_a_batch_says_that_it_waits_for_a_store_whatever_it_asks(tmp_path, monkeypatch, logs, call, where, phase):
    """Before the request of its instant, too: while it opens the table, takes the lease, lists."""
    monkeypatch.setattr(progress, "PROGRESS_S", 0.1)
    told = []

    class Hears:
        def __call__(self, summary):
            pass

        def while_running(self, running):
            told.append(running)

    path = str(tmp_path / "t")
    sink = ArrowSink(path, key="id", callbacks=[Hears()])
    sink.write(rows(range(3)), 0)
    sink.stop()  # so that the next batch takes the lease
    logs.clear()
    told.clear()
    inner = getattr(LocalStorage, call)

    def hangs(self, asked, *given, **named):
        if asked == where:
            time.sleep(0.35)
        return inner(self, asked, *given, **named)

    monkeypatch.setattr(LocalStorage, call, hangs)
    with ArrowSink(path, key="id", callbacks=[Hears()]) as again:
        again.write(rows(range(3)), 1)
    said = [entry for entry in logs if entry["event"] == "batch_running"]
    assert phase in [entry["phase"] for entry in said]
    assert {entry["table"] for entry in said} == {path}
    assert [running.phase for running in told][-1] == progress.ENDED
    assert [running.seconds for running in told] == [entry["seconds"] for entry in said] + [0]


def test_a_callback_that_raises_does_not_end_the_lines(tmp_path, monkeypatch, logs):
    monkeypatch.setattr(progress, "PROGRESS_S", 0.05)

    class Raises:
        def __call__(self, summary):
            time.sleep(0.3)

        def while_running(self, running):
            raise RuntimeError("no")

    def slow(batch):
        time.sleep(0.3)

    with ArrowSink(str(tmp_path / "t"), key="id", callbacks=[Raises()], validators=[slow]) as sink:
        sink.write(rows(range(3)), 0)
        assert sink.callback_failures > 2
    assert len([entry for entry in logs if entry["event"] == "batch_running"]) >= 2


def test_the_thread_ends_when_an_interrupt_comes_before_the_block():
    def interrupted():
        shown = progress.Progress("t", 1, BatchProgress())
        shown.__enter__()  # and then Ctrl-C: __exit__ is never called
        thread = shown._thread
        raise KeyboardInterrupt(thread)

    try:
        interrupted()
    except KeyboardInterrupt as interrupt:
        thread = interrupt.args[0]
        interrupt.__traceback__ = None
    gc.collect()
    thread.join(5)
    assert not thread.is_alive()

"""A command shows its seconds on a terminal, and in no file."""

import io
import sys
import time

from table.cli.output import say
from table.cli.patience import ElapsedLine, elapsed_shown
from table.threads import start_thread


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_seconds_are_shown_until_there_is_output(monkeypatch, capsys):
    shown = Terminal()
    monkeypatch.setattr(sys, "stderr", shown)
    with elapsed_shown("hudistream check", 0.05):
        time.sleep(0.3)
        assert "hudistream check … 0 s" in shown.getvalue()
        say(["done"])
        told = shown.getvalue()
        assert told.endswith("\r\x1b[K")
        time.sleep(0.2)
    assert shown.getvalue() == told
    assert capsys.readouterr().out == "done\n"


def test_a_fast_command_shows_nothing(monkeypatch):
    shown = Terminal()
    monkeypatch.setattr(sys, "stderr", shown)
    with elapsed_shown("hudistream show"):
        pass
    assert shown.getvalue() == ""


def test_a_file_gets_no_seconds(monkeypatch):
    shown = io.StringIO()
    monkeypatch.setattr(sys, "stderr", shown)
    with elapsed_shown("hudistream show", 0.0):
        time.sleep(0.1)
    assert shown.getvalue() == ""


def test_it_counts_on_and_ends():
    shown = Terminal()
    line = ElapsedLine(shown, "x", 0.01)
    thread = start_thread(line.run, "counts", daemon=True)
    time.sleep(1.3)
    line.stop()
    thread.join(5)
    assert not thread.is_alive()
    assert [part for part in shown.getvalue().split("\r\x1b[K") if part] == ["x … 0 s\r", "x … 1 s\r"]


def test_nothing_is_shown_behind_the_end():
    shown = Terminal()
    line = ElapsedLine(shown, "x", 0.0)
    asked = iter([False, True])
    line._over.wait = lambda _: next(asked)  # `stop` comes between the look and the line
    line.stop()
    line.run()
    assert shown.getvalue() == ""

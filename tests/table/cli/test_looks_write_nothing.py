"""Commands that say that they change nothing run on a store that refuses each write, beside readers with pins."""

import os
import time

import pytest
from engine import Engine, rows

from streaming.cli.main import main
from table.hudi_table import HudiTable
from table.storage.local import LocalStorage
from table.timeline.pins import PINS_FOLDER, fresh_pin, parse_pin, see_live_pins, write_pin

WRITES = [
    "create_exclusive", "put", "replace_if", "delete", "delete_metafile", "delete_metafolder", "delete_many",
    "remove_empty_dir", "open_staging", "fence", "publish", "discard", "make_dir", "open_output", "open_copy", "sync",
]  # fmt: skip
LOOKS = [
    "show", "health", "history", "explain", "clean --dry-run", "report", "doctor", "check", "schema", "files",
]  # fmt: skip


@pytest.fixture
def path(tmp_path):
    path = str(tmp_path / "t")
    engine = Engine(path, {"hoodie.datasource.write.operation": "upsert"})
    for batch in range(3):
        engine.write(batch, rows(range(9), ts=batch))
    return path


@pytest.mark.parametrize("command", LOOKS)
def test_a_command_that_looks_writes_nothing(path, tmp_path, monkeypatch, command):
    storage = HudiTable.open(path).storage
    for _ in range(2):
        write_pin(storage, fresh_pin("20260101000000000", 900))
    old, young = (os.path.join(path, PINS_FOLDER, name) for name in sorted(os.listdir(os.path.join(path, PINS_FOLDER))))
    os.utime(old, (time.time() - 90_000,) * 2)

    def refuse(self, *given, **named):
        raise AssertionError(f"{command} writes {given}")

    for name in WRITES:
        monkeypatch.setattr(LocalStorage, name, refuse)
    name, *more = command.split()
    if name == "report":
        more = ["-o", str(tmp_path / "report.html")]
    assert main([name, path, *more]) in (0, 1)
    assert os.path.exists(old)
    assert os.path.exists(young)


def test_a_pin_counts_a_minute_longer_for_those_who_look(path):
    storage = HudiTable.open(path).storage
    write_pin(storage, fresh_pin("20260101000000000", 100))
    [name] = os.listdir(os.path.join(path, PINS_FOLDER))
    for age_s, is_live in ((0, True), (150, True), (170, False)):
        os.utime(os.path.join(path, PINS_FOLDER, name), (time.time() - age_s,) * 2)
        assert see_live_pins(storage) == ((parse_pin(name),) if is_live else ())

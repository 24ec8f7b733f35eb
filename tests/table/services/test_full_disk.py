"""A full disk does not lock out the clean, which frees space."""

import errno
import os

import pyarrow as pa
import pytest

from streaming import ArrowSink
from table import clean, read_table
from table.cli.main import main
from table.cli.why import load_page, sections_of
from table.errors import StorageError
from table.options.groups import CleanSettings
from table.storage.interface import failed
from table.storage.local import LocalStorage
from table.storage.opening import open_storage
from table.storage.reserve import RESERVE_BYTES, RESERVE_FILE, is_full, keep_reserve

RETAINS_ONE = CleanSettings(commits_retained=1, grace_ms=0)
FULL = OSError(errno.ENOSPC, "No space left on device")


def write(path, first=0, last=6):
    options = {"hoodie.clean.automatic": "false", "hoodie.archive.automatic": "false"}
    with ArrowSink(path, options, key="id") as sink:
        for number in range(first, last):
            sink.write(pa.table({"id": ["a"], "v": [number]}), number)


@pytest.fixture
def fill(monkeypatch):
    """Fills the disk of a table; what is deleted makes room. Returns the names of files that were refused."""

    def full(path):
        room, refused = [0], []
        create, put, delete = LocalStorage.create_exclusive, LocalStorage.put, LocalStorage._delete

        def take(name, data):
            if len(data) > room[0]:
                refused.append(name)
                raise failed("create", name, FULL) from FULL
            room[0] -= len(data)

        def creates(self, name, data, *, durable=False):
            take(name, data)
            return create(self, name, data, durable=durable)

        def puts(self, name, data):
            take(name, data)
            return put(self, name, data)

        def deletes(self, name):
            room[0] += os.path.getsize(os.path.join(path, name)) if self.exists(name) else 0
            return delete(self, name)

        monkeypatch.setattr(LocalStorage, "create_exclusive", creates)
        monkeypatch.setattr(LocalStorage, "put", puts)
        monkeypatch.setattr(LocalStorage, "_delete", deletes)
        return refused

    return full


def data_files(path):
    return [name for name in os.listdir(path) if name.endswith(".parquet")]


def leave_a_clean(path, monkeypatch):
    """The clean of a policy that frees little dies after its request."""
    begin = LocalStorage.create_exclusive

    def dies(self, name, data, *, durable=False):
        if name.endswith(".clean.inflight"):
            raise failed("create", name, PermissionError(errno.EACCES, "stopped"))
        return begin(self, name, data, durable=durable)

    with monkeypatch.context() as patched:
        patched.setattr(LocalStorage, "create_exclusive", dies)
        with pytest.raises(StorageError, match="stopped"):
            clean(path, CleanSettings(commits_retained=4, grace_ms=0))


def test_a_clean_gives_up_the_reserve_of_a_full_disk(tmp_path, fill, logs):
    path = str(tmp_path / "t")
    write(path)
    assert os.path.getsize(f"{path}/{RESERVE_FILE}") == RESERVE_BYTES
    assert len(data_files(path)) == 6
    refused = fill(path)
    clean(path, RETAINS_ONE)
    assert refused[0].endswith(".clean.requested")
    assert len(data_files(path)) == 2
    assert "reserve_released" in [entry["event"] for entry in logs]


def test_the_reserve_is_made_again_once_there_is_room(tmp_path, fill, monkeypatch):
    path = str(tmp_path / "t")
    write(path)
    with monkeypatch.context():
        fill(path)
        clean(path, RETAINS_ONE)
    monkeypatch.undo()
    write(path, 6, 7)
    assert os.path.getsize(f"{path}/{RESERVE_FILE}") == RESERVE_BYTES
    assert read_table(path)["v"].to_pylist() == [6]


def test_a_clean_that_was_begun_is_finished_and_then_more_is_cleaned(tmp_path, fill, monkeypatch):
    path = str(tmp_path / "t")
    write(path)
    leave_a_clean(path, monkeypatch)
    assert len(data_files(path)) == 6
    fill(path)
    assert len(clean(path, RETAINS_ONE)) == 2
    assert len(data_files(path)) == 2


def test_the_command_cleans_now_however_lately_the_table_was_cleaned(tmp_path, capsys):
    path = str(tmp_path / "t")
    write(path)
    clean(path, CleanSettings(commits_retained=4, grace_ms=0))
    assert len(data_files(path)) > 2
    said = ["--set", "hoodie.clean.commits.retained=1", "--set", "hudistream.clean.grace.ms=0"]
    assert main(["clean", path, *said]) == 0
    assert len(data_files(path)) == 2
    assert main(["clean", path, *said]) == 0
    assert "nothing to clean" in capsys.readouterr().out


def test_without_a_reserve_the_error_says_what_to_do(tmp_path, fill):
    path = str(tmp_path / "t")
    write(path)
    os.unlink(f"{path}/{RESERVE_FILE}")
    fill(path)
    with pytest.raises(StorageError, match="hudistream clean PATH") as refused:
        clean(path, RETAINS_ONE)
    assert is_full(refused.value)
    assert len(data_files(path)) == 6
    said = sections_of(load_page())["StorageError"]
    for way in ("hudistream clean", "savepoint delete", "quota"):
        assert way in said


def test_where_there_is_no_room_there_is_no_reserve_and_no_error(tmp_path, fill):
    path = str(tmp_path / "t")
    write(path, 0, 1)
    os.unlink(f"{path}/{RESERVE_FILE}")
    fill(path)
    keep_reserve(open_storage(path))
    assert not os.path.exists(f"{path}/{RESERVE_FILE}")


def test_other_errors_give_up_nothing(tmp_path, monkeypatch):
    path = str(tmp_path / "t")
    write(path)
    leave_a_clean(path, monkeypatch)
    assert os.path.exists(f"{path}/{RESERVE_FILE}")
    assert "frees space" not in str(failed("create", "a", OSError(errno.EIO, "x")))


def test_a_store_that_is_no_disk_has_no_reserve():
    storage = open_storage("memory://reserve/t")
    keep_reserve(storage)
    assert not storage.exists(RESERVE_FILE)

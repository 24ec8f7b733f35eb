"""`hudistream lock`: who holds the lock of a table, and taking it from a holder that is gone."""

import json
import uuid

import pytest
from command_line import said
from s3_server import serve_s3

from table import clock
from table.cli.lock import _BROKEN_BY
from table.cli.main import main
from table.errors import CommitConflictError
from table.options.lock_settings import LockProvider
from table.storage.local import LocalStorage
from table.storage.opening import open_storage
from table.transaction.locks import LockSettings, make_lock

AT_ONCE = {"attempts_more": 0, "wait_ms": 1}
FILESYSTEM = LockSettings(provider="filesystem", **AT_ONCE)
STORAGE = LockSettings(provider="storage", **AT_ONCE)


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "t")


def shown(capsys, *arguments):
    return json.loads(said(capsys, "lock", *arguments, "--format", "json"))


def test_each_lock_that_can_be_broken_has_words_for_what_became_of_it():
    ours = {LockProvider.IN_PROCESS, LockProvider.ZOOKEEPER_IMPLICIT, LockProvider.DYNAMODB_IMPLICIT}
    assert set(_BROKEN_BY) == set(LockProvider) - ours  # the last two are kept by the locks of their service


def test_where_nobody_holds_a_lock_it_says_so(path, capsys):
    none = f"no lock is held, and there is no table at {path!r}"
    assert said(capsys, "lock", "show", path) == f"{none}\n"
    assert shown(capsys, "show", path) == {"table": path, "locks": []}
    assert said(capsys, "lock", "break", path) == f"{none}: nothing was done\n"
    assert shown(capsys, "break", path) == {"table": path, "broken": None}


def test_it_shows_who_holds_a_lock_since_when_and_until_when(path, capsys):
    with make_lock(LocalStorage(path), FILESYSTEM).hold(), make_lock(LocalStorage(path), STORAGE).hold():
        text = said(capsys, "lock", "show", path)
        storage, filesystem = shown(capsys, "show", path)["locks"]
    assert "held   storage lock" in text
    assert "       by process" in text
    assert "       since 20" in text
    assert "       valid until 20" in text
    assert (filesystem["provider"], filesystem["held"], filesystem["until"]) == ("filesystem", True, None)
    assert 0 <= filesystem["age_s"] < 60
    assert (storage["provider"], storage["held"], storage["since"], storage["age_s"]) == ("storage", True, None, None)
    text = said(capsys, "lock", "show", path)
    assert "free   storage lock" in text
    assert "last held by owner" in text
    assert "was valid until" in text
    assert "released" in text


def test_the_options_say_when_a_lock_file_expires(path, capsys):
    with make_lock(LocalStorage(path), FILESYSTEM).hold():
        options = ("--set", "hoodie.write.lock.provider=filesystem", "--set", "hoodie.write.lock.filesystem.expire=5")
        (lock,) = shown(capsys, "show", path, *options)["locks"]
    assert lock["until"] > lock["since"]


@pytest.mark.parametrize(
    ("settings", "how"),
    [(FILESYSTEM, "the file was deleted"), (STORAGE, "its record says now that it was released")],
    ids=["filesystem", "storage"],
)
def test_a_lock_is_broken_by_the_means_of_its_protocol(path, capsys, settings, how):
    lock = make_lock(LocalStorage(path), settings)
    with lock.hold() as held:
        text = said(capsys, "lock", "break", path)
        assert how in text
        assert "may still be at work" in text
        with pytest.raises(CommitConflictError):
            held.check()
        with make_lock(LocalStorage(path), settings).hold():
            assert shown(capsys, "break", path)["broken"]["provider"] == str(settings.provider)
    assert "nothing was done" in said(capsys, "lock", "break", path)


def test_of_two_locks_that_are_held_one_has_to_be_named(path, capsys):
    with make_lock(LocalStorage(path), FILESYSTEM).hold(), make_lock(LocalStorage(path), STORAGE).hold() as held:
        assert main(["lock", "break", path]) == 2
        assert "say which one" in capsys.readouterr().err
        said(capsys, "lock", "break", path, "--set", "hoodie.write.lock.provider=filesystem")
        held.check()


def test_a_lock_file_that_is_none_is_replaced(path, capsys):
    LocalStorage(path).replace_if(".hoodie/.locks/table_lock.json", b"?", None)
    assert "does not hold the record of a lock" in said(capsys, "lock", "show", path, code=1)
    assert "the file could not be read" in said(capsys, "lock", "break", path)
    with make_lock(LocalStorage(path), STORAGE).hold():
        pass


@pytest.mark.slow
def test_on_s3_only_the_storage_lock_is_looked_for(capsys):
    with serve_s3() as address:
        client = {"endpoint_url": address, "region_name": "eu-west-1"}
        path, given = f"s3a://lake/{uuid.uuid4()}", {"key": "test", "secret": "test", "client_kwargs": client}
        options = [f"--storage-option={key}={json.dumps(value)}" for key, value in {"client_kwargs": client}.items()]
        options += ["--storage-option=key=test", "--storage-option=secret=test"]
        with make_lock(open_storage(path, given), STORAGE).hold():
            (lock,) = shown(capsys, "show", path, *options)["locks"]
            assert lock["held"]
            assert lock["until"] > clock.to_datetime(clock.now_ms()).isoformat()
            said(capsys, "lock", "break", path, *options)


def test_a_lock_in_this_process_cannot_be_shown_or_broken_from_another_one(path, capsys):
    options = ("--set", "hoodie.write.lock.provider=in_process")
    assert said(capsys, "lock", "show", path, *options).startswith("no lock is held")


def test_a_misspelt_provider_is_named(path, capsys):
    said_so = said(capsys, "lock", "show", path, "--set", "hoodie.write.lock.provider=storge", code=1)
    assert "did you mean storage?" in said_so

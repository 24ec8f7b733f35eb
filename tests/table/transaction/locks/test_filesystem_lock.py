"""The file-system lock: whose file it is, what expires, what is deleted, and a power cut at every call of the store."""

import json
import os
import subprocess
import sys
import uuid

import pytest
from faults import FaultyStorage, Fuse, PowerCut
from lock_time import lock_time

from table.errors import CommitConflictError, InvalidConfigError, StorageError
from table.storage.local import LocalStorage
from table.storage.opening import open_storage
from table.transaction.lease_record import this_machine
from table.transaction.locks import LockProvider, LockSettings, make_lock
from table.transaction.locks.lock_info import LockInfo, describe_lock_info, is_expired

NEVER = LockSettings(provider="filesystem", attempts_more=3, pause_ms=1_000)
MINUTE_MS = 60_000
EXPIRES = LockSettings(provider="filesystem", attempts_more=100, pause_ms=1_000, filesystem_expiry_min=1)


@pytest.fixture
def time():
    with lock_time() as time:
        yield time


@pytest.fixture
def storage(tmp_path):
    return LocalStorage(str(tmp_path / "t"))


@pytest.fixture
def file(tmp_path):
    return tmp_path / "t" / ".hoodie" / "lock"


def write_foreign(file, time, data=b"", age_ms=0):
    """A lock file of another engine, which is empty, with the age that the clock of these tests gives it."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(data)
    set_age(file, time, age_ms)


def set_age(file, time, age_ms):
    seconds = (time.now_ms - age_ms) / 1000
    os.utime(file, (seconds, seconds))


@pytest.mark.parametrize(
    ("expiry_ms", "age_ms", "expired"), [(0, 10**12, False), (60_000, 60_000, False), (60_000, 60_001, True)]
)
def test_when_a_file_counts_as_left_behind(expiry_ms, age_ms, expired):
    assert is_expired(1_000, expiry_ms, 1_000 + age_ms) is expired


def test_its_file_is_where_hudi_has_it_and_says_who_made_it(storage, file, time):
    with make_lock(storage, NEVER).hold() as held:
        document = json.loads(file.read_bytes())
        assert document["process"] == os.getpid()
        assert document["lockThreadName"] == "MainThread"
        assert document["lockCreateTime"] == "2027-01-15 03:00:00.000"  # the tests' zone, as Hudi writes it
        held.check()
    assert not file.exists()


def test_who_made_a_file_in_words():
    info = LockInfo("2026-01-01 00:00:00.000", "main", "0f", 17, "1.2")
    assert describe_lock_info(info.encode()) == "process 17, main, hudistream 1.2 (owner 0f)"
    assert describe_lock_info(b" \n") == "a writer of another engine (the file names no writer)"
    for text in (b"?", b"[]", b'{"lockCreateTime":"x"}'):
        assert describe_lock_info(text) == f"a writer whose file says {text!r}"


def test_another_folder_and_further_schemes(storage, time, tmp_path):
    elsewhere = LockSettings(provider="filesystem", filesystem_path=str(tmp_path / "locks"))
    with make_lock(storage, elsewhere).hold() as held:
        assert (tmp_path / "locks" / "lock").exists()
        held.check()
    assert not (tmp_path / "locks" / "lock").exists()
    memory = open_storage(f"memory://{uuid.uuid4()}/t")
    with pytest.raises(InvalidConfigError, match="'memory'.*use the lock provider storage, zookeeper or dynamodb"):
        make_lock(memory, NEVER)
    with make_lock(memory, LockSettings(provider="filesystem", filesystem_schemes="memory,x")).hold() as held:
        held.check()
    with make_lock(memory, elsewhere).hold():
        assert (tmp_path / "locks" / "lock").exists()


def test_others_wait_and_are_told_who_holds_it(storage, time):
    began_ms = time.now_ms
    with (
        make_lock(storage, NEVER).hold(),
        pytest.raises(CommitConflictError, match=f"process {os.getpid()}") as refused,
        make_lock(storage, NEVER).hold(),
    ):
        pass
    assert "lock show" in str(refused.value)
    assert time.now_ms - began_ms == 3_000


def test_a_file_of_another_engine_is_waited_for(storage, file, time):
    write_foreign(file, time)
    with pytest.raises(CommitConflictError, match="another engine"), make_lock(storage, NEVER).hold():
        pass
    assert file.exists()
    time.wakes = [(time.now_ms + 1_500, file.unlink)]
    with make_lock(storage, NEVER).hold():
        assert file.read_bytes() != b""


def test_a_file_left_behind_is_taken_once_it_has_expired_and_not_before(storage, file, time, logs):
    write_foreign(file, time)
    began_ms = time.now_ms
    with make_lock(storage, EXPIRES).hold() as held:
        assert MINUTE_MS < time.now_ms - began_ms <= MINUTE_MS + 1_000
        held.check()
    assert "lock_expired" in [entry["event"] for entry in logs]


def test_without_an_expiry_a_file_is_never_taken(storage, file, time):
    write_foreign(file, time, age_ms=10**10)
    with pytest.raises(CommitConflictError), make_lock(storage, NEVER).hold():
        pass


def test_a_file_that_was_made_meanwhile_is_not_deleted_for_an_expired_one(storage, file, time):
    write_foreign(file, time, age_ms=10**7)

    class Meanwhile(FaultyStorage):
        looks = 0

        def list_dir(self, path):
            self.looks += 1
            if self.looks == 2:
                write_foreign(file, time, b"{}")
            return self._inner.list_dir(path)

    lock = make_lock(
        Meanwhile(storage, Fuse()), LockSettings(provider="filesystem", attempts_more=0, filesystem_expiry_min=1)
    )
    with pytest.raises(CommitConflictError), lock.hold():
        pass
    assert file.read_bytes() == b"{}"


def test_a_holder_past_the_expiry_neither_goes_on_nor_deletes(storage, file, time):
    with make_lock(storage, EXPIRES).hold() as held:
        time.pass_ms(MINUTE_MS - 501)
        held.check()
        time.pass_ms(1)
        with pytest.raises(CommitConflictError, match=r"lock.filesystem.expire=1 minutes"):
            held.check()
    assert file.exists()


def test_a_holder_whose_file_was_deleted_or_replaced_finds_out_and_deletes_nothing(storage, file, time):
    with make_lock(storage, NEVER).hold() as held:
        file.unlink()  # as Hudi's client does when it closes
        with pytest.raises(CommitConflictError, match="belongs to no writer: the file was deleted"):
            held.check()
    with make_lock(storage, NEVER).hold() as held:
        file.write_bytes(b"")  # as Hudi does between its look and its creation
        with pytest.raises(CommitConflictError, match="another engine"):
            held.check()
    assert file.exists()


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("at", range(1, 6))
def test_a_power_cut_at_every_call_leaves_a_file_that_expires(storage, file, time, at, after):
    fuse = Fuse(at, after)
    died = False
    try:
        with make_lock(FaultyStorage(storage, fuse), EXPIRES).hold() as held:
            held.check()
    except PowerCut:
        died = True
    assert died is (at <= 4), fuse.calls  # create, look, look before the deletion, delete
    if file.exists():
        set_age(file, time, 0)
    began_ms, left = time.now_ms, file.exists()
    with make_lock(storage, EXPIRES).hold():
        assert (time.now_ms - began_ms > MINUTE_MS) is left


@pytest.mark.parametrize("had_effect", [True, False])
def test_a_creation_without_an_answer_is_settled_by_reading(storage, time, had_effect):
    class Unanswered(FaultyStorage):
        lost = 1

        def create_exclusive(self, path, data, *, durable=False):
            if self.lost:
                self.lost -= 1
                if had_effect:
                    self._inner.create_exclusive(path, data, durable=durable)
                raise StorageError("no answer")
            return self._inner.create_exclusive(path, data, durable=durable)

    with make_lock(Unanswered(storage, Fuse()), NEVER).hold() as held:
        held.check()


class Unwilling(FaultyStorage):
    """Fails the next calls of one name, with or without their effect."""

    def __init__(self, storage, call, times, had_effect):
        super().__init__(storage, Fuse())
        self._failing, self.left, self._had_effect = call, times, had_effect

    def _call(self, name, *args, **kwargs):
        if name == self._failing and self.left:
            self.left -= 1
            if self._had_effect:
                super()._call(name, *args, **kwargs)
            raise StorageError("no answer")
        return super()._call(name, *args, **kwargs)


@pytest.mark.parametrize("had_effect", [False, True], ids=["without effect", "with effect"])
@pytest.mark.parametrize("times", [1, 3, 5])
@pytest.mark.parametrize("call", ["read", "_delete"])
def test_a_release_that_fails_is_repeated_also_by_whoever_of_the_process_comes_next(
    storage, file, time, call, times, had_effect, logs
):
    with make_lock(unwilling := Unwilling(storage, call, 0, had_effect), NEVER).hold():
        unwilling.left = times
    assert file.exists() is (times >= 3 and not (call == "_delete" and had_effect))
    with make_lock(unwilling, NEVER).hold() as held:  # another lock object: a sink that was made anew
        held.check()
    assert not file.exists()
    assert "lock_was_taken_over" not in str(logs)


@pytest.mark.parametrize("had_effect", [False, True], ids=["without effect", "with effect"])
def test_a_creation_whose_outcome_stayed_unknown_keeps_nobody_out(storage, file, time, had_effect):
    class Silent(Unwilling):
        def list_dir(self, path):
            if self.left:
                raise StorageError("no answer")
            return super().list_dir(path)

    silent = Silent(storage, "create_exclusive", 100, had_effect)
    with pytest.raises(StorageError), make_lock(silent, NEVER).hold():
        pass
    silent.left = 0
    with make_lock(storage, NEVER).hold() as held:
        held.check()


def test_it_tells_people_what_it_is_and_can_be_broken(storage, file, time):
    lock = make_lock(storage, EXPIRES)
    assert lock.is_shared_between_processes
    assert lock.describe() is None
    assert lock.break_lock() is None
    write_foreign(file, time, age_ms=5_000)
    state = lock.describe()
    assert (state.provider, state.place, state.is_held) == (LockProvider.FILESYSTEM, repr(str(file)), True)
    assert state.holder == "a writer of another engine (the file names no writer)"
    assert (state.since_ms, state.until_ms) == (time.now_ms - 5_000, time.now_ms + 55_000)
    assert make_lock(storage, NEVER).describe().until_ms is None
    assert lock.break_lock() == state
    assert not file.exists()
    write_foreign(file, time, age_ms=70_000)
    assert not lock.describe().is_held


def test_a_lock_that_changes_hands_meanwhile_is_not_broken(storage, file, time):
    class Overtaken(FaultyStorage):
        def read(self, path):
            found = self._inner.read(path)
            write_foreign(file, time, found + b"x")
            return found

    write_foreign(file, time)
    with pytest.raises(CommitConflictError, match="changed hands"):
        make_lock(Overtaken(storage, Fuse()), NEVER).break_lock()
    assert file.exists()


def made_by(process, machine=None):
    machine = this_machine() if machine is None else machine
    return LockInfo("2026-01-01 00:00:00.000", "main", "0f", process, "1", machine).encode()


@pytest.fixture
def dead():
    """The number of a process of this machine that does not run any more."""
    if not this_machine():
        pytest.skip("this machine does not tell its boot")
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def test_the_lock_of_a_dead_process_of_this_machine_is_broken_at_once(storage, file, time, dead, logs):
    write_foreign(file, time, made_by(dead))
    with make_lock(storage, LockSettings(provider="filesystem", attempts_more=0)).hold() as held:
        held.check()
    assert not file.exists()
    assert [entry["event"] for entry in logs if entry["log_level"] == "warning"] == ["lock_of_dead_process_broken"]
    assert os.listdir(file.parent) == []


def test_a_lock_of_a_living_process_another_machine_or_another_make_is_not_broken(storage, file, time, dead):
    lock = make_lock(storage, LockSettings(provider="filesystem", attempts_more=0))
    for data in (made_by(os.getppid()), made_by(dead, "another boot/pid:[1]"), made_by(dead, ""), b"", b"?"):
        write_foreign(file, time, data)
        with pytest.raises(CommitConflictError, match="is held by"), lock.hold():
            pass
        assert file.read_bytes() == data


def test_of_two_that_break_a_lock_one_succeeds_and_its_own_file_stays(storage, file, time, dead):
    """The second one looked before the first one broke the lock, and takes the first one's own file away."""
    data = made_by(dead)
    write_foreign(file, time, data)
    path = make_lock(storage, NEVER).path
    assert path.break_dead(data)
    assert not path.break_dead(data)
    assert path.create(b"of the first one")
    assert not path.break_dead(data)
    assert file.read_bytes() == b"of the first one"
    assert os.listdir(file.parent) == ["lock"]


def test_a_long_wait_is_a_warning_with_the_age_of_the_lock_itself(storage, file, time, logs):
    write_foreign(file, time, age_ms=3_600_000)
    patient = LockSettings(provider="filesystem", attempts_more=130, pause_ms=1_000)
    with pytest.raises(CommitConflictError), make_lock(storage, patient).hold():
        pass
    told = [entry for entry in logs if entry["event"] == "lock_waits_long"]
    assert [(entry["log_level"], entry["waited_s"]) for entry in told] == [
        ("warning", 30.0),
        ("warning", 60.0),
        ("warning", 120.0),
    ]
    assert {entry["created"] for entry in told} == {"2027-01-15T07:00:00.000+00:00"}  # an hour before the wait began
    assert "another engine" in told[0]["holder"]
    assert "lock break" in told[0]["hint"]


def test_a_short_wait_is_no_warning(storage, file, time, logs):
    write_foreign(file, time)
    time.wakes = [(time.now_ms + 29_000, file.unlink)]
    with make_lock(storage, LockSettings(provider="filesystem", attempts_more=100, pause_ms=1_000)).hold():
        pass
    assert "lock_waits_long" not in [entry["event"] for entry in logs]

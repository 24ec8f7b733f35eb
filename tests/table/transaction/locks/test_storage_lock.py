"""The storage-based lock: takeover, renewal, release, lost answers, and a power cut at every call of the store."""

import json
import uuid

import pytest
from faults import FaultyStorage, Fuse, PowerCut
from lock_time import lock_time
from s3_server import s3_options

from table.errors import CommitConflictError, InvalidConfigError, StorageError
from table.storage.local import LocalStorage
from table.storage.opening import open_storage
from table.transaction.locks import LockProvider, LockSettings, make_lock, storage_lock
from table.transaction.locks.storage_lock import StorageLock
from table.transaction.locks.storage_record import LOCK_PATH, decode_record

VALIDITY_MS, DRIFT_MS, POLL_MS = 10_000, 500, 1_000
SETTINGS = LockSettings(
    provider="storage", storage_validity_s=10, storage_renewal_s=1, wait_ms=20_000, attempts_more=0, pause_ms=0
)
AT_ONCE = LockSettings(provider="storage", storage_validity_s=10, storage_renewal_s=1, wait_ms=1, attempts_more=0)


@pytest.fixture
def time():
    with lock_time() as time:
        yield time


@pytest.fixture(scope="module")
def s3():
    with s3_options() as options:
        yield options


@pytest.fixture(params=["local", "s3"])
def storage(request, tmp_path, monkeypatch):
    if request.param == "local":
        return LocalStorage(str(tmp_path / "t"))
    # A server that is slow because the machine is busy must not make a lock wait: these tests read its clock.
    monkeypatch.setattr(storage_lock, "_REQUESTS_PER_VALIDITY", 0.1)
    return open_storage(f"s3a://lake/{uuid.uuid4()}", request.getfixturevalue("s3"))


@pytest.fixture
def local(tmp_path):
    return LocalStorage(str(tmp_path / "t"))


def record_in(storage):
    return decode_record(storage.read(LOCK_PATH))


def taken(lock):
    """A lock that nobody will release: its process is gone."""
    from table.transaction.locks.patience import Deadline

    grip = lock._take(Deadline(lock.settings.wait_ms))
    assert grip is not None
    return grip


def test_it_is_taken_and_released_as_hudi_does_it(storage, time):
    lock = make_lock(storage, SETTINGS)
    assert lock.is_shared_between_processes
    assert lock.describe() is None
    with lock.hold() as held:
        document = json.loads(storage.read(".hoodie/.locks/table_lock.json"))
        assert document == {"expired": False, "validUntil": time.now_ms + VALIDITY_MS, "owner": lock.owner}
        held.check()
    assert json.loads(storage.read(LOCK_PATH)) == {**document, "expired": True}
    with make_lock(storage, SETTINGS).hold():
        pass


def test_others_wait_and_are_told_who_holds_it(storage, time):
    mine, theirs = make_lock(storage, AT_ONCE), make_lock(storage, SETTINGS)
    with theirs.hold(), pytest.raises(CommitConflictError, match=theirs.owner) as refused, mine.hold():
        pass
    assert "valid until 2027-01-15T08:00:10.000+00:00" in str(refused.value)
    assert "hoodie.write.lock.wait_time_ms" in str(refused.value)


def test_a_lock_left_behind_is_taken_once_nobodys_clock_calls_it_valid(storage, time):
    began_ms = time.now_ms
    taken(make_lock(storage, SETTINGS))
    with make_lock(storage, SETTINGS).hold():
        waited_ms = time.now_ms - began_ms
    assert VALIDITY_MS + DRIFT_MS < waited_ms <= VALIDITY_MS + DRIFT_MS + POLL_MS


def test_a_renewed_lock_is_not_taken(storage, time):
    grip = taken(make_lock(storage, SETTINGS))
    time.wakes = [(time.now_ms + at_ms, grip.renew) for at_ms in range(1_000, 30_000, 1_000)]
    with pytest.raises(CommitConflictError), make_lock(storage, SETTINGS).hold():
        pass


def test_a_release_is_seen_within_a_second(storage, time):
    grip = taken(make_lock(storage, SETTINGS))
    released_ms = time.now_ms + 3_300
    time.wakes = [(released_ms, grip.release)]
    with make_lock(storage, SETTINGS).hold():
        assert 0 <= time.now_ms - released_ms <= POLL_MS


def test_a_paused_holder_that_was_overtaken_finds_out_and_changes_nothing(storage, time):
    slow = make_lock(storage, SETTINGS)
    with slow.hold() as held:
        time.pass_ms(60_000)
        with make_lock(storage, SETTINGS).hold():
            before = storage.read(LOCK_PATH)
            with pytest.raises(CommitConflictError, match="not held any more"):
                held.check()
            with pytest.raises(CommitConflictError, match="not held any more"):
                held.check()
            assert storage.read(LOCK_PATH) == before
    assert record_in(storage).expired


def test_a_release_after_that_releases_nobody_elses_lock(storage, time):
    slow = taken(make_lock(storage, SETTINGS))
    time.pass_ms(60_000)
    with make_lock(storage, SETTINGS).hold() as held:
        slow.release()
        held.check()
        assert not record_in(storage).expired


def test_a_paused_holder_whom_nobody_overtook_goes_on(storage, time):
    with make_lock(storage, SETTINGS).hold() as held:
        time.pass_ms(60_000)
        held.check()
        assert record_in(storage).valid_until_ms == time.now_ms + VALIDITY_MS


def test_a_renewal_that_takes_longer_than_the_validity_does_not_count(local, time):
    class Slow(FaultyStorage):
        takes_ms = 0

        def replace_if(self, *given):
            done = self._inner.replace_if(*given)
            time.pass_ms(self.takes_ms)
            return done

    storage = Slow(local, Fuse())
    with make_lock(storage, SETTINGS).hold() as held:
        storage.takes_ms = VALIDITY_MS - DRIFT_MS - 1
        held.check()
        storage.takes_ms += 1
        with pytest.raises(CommitConflictError, match="let locks be valid for longer"):
            held.check()


def test_a_clock_that_is_set_back_makes_nothing_valid_for_longer(local, time, monkeypatch):
    class SetBack(FaultyStorage):
        on = False

        def replace_if(self, *given):
            done = self._inner.replace_if(*given)
            if self.on:
                monkeypatch.setattr("table.clock.monotonic_s", lambda: time.now_ms / 1000 + 30)
            return done

    storage = SetBack(local, Fuse())
    with make_lock(storage, SETTINGS).hold() as held:
        storage.on = True
        with pytest.raises(CommitConflictError, match="took longer than it is valid"):
            held.check()


class Unanswered(FaultyStorage):
    """A store whose answers to some writes are lost, after or instead of their effect."""

    def __init__(self, inner):
        super().__init__(inner, Fuse())
        self.lost, self.had_effect = 0, True
        self.blind = False

    def replace_if(self, *given):
        if self.lost:
            self.lost -= 1
            if self.had_effect:
                self._inner.replace_if(*given)
            raise StorageError("no answer")
        return self._inner.replace_if(*given)

    def read_versioned(self, *given):
        if self.blind:
            raise StorageError("no answer either")
        return self._inner.read_versioned(*given)


@pytest.mark.parametrize("had_effect", [True, False])
def test_lost_answers_are_settled_by_reading(local, time, had_effect):
    storage = Unanswered(local)
    storage.had_effect = had_effect
    storage.lost = 1
    with make_lock(storage, SETTINGS).hold() as held:
        storage.lost = 1
        time.pass_ms(1)
        if had_effect:
            held.check()
        else:
            with pytest.raises(StorageError, match="no answer"):
                held.check()
        held.check()
        storage.lost = 2
    assert record_in(local).expired
    with make_lock(local, AT_ONCE).hold():
        pass


def test_a_renewal_of_which_nothing_is_known_does_not_count_as_somebody_elses(local, time):
    storage = Unanswered(local)
    with make_lock(storage, SETTINGS).hold() as held:
        for _ in range(2):
            time.pass_ms(1)
            storage.lost, storage.blind = 1, True
            with pytest.raises(StorageError):
                held.check()
            storage.blind = False
            time.pass_ms(1)
            held.check()
        time.pass_ms(1)
        storage.lost, storage.blind = 1, True
        with pytest.raises(StorageError):
            held.check()
        storage.blind = False
    assert record_in(local).expired


def test_an_answer_that_comes_late_to_a_second_attempt_of_the_client_is_settled_by_reading(local, time):
    class Twice(FaultyStorage):
        """The client sends again what was done already, and is told that somebody else did it."""

        def replace_if(self, *given):
            self._inner.replace_if(*given)
            return self._inner.replace_if(*given)

    with make_lock(Twice(local, Fuse()), SETTINGS).hold() as held:
        held.check()
    assert record_in(local).expired


def test_a_taking_of_which_nothing_is_known_is_adopted_by_the_next_attempt(local, time):
    storage = Unanswered(local)
    lock = make_lock(storage, SETTINGS)
    storage.lost = 1
    storage.blind = True
    time.wakes = [(time.now_ms + 2_500, lambda: setattr(storage, "blind", False))]
    storage._inner.replace_if(LOCK_PATH, b'{"expired":true,"validUntil":1,"owner":"x"}', None)
    began_ms = time.now_ms
    read = iter([local.read_versioned(LOCK_PATH)])
    storage.read_versioned = lambda *given: next(read, None) or Unanswered.read_versioned(storage, *given)
    with lock.hold() as held:
        held.check()
        assert time.now_ms - began_ms <= 3_500  # not after its own validity
    assert record_in(local).owner == lock.owner


def test_a_store_that_gives_no_answer_is_named_and_nothing_is_done(local, time, logs):
    storage = Unanswered(local)
    storage.blind = True
    settings = LockSettings(
        provider="storage", storage_validity_s=10, storage_renewal_s=1, wait_ms=5, attempts_more=2, pause_ms=9
    )
    with pytest.raises(StorageError, match="could not be taken: no answer either"), make_lock(storage, settings).hold():
        pytest.fail("it is not held")
    assert [entry["attempt"] for entry in logs if entry["event"] == "lock_not_asked"] == [1, 2, 3]


def test_a_release_that_fails_is_logged_and_the_lock_ends_by_itself(local, time, logs):
    storage = Unanswered(local)
    with make_lock(storage, SETTINGS).hold():
        storage.lost, storage.had_effect = 99, False
    assert [entry["event"] for entry in logs if entry["log_level"] == "warning"] == ["lock_not_released"]
    with make_lock(local, SETTINGS).hold():
        assert not record_in(local).expired


def test_the_thread_that_renews_goes_on_after_an_error_and_stops_once_the_lock_is_lost_or_released(local, time, logs):
    storage = Unanswered(local)
    grip = taken(StorageLock(storage, SETTINGS))
    waits = []

    class Beats:
        def __init__(self, *steps):
            self.steps = list(steps)

        def wait(self, seconds):
            waits.append(seconds)
            time.pass_ms(seconds * 1000)
            return self.steps.pop(0)() is True if self.steps else True

        def is_set(self):
            return False

        def set(self):
            self.steps = []

    def fails():
        storage.lost, storage.had_effect = 1, False

    grip._stopped = Beats(lambda: None, fails, lambda: None)
    (keep,) = time.keepers
    keep()
    assert waits == [1, 1, 1, 1]
    assert [entry["event"] for entry in logs] == ["lock_not_renewed"]
    assert record_in(local).valid_until_ms == time.now_ms - 1_000 + VALIDITY_MS
    time.pass_ms(60_000)
    taken(StorageLock(local, SETTINGS))
    grip._stopped = Beats(*[lambda: None] * 5)
    keep()
    assert len(waits) == 5
    with pytest.raises(CommitConflictError):
        grip.check()


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("at", range(1, 8))
def test_a_power_cut_at_every_call_leaves_a_lock_that_the_next_one_takes_in_time(local, time, at, after):
    fuse = Fuse(at, after)
    lock = make_lock(FaultyStorage(local, fuse), SETTINGS)
    steps = []

    def live():
        with lock.hold() as held:
            steps.append("taken")
            held.check()
            steps.append("checked")
        steps.append("released")

    try:
        live()
    except PowerCut:
        pass
    else:
        assert at > 4  # GET and PUT to take it, PUT to check it, PUT to release it
        assert len(fuse.calls) == 4
        return
    assert at <= 4
    found = local.read_versioned(LOCK_PATH)
    valid_until_ms = decode_record(found.data).valid_until_ms if found is not None else 0
    free = found is None or decode_record(found.data).expired
    assert free or steps != ["released"]
    with make_lock(local, SETTINGS).hold():
        late_ms = time.now_ms - valid_until_ms - DRIFT_MS
        assert free or 0 < late_ms <= POLL_MS


def test_requests_are_as_few_as_can_be(local, time):
    fuse = Fuse()
    lock = make_lock(FaultyStorage(local, fuse), SETTINGS)
    with lock.hold() as held:
        assert [call.split()[0] for call in fuse.calls] == ["read_versioned", "replace_if"]
        held.check()
        held.check()
    assert [call.split()[0] for call in fuse.calls[2:]] == ["replace_if"] * 3


def test_a_server_that_passes_over_conditions_is_refused_and_holds_no_lock(storage, time):
    class Careless(FaultyStorage):
        keeps_conditions = False
        ignores = ()

        def replace_if(self, path, data, version, timeout_s):
            if ("If-None-Match" if version is None else "If-Match") in self.ignores:
                found = self._inner.read_versioned(path)
                version = found and found.version
            return self._inner.replace_if(path, data, version, timeout_s)

    store = Careless(storage, Fuse())
    for ignored in ("If-Match", "If-None-Match"):
        store.ignores = (ignored,)
        with pytest.raises(InvalidConfigError, match=f"passes over the header {ignored}"):
            make_lock(store, SETTINGS).hold().__enter__()
        assert record_in(storage).expired
    store.ignores = ()
    lock = make_lock(store, SETTINGS)
    for _ in range(2):
        with lock.hold() as held:
            held.check()


def test_a_server_is_asked_once_whether_it_heeds_conditions(s3, time, monkeypatch):
    storage = open_storage(f"s3a://lake/{uuid.uuid4()}", s3)
    asked = []
    call = storage._fs._call_s3

    async def counted(method, **given):
        asked.append((method, given.get("IfMatch", "absent") if method == "put_object" else ""))
        return await call(method, **given)

    monkeypatch.setattr(storage._fs, "_call_s3", counted)
    lock = make_lock(storage, SETTINGS)
    with lock.hold():
        assert [method for method, _ in asked] == ["get_object", "put_object", "put_object", "put_object"]
    asked.clear()
    with lock.hold() as held:
        held.check()
    assert [method for method, _ in asked] == ["get_object", "put_object", "put_object", "put_object"]


def test_it_tells_people_what_it_is_and_can_be_broken(storage, time):
    lock = make_lock(storage, SETTINGS)
    with lock.hold() as held:
        state = lock.describe()
        assert (state.provider, state.is_held) == (LockProvider.STORAGE, True)
        assert (state.holder, state.until_ms) == (f"owner {lock.owner}", time.now_ms + VALIDITY_MS)
        operator = make_lock(storage, SETTINGS)
        assert operator.break_lock() == state
        assert operator.break_lock() is None
        broken = operator.describe()
        assert (broken.is_held, broken.note, broken.holder) == (False, "released", state.holder)
        with pytest.raises(CommitConflictError, match="not held any more"):
            held.check()
    taken(make_lock(storage, SETTINGS))
    time.pass_ms(VALIDITY_MS + DRIFT_MS + 1)
    assert lock.describe().note == "expired: its holder gave no sign"
    assert lock.break_lock() is None


def test_a_file_that_is_no_lock_stops_everybody_and_is_replaced_by_breaking_it(local, time):
    local.replace_if(LOCK_PATH, b"?", None)
    lock = make_lock(local, AT_ONCE)
    with pytest.raises(StorageError, match="hudistream lock break"), lock.hold():
        pass
    assert lock.break_lock().note == "the file could not be read"
    with lock.hold():
        pass


def test_a_lock_that_changes_hands_meanwhile_is_not_broken(local, time):
    class Overtaken(FaultyStorage):
        def replace_if(self, path, data, version, timeout_s):
            self._inner.replace_if(path, b'{"expired":false,"validUntil":9999999999999,"owner":"new"}', version)
            return self._inner.replace_if(path, data, version, timeout_s)

    taken(make_lock(local, SETTINGS))
    with pytest.raises(CommitConflictError, match="changed hands"):
        make_lock(Overtaken(local, Fuse()), SETTINGS).break_lock()
    assert record_in(local).owner == "new"


def test_a_store_without_conditional_requests_is_refused_with_the_way_out():
    storage = open_storage(f"memory://{uuid.uuid4()}/t")
    with pytest.raises(InvalidConfigError, match="use a table on S3"):
        make_lock(storage, SETTINGS)
    for call in (lambda: storage.read_versioned("x"), lambda: storage.replace_if("x", b"", None)):
        with pytest.raises(InvalidConfigError, match="use a table on S3"):
            call()

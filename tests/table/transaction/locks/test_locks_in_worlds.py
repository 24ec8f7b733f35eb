"""Random worlds: several processes take a lock whose store loses answers, or delivers what was given up much later.

Clocks differ by half a second, processes stand still and die. Whoever has looked at its lock relies on it for the time
that the lock was renewed for; nobody else may hold it in that time.
"""

import hashlib

import pytest
from simulation.disk import Disk, SimStorage
from simulation.world import Process, World

from table.errors import HudiError, StorageError
from table.storage.versions import VersionedFile
from table.transaction.locks import LockSettings
from table.transaction.locks.dynamodb_lock import DynamodbLock
from table.transaction.locks.dynamodb_row import LockRow
from table.transaction.locks.provider import CLOCK_DRIFT_MS
from table.transaction.locks.storage_lock import StorageLock

VALIDITY_MS = 10_000
WRITERS, HOLDS = 3, 3


class Network:
    """Requests that lose their answers, are lost, or arrive long after they were given up.

    Args:
        world: where it is.
        rate: share of requests to which that happens.
    """

    def __init__(self, world, rate):
        self._world, self._rate = world, rate

    def send(self, process, label, effect):
        world, luck = self._world, self._world.random
        world.point(label)
        if luck.random() >= self._rate:
            answer = effect()
            world.point(f"answer to {label}")
            return answer
        fate = luck.choice(["lost", "unanswered", "late"])
        world.tell(f"{label}: {fate}")
        if fate == "unanswered":
            effect()
        elif fate == "late":
            arrives_ms = world.now_ms + luck.randrange(1, 3 * VALIDITY_MS)
            late = Process("the network")

            def arrive():
                world.wait(lambda: False, "under way", arrives_ms)
                effect()

            world.start(late, f"late {label}", arrive, daemon=True)
        world.wait(lambda: False, f"no answer to {label}", world.now_ms + luck.randrange(1, 2_000))
        raise StorageError("no answer")


class VersionedDisk(SimStorage):
    """Objects whose version is a digest of their content, as on S3."""

    def __init__(self, disk, process, network):
        super().__init__(disk, process)
        self._network = network

    has_versions = True

    def _version(self, path):
        found = self.disk.files.get(path)
        return None if found is None else hashlib.md5(found[0]).hexdigest()

    def read_versioned(self, path, timeout_s=60.0):
        def effect():
            version = self._version(path)
            return None if version is None else VersionedFile(self.disk.files[path][0], version)

        return self._network.send(self.process, "GET", effect)

    def replace_if(self, path, data, version, timeout_s=60.0):
        def effect():
            if self._version(path) != version:
                return None
            self.disk.set(path, data)
            return self._version(path)

        return self._network.send(self.process, "PUT", effect)


class SimLockTable:
    """A row of DynamoDB with its conditions; what `LockTable` makes of answers is written down here once more."""

    def __init__(self, rows, process, network):
        self._rows, self._process, self._network = rows, process, network

    def ensure(self):
        pass

    def read(self):
        return self._network.send(self._process, "GetItem", lambda: self._rows.get("t"))

    def _write(self, label, allowed, then):
        def effect():
            if not allowed(self._rows.get("t")):
                return False
            self._rows["t"] = then
            return True

        failure = None
        try:
            if self._network.send(self._process, label, effect):
                return True
        except StorageError as error:
            failure = error
        if self.read() == then:
            return True
        if failure is not None:
            raise failure
        return False

    def take(self, row, seen):
        return self._write("PutItem", lambda found: found == seen, row)

    def renew(self, held, number):
        return self._write("UpdateItem", lambda found: found == held, LockRow(held.owner, held.lease_ms, number))

    def release(self, held):
        then = LockRow(held.owner, held.lease_ms, held.number, is_released=True)
        return self._write("UpdateItem", lambda found: found == held, then)


def storage_locks(world, network):
    disk = Disk(world)
    settings = LockSettings(
        provider="storage", storage_validity_s=10, storage_renewal_s=1, wait_ms=20_000, attempts_more=2, pause_ms=100
    )
    return lambda process: StorageLock(VersionedDisk(disk, process, network), settings)


def dynamodb_locks(world, network):
    rows = {}
    settings = LockSettings(provider="dynamodb", dynamodb_table="l", wait_ms=VALIDITY_MS, attempts_more=2, pause_ms=100)
    return lambda process: DynamodbLock("t", settings, lambda *_: SimLockTable(rows, process, network))


def misfortune(world, actor, label):
    """A process stands still, or dies."""
    if world.random.random() < 0.008:
        actor.process.paused_until = world.now_ms + world.random.randrange(1, 2 * VALIDITY_MS)
        world.tell(f"{actor.process.name} stands still")
    elif world.random.random() < 0.001 and actor.process.name != "the network":
        actor.process.killed = True
        world.tell(f"{actor.process.name} dies")


def run_world(seed, make_locks, rate):
    """Returns how often a lock was taken and looked at, and what went wrong for whom."""
    world = World(seed)
    network = Network(world, rate)
    lock_for = make_locks(world, network)
    relies, counts = {}, {"taken": 0, "checked": 0, "lost": 0, "not taken": 0}

    def inside(process, held):
        relies[process.name] = held._trusted_until_s * 1000  # what the lock says of how long it may be relied on
        who = [name for name, until_ms in relies.items() if until_ms > world.now_ms]
        if len(who) > 1:
            world.violate(f"{' and '.join(who)} rely on the lock at the same time")

    def use(process, held):
        inside(process, held)
        for _ in range(2):
            world.sleep_s(world.random.random() * 8)
            held.check()
            counts["checked"] += 1
            inside(process, held)

    def live(process):
        def run():
            lock = lock_for(process)
            for _ in range(HOLDS):
                try:
                    with lock.hold() as held:
                        counts["taken"] += 1
                        try:
                            use(process, held)
                        finally:
                            relies.pop(process.name, None)
                except StorageError:
                    counts["not taken"] += 1
                except HudiError:
                    counts["lost"] += 1

        return run

    for number in range(WRITERS):
        process = Process(f"writer {number}", skew_ms=world.random.randrange(0, CLOCK_DRIFT_MS + 1))
        world.start(process, process.name, live(process))
    world.faults.append(misfortune)
    world.run()
    return counts


KINDS = {"storage": storage_locks, "dynamodb": dynamodb_locks}


@pytest.mark.parametrize("kind", KINDS)
def test_nobody_holds_a_lock_that_somebody_else_relies_on(kind):
    total = {}
    for seed in range(40):
        try:
            counts = run_world(seed, KINDS[kind], rate=0.05 * (seed % 4))
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {error}") from error
        total = {name: total.get(name, 0) + count for name, count in counts.items()}
    assert min(total.values()) > 2, total


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_nobody_holds_a_lock_that_somebody_else_relies_on_in_many_worlds(kind):
    for seed in range(1_000, 3_000):
        try:
            run_world(seed, KINDS[kind], rate=0.05 * (seed % 6))
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {error}") from error

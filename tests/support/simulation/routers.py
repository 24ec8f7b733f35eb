"""A router as an actor: one stream into several tables, some of which fail now and then.

The router is the product's own, without Spark: the pieces of a batch are made here. Each table is a disk of its own,
and so is the router's folder. What is promised: after a batch was acknowledged, each of its rows is in its table once,
or waits; rows of a table come in the order of the batches; in the end nothing waits.
"""

import random
from collections import Counter
from types import SimpleNamespace
from unittest import mock

import pyarrow as pa

from streaming import hudi_router
from streaming.batch.workers import Batch
from streaming.hudi_router import HudiRouter
from streaming.router.aside import OWN_FOLDER, put_into_file
from streaming.router.split import Piece
from streaming.router.template import RouterLimits
from table.errors import HudiError, InvalidConfigError

from .actors import BASE, to_table
from .disk import Disk, SimStorage
from .reader import read_visible
from .world import Killed, Process, World

TABLES = {"added": "insert", "changed": "upsert", "both": "upsert"}
QUERY = "routed"


class Place:
    """The folder around the tables, as one process sees it."""

    base_uri = "lake"

    def __init__(self, disks, process, rates):
        self._disks, self._process, self._rates = disks, process, rates

    def below(self, name):
        return SimStorage(self._disks[name], self._process, self._rates.get(name, 0.0))

    def exists(self, path):
        name, _, below = path.partition("/")
        return below in self._disks[name].files


class SimRouter(HudiRouter):
    """A router whose batches are dictionaries: table -> rows as of `to_table`."""

    @staticmethod
    def start(disks, process, rates, luck, kind):
        with mock.patch.object(hudi_router, "open_storage", return_value=Place(disks, process, rates)):
            options = {**BASE, "hoodie.datasource.write.table.type": kind}
            each = {name: {"hoodie.datasource.write.operation": operation} for name, operation in TABLES.items()}
            limits = RouterLimits(services=100, idle_s=luck.choice((0.0, 60.0)))
            columns = {"key": "id", "partition_by": "p"}
            router = SimRouter("lake", "table", options, tables=each, limits=limits, **columns)
        router.luck, router._sorter.split = luck, router._split
        return router

    def _open_engine(self):
        self._engine = SimpleNamespace(
            open_micro_batch=lambda _, batch_id: Batch(None, batch_id, QUERY), is_over=lambda _: False
        )
        return self._engine

    def _split(self, batch, _batch_id):
        pieces = []
        for name, rows in batch.tables.items():
            table, sink = to_table(rows), pa.BufferOutputStream()
            with pa.ipc.new_stream(sink, table.schema) as writer:
                writer.write_table(table)
            data = sink.getvalue().to_pybytes()
            piece = Piece(name, table.num_rows, table.nbytes, frozenset(table.schema.names), None, data)
            pieces.append(put_into_file(self._storage, piece) if self.luck.random() < 0.5 else piece)
        return pieces, QUERY


class Routed:
    """A query whose router dies and is started again; it replays what it does not know to be done."""

    def __init__(self, world, disks, luck, count):
        self.world, self.disks, self.luck = world, disks, luck
        self.kind = world.random.choice(("COPY_ON_WRITE", "MERGE_ON_READ"))
        self.batches = [self._draw(number) for number in range(count)]
        self.committed, self.incarnation = 0, 0
        world.start(Process("cluster"), "supervisor", self._supervise)

    def _draw(self, number):
        """New rows for one table, changes of the same few rows for another, both for the third."""
        r = self.world.random
        new = {f"n{number:03d}-{each}": ("p", str(number)) for each in range(2)}
        changed = {f"k{each}": ("p", str(number)) for each in r.sample(range(4), 2)}
        rows = {"added": new, "changed": changed, "both": {**new, **changed}}
        return {name: of_table for name, of_table in rows.items() if r.random() < 0.8}

    def _supervise(self):
        world = self.world
        while self.committed < len(self.batches):
            self.incarnation += 1
            process = Process(f"driver-r{self.incarnation}", skew_ms=self.luck.skew())
            actor = world.start(process, process.name, lambda p=process: self._drive(p), daemon=True)
            world.wait(lambda a=actor, p=process: a.done or p.killed, "driver")
            if process.killed:
                world.tell(f"{process.name} is dead")
                world.sleep_s(world.random.random() * 0.4)
            if actor.error is not None and not isinstance(actor.error, HudiError):
                return world.violate(f"the router ended with {actor.error!r}")
        world.calm = True
        process = Process("driver-last")
        actor = world.start(process, process.name, lambda: self._drain(process), daemon=True)
        world.wait(lambda: actor.done, "driver")
        if actor.error is not None:
            return world.violate(f"the router ended with {actor.error!r}")
        return self.check(len(self.batches), waits=False)

    def _rates(self):
        """Which table fails, and how often: another one with each driver."""
        r = self.world.random
        rates = dict.fromkeys([*TABLES, OWN_FOLDER], self.luck.rate)
        return rates | {r.choice(sorted(TABLES)): r.choice((0.0, 0.05, 0.3))}

    def _drive(self, process):
        world = self.world
        router = SimRouter.start(self.disks, process, self._rates(), random.Random(world.random.random()), self.kind)
        try:
            for _ in range(world.random.randrange(1, 8)):  # then the query is stopped and started again
                if self.committed == len(self.batches) or not self._write(router, process):
                    break
        finally:
            if not process.killed:
                process.writes_on = False
                router.stop()

    def _write(self, router, process):
        number = self.committed
        try:
            router(SimpleNamespace(sparkSession=None, tables=self.batches[number]), number)
        except InvalidConfigError:
            raise
        except HudiError as error:
            self.world.tell(f"batch {number} fails: {type(error).__name__} {error}"[:200])
            return False
        if process.killed:
            raise Killed
        self.committed = max(self.committed, number + 1)
        self.world.tell(f"batch {number} of the router is done; waits: {sorted(router.failing)}")
        self.check(number + 1, waits=True)
        return True

    def _drain(self, process):
        """Batches without rows until nothing waits."""
        router = SimRouter.start(self.disks, process, {}, random.Random(0), self.kind)
        number = len(self.batches)
        for _ in range(40):
            try:
                router(SimpleNamespace(sparkSession=None, tables={}), number)
                number += 1
                if not router.failing:
                    break
            except HudiError as error:  # a driver that stands still holds the tables until it counts as dead
                self.world.tell(f"the last batches fail: {error}"[:200])
            self.world.sleep_s(1)
        else:
            self.world.violate(f"rows wait for ever: {router.failing}")
        router.stop()

    def check(self, count, *, waits):
        """Compares each table with the first batches of the query.

        Args:
            count: how many batches were acknowledged.
            waits: whether rows may wait: a table may then have the rows of fewer batches, from the first on.
        """
        for name in TABLES:
            rows = Counter(read_visible(self.disks[name].files)) if self.disks[name].files else Counter()
            states = [{}]
            for batch in self.batches[: self.committed + 1]:
                held = dict(states[-1])
                held.update({(key, None): value for key, (_, value) in batch.get(name, {}).items()})
                states.append(held)
            shown = {(key, None): value for key, value in rows}
            doubled = [row for row, often in rows.items() if often > 1] or len(shown) != sum(rows.values())
            if doubled:
                self.world.violate(f"table {name} has rows twice: {sorted(rows)[:6]}")
            waiting = self._waiting(name)
            least = count if not waits else min([count, *waiting])
            if not any(shown == state for state in states[least:]):
                self.world.violate(
                    f"table {name} fits none of {least} to {len(states) - 1} batches; {sorted(waiting)} wait; "
                    f"it shows {sorted(shown.items())[:12]}"
                )

    def _waiting(self, name):
        start = f"aside/{name}/"
        files = self.disks[OWN_FOLDER].files
        return [int(path[len(start) :].partition("-")[0]) for path in files if path.startswith(start)]


def build_routed(seed):
    """A world of one router and three tables."""
    from .worlds import Faults, choose_luck

    world = World(seed)
    luck = choose_luck(world)
    luck.rate = min(luck.rate, 0.01)
    luck.longest_pause_ms = world.random.choice((2_500, 10_000))
    world.faults.append(Faults(luck, 10))
    fence = world.random.choice(("folders", "tickets"))
    disks = {name: Disk(world, fence) for name in (*TABLES, OWN_FOLDER)}
    Routed(world, disks, luck, world.random.randrange(4, 12))
    return world, Silent()


class Silent:
    """The router's worlds are looked at batch by batch."""

    def check(self, _when):
        """Nothing is left to look at."""

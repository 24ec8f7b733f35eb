"""A reader of ours: it plans a scan, pins the snapshot, waits for long, and then needs the files."""

from table.config.table_config import load_table_config
from table.errors import HudiError, InvalidConfigError
from table.hudi_table import HudiTable
from table.scan import pinned
from table.scan.pinned import plan_pinned
from table.scan.plan import plan_scan

from .disk import SimStorage
from .reader import has_rows, rows_held
from .world import Process


class PinnedReader:
    """Reads the newest snapshot, or one of the last; some die with their pins, which expire.

    What a pin holds stays, however many commits follow, until it expires. For worlds where nobody undoes commits by
    hand: that takes files from every reader.
    """

    LIFETIME_S = 30

    def __init__(self, world, disk, rate, name="read", pause_s=0.3, keys=None):
        self.world, self.disk, self.rate, self.name, self.pause_s = world, disk, rate, name, pause_s
        self.keys = keys  # that every snapshot has; None: that is not known
        pinned._tell_once.cache_clear()  # a world does not depend on those before it
        world.start(Process(f"{name}ers"), f"{name}ers", self._run, daemon=True)

    def _run(self):
        world, number = self.world, 0
        while True:
            world.sleep_s(world.random.random() * self.pause_s)
            number += 1
            process = Process(f"{self.name}{number}")
            actor = world.start(process, process.name, lambda p=process: self._read(p), daemon=True)
            world.wait(lambda a=actor, p=process: a.done or p.killed, "read")
            if actor.error is not None and not isinstance(actor.error, HudiError):
                raise actor.error

    def _read(self, process):
        world = self.world
        storage = SimStorage(self.disk, process, self.rate)
        config = load_table_config(storage)
        if config is None:
            return
        table = HudiTable(storage, config)
        commits = [instant.time for instant in table.load_timeline().completed_writes][-3:]
        as_of = world.random.choice([None, *commits])
        begun_ms = world.now_ms
        try:
            plan, pin = plan_pinned(table, lambda: plan_scan(table, as_of=as_of), self.LIFETIME_S)
        except InvalidConfigError:
            return  # cleaning has taken, or is about to take, what the snapshot needs
        if self.keys is not None and plan.as_of is not None:
            self._check_keys(plan)
        if not pin.is_held:
            return  # the store refused the pin, which is told, or there is nothing to read
        files = self.disk.files
        needed = [file.path for found in plan.slices for file in found.files]
        # a log file of a write that failed is deleted with it, and no reader misses it
        logs = [path for path in needed if ".log." in path and path in files and has_rows(files, path, plan.as_of)]
        needed = [*logs, *(path for path in needed if ".log." not in path)]
        for _ in range(world.random.randrange(40)):
            world.point("reads behind a pin")
            if world.now_ms - begun_ms > self.LIFETIME_S * 1000:
                break
            missing = [path for path in needed if path not in self.disk.files]
            if missing:
                world.violate(f"a reader that pinned {plan.as_of} lost {missing[0]}")
        if world.random.random() < 0.8:
            pin.release()

    def _check_keys(self, plan):
        """The folders showed every file of the snapshot; those that were deleted since are not looked into."""
        files = self.disk.files
        needed = {file.path for found in plan.slices for file in found.files}
        if needed <= files.keys():
            gone = self.keys - {key for key, _ in rows_held(files, needed, plan.as_of)}
            if gone:
                self.world.violate(f"a reader of {plan.as_of} does not see {min(gone)}")

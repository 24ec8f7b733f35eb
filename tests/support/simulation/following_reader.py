"""A reader of ours that follows the table by its changes: what it holds has to be what a scan shows."""

from table.config.table_config import load_table_config
from table.errors import HudiError, InvalidConfigError
from table.hudi_table import HudiTable
from table.scan.change_range import EARLIEST
from table.scan.feed.choices import FeedChoices
from table.scan.feed.feed import ChangeFeed
from table.scan.scan import make_scan

from .disk import SimStorage
from .world import Process


class FollowingReader:
    """Applies the changes behind its position to its rows, and compares them with the snapshot at the end.

    Where the changes cannot be read any more, it begins anew: that must be told, and never be a shorter answer. For
    worlds where nobody undoes commits by hand.
    """

    def __init__(self, world, disk, rate, name="follower", pause_s=0.1):
        self.world, self.disk, self.rate, self.name, self.pause_s = world, disk, rate, name, pause_s
        self.position, self.held = EARLIEST, {}
        self.applied = 0  # ranges that did not begin anew
        world.start(Process(name), name, self._run, daemon=True)

    def _run(self):
        while True:
            self.world.sleep_s(self.world.random.random() * self.pause_s)
            try:
                self._read()
            except HudiError:
                self.position, self.held = EARLIEST, {}

    def _read(self):
        storage = SimStorage(self.disk, Process(self.name), self.rate)
        config = load_table_config(storage)
        if config is None:
            return
        table = HudiTable(storage, config)
        since, until = self.position, ChangeFeed(table, self.position).position
        if until is None or until == since:
            return
        each = since != EARLIEST and self.world.random.random() < 0.5
        choices = FeedChoices(before=True, each_commit=each)
        rows = ChangeFeed(table, since, until, choices=choices).to_arrow().to_pylist()
        held = dict(self.held)
        for row in rows:
            self._apply(held, row, f"from {since} to {until}")
        self.position, self.held = until, held
        self.applied += since != EARLIEST
        self._compare(table, until)

    def _apply(self, held, row, where):
        operation, before = row.pop("_change_operation"), row.pop("_change_before")
        row.pop("_change_instant")
        key = row["id"]
        if held.get(key) != before:
            self.world.violate(f"{operation} of {key} {where}: the row before is {before}, and was {held.get(key)}")
        if operation == "d":
            del held[key]
        else:
            held[key] = row

    def _compare(self, table, until):
        try:
            found = make_scan(table, as_of=until).to_arrow().to_pylist()
        except InvalidConfigError:
            return  # cleaned meanwhile; what is held is compared with the next snapshot
        if {row["id"]: row for row in found} != self.held:
            self.world.violate(f"a follower holds other rows than the snapshot {until} at {self.world.now_ms}")

"""A process that forks: its child holds a copy of the sink, and of the parent's lease with it."""

import copy

from .actors import Stream
from .world import Killed


class Forked(Stream):
    """A stream of a child. It writes with the sink of its parent first, and with one of its own after a refusal.

    What is not copied by a fork is not here either: threads, and what the parent does afterwards.

    Args:
        parent: the stream whose driver is forked, once it holds the table.
        args: of `Stream`.
    """

    def __init__(self, parent, *args):
        self.parent = parent
        super().__init__(*args)

    def _drive(self, process, executors):
        world, parent = self.world, self.parent
        world.wait(lambda: process.killed or parent.holds_table() or parent.is_done(), "fork")
        if process.killed:
            raise Killed
        super()._drive(process, executors)

    def _started(self, engine):
        held = self.parent.engine
        if held is None or self.parent.is_done():
            return
        own, inherited = engine.writer.lease, copy.copy(held.writer.lease)
        inherited._storage, inherited._thread, inherited._process = own._storage, None, -1
        engine.writer.lease = inherited
        self.world.tell(f"{engine.process.name} has the sink of its parent")

    def _refused(self, engine):
        """Makes a sink of its own, as the error says."""
        if getattr(engine.writer.lease, "_process", None) == -1:
            make = type(engine.writer.lease)
            engine.writer.lease = make(engine.writer._storage, engine.writer._options.heartbeat)

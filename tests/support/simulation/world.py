"""The scheduler: actors are threads, of which one runs at a time; who is next is the seed's choice.

Each storage call, sleep, lock and look at the clock is a point (`World.point`) where somebody else may
run, a process may die, or an actor may be delayed for long. Time is the world's own.
"""

import gc
import random
import sys
import threading
import uuid
from concurrent.futures import Executor, Future
from contextlib import contextmanager, nullcontext
from functools import partial
from unittest import mock

from table import clock, threads
from table.index.key_cache import ProcessCaches
from table.options.groups import HeartbeatSettings

SWITCH = 0.35  # how often another actor runs after a point
STEPS_MOST = 60_000
START_MS = 1_780_000_000_000


_start_thread = threads.start_thread


class Killed(BaseException):
    """The process is dead: whatever is caught and whatever is cleaned up has no effect any more."""


class ViolationError(AssertionError):
    """An invariant does not hold."""


class Process:
    """What dies together: a driver with its threads, or the executors.

    Attributes:
        name: for the story.
        skew_ms: how far its clock is off.
        killed: whether it is dead.
        writes_on: whether it has more batches to write. What it left behind may be ended by others, if not.
        paused_until: world time until which none of its threads runs.
    """

    def __init__(self, name, skew_ms=0):
        self.name, self.skew_ms, self.killed, self.paused_until = name, skew_ms, False, 0
        self.writes_on = True


class Actor:
    """One thread of a process."""

    def __init__(self, world, process, name, run, daemon):
        self.world, self.process, self.name, self.daemon = world, process, name, daemon
        self.wake_ms, self.blocked, self.done, self.error = 0, None, False, None
        self.deadline_ms = None
        self.delay_next = 0  # fault: the actor is delayed for so long at its next point
        self._turn = threading.Semaphore(0)
        self._thread = threading.Thread(target=self._main, args=(run,), name=name, daemon=True)
        self._started = False

    def _main(self, run):
        self._turn.acquire()
        try:
            if not self.world.over:
                run()
        except Killed:
            pass
        except BaseException as error:  # the world is told
            self.error = error
        self.done = True
        if not self.world.ends:
            self.world._hand_over(None)

    def resume(self):
        """Lets the actor's thread go on."""
        if not self._started:
            self._started = True
            self._thread.start()
        self._turn.release()

    def wait_turn(self):
        """Called in the actor's own thread: until it is chosen again."""
        self._turn.acquire()

    def is_ready(self, now_ms):
        """Whether it can run."""
        if self.done:
            return False
        if self.process.killed:
            return True  # it runs to its end: nothing it does has an effect
        if self.process.paused_until > now_ms or self.wake_ms > now_ms:
            return False
        if self.deadline_ms is not None and now_ms >= self.deadline_ms:
            return True
        return self.blocked is None or self.blocked()

    # what `threads.start_thread` gives
    def join(self):
        self.world.wait(lambda: self.done, f"join {self.name}")

    def is_alive(self):
        return not self.done


class World:
    """Actors, time and luck of one run.

    Args:
        seed: decides everything.
    """

    def __init__(self, seed):
        self.seed, self.random = seed, random.Random(seed)
        self.now_ms, self.steps, self.calm, self.over = START_MS, 0, False, False
        self.ends = False  # `run` itself lets the last actors end, one after the other: they choose none
        self.actors, self.story, self.checks = [], [], []
        self._current, self._number = None, 0
        self._main = threading.Semaphore(0)
        self.violation = None
        self.faults = []  # callables (world, actor, label) that may kill or delay

    # -- time, ids

    def skewed_ms(self):
        self.point("clock")
        return self.now_ms + (self._current.process.skew_ms if self._current else 0)

    def monotonic_s(self):
        return self.now_ms / 1000

    def sleep_s(self, seconds):
        if self._is_outside():
            return
        self._current.wake_ms = self.now_ms + int(seconds * 1000)
        self.point("sleep", forced=True)

    def jitter(self):
        return 0.5 if self._is_outside() else self.random.random()

    def _is_outside(self):
        """Whether a thread asks that is no actor: one that an earlier test left must not change what happens here."""
        return self._current is None or threading.current_thread() is not self._current._thread

    def uuid(self):
        if self._current is not None and self._is_outside():
            return str(uuid.uuid4())
        self._number += 1
        return f"{self.random.getrandbits(32):08x}-{self._number:04d}-0000-0000-000000000000"

    # -- actors

    def start(self, process, name, run, daemon=False):
        """Adds an actor."""
        actor = Actor(self, process, name, run, daemon)
        self.actors.append(actor)
        return actor

    def tell(self, what):
        """A line of the story."""
        who = self._current.name if self._current else "world"
        self.story.append(f"{self.steps:5d} {self.now_ms - START_MS:7d} ms  {who}: {what}")

    @property
    def current(self):
        return self._current

    def point(self, label, *, forced=False):
        """A place where somebody else may run."""
        me = self._current
        if self._is_outside():
            return  # set-up and checks
        if me.process.killed or self.over:
            raise Killed
        self.steps += 1
        if self.random.random() < 0.3:
            self.now_ms += self.random.randrange(1, 4)
        for fault in self.faults:
            fault(self, me, label)
        if self.steps > STEPS_MOST:
            self.violation = self.violation or ViolationError("livelock: the world does not come to an end")
            self.over = True
        if forced or self.over or me.process.killed or me.delay_next or self.random.random() < SWITCH:
            if me.delay_next:
                me.wake_ms, me.delay_next = self.now_ms + me.delay_next, 0
            self._hand_over(me)
        if me.process.killed or self.over:
            raise Killed

    def wait(self, condition, label, deadline_ms=None):
        """Blocks the actor until the condition holds, or the time has come."""
        me = self._current
        if me is None:
            assert condition()
            return
        if condition():
            self.point(label)
            return
        me.blocked, me.deadline_ms = condition, deadline_ms
        self.point(label, forced=True)
        me.blocked = me.deadline_ms = None

    def take(self, is_free, label):
        """Blocks the actor until what it wants is free, and no other actor has run since."""
        while True:
            self.wait(is_free, label)
            if self._current is None or is_free():
                return

    def _hand_over(self, me):
        """Chooses who runs next; returns when `me` is chosen again (None: the caller has ended)."""
        chosen = self._choose()
        if chosen is me and me is not None:
            return
        self._current = chosen
        if chosen is None:
            self._main.release()
        else:
            chosen.resume()
        if me is not None:
            me.wait_turn()

    def _choose(self):
        while True:
            live = [actor for actor in self.actors if not actor.done]
            if self.over:
                return live[0] if live else None
            if not any(not actor.daemon for actor in live):
                return None
            ready = [actor for actor in live if actor.is_ready(self.now_ms)]
            if ready:
                return ready[self.random.randrange(len(ready))]
            later = [at for a in live for at in (a.wake_ms, a.process.paused_until, a.deadline_ms or 0)]
            later = [at for at in later if at > self.now_ms]
            if not later:
                self.violation = self.violation or ViolationError(
                    "deadlock: " + ", ".join(f"{a.name}" for a in live if not a.daemon)
                )
                self.over = True
                continue
            self.now_ms = min(later)

    def run(self):
        """Runs until every actor that counts has ended. Raises the first violation."""
        with self._patched(), _without_collector():
            self._current = self._choose()
            if self._current is not None:
                self._current.resume()
                self._main.acquire()
            self._current = None
            self.over = self.ends = True
            for actor in self.actors:  # daemons end now
                if not actor.done and actor._started:
                    self._current = actor
                    actor.resume()
                    actor._thread.join(10)
            self._current = None
        if self.violation is not None:
            raise self.violation
        for actor in self.actors:
            if actor.error is not None:
                raise actor.error

    def violate(self, what):
        """Ends the world with a violation."""
        if self.violation is None:
            self.violation = ViolationError(what)
            self.tell(f"VIOLATION {what}")
        self.over = True

    @contextmanager
    def _patched(self):
        with (
            mock.patch.multiple(
                clock,
                now_ms=self.skewed_ms,
                monotonic_s=self.monotonic_s,
                sleep_s=self.sleep_s,
                fresh_uuid=self.uuid,
                jitter=self.jitter,
            ),
            mock.patch.multiple(
                threads,
                start_thread=self._start_thread,
                make_pool=lambda size, name: _Pool(self),
                run_together=self._run_together,
                make_signal=lambda: _Signal(self),
                make_lock=lambda: _Lock(self),
                current_thread=lambda: self._current,
            ),
            mock.patch("streaming.batch.micro_batch.weakref.finalize"),
            # no world remembers another one's files, and what a cache does is no point at which actors meet
            mock.patch("table.index.key_cache._of_process", ProcessCaches(nullcontext())),
            # the provider that options name is asked for nothing but the lock
            mock.patch("table.transaction.lock.make_lock", lambda storage, _settings: storage.disk.lock),
            mock.patch(  # what dies here lets go of nothing
                "table.transaction.lease.HeartbeatSettings", return_value=HeartbeatSettings(300)
            ),
        ):
            yield

    def _start_thread(self, target, name, *, daemon=False):
        if self._is_outside():
            return _start_thread(target, name, daemon=daemon)
        process = self._current.process
        self._number += 1
        return self.start(process, f"{process.name}/{name.split('-')[1]}{self._number}", target, daemon=True)

    def _run_together(self, calls):
        """Each call but the last is an actor of its own, so that their points come in every order."""
        if self._is_outside():
            return [call() for call in calls]
        process, answers = self._current.process, [None] * len(calls)

        def ask(place):
            try:
                answers[place] = (calls[place](), None)
            except Exception as error:
                answers[place] = (None, error)

        for place in range(len(calls) - 1):
            self._number += 1
            self.start(process, f"{process.name}/call{self._number}", partial(ask, place), daemon=True)
        ask(-1)
        self.wait(lambda: all(answers), "together")
        for _, error in answers:
            if error is not None:
                raise error
        return [answer for answer, _ in answers]


@contextmanager
def _without_collector():
    """A sink of an earlier test that is collected in an actor's thread would draw from the world's luck."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


class _Pool(Executor):
    """A pool that does its work at once, in the caller's thread: each call is a point anyway."""

    def __init__(self, world):
        self._world = world

    def submit(self, function, /, *args, **kwargs):
        future = Future()
        try:
            future.set_result(function(*args, **kwargs))
        except Exception as error:
            future.set_exception(error)
        return future


class _Signal:
    def __init__(self, world):
        self._world, self._is_set = world, False

    def set(self):
        self._is_set = True

    def is_set(self):
        return self._is_set

    def wait(self, timeout=None):
        world = self._world
        if timeout is None:
            world.wait(lambda: self._is_set, "signal")
        else:
            world.wait(lambda: self._is_set, "signal", world.now_ms + int(timeout * 1000))
        return self._is_set


class _Lock:
    def __init__(self, world):
        self._world, self._held = world, False

    def __enter__(self):
        self._world.take(lambda: not self._held, "lock")
        self._held = True
        return True

    def __exit__(self, *exc_info):
        self._held = False


def caller():
    """Where in the project a point was reached: for the story."""
    frame = sys._getframe(1)
    while frame and "simulation" in frame.f_code.co_filename:
        frame = frame.f_back
    return f"{frame.f_code.co_name}" if frame else "?"

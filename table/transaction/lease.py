"""The lease, by which one writer holds a table exclusively (rule 7 of docs/concepts/safety.md).

::

    .hoodie/.hudistream/lease/<n>       the holder of the table; the greatest n counts; created if absent
    .hoodie/.hudistream/alive/<owner>   touched by its owner alone; its age is the time since the last sign

A writer that takes the table over creates record n + 1; of two writers that try, one succeeds. The record that counts
is never overwritten, so a process that wakes up late cannot take back a lease that it has lost. What it was about to
change in the properties is withdrawn by whoever takes the table (`table.config.held_change`). An age is the difference
between two modification times of the store: that of the owner's file, and that of a file just written. So no machine's
clock matters.
"""

import os
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from typing import NoReturn

from table import clock
from table.config.held_change import withdraw_change
from table.errors import (
    BrokenInvariantError,
    CommitOutcomeUnknownError,
    InvalidConfigError,
    StorageError,
    TableHeldError,
)
from table.log import get_logger
from table.options.groups import HeartbeatSettings
from table.storage.interface import OWN_FOLDER, Storage, join
from table.transaction.heartbeat import WriterIdentity
from table.transaction.keeper import Keeper
from table.transaction.lease_record import (
    LeaseRecord,
    decode_lease,
    describe_holder,
    is_dead_here,
    this_machine,
    this_process,
)
from table.transaction.liveness import Beside
from table.transaction.register import Register
from table.transaction.signs import forget_sign, list_signs, measure_age_ms, still_counts

LEASE_FOLDER = join(OWN_FOLDER, "lease")
COMMANDS = "hudistream "
"""What the names of commands that hold a table begin with."""
_TRIES, _FORGOTTEN_AFTER = 20, 10  # the latter in durations of a lease

log = get_logger("hudistream.lease")


def find_holder(storage: Storage) -> LeaseRecord | None:
    """The record of the table's holder; None if no writer ever held the table."""
    last = Register(storage, LEASE_FOLDER).find_last()
    return decode_lease(last.number, last.data) if last is not None else None


def may_take_over(
    holder: LeaseRecord | None,
    me: WriterIdentity,
    age_ms: Callable[[str | None], int | None],
    expiry_ms: int,
    granularity_ms: int,
    is_over: Callable[[WriterIdentity], bool] = lambda _: False,
) -> bool:
    """Whether a table is free for a writer (pure, but for the functions that it is given).

    A table is free when no writer holds it, when the holder has given no sign for the duration of its lease, when the
    holder's process is known to be dead, when the holder is an earlier run of the same streaming query (the end
    records protect against tasks of it that still run), or when the holder is a sink of this process that runs no batch
    and whose query has ended. A record that cannot be read may be of a later version. Its holder counts as alive as
    long as any other writer gives a sign.

    Args:
        holder: the record of the holder; None if no writer ever held the table.
        me: the writer that wants the table.
        age_ms: says how long ago an owner gave a sign; for None, how long ago any other writer gave one.
        expiry_ms: how long a lease lasts.
        granularity_ms: as of `still_counts`.
        is_over: says whether the streaming query of a writer in this process has ended.
    """
    if holder is None or holder.is_released:
        return True
    if holder.identity is None:
        return not still_counts(age_ms(None), expiry_ms, granularity_ms)
    if holder.identity.owner == me.owner:
        return True
    if holder.identity.is_same_stream(me) or is_dead_here(holder):
        return True
    here = _OF_THIS_PROCESS.get(holder.identity.owner)
    if here is not None and not here.is_of_parent and not here.is_busy and is_over(holder.identity):
        return True
    return not still_counts(age_ms(holder.identity.owner), expiry_ms, granularity_ms)


# owner -> the lease, for writers of this process
_OF_THIS_PROCESS: weakref.WeakValueDictionary[str, "Lease"] = weakref.WeakValueDictionary()


class Lease:
    """A writer's hold on a table, kept between batches by a thread that does nothing else.

    Args:
        settings: how often it is renewed, and how long it lasts.

    Attributes:
        owner: this writer's identity, different for each writer.
        is_busy: whether a batch is under way.
        is_shared: whether other writers hold the table, too (`table.transaction.membership`).
        is_over: says whether the streaming query of another writer in this process has ended.
        ahead_ms: by how much this machine's clock was ahead of the store's when the lease was taken.
    """

    def __init__(self, storage: Storage, settings: HeartbeatSettings) -> None:
        self._storage, self._settings = storage, settings
        self.owner = clock.fresh_uuid()
        self._process = os.getpid()
        self._register = Register(storage, LEASE_FOLDER)
        self._keeper = Keeper(storage, self.owner, settings.interval_ms)
        self.is_busy = False
        self.ahead_ms = 0
        self.is_over: Callable[[WriterIdentity], bool] = lambda _: False
        _OF_THIS_PROCESS[self.owner] = self
        self._record: LeaseRecord | None = None
        self.is_shared = False

    @property
    def missed(self) -> int:
        """Renewals that failed."""
        return self._keeper.missed

    @property
    def beside(self) -> Beside:
        """Which other writers may be writing beside this one."""
        return Beside.NO_WRITER

    @property
    def is_held(self) -> bool:
        """Whether this writer took the lease and has not released it. A forked child holds nothing."""
        return self._record is not None and not self.is_of_parent

    @property
    def is_of_parent(self) -> bool:
        """Whether this process is a forked child of the process that made the lease."""
        return self._process != os.getpid()

    def refuse_child(self) -> None:
        """Refuses a forked child, which has the identity of its parent.

        Raises:
            InvalidConfigError: this process is a forked child of the process that made the lease.
        """
        if self.is_of_parent:
            raise InvalidConfigError(
                f"this writer belongs to process {self._process}, and this is its forked child {os.getpid()}: make "
                "a sink in the child; the table is as it was"
            )

    def look(self) -> int | None:
        """The number of the record that counts now, for `hold`; None where this writer holds nothing yet."""
        return self._register.last_number if self.is_held else None

    def hold(self, identity: WriterIdentity, seen: int | None = None) -> None:
        """Takes the lease, or checks that it is still held.

        Args:
            identity: the writer, with this lease's `owner`.
            seen: what `look` found; None: this call looks itself.

        Raises:
            CommitConflictError: another live writer holds the table, or has taken it over.
            InvalidConfigError: this process is a forked child of the process that made the lease.
        """
        self.refuse_child()
        record = self._record
        if record is not None and (identity.query_id is None or record.identity == identity):
            # a write of this sink outside of its stream does not take the lease over from the stream
            if (self._register.last_number if seen is None else seen) != record.number:
                self._lose()
            return
        self.ahead_ms, renewed_ms = 0, clock.now_ms()
        self._keeper.renew()
        try:
            record = self._take(identity, renewed_ms)
        except BaseException:
            with suppress(StorageError):  # a writer without a lease must leave no sign of life
                forget_sign(self._storage, self.owner)
            raise
        self._begin_to_keep(record)

    def _begin_to_keep(self, record: LeaseRecord) -> None:
        self._record = record
        self._keeper.start()

    def _take(self, identity: WriterIdentity, renewed_ms: int) -> LeaseRecord:
        storage = self._storage
        for _ in range(_TRIES):
            holder = find_holder(storage)
            ages = partial(measure_age_ms, storage, me=self.owner)
            lasts = self._settings.expiry_ms, storage.time_granularity_ms
            if not may_take_over(holder, identity, ages, *lasts, self.is_over):
                assert holder is not None
                raise TableHeldError(
                    f"the table {storage.base_uri!r} is being written by a live writer, {describe_holder(holder)}; "
                    f"this is sink {identity.sink_id!r}, query {identity.query_id!r}: one writer per table. Stop the "
                    "other query: its sink releases the table some seconds later, once its services are done. A sink "
                    "without a query releases it with stop(). If its machine died, start this one again "
                    f"{self._settings.expiry_ms / 1000:.0f} s later. For both to write, start both again, with "
                    "hoodie.write.concurrency.mode=OPTIMISTIC_CONCURRENCY_CONTROL; their checkpoints stay. Do not "
                    "change the identifier of the stream that has written the table; give the other one another "
                    "hoodie.datasource.write.streaming.checkpoint.identifier"
                )
            number = holder.number + 1 if holder is not None else 1
            record = LeaseRecord(number, identity, this_machine(), this_process())
            if not self._make(record):
                continue
            withdraw_change(storage)
            self._sweep_signs(renewed_ms)
            if holder is not None and holder.identity is not None and holder.identity.owner != self.owner:
                log.info("lease_taken_over", table=storage.base_uri, before=describe_holder(holder))
                forget_sign(storage, holder.identity.owner)
            return record
        raise TableHeldError(f"the table {storage.base_uri!r} changes hands too fast: run the batch again")

    def _make(self, record: LeaseRecord) -> bool:
        """Creates a record as the current one. Returns False if another process was faster."""
        try:
            return self._register.append(record.number - 1, record.encode()) is not None
        except CommitOutcomeUnknownError as error:
            address = self._storage.base_uri
            raise StorageError(f"it is not known who holds the lease of {address!r}: {error}") from error

    def _sweep_signs(self, renewed_ms: int) -> None:
        """Deletes signs of life that writers left long ago, and compares the clocks by this writer's own sign."""
        times = list_signs(self._storage)
        self.ahead_ms = renewed_ms - (times.get(self.owner) or renewed_ms) - self._storage.time_granularity_ms
        if self.ahead_ms > clock.MAX_CLOCK_SKEW_MS:
            hint = "correct one of them: writers whose clock is right are refused until the newest instant has passed"
            ahead_s = self.ahead_ms // 1000
            log.warning("clock_ahead_of_store", table=self._storage.base_uri, ahead_s=ahead_s, hint=hint)
        for owner, modified_ms in times.items():
            if times.get(self.owner, 0) - modified_ms > _FORGOTTEN_AFTER * self._settings.expiry_ms:
                forget_sign(self._storage, owner)

    def confirm(self) -> None:
        """Checks on the store that this writer still holds the lease.

        A writer or an operator's command calls this once its request is on the timeline. A writer that takes the table
        over afterwards finds the request and ends it. A writer that took the table over before has made commits that
        the caller did not plan from. The record of a number never changes, so the number alone is looked at.

        Raises:
            CommitConflictError: another writer has taken the table over.
        """
        if self._record is None or self._register.last_number != self._record.number:
            self._lose()

    def _lose(self) -> NoReturn:
        self._forget()
        holder = find_holder(self._storage)
        who = describe_holder(holder) if holder is not None else "a writer that has gone"
        raise TableHeldError(
            f"the table {self._storage.base_uri!r} was taken over by {who} while this writer gave no sign: what it was "
            "about to do has no effect, and can be run again"
        )

    def share(self) -> None:
        """Opens the table for other writers. Only a lease that several writers can hold does it.

        Raises:
            BrokenInvariantError: this lease is for one writer alone.
        """
        raise BrokenInvariantError(f"the lease of {self._storage.base_uri!r} is for one writer alone")

    def find_share(self) -> tuple[int, int]:
        """This writer's place among the writers that hold the table, from 0, and the number of these writers."""
        return (0, 1)

    def ask_for_turn(self) -> None:
        """Asks the other writers, for a batch that met a conflict, to begin no batch until this one is written."""

    def wait_for_turn(self) -> None:
        """Called before a batch begins: waits while other writers that met a conflict write their batches."""

    def end_turn(self) -> None:
        """Withdraws the request for a turn: the other writers need not wait any more."""

    def check(self) -> None:
        """Stops a writer that could not renew its lease in time: other writers may soon take it for dead.

        Raises:
            CommitConflictError: the lease has run out.
        """
        silent_ms = self._keeper.silent_ms
        if silent_ms > self._settings.expiry_ms * 0.75:
            try:
                self._keeper.renew()
            except StorageError as error:
                raise TableHeldError(
                    f"the lease of {self._storage.base_uri!r} could not be renewed for {silent_ms / 1000:.1f} s "
                    f"({error}): another writer may take over; run the batch again"
                ) from error
            self.confirm()

    def beat_for(
        self, instant_time: str | None, identity: WriterIdentity | None = None, sight: str | None = None
    ) -> None:
        """Makes each renewal touch the heartbeat of this instant, too: other engines know a live writer by it.

        Args:
            instant_time: instant time of the batch; None: the batch has ended.
            identity: the writer.
            sight: the value with which the heartbeat was begun.
        """
        self._keeper.beat_for(instant_time, identity, sight)

    def _forget(self) -> None:
        self._record = None
        self._keeper.stop()

    def release(self) -> None:
        """Releases the table, if this process holds it. If that fails, the lease expires."""
        record = self._record
        if record is None or self.is_of_parent:
            return
        self._forget()
        try:
            holder = find_holder(self._storage)
            if holder == record:  # a table that was deleted and made anew may hold another record of this number
                free = replace(record, number=record.number + 1, identity=None)
                self._storage.create_exclusive(self._register.path(free.number), free.encode(), durable=True)
                self._storage.delete_metafile(self._register.path(record.number))
            forget_sign(self._storage, self.owner)
        except StorageError as error:
            log.warning("lease_not_released", table=self._storage.base_uri, error=str(error))


@contextmanager
def hold_table(storage: Storage, name: str, settings: HeartbeatSettings | None = None) -> Iterator[Lease]:
    """Holds a table for an operator's command.

    Args:
        name: name of the command, which is shown to writers that find the table held; begins with `COMMANDS`.
        settings: renewal and duration of the lease.

    Raises:
        CommitConflictError: a live writer holds the table.
    """
    lease = Lease(storage, settings or HeartbeatSettings())
    lease.hold(WriterIdentity(name, None, lease.owner))
    try:
        yield lease
    finally:
        lease.release()

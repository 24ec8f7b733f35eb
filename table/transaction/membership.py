"""A lease that several writers hold together (``hoodie.write.concurrency.mode=OPTIMISTIC_CONCURRENCY_CONTROL``).

::

    .hoodie/.hudistream/lease/<n>          names `SHARED` as the holder, not a writer
    .hoodie/.hudistream/alive/<SHARED>     touched by every member
    .hoodie/.hudistream/alive/<owner>      touched by one member; the fresh ones are the members
    .hoodie/.hudistream/turns/<owner>      a member that met a conflict asks the others to begin no batch meanwhile

A single writer and an operator's command want the table alone. To them the members are one holder, which is alive as
long as any member is. A writer that finds the table free takes it alone first, ends what earlier writers left, and then
opens it for other writers (`Membership.share`). A writer that finds the table open joins: it touches both signs, and
looks again whether the table is still open.
"""

from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import replace

from table import clock
from table.errors import StorageError, TableHeldError
from table.log import get_logger
from table.options.groups import HeartbeatSettings
from table.storage.interface import OWN_FOLDER, Storage, join
from table.transaction.heartbeat import WriterIdentity
from table.transaction.lease import Lease, find_holder
from table.transaction.lease_record import LeaseRecord
from table.transaction.liveness import Beside
from table.transaction.signs import forget_sign, give_sign, list_signs, still_counts
from table.version import SIGN

SHARED = "several-writers"
TURNS_FOLDER = join(OWN_FOLDER, "turns")
_TRIES, _PATIENCE_S = 20, 10
_TURN_TRIES, _TURN_PAUSE_S = 150, 0.2  # half a minute: a batch may take long
_EVERYBODY = WriterIdentity("several writers", None, SHARED)

log = get_logger("hudistream.lease")


def first_of_all(asked: Mapping[str, int], alive: Collection[str], me: str) -> str | None:
    """The member whose turn comes before this writer's (pure).

    Args:
        asked: member -> time of its request for a turn, in milliseconds of the store's clock.
        alive: the members that are alive.
        me: this writer.

    Returns:
        The member; None if this writer need not wait.
    """
    first = min(((ms, owner) for owner, ms in asked.items() if owner == me or owner in alive), default=None)
    return first[1] if first is not None and first[1] != me else None


def is_open(holder: LeaseRecord | None) -> bool:
    """Whether several writers hold the table together, so that another writer may join them."""
    return holder is not None and holder.identity == _EVERYBODY


class Membership(Lease):
    """One writer's part in a lease that several writers hold.

    Args:
        settings: how often it is renewed, and how long it lasts.
    """

    def __init__(self, storage: Storage, settings: HeartbeatSettings) -> None:
        super().__init__(storage, settings)
        self._asked = False

    @property
    def beside(self) -> Beside:
        """The other members. Until the table is opened for them, only engines that know no leases."""
        return Beside.MEMBERS if self.is_shared else Beside.OTHER_ENGINES

    def hold(self, identity: WriterIdentity, seen: int | None = None) -> None:
        """Joins the other members. If there are none, takes the table alone: `share` then opens it.

        Args:
            identity: the writer, with this lease's `owner`.
            seen: as of `Lease.hold`.

        Raises:
            CommitConflictError: a live writer holds the table alone, or this writer was taken for dead.
            InvalidConfigError: this process is a forked child of the process that made the lease.
        """
        self.refuse_child()
        if self.is_held:
            super().hold(replace(identity, query_id=None), seen)
            return
        for attempt in range(_TRIES):
            if self._join():
                return
            try:
                super().hold(identity)
            except TableHeldError:
                if attempt + 1 == _TRIES:
                    raise
                clock.sleep_s(_PATIENCE_S / _TRIES)  # the writer that holds the table alone may be about to open it
            else:
                return

    def _join(self) -> bool:
        holder = find_holder(self._storage)
        if not is_open(holder):
            return False
        self._keeper.shared_sign = SHARED
        self._keeper.renew()
        if find_holder(self._storage) != holder:
            self._keeper.shared_sign = None
            return False
        assert holder is not None
        self.is_shared = True
        self._begin_to_keep(holder)
        return True

    def share(self) -> None:
        """Opens the table for other writers. The caller holds it alone, and has ended what earlier writers left.

        Raises:
            CommitConflictError: another writer has taken the table over.
            StorageError: the store fails.
        """
        mine = self._record
        assert mine is not None
        self._keeper.shared_sign = SHARED
        self._keeper.renew()
        record = LeaseRecord(mine.number + 1, _EVERYBODY)
        if not self._make(record):
            self._lose()
        self._record, self.is_shared = record, True
        self.confirm()

    def find_share(self) -> tuple[int, int]:
        """This writer's place among the members that are alive, from 0, and the number of these members."""
        alive = sorted(self._find_alive() | {self.owner})
        return alive.index(self.owner), len(alive)

    def _find_alive(self) -> set[str]:
        """Owners whose sign of life is younger than a lease, counted from the newest sign of all."""
        entries = list_signs(self._storage)
        newest = max(entries.values(), default=0)
        lasts = self._settings.expiry_ms, self._storage.time_granularity_ms
        return {name for name, beat in entries.items() if still_counts(newest - beat, *lasts) and name != SHARED}

    def ask_for_turn(self) -> None:
        """Asks the other members to begin no batch until this one is written: otherwise a fast writer always wins."""
        self._storage.put(join(TURNS_FOLDER, self.owner), SIGN)
        self._asked = True

    def wait_for_turn(self) -> None:
        """Waits while a member that asked earlier writes its batch, for half a minute at most."""
        for _ in range(_TURN_TRIES):
            asked = {entry.name: entry.modified_ms for entry in self._storage.list_dir(TURNS_FOLDER)}
            if not asked.keys() - {self.owner}:
                return
            alive = self._find_alive()
            for dead in asked.keys() - alive - {self.owner}:
                self._storage.delete_metafile(join(TURNS_FOLDER, dead))
            if first_of_all(asked, alive, self.owner) is None:
                return
            clock.sleep_s(_TURN_PAUSE_S)

    def end_turn(self) -> None:
        """Withdraws the request for a turn."""
        if self._asked:
            self._asked = False
            with suppress(StorageError):  # the request expires
                self._storage.delete_metafile(join(TURNS_FOLDER, self.owner))

    def _forget(self) -> None:
        super()._forget()
        self.is_shared = False

    def release(self) -> None:
        """Leaves the members. The last member releases the table; if that fails, the lease expires."""
        record = self._record
        if record is None or self.is_of_parent or not self.is_shared:
            super().release()
            return
        self._forget()
        storage = self._storage
        try:
            give_sign(storage, SHARED)  # `_find_alive` compares the signs of the other members with this one
            forget_sign(storage, self.owner)
            if not self._find_alive() and find_holder(storage) == record:
                # a writer that joins right now looks again whether the table is open before it counts as a member
                free = LeaseRecord(record.number + 1, None)
                storage.create_exclusive(self._register.path(free.number), free.encode(), durable=True)
                storage.delete_metafile(self._register.path(record.number))
        except StorageError as error:
            log.warning("lease_not_released", table=storage.base_uri, error=str(error))

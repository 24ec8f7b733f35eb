"""A lease that several writers hold together (``hoodie.write.concurrency.mode=OPTIMISTIC_CONCURRENCY_CONTROL``).

::

    .hoodie/.hudistream/lease/<n>          names no writer but `SHARED`
    .hoodie/.hudistream/alive/<SHARED>     touched by every member
    .hoodie/.hudistream/alive/<owner>      touched by one member; the fresh ones are the members
    .hoodie/.hudistream/turns/<owner>      a member that met a conflict asks the others to begin nothing meanwhile

To whoever wants the table alone (a single writer, an operator's command) the members are one holder, which lives as
long as one of them does. A writer that finds the table free takes it alone first, ends what earlier writers left, and
then opens it for others (`Membership.share`). One that finds it open joins: it touches both signs, and looks again
whether the table is still open.
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
from table.transaction.signs import forget_sign, give_sign, list_signs
from table.version import SIGN

SHARED = "several-writers"
TURNS_FOLDER = join(OWN_FOLDER, "turns")
_TRIES, _PATIENCE_S = 20, 10
_TURN_TRIES, _TURN_PAUSE_S = 150, 0.2  # half a minute: a batch may take long
_EVERYBODY = WriterIdentity("several writers", None, SHARED)

log = get_logger("hudistream.lease")


def first_of_all(asked: Mapping[str, int], alive: Collection[str], me: str) -> str | None:
    """Whose turn it is before a writer's own (pure).

    Args:
        asked: who asked for a turn, and when, in milliseconds of the store's clock.
        alive: the members that are alive.
        me: the writer.

    Returns:
        None where the writer need not wait.
    """
    first = min(((ms, owner) for owner, ms in asked.items() if owner == me or owner in alive), default=None)
    return first[1] if first is not None and first[1] != me else None


def is_open(holder: LeaseRecord | None) -> bool:
    """Whether a table is held by several writers, which others may join."""
    return holder is not None and holder.identity == _EVERYBODY


class Membership(Lease):
    """One writer's part in a lease that several hold.

    Args:
        settings: how often it is renewed, and how long it lasts.
    """

    def __init__(self, storage: Storage, settings: HeartbeatSettings) -> None:
        super().__init__(storage, settings)
        self._asked = False

    @property
    def beside(self) -> Beside:
        """The other members; before the table is opened for them, only engines that know no leases."""
        return Beside.MEMBERS if self.is_shared else Beside.OTHER_ENGINES

    def hold(self, identity: WriterIdentity) -> None:
        """Joins the others; where there are none, takes the table alone: `share` then opens it.

        Args:
            identity: who writes, with this lease's `owner`.

        Raises:
            CommitConflictError: a live writer holds the table alone, or this writer was taken for dead.
            InvalidConfigError: the process that made the lease is another one, which was forked.
        """
        self.refuse_child()
        if self.is_held:
            super().hold(replace(identity, query_id=None))
            return
        for attempt in range(_TRIES):
            if self._join():
                return
            try:
                super().hold(identity)
            except TableHeldError:
                if attempt + 1 == _TRIES:
                    raise
                clock.sleep_s(_PATIENCE_S / _TRIES)  # whoever holds it alone may be about to open it
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
        """Opens the table for others. The caller holds it alone, and has ended what earlier writers left.

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
        """This writer's place among the members that are alive, from 0, and how many they are."""
        alive = sorted(self._find_alive() | {self.owner})
        return alive.index(self.owner), len(alive)

    def _find_alive(self) -> set[str]:
        """Owners whose sign of life is younger than a lease, counted from the newest sign of all."""
        entries = list_signs(self._storage)
        newest = max(entries.values(), default=0)
        oldest = newest - self._settings.expiry_ms - self._storage.time_granularity_ms
        return {name for name, beat in entries.items() if beat >= oldest and name != SHARED}

    def ask_for_turn(self) -> None:
        """Asks the others to begin no batch until this one is written: the fast ones would win again and again."""
        self._storage.put(join(TURNS_FOLDER, self.owner), SIGN)
        self._asked = True

    def wait_for_turn(self) -> None:
        """Waits while others are at work that asked before this writer did, at most for some time."""
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
        """Takes the request back."""
        if self._asked:
            self._asked = False
            with suppress(StorageError):  # it expires
                self._storage.delete_metafile(join(TURNS_FOLDER, self.owner))

    def _forget(self) -> None:
        super()._forget()
        self.is_shared = False

    def release(self) -> None:
        """Leaves. The last member releases the table; if that fails, the lease expires."""
        record = self._record
        if record is None or self.is_of_parent or not self.is_shared:
            super().release()
            return
        self._forget()
        storage = self._storage
        try:
            give_sign(storage, SHARED)  # what others' signs are compared with
            forget_sign(storage, self.owner)
            if not self._find_alive() and find_holder(storage) == record:
                # whoever joins right now looks whether the table is still open before it counts itself in
                free = LeaseRecord(record.number + 1, None)
                storage.create_exclusive(self._register.path(free.number), free.encode(), durable=True)
                storage.delete_metafile(self._register.path(record.number))
        except StorageError as error:
            log.warning("lease_not_released", table=storage.base_uri, error=str(error))

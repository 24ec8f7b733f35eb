"""One archival at a time: the running archival has the last entry of a register, and gives signs of life.

::

    .hoodie/.hudistream/archiving/<n>          the archival under way, or that there is none; the greatest n counts
    .hoodie/.hudistream/archiving/sign-<owner> touched while its archival runs; its age is the archival's

An archival needs no lease of the table: `hudistream archive` runs beside a stream, and the streams of several writers
archive as well. Of two archivals that run at once, each would delete files that the other one still reads. An archival
that was paused until its turn was given to another finds that out before it deletes anything.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass

from table import clock
from table.errors import StorageError, TableHeldError
from table.log import get_logger
from table.storage.interface import OWN_FOLDER, Storage, join
from table.transaction.lease_record import is_process_dead, this_machine, this_process
from table.transaction.register import Entry, Register
from table.transaction.signs import still_counts
from table.version import SIGN, VERSION

TURN_FOLDER = join(OWN_FOLDER, "archiving")
EXPIRY_MS = 120_000
_SIGN = "sign-"
_TRIES = 5

log = get_logger("hudistream.archival")

_OF_THIS_PROCESS: set[str] = set()  # owners of the archivals that run in this process


@dataclass(frozen=True, slots=True)
class TurnRecord:
    """The archival that has the turn.

    Attributes:
        owner: identity of one archival in one process; "": the last archival is done.
        machine: where its process runs, if that is known.
        process: its number there.
    """

    owner: str
    machine: str = ""
    process: int = 0

    def encode(self) -> bytes:
        """JSON."""
        return json.dumps({**asdict(self), "version": VERSION}).encode()


def decode_turn(data: bytes) -> TurnRecord | None:
    """The inverse of `TurnRecord.encode`; None for a record of another form: an archival may be under way."""
    try:
        document = json.loads(data)
        owner, machine, process = document["owner"], document.get("machine"), document.get("process")
    except (ValueError, KeyError, TypeError):
        return None
    if not isinstance(owner, str):
        return None
    return TurnRecord(owner, machine if isinstance(machine, str) else "", process if isinstance(process, int) else 0)


class Turn:
    """The turn of one archival.

    Args:
        owner: of the archival.
    """

    def __init__(self, storage: Storage, owner: str) -> None:
        self._storage, self._owner = storage, owner
        self._register = Register(storage, TURN_FOLDER)
        self._entry: Entry | None = None
        self._seen_s = 0.0

    def take(self) -> None:
        """Takes the turn.

        Raises:
            CommitConflictError: another archival is under way.
        """
        _OF_THIS_PROCESS.add(self._owner)
        for _ in range(_TRIES):
            started_s = clock.monotonic_s()
            last = self._register.find_last()
            number, holder = (last.number, decode_turn(last.data)) if last is not None else (0, TurnRecord(""))
            self._touch()
            if not self._is_free(holder):
                self._forget()
                who = f"process {holder.process}" if holder is not None else "a writer of another version"
                raise TableHeldError(
                    f"the table {self._storage.base_uri!r} is being archived by {who}: nothing was archived here; the "
                    f"turn is free when that archival is done, or {EXPIRY_MS / 1000:.0f} s after it died"
                )
            self._entry = self._register.append(
                number, TurnRecord(self._owner, this_machine(), this_process()).encode()
            )
            if self._entry is not None:
                self._seen_s = started_s
                if holder is not None and holder.owner:
                    self._storage.delete_metafile(_sign_of(holder.owner))
                return
        self._forget()
        raise TableHeldError(f"archivals of {self._storage.base_uri!r} take turns too fast: try again")

    def _is_free(self, holder: TurnRecord | None) -> bool:
        if holder is not None and (not holder.owner or _is_dead(holder)):
            return True
        times = {entry.name: entry.modified_ms for entry in self._storage.list_dir(TURN_FOLDER)}
        now_ms = times.pop(_sign_name(self._owner), 0)
        names = [name for name in times if name.startswith(_SIGN)] if holder is None else [_sign_name(holder.owner)]
        youngest = max((times[name] for name in names if name in times), default=None)
        age_ms = now_ms - youngest if youngest is not None else None
        return not still_counts(age_ms, EXPIRY_MS, self._storage.time_granularity_ms)

    def check(self) -> None:
        """Gives a sign of life when it is time for one, and looks whether this archival still has the turn.

        Call it before each step that deletes: an archival that was paused for too long has lost its turn.

        Raises:
            CommitConflictError: another archival has taken over.
        """
        now_s = clock.monotonic_s()
        if (now_s - self._seen_s) * 1000 < EXPIRY_MS / 4:
            return
        self._touch()
        if self._register.find_last() != self._entry:
            raise TableHeldError(
                f"another archival of {self._storage.base_uri!r} took over while this one gave no sign: this one stops"
            )
        self._seen_s = now_s

    def release(self) -> None:
        """Gives the turn back. If the store fails, the turn expires."""
        entry, self._entry = self._entry, None
        _OF_THIS_PROCESS.discard(self._owner)
        try:
            if entry is not None and self._register.find_last() == entry:
                self._register.append(entry.number, TurnRecord("").encode())
            self._forget()
        except StorageError as error:
            log.warning("archival_turn_not_released", table=self._storage.base_uri, error=str(error))

    def _touch(self) -> None:
        self._storage.put(_sign_of(self._owner), SIGN)

    def _forget(self) -> None:
        _OF_THIS_PROCESS.discard(self._owner)
        with suppress(StorageError):
            self._storage.delete_metafile(_sign_of(self._owner))


@contextmanager
def hold_turn(storage: Storage) -> Iterator[Turn]:
    """Archives alone while the block runs.

    Raises:
        CommitConflictError: another archival is under way.
    """
    turn = Turn(storage, clock.fresh_uuid())
    try:
        turn.take()
        yield turn
    finally:
        turn.release()


def _is_dead(holder: TurnRecord) -> bool:
    """Whether the holder's process, or its archival in this process, is known to be over."""
    if holder.process == this_process() and holder.machine and holder.machine == this_machine():
        return holder.owner not in _OF_THIS_PROCESS
    return is_process_dead(holder.machine, holder.process)


def _sign_name(owner: str) -> str:
    return f"{_SIGN}{owner}"


def _sign_of(owner: str) -> str:
    return join(TURN_FOLDER, _sign_name(owner))

"""The order of commits where several writers share a table: the writer of a commit has seen the commit before it.

::

    .hoodie/.hudistream/order/<n>   the instant in the nth place; created if absent; the greatest n counts

A writer finds the last place, waits until the commit there has ended, looks for conflicts, and takes the next place.
If another writer took that place meanwhile, it looks again. So no other writer commits between a writer's look and its
decision, even if a lock expired while its holder was paused. The numbers grow as long as the table lives; places
before the last one are deleted. Delta Lake and Iceberg order their commits in the same way; Hudi relies on its lock.
"""

import json
from dataclasses import dataclass

from table.errors import CorruptFileError
from table.storage.interface import OWN_FOLDER, Storage, join
from table.timeline.instant import Action, Instant
from table.transaction.register import Register
from table.version import VERSION

ORDER_FOLDER = join(OWN_FOLDER, "order")


@dataclass(frozen=True, slots=True)
class Place:
    """A place in the order.

    Attributes:
        number: from 1; 0 before the first commit.
        time: instant time of the commit; "" before the first.
        action: action of the commit; None before the first.
        owner: identity of the writer.
    """

    number: int
    time: str = ""
    action: Action | None = None
    owner: str = ""

    @property
    def path(self) -> str:
        """Path of the place's file, relative to the table."""
        return join(ORDER_FOLDER, str(self.number))

    def encode(self) -> bytes:
        """JSON."""
        document = {"time": self.time, "action": self.action, "owner": self.owner, "version": VERSION}
        return json.dumps(document).encode()


def decode_place(number: int, data: bytes) -> Place:
    """The inverse of `Place.encode`.

    Raises:
        CorruptFileError: the bytes are not a place.
    """
    try:
        document = json.loads(data)
        return Place(number, document["time"], Action(document["action"]), document["owner"])
    except (ValueError, KeyError, TypeError) as error:
        raise CorruptFileError(f"{ORDER_FOLDER}/{number} is no place in the commit order: {error!r}") from error


def find_last_place(storage: Storage) -> Place:
    """The last place that was taken.

    Raises:
        CorruptFileError: its record is damaged.
        StorageError: the store fails, or the order changes faster than it can be read.
    """
    last = Register(storage, ORDER_FOLDER).find_last()
    return decode_place(last.number, last.data) if last is not None else Place(0)


def take_next_place(storage: Storage, last: Place, instant: Instant, owner: str) -> bool:
    """Takes the place after the last one for a commit.

    Args:
        last: the place that `find_last_place` returned before the caller looked for conflicts.
        instant: the commit.
        owner: identity of the writer that commits.

    Returns:
        False if another writer took the place first: the caller's view of the table is then outdated.

    Raises:
        CommitOutcomeUnknownError: the store does not say which writer has the place.
    """
    place = Place(last.number + 1, instant.time, instant.action, owner)
    return Register(storage, ORDER_FOLDER).append(last.number, place.encode()) is not None

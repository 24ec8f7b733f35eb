"""Which bad rows went back into the table: each replay leaves a record, and a mark once its commit is visible.

::

    _replays/<table>/<n>-<id>.json    the rows that replay n takes; written before its batch
    _replays/<table>/<n>-<id>.done    the batch is committed

A replay is the batch n of a sink of its own (`table.transaction.checkpoint.REPLAY_SINK`), with its id in the place of a
query's. So the commits of the table say whether it was committed, and a record without a mark is settled by asking
them. No replay n + 1 begins before the mark of n is there.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from table.errors import CorruptFileError
from table.quarantine.place import REPLAYS
from table.storage.interface import Storage, join
from table.transaction.checkpoint import CommittedBatch
from table.version import VERSION

_RECORD, _DONE = ".json", ".done"

RowId = tuple[str, int]


@dataclass(frozen=True)
class Replay:
    """One replay.

    Attributes:
        key: the table's own part of the folder, in the spelling of the writer (`table.quarantine.place.table_keys`).
        number: from 0; the id of its batch.
        ident: of this attempt.
        is_marked: whether its mark is there.
    """

    key: str
    number: int
    ident: str
    is_marked: bool

    @property
    def path(self) -> str:
        """Of its files, without their endings."""
        return join(REPLAYS, self.key, f"{self.number}-{self.ident}")

    def is_committed(self, last: CommittedBatch | None) -> bool:
        """Whether its rows are in the table.

        Args:
            last: the last committed replay.
        """
        is_last = last is not None and last.batch_id == self.number and last.query_id == self.ident
        return self.is_marked or is_last


def list_replays(storage: Storage, keys: Iterable[str]) -> list[Replay]:
    """The replays of a table, by number.

    Args:
        storage: the folder of bad rows.
        keys: the table's own parts of it.
    """
    found = []
    for key in keys:
        names = {entry.name for entry in storage.list_dir(join(REPLAYS, key)) if not entry.is_dir}
        for name in names:
            number, _, ident = name.removesuffix(_RECORD).partition("-")
            if name.endswith(_RECORD) and number.isdigit() and ident:
                found.append(Replay(key, int(number), ident, f"{number}-{ident}{_DONE}" in names))
    return sorted(found, key=lambda replay: (replay.number, replay.ident))


def read_replayed(storage: Storage, replays: Iterable[Replay]) -> frozenset[RowId]:
    """The rows that replays took: name of the file and number of the row in it.

    Raises:
        CorruptFileError: a record is damaged.
    """
    rows: set[RowId] = set()
    for replay in replays:
        path = replay.path + _RECORD
        try:
            taken = json.loads(storage.read(path))["rows"]
            rows.update((file, int(number)) for file, numbers in taken.items() for number in numbers)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise CorruptFileError(f"{path} of {storage.base_uri!r} is no record of a replay: {error!r}") from error
    return frozenset(rows)


def record_replay(storage: Storage, replay: Replay, rows: Mapping[str, list[int]]) -> None:
    """Writes the record of a replay that is about to begin: file -> numbers of the rows in it."""
    content = json.dumps({"rows": rows, "version": VERSION}).encode()
    storage.put(replay.path + _RECORD, content)


def mark_replay(storage: Storage, replay: Replay) -> None:
    """Marks a replay as committed."""
    storage.put(replay.path + _DONE, b"{}")


def forget_replay(storage: Storage, replay: Replay) -> None:
    """Deletes the record of a replay that was not committed, and will not be."""
    storage.delete(replay.path + _RECORD)

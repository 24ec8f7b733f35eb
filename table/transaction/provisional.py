"""Provisional compactions: one that was planned beside other writers counts only once its planner has kept it.

::

    .hoodie/.hudistream/plans/<instant>   the word, ``kept`` or ``withdrawn``, as JSON; created if absent

The planner requests the compaction, and then looks whether another writer wrote log files meanwhile that the plan does
not contain. A batch that begins in between sees the request. If it wrote log files to the slice above that compaction,
the planner could no longer withdraw the compaction. So the plan says that it is provisional, and the batch waits for
the planner's word. If no word comes, the batch itself writes the word ``withdrawn``. The word that is written first
counts for both.
"""

import json
from collections.abc import Iterable

from table import clock
from table.errors import CorruptFileError
from table.snapshot import Snapshot
from table.storage.interface import OWN_FOLDER, Storage, join
from table.timeline.active_timeline import create_settled, delete_instant_file, find_instant
from table.timeline.instant import Action, Instant, State
from table.timeline.metadata.compaction import decode_compaction_plan
from table.version import VERSION

PLANS_FOLDER = join(OWN_FOLDER, "plans")
KEPT, WITHDRAWN = "kept", "withdrawn"
_LOOKS = 6  # three seconds


def decide_plan(storage: Storage, time: str, wanted: str) -> str:
    """Writes the word on a provisional compaction, unless there is one already.

    Args:
        time: instant time of the compaction.
        wanted: `KEPT` or `WITHDRAWN`.

    Returns:
        The word that counts.

    Raises:
        CommitOutcomeUnknownError: the store does not say which word counts.
    """
    return decode_word(time, create_settled(storage, join(PLANS_FOLDER, time), encode_word(wanted)))


def encode_word(word: str) -> bytes:
    """The record of a word: JSON."""
    return json.dumps({"word": word, "version": VERSION}).encode()


def decode_word(time: str, data: bytes) -> str:
    """The inverse of `encode_word`; the first records held the bare word.

    Args:
        time: instant time of the compaction.
        data: bytes of the record.

    Raises:
        CorruptFileError: the record holds neither word, so it decides nothing.
    """
    try:
        word = data.decode() if data in (KEPT.encode(), WITHDRAWN.encode()) else json.loads(data)["word"]
    except (ValueError, KeyError, TypeError) as error:
        raise CorruptFileError(f"{PLANS_FOLDER}/{time} is no word on a compaction: {error!r}") from error
    if word not in (KEPT, WITHDRAWN):
        raise CorruptFileError(f"{PLANS_FOLDER}/{time} says {word!r}: neither {KEPT} nor {WITHDRAWN}")
    return str(word)


def is_kept(storage: Storage, compaction: Instant) -> bool:
    """Whether a pending compaction counts: it is not provisional, or was kept."""
    return not _is_provisional(storage, compaction) or _find_word(storage, compaction.time) == KEPT


def settle_compactions(snapshot: Snapshot) -> Snapshot:
    """Waits for the word on each provisional compaction, and withdraws the compaction if no word comes.

    Args:
        snapshot: the table as it is now.

    Returns:
        The table afterwards: every compaction that is pending on its timeline counts.

    Raises:
        CommitOutcomeUnknownError, StorageError: the store fails.
    """
    storage, withdrawn = snapshot.storage, False
    for compaction in snapshot.timeline.pending_of(Action.COMPACTION):
        if not _is_provisional(storage, compaction):
            continue
        word = _find_word(storage, compaction.time)
        for attempt in range(_LOOKS):
            if word is not None:
                break
            clock.sleep_s(0.05 * 2**attempt)
            word = _find_word(storage, compaction.time)
        if (word or decide_plan(storage, compaction.time, WITHDRAWN)) == WITHDRAWN:
            delete_instant_file(storage, compaction.at(State.REQUESTED))
            withdrawn = True
    return snapshot.again() if withdrawn else snapshot


def forget_plans(storage: Storage, line: str, pending: Iterable[str]) -> None:
    """Deletes the words on compactions that are no longer on the active timeline.

    Args:
        line: the first instant that stays active.
        pending: times of instants that are pending.
    """
    kept = set(pending)
    for entry in storage.list_dir(PLANS_FOLDER):
        if entry.name < line and entry.name not in kept:
            storage.delete_metafile(join(PLANS_FOLDER, entry.name))


def _is_provisional(storage: Storage, compaction: Instant) -> bool:
    request = compaction.at(State.REQUESTED)
    data = find_instant(storage, request)
    return bool(data) and decode_compaction_plan(data or b"", request.file_name).is_provisional


def _find_word(storage: Storage, time: str) -> str | None:
    try:
        return decode_word(time, storage.read(join(PLANS_FOLDER, time)))
    except FileNotFoundError:
        return None

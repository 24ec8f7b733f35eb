"""Protects the files of a plan: the reader pins its snapshot, then checks whether a clean has already chosen its files.

A clean reads the pins after its own plan is durable (rule 10 of docs/concepts/safety.md). So either the clean sees the
pin or the reader sees the clean. A clean that is requested after the pin was written respects it, and the reader finds
the cleans that were requested before.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache

from table import clock
from table.errors import InvalidConfigError, StorageError, TimelineMovedError
from table.hudi_table import HudiTable
from table.log import get_logger
from table.scan.plan import ScanPlan
from table.storage.interface import Storage
from table.timeline.active_timeline import find_instant
from table.timeline.instant import Action, Instant, State
from table.timeline.metadata.clean import CleanPlan, decode_clean_metadata, decode_clean_plan
from table.timeline.pins import Pin, delete_pin, fresh_pin, is_cleaned_here, write_pin

log = get_logger("hudistream.scan")

DEFAULT_LIFETIME_S = 900
_TRIES = 5


class HeldPin:
    """The pin of one reader. For one thread.

    Args:
        pin: the pin, just written; None where the reader has none.
    """

    def __init__(self, storage: Storage, pin: Pin | None) -> None:
        self._storage, self._pin = storage, pin
        self._written_s = clock.monotonic_s()

    def renew(self) -> None:
        """Writes the pin again if a third of its lifetime is over. If the store fails, the pin only expires earlier."""
        if self._pin is None or clock.monotonic_s() - self._written_s < self._pin.lifetime_s / 3:
            return
        self._written_s = clock.monotonic_s()
        try:
            write_pin(self._storage, self._pin)
        except StorageError as error:
            log.debug("pin_not_renewed", table=self._storage.base_uri, reason=str(error))

    def release(self) -> None:
        """Deletes the pin. If the store fails, the pin expires."""
        if self._pin is None:
            return
        try:
            delete_pin(self._storage, self._pin)
        except StorageError as error:
            log.debug("pin_not_deleted", table=self._storage.base_uri, reason=str(error))
        self._pin = None


@contextmanager
def pinned(table: HudiTable, plan: Callable[[], ScanPlan], lifetime_s: int) -> Iterator[tuple[ScanPlan, HeldPin]]:
    """A plan that is pinned while the block runs; the arguments are those of `plan_pinned`."""
    made, pin = plan_pinned(table, plan, lifetime_s)
    try:
        yield made, pin
    finally:
        pin.release()


def plan_pinned(table: HudiTable, plan: Callable[[], ScanPlan], lifetime_s: int) -> tuple[ScanPlan, HeldPin]:
    """Plans a scan, and pins its snapshot. If the caller does not release the pin, it expires.

    Args:
        plan: makes a new plan.
        lifetime_s: seconds for which cleaning respects the pin, from when it was written last; 0: no pin.

    Returns:
        The plan and its pin. There is no pin if hudistream does not clean the table, or the reader may not write.

    Raises:
        InvalidConfigError: as `plan`; or in each attempt a clean had already chosen files of the plan.
        HudiError: as `plan`.
    """
    storage = table.storage
    for attempt in range(_TRIES):
        try:
            made = plan()
        except TimelineMovedError:  # an instant was archived after the listing: there is a newer snapshot
            if attempt + 1 == _TRIES:
                raise
            continue
        is_pinned = lifetime_s > 0 and bool(made.slices)
        if not is_pinned or made.as_of is None or not is_cleaned_here(storage):
            return made, HeldPin(storage, None)
        pin = fresh_pin(made.as_of, lifetime_s)
        try:
            write_pin(storage, pin)
        except StorageError as error:
            _tell_once(storage.base_uri, str(error))
            return made, HeldPin(storage, None)
        held = HeldPin(storage, pin)
        if not _is_chosen_by_clean(table, made):
            return made, held
        held.release()
    raise InvalidConfigError(
        f"cleaning deletes what readers of {made.as_of} need: ask for a newer snapshot, or let cleaning keep more "
        "commits (hoodie.clean.commits.retained)"
    )


@lru_cache(maxsize=256)
def _tell_once(table: str, reason: str) -> None:
    log.warning(
        "read_without_pin",
        table=table,
        reason=reason,
        hint="the reader may not write below .hoodie: a long read may lose its files to cleaning",
    )


def _is_chosen_by_clean(table: HudiTable, plan: ScanPlan) -> bool:
    """Whether a clean that may not have seen the pin names a file of the plan."""
    wanted = {file.path for found in plan.slices for file in found.files}
    timeline = table.load_timeline()
    for instant in timeline:
        if instant.action is Action.CLEAN and instant.time not in plan.cleans:
            chosen = _load_plan(table.storage, instant)
            if chosen is not None and not wanted.isdisjoint(_files_of(table.storage, chosen)):
                return True
    return False


def _load_plan(storage: Storage, clean: Instant) -> CleanPlan | None:
    """The plan of a clean in any state; None where the clean has none, or was withdrawn."""
    request = clean.at(State.REQUESTED)
    data = find_instant(storage, request)
    if data:
        return decode_clean_plan(data, request.file_name)
    done = find_instant(storage, clean) if clean.is_completed else None
    return decode_clean_metadata(done, clean.file_name).plan if done else None


def _files_of(storage: Storage, plan: CleanPlan) -> Iterator[str]:
    for files in plan.files.values():
        for file in files:
            try:
                yield storage.relative(file)
            except InvalidConfigError:
                continue  # the file is outside of the table

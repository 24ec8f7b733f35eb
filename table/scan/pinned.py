"""Protects the files of a plan: the reader pins its snapshot, then checks whether a clean has already chosen its files.

A clean reads the pins after its own plan is durable (rule 10 of docs/concepts/safety.md). So either the clean sees the
pin or the reader sees the clean. A clean that is requested after the pin was written respects it, and the reader finds
the cleans that were requested before. It finds those that deleted files before the folders were listed, too: the
timeline is listed before the folders and after them. Where the timeline has moved on so far that cleans may have been
archived in between, the reader plans again.
"""

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache
from typing import Protocol, TypeVar

import pyarrow as pa

from table import clock
from table.errors import InvalidConfigError, StorageError, TimelineMovedError
from table.hudi_table import HudiTable
from table.log import get_logger
from table.snapshot import Snapshot
from table.storage.interface import Storage
from table.timeline.active_timeline import find_instant
from table.timeline.change import Change
from table.timeline.instant import Action, Instant, State
from table.timeline.metadata.clean import CleanPlan, decode_clean_metadata, decode_clean_plan
from table.timeline.pins import Pin, delete_pin, fresh_pin, is_cleaned_here, write_pin
from table.timeline.timeline import Timeline
from table.view.file_group import FileSlice

log = get_logger("hudistream.scan")

DEFAULT_LIFETIME_S = 900
_TRIES = 5


class Pinnable(Protocol):
    """A plan whose files can be pinned."""

    @property
    def slices(self) -> tuple[FileSlice, ...]:
        """The slices that are read."""

    @property
    def seen(self) -> tuple[str, ...]:
        """Request times of the last write of each snapshot that is read."""

    @property
    def cleans(self) -> frozenset[str]:
        """Instant times of the cleans that were completed when the timeline was listed."""

    @property
    def snapshot(self) -> Snapshot | None:
        """What the plan was made from."""

    def loses_to(self, clean: CleanPlan, *, is_new: bool) -> bool:
        """Whether a clean may have deleted files of the snapshot before the folders were listed."""


Plan = TypeVar("Plan", bound=Pinnable)


class HeldPin:
    """What one reader has pinned. For one thread.

    Args:
        pins: just written, one for each snapshot; none where the reader has no pin.
    """

    def __init__(self, storage: Storage, pins: Sequence[Pin] = ()) -> None:
        self._storage, self._pins = storage, tuple(pins)
        self._written_s = clock.monotonic_s()

    @property
    def is_held(self) -> bool:
        """Whether anything is pinned."""
        return bool(self._pins)

    def renew(self) -> None:
        """Writes pins again if a third of their lifetime is over. If the store fails, they only expire earlier."""
        if not self._pins or clock.monotonic_s() - self._written_s < self._pins[0].lifetime_s / 3:
            return
        self._written_s = clock.monotonic_s()
        try:
            for pin in self._pins:
                write_pin(self._storage, pin)
        except StorageError as error:
            log.debug("pin_not_renewed", table=self._storage.base_uri, reason=str(error))

    def release(self, *, keeps_newest: bool = False) -> None:
        """Deletes the pins. If the store fails, they expire.

        Args:
            keeps_newest: whether the pin of the newest snapshot stays.
        """
        kept = self._pins[-1:] if keeps_newest else ()
        try:
            for pin in self._pins[: len(self._pins) - len(kept)]:
                delete_pin(self._storage, pin)
        except StorageError as error:
            log.debug("pin_not_deleted", table=self._storage.base_uri, reason=str(error))
        self._pins = kept


BEGUN = pa.record_batch([], pa.schema([]))  # what a generator that holds pins yields first


def begun(batches: Generator[pa.RecordBatch, None, None]) -> Generator[pa.RecordBatch, None, None]:
    """A generator that has yielded `BEGUN`: one that never began would not run its `finally` when it is dropped."""
    next(batches)
    return batches


@contextmanager
def pinned(table: HudiTable, plan: Callable[[], Plan], lifetime_s: int) -> Iterator[tuple[Plan, HeldPin]]:
    """A plan that is pinned while the block runs; the arguments are those of `plan_pinned`."""
    made, pin = plan_pinned(table, plan, lifetime_s)
    try:
        yield made, pin
    finally:
        pin.release()


def plan_pinned(table: HudiTable, plan: Callable[[], Plan], lifetime_s: int) -> tuple[Plan, HeldPin]:
    """Makes a plan, and pins its snapshots. If the caller does not release the pins, they expire.

    Args:
        plan: makes a new plan.
        lifetime_s: seconds for which cleaning respects the pins, from when they were written last; 0: no pin.

    Returns:
        The plan and its pins. There are none if hudistream does not clean the table, or the reader may not write.

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
        if not made.seen:
            return made, HeldPin(storage)
        is_pinned = lifetime_s > 0 and bool(made.slices) and is_cleaned_here(storage)
        held, is_whole = _write_pins(storage, made.seen, lifetime_s) if is_pinned else (HeldPin(storage), False)
        if not _is_cleaned_meanwhile(table, made, is_pinned=is_whole):
            return made, held
        held.release()
    raise InvalidConfigError(
        f"cleaning deletes what readers of {made.seen[0]} need: ask for a newer snapshot, or let cleaning keep more "
        "commits (hoodie.clean.commits.retained)"
    )


def pin_moment(table: HudiTable, timeline: Timeline, time: str, lifetime_s: int) -> HeldPin:
    """Pins the snapshot of a moment, for a reader that will need it later.

    Args:
        timeline: of the table.
        time: as in `Timeline.visible_times`.
        lifetime_s: as of `plan_pinned`.
    """
    seen = max(timeline.visible_until(time).committed_times, default=None)
    if seen is None or lifetime_s <= 0 or not is_cleaned_here(table.storage):
        return HeldPin(table.storage)
    return _write_pins(table.storage, [seen], lifetime_s)[0]


def _write_pins(storage: Storage, times: Sequence[str], lifetime_s: int) -> tuple[HeldPin, bool]:
    """Pins for some snapshots, and whether all were written: a reader that may not write reads without."""
    pins: list[Pin] = []
    try:
        for time in times:
            pins.append(fresh_pin(time, lifetime_s))
            write_pin(storage, pins[-1])
    except StorageError as error:
        _tell_once(storage.base_uri, str(error))
        for pin in pins[:-1]:
            with suppress(StorageError):
                delete_pin(storage, pin)
        return HeldPin(storage), False
    return HeldPin(storage, pins), True


@lru_cache(maxsize=256)
def _tell_once(table: str, reason: str) -> None:
    log.warning(
        "read_without_pin",
        table=table,
        reason=reason,
        hint="the reader may not write below .hoodie: a long read may lose its files to cleaning",
    )


def _is_cleaned_meanwhile(table: HudiTable, plan: Pinnable, *, is_pinned: bool) -> bool:
    """Whether cleaning took files of the plan, or is about to, although they are pinned."""
    timeline = table.load_timeline()
    running = [one for one in timeline if one.action is Action.CLEAN and one.time not in plan.cleans]
    cleans = {one.time: found for one in running if (found := _load_plan(table.storage, one)) is not None}
    return _has_lost_files(plan, timeline, cleans) or (is_pinned and _is_chosen(table.storage, plan, cleans.values()))


def _has_lost_files(plan: Pinnable, now: Timeline, cleans: Mapping[str, CleanPlan]) -> bool:
    """Whether files of the snapshot may have been deleted before the folders were listed.

    Args:
        now: the timeline, listed after the folders.
        cleans: those that were not completed when it was listed first, by instant time.
    """
    if plan.snapshot is None:
        return False
    before = plan.snapshot.listed
    if not Change.between(before.committed_times, now.committed_times).is_gapless:
        return True
    known = {instant.time for instant in before if instant.action is Action.CLEAN}
    return any(plan.loses_to(clean, is_new=time not in known) for time, clean in cleans.items())


def _is_chosen(storage: Storage, plan: Pinnable, cleans: Iterable[CleanPlan]) -> bool:
    """Whether a clean that may not have seen the pin names a file of the plan."""
    wanted = {file.path for found in plan.slices for file in found.files}
    return any(not wanted.isdisjoint(_files_of(storage, clean)) for clean in cleans)


def _load_plan(storage: Storage, clean: Instant) -> CleanPlan | None:
    """The plan of a clean in any state; None where the clean has none, or was withdrawn."""
    request = clean.at(State.REQUESTED)
    data = find_instant(storage, request)
    if data:
        return decode_clean_plan(data, request.file_name)
    done = find_instant(storage, clean) if clean.is_completed else None
    return decode_clean_metadata(done, clean.file_name).plan if done else None


def _files_of(storage: Storage, plan: CleanPlan) -> Iterator[str]:
    for path, files in plan.files.items():
        for file in files:
            try:
                yield storage.relative(file, path)
            except InvalidConfigError:
                continue  # the file is outside of the table

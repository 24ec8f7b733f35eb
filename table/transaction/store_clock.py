"""Keeps the modification times of completed files in order, because readers of merge-on-read tables use them.

Hudi 1.x takes the modification time of a completed file for the time at which its instant was completed, and gives a
log file to the newest slice that is not younger than that time (HoodieFileGroup, CompletionTimeQueryView; layout 1). So
a completed file must not look older than its own instant, nor younger than an instant that comes after it.
"""

from table import clock
from table.errors import InvalidConfigError, StorageError
from table.hudi_table import HudiTable
from table.log import get_logger
from table.options.choices import TableType
from table.storage.interface import OWN_FOLDER, Storage, join
from table.timeline.end_record import ENDS_FOLDER, EndRecord, end_path
from table.timeline.instant import State

_PROBE = "clock"
_LOOKS = 5  # checks within the granularity of the store's modification times
_TRIES = 4 * _LOOKS

log = get_logger("hudistream.commit")


def check_not_ahead(table: HudiTable, ahead_ms: int) -> None:
    """Refuses a machine whose clock is ahead of the store's by more than a minute, before anything is requested.

    Readers of a merge-on-read table in layout 1 compare the two clocks: its instants could not be completed before the
    store's clock reaches them. For other tables the lease has logged a warning.

    Args:
        ahead_ms: as `Lease.ahead_ms`.

    Raises:
        InvalidConfigError: the table is such a table.
    """
    if ahead_ms > clock.MAX_CLOCK_SKEW_MS and _are_read(table):
        raise InvalidConfigError(
            f"this machine's clock is {ahead_ms / 1000:.0f} s ahead of the clock of {table.storage.base_uri!r}: "
            "correct one of them. Readers would take log files for those of other file slices, and writers whose clock "
            "is right could not write until that time has come; nothing was written"
        )


def wait_past_completed(table: HudiTable) -> None:
    """Waits, before a new instant of a merge-on-read table, until this machine's clock has passed the completed files.

    The store's clock sets the modification times of these files.

    Raises:
        InvalidConfigError: the store's clock is ahead of this machine's by more than a minute.
    """
    if not _are_read(table):
        return
    names = table.layout.names
    instants = ((names.parse(entry.name), entry) for entry in table.storage.list_dir(names.folder) if not entry.is_dir)
    times = [entry.modified_ms for instant, entry in instants if instant and instant.state is State.COMPLETED]
    ahead_ms = max(times, default=0) - clock.now_ms()
    if ahead_ms > clock.MAX_CLOCK_SKEW_MS:
        raise InvalidConfigError(
            f"the clock of {table.storage.base_uri!r} is {ahead_ms / 1000:.0f} s ahead of this machine's: correct one "
            "of them; log files would be taken for those of other file slices"
        )
    if ahead_ms >= 0:
        clock.sleep_s((ahead_ms + 1) / 1000)


def wait_until_reached(table: HudiTable, end: EndRecord) -> None:
    """Waits until the store's clock has reached the time of a merge-on-read table's instant, before its completion.

    The end record was just written, so its modification time shows the store's clock. The store is asked again only if
    that time is too early, for example because the store counts whole seconds.

    Args:
        end: the end record of the instant, as written to the store.

    Raises:
        StorageError: the store's clock does not reach that time.
    """
    if not _are_read(table):
        return
    storage, wanted_ms = table.storage, clock.parse_instant_time(end.time, table.config.timezone)
    now_ms = _modified_ms(storage, ENDS_FOLDER, end_path(end.time, end.action).rpartition("/")[2])
    for _ in range(_TRIES):
        left_ms = wanted_ms - now_ms
        if left_ms <= 0:
            return
        # a store that counts whole seconds may show the next second at any moment; if the listing does not show the
        # end record, the store is asked again at once
        step_ms = left_ms if left_ms > storage.time_granularity_ms else storage.time_granularity_ms / _LOOKS
        clock.sleep_s(step_ms / 1000 if left_ms <= clock.MAX_CLOCK_SKEW_MS else 0)
        storage.put(join(OWN_FOLDER, _PROBE), b"")
        now_ms = _modified_ms(storage, OWN_FOLDER, _PROBE)
    raise StorageError(
        f"the clock of {storage.base_uri!r} is {(wanted_ms - now_ms) / 1000:.0f} s behind the instant {end.time}: "
        "correct it, or this machine's; readers would take log files for those of other file slices"
    )


def _are_read(table: HudiTable) -> bool:
    """Whether readers use modification times; in layout 2 they read completion times from file names."""
    return table.config.table_type == TableType.MERGE_ON_READ and not table.layout.completes_in_order


def _modified_ms(storage: Storage, folder: str, name: str) -> int:
    return max((entry.modified_ms for entry in storage.list_dir(folder) if entry.name == name), default=0)

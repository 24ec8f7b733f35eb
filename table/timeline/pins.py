"""Pins: a reader announces which snapshot it reads, so that cleaning keeps the snapshot's files for a while.

A pin is a file whose name contains an instant time and a lifetime. It ends when the reader deletes it, or when its age
reaches its lifetime. The age is the difference of two times that the store gives: the time of the pin, and the time of
a file that was just written. So no machine's clock matters. Hudi ignores the folder, and its cleaner ignores the pins.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from table import clock
from table.storage.interface import OWN_FOLDER, FileInfo, Storage, join
from table.version import SIGN

PINS_FOLDER = join(OWN_FOLDER, "pins")
LONGEST_S = 86_400
_NOW = "now"
_NAME = re.compile(r"(\d{14,})_(\d{1,6})_([0-9a-f-]+)")


@dataclass(frozen=True, slots=True)
class Pin:
    """A reader's claim to the files of a snapshot.

    Attributes:
        time: instant time of the last write that the reader sees.
        lifetime_s: seconds, counted from when the pin was last written.
        reader: unique id of the reader.
    """

    time: str
    lifetime_s: int
    reader: str

    @property
    def path(self) -> str:
        """Relative to the table."""
        return join(PINS_FOLDER, f"{self.time}_{self.lifetime_s}_{self.reader}")


def fresh_pin(time: str, lifetime_s: int) -> Pin:
    """A new pin, not yet written.

    Args:
        time: instant time of the last write that the reader sees.
        lifetime_s: seconds; more than a day counts as a day.
    """
    return Pin(time, min(lifetime_s, LONGEST_S), clock.fresh_uuid())


def parse_pin(name: str) -> Pin | None:
    """The pin that a file name stands for; None if it is not the name of a pin."""
    found = _NAME.fullmatch(name)
    return Pin(found[1], min(int(found[2]), LONGEST_S), found[3]) if found else None


def is_cleaned_here(storage: Storage) -> bool:
    """Whether hudistream writes the table. Other writers ignore pins, and readers write nothing to a foreign table."""
    return bool(storage.list_dir(OWN_FOLDER))


def write_pin(storage: Storage, pin: Pin) -> None:
    """Writes a pin, or renews it.

    Raises:
        StorageError: the store fails, or the reader may not write.
    """
    storage.put(pin.path, SIGN)


def delete_pin(storage: Storage, pin: Pin) -> None:
    """Deletes a pin."""
    storage.delete_metafile(pin.path)


def load_live_pins(storage: Storage) -> tuple[Pin, ...]:
    """The pins that have not expired, newest snapshot first. Deletes the expired pins.

    Raises:
        StorageError: the store fails.
    """
    if not any(parse_pin(entry.name) for entry in storage.list_dir(PINS_FOLDER)):
        return ()
    storage.put(join(PINS_FOLDER, _NOW), SIGN)
    entries = storage.list_dir(PINS_FOLDER)
    now_ms = next((entry.modified_ms for entry in entries if entry.name == _NOW), clock.now_ms())
    live, expired = sort_pins(entries, now_ms - storage.time_granularity_ms)
    for pin in expired:
        delete_pin(storage, pin)
    return live


def see_live_pins(storage: Storage) -> tuple[Pin, ...]:
    """The pins that may still hold, newest snapshot first, for those who only look: nothing is written or deleted.

    No file is written that would show the store's time. So a pin counts for a minute longer, by this machine's clock.

    Raises:
        StorageError: the store fails.
    """
    return sort_pins(storage.list_dir(PINS_FOLDER), clock.now_ms() - clock.MAX_CLOCK_SKEW_MS)[0]


def sort_pins(entries: Sequence[FileInfo], now_ms: int) -> tuple[tuple[Pin, ...], tuple[Pin, ...]]:
    """Splits the entries of the folder of pins into live pins, newest snapshot first, and expired pins.

    Args:
        entries: entries of the folder; other files are ignored.
        now_ms: the store's time.
    """
    found = [(pin, entry.modified_ms) for entry in entries if (pin := parse_pin(entry.name)) is not None]
    live = [pin for pin, written_ms in found if written_ms + 1000 * pin.lifetime_s >= now_ms]
    expired = [pin for pin, written_ms in found if written_ms + 1000 * pin.lifetime_s < now_ms]
    return tuple(sorted(live, key=lambda pin: (pin.time, pin.reader), reverse=True)), tuple(expired)

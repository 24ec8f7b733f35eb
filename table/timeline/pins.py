"""Pins: a reader says which snapshot it reads, so that cleaning leaves its files alone for a while.

A pin is a file whose name says an instant and a lifetime. It ends when the reader deletes it, or when it is as
old as its lifetime. Its age is the difference of two times of the store, that of the pin and that of a file just
written, so no machine's clock matters. Hudi passes over the folder, and its cleaner over the pins.
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
        lifetime_s: seconds from when it was last written.
        reader: one of a kind.
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
        time: instant time of the last write that is seen.
        lifetime_s: seconds; more than a day counts as a day.
    """
    return Pin(time, min(lifetime_s, LONGEST_S), clock.fresh_uuid())


def parse_pin(name: str) -> Pin | None:
    """The pin that a file name stands for, or None when it is none."""
    found = _NAME.fullmatch(name)
    return Pin(found[1], min(int(found[2]), LONGEST_S), found[3]) if found else None


def is_cleaned_here(storage: Storage) -> bool:
    """Whether hudistream writes the table: nobody else heeds pins, and readers leave nothing in a foreign table."""
    return bool(storage.list_dir(OWN_FOLDER))


def write_pin(storage: Storage, pin: Pin) -> None:
    """Writes a pin, or renews it.

    Raises:
        StorageError: the store fails, or the reader may not write.
    """
    storage.put(pin.path, SIGN)


def delete_pin(storage: Storage, pin: Pin) -> None:
    """Takes a pin back."""
    storage.delete_metafile(pin.path)


def load_live_pins(storage: Storage) -> tuple[Pin, ...]:
    """The pins that count, newest snapshot first; those that have expired are deleted.

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


def sort_pins(entries: Sequence[FileInfo], now_ms: int) -> tuple[tuple[Pin, ...], tuple[Pin, ...]]:
    """The pins among the entries of their folder: those that live, newest snapshot first, and those that expired.

    Args:
        entries: of the folder.
        now_ms: the store's time.
    """
    found = [(pin, entry.modified_ms) for entry in entries if (pin := parse_pin(entry.name)) is not None]
    live = [pin for pin, written_ms in found if written_ms + 1000 * pin.lifetime_s >= now_ms]
    expired = [pin for pin, written_ms in found if written_ms + 1000 * pin.lifetime_s < now_ms]
    return tuple(sorted(live, key=lambda pin: (pin.time, pin.reader), reverse=True)), tuple(expired)

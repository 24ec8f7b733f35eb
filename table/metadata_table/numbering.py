"""Numbers the metadata tables of a table, so that each has files of names that no other one has.

Files are deleted without a condition. A process can stand still before it deletes what is left of a metadata table,
until others have made a new one: it knows the names of the old files, and no new one.
"""

from collections.abc import Mapping

from table.config.table_config import load_table_config
from table.metadata_table.metadata_table import MADE
from table.storage.interface import Storage
from table.timeline.layout import TimelineLayout
from table.timeline.timeline import Timeline

COUNT = "hudistream.metadata.made"  # property: how many metadata tables of the table were begun
_NUMBERS = 99


def count_made(storage: Storage) -> int:
    """How many metadata tables of a table were begun so far, by its properties as they are now.

    Raises:
        CorruptFileError, StorageError: the properties cannot be read.
    """
    now = load_table_config(storage)
    return counted(now.extra) if now is not None else 0


def counted(properties: Mapping[str, str]) -> int:
    """The number that properties hold; 0 without one (pure)."""
    text = properties.get(COUNT, "")
    return int(text) if text.isdecimal() else 0


def first_time(layout: TimelineLayout, timeline: Timeline, count: int) -> str:
    """The time of the instant that makes the lists of files (HoodieBackedTableMetadataWriter, pure).

    Layout 2 has a completion time to say which writes the lists contain. In layout 1 the time says it. The digits after
    it say which metadata table it is, until they repeat. So what a process writes that stood still meanwhile is older.

    Args:
        layout: of the metadata table's timeline.
        timeline: of the table.
        count: how many metadata tables of the table were begun, with this one.
    """
    number = (count - 1) % _NUMBERS
    if layout.names.hold_completion:
        return f"{MADE}{number:02d}0"
    writes = timeline.completed_writes
    last = writes[-1].time.ljust(17, "0") if writes else MADE  # older writers' times have 14 digits
    return f"{last}{number + 1:02d}0"  # Hudi's services have 000 to 009

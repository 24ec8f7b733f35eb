"""Where the bad rows of a table lie, and which columns they have beside those of the table (pure)."""

import zlib

from table.storage.folder_names import with_ending
from table.storage.interface import join
from table.storage.schemes import spellings_of

ENDING = "_bad_rows"  # of the folder beside a table
STAGING = "_staging"  # Spark passes over names that begin so
REPLAYS = "_replays"

REASON, BATCH_ID, SINK_ID, TIME = (
    "_hudistream_reason",
    "_hudistream_batch_id",
    "_hudistream_sink",
    "_hudistream_time",
)
FILE, ROW, REPLAYED = "_hudistream_file", "_hudistream_row", "_hudistream_replayed"
TOLD = (REASON, BATCH_ID, SINK_ID, TIME, FILE, ROW, REPLAYED)
"""The columns of a bad row that are not the table's."""


def table_key(base_uri: str, name: str) -> str:
    """Name of a table's own part of the folder: several tables may share one.

    A name that is too long for one folder of a disk is cut; so is none whose rows could have been put aside before.
    """
    ending = f"-{zlib.crc32(base_uri.encode('utf-8', 'surrogateescape')):08x}"
    return name + ending if "://" in base_uri else with_ending(name, ending)


def table_keys(base_uri: str, name: str) -> list[str]:
    """As `table_key`, then those of the address with each other scheme of its store, which another sink may use."""
    return [table_key(address, name) for address in spellings_of(base_uri)]


def staging_folder(key: str, instant_time: str) -> str:
    """Where the bad rows of one commit wait for it."""
    return join(STAGING, key, instant_time)

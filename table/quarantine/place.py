"""Where the bad rows of a table lie, and which columns they have beside those of the table (pure)."""

import zlib

from table.errors import InvalidConfigError
from table.storage.interface import join

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


def default_folder(path: str) -> str:
    """Where the bad rows of a table go unless ``hudistream.bad.rows.path`` says another place.

    Raises:
        InvalidConfigError: the table is at the root of its store: beside it would be another store.
    """
    folder = path.rstrip("/")
    _, scheme, place = folder.rpartition("://")
    if not place or (scheme and "/" not in place):
        raise InvalidConfigError(
            f"the table {path!r} is at the root of its store, so that no folder is beside it: set "
            "hudistream.bad.rows.path"
        )
    return folder + "_bad_rows"


def table_key(base_uri: str, name: str) -> str:
    """Name of a table's own part of the folder: several tables may share one."""
    return f"{name}-{zlib.crc32(base_uri.encode()):08x}"


def staging_folder(key: str, instant_time: str) -> str:
    """Where the bad rows of one commit wait for it."""
    return join(STAGING, key, instant_time)

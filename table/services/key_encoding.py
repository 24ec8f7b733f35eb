"""Keeps in a table's properties how its record keys are spelled, so that its files are looked at once."""

from dataclasses import replace

from table.config.key_generator import ENCODING_KEY
from table.config.table_config import update_properties
from table.log import get_logger
from table.scan.stored_key import with_key_encoding
from table.snapshot import Snapshot

log = get_logger("hudistream.keys")


def settle_key_encoding(snapshot: Snapshot) -> Snapshot:
    """A snapshot whose properties say how record keys are spelled. Writes the property where it is missing.

    The caller holds the table.

    Raises:
        CorruptFileError, StorageError: the file that was opened is damaged, or the store fails.
    """
    known = with_key_encoding(snapshot)
    encoding = known.config.key_encoding
    if known is snapshot or encoding is None:
        return snapshot
    config = update_properties(snapshot.storage, {ENCODING_KEY: encoding.value})
    log.info("key_encoding_found", table=snapshot.storage.base_uri, key_encoding=encoding.value)
    return Snapshot(replace(snapshot.table, config=config), snapshot.timeline, commits=snapshot.commits)

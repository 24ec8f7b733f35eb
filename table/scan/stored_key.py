"""Finds a record key in the table's files, for writers that must encode keys in the same way."""

import pyarrow as pa

from table.files.base.stored_file import StoredBaseFile
from table.files.names import BASE_FILE_EXTENSION
from table.schema.avro_schema import META_FIELDS, RECORD_KEY
from table.snapshot import Snapshot


def find_stored_key(snapshot: Snapshot) -> str | None:
    """A record key, if the encoding of the table's keys must be checked; None otherwise, and for an empty table.

    Raises:
        CorruptFileError, StorageError: the file that was opened is damaged, or the store fails.
    """
    config = snapshot.config
    if config.keygen_type != "COMPLEX" or len(config.record_key_fields) != 1 or not config.populate_meta_fields:
        return None
    for instant in reversed(snapshot.timeline.completed_writes):
        for stat in snapshot.commits.read(instant).stats:
            if stat.path.endswith(BASE_FILE_EXTENSION) and snapshot.storage.exists(stat.path):
                with StoredBaseFile(snapshot.storage, stat.path) as file:
                    for rows in file.read_batches(pa.schema([META_FIELDS[2]])):
                        return str(rows.column(RECORD_KEY)[0])
    return None

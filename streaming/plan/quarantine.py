"""Where the bad rows of a batch go (pure)."""

import zlib
from dataclasses import dataclass

from table.quarantine.place import staging_folder
from table.storage.interface import Storage


@dataclass(frozen=True)
class Quarantine:
    """Where the bad rows of a batch go. The value is small, because it is sent to the workers.

    Attributes:
        storage: the folder beside the table.
        table_key: separates this table's staged files from the files of other tables that share the folder.
        instant_time: the commit of the batch.
        batch_id: Spark's id, or None.
        sink_id: the sink's name.
        time_us: when the batch began, microseconds since the epoch.
    """

    storage: Storage
    table_key: str
    instant_time: str
    batch_id: int | None
    sink_id: str
    time_us: int

    @property
    def staging_folder(self) -> str:
        """Where bad rows wait for their commit."""
        return staging_folder(self.table_key, self.instant_time)

    def file_name(self, write_token: str) -> str:
        """The name of a task's file, here and in the folder that several tables may share.

        Two tables may have instants of the same time, and tasks of the same write token.
        """
        table = zlib.crc32(self.table_key.encode("utf-8", "surrogateescape"))
        return f"{self.instant_time}_{write_token}_{table:08x}.parquet"

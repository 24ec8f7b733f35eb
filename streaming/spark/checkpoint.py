"""The checkpoint of a streaming query, as Spark writes it: the query's id, and where its sources stand."""

import json
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any

from table.errors import InvalidConfigError, StorageError
from table.log import get_logger
from table.storage.interface import Storage
from table.storage.opening import open_storage
from table.transaction.positions import Positions, decode_initial_offsets, decode_offset_log, kafka_offsets

log = get_logger("hudistream.sink")

_MOST_LOOKED_AT = 1_000


class QueryCheckpoint:
    """A query's checkpoint, read on the driver.

    Args:
        location: the query's ``checkpointLocation``.
        storage_options: what fsspec's file system gets (keys, endpoint).
    """

    def __init__(self, location: str, storage_options: Mapping[str, Any]) -> None:
        self._location = location
        self._storage: Storage = open_storage(location, storage_options)
        self._last: tuple[int, Positions] | None = None
        self._is_told = False

    def read_query_id(self) -> str:
        """The query's id, from the file ``metadata``.

        Raises:
            InvalidConfigError: there is none.
        """
        try:
            return str(json.loads(self._storage.read("metadata"))["id"])
        except (FileNotFoundError, ValueError, KeyError) as error:
            raise InvalidConfigError(
                f"hudistream.checkpoint.location={self._location}: there is no streaming checkpoint ({error}); give "
                "the query's own checkpointLocation"
            ) from error

    def check_under_way(self, batch_id: int) -> None:
        """Refuses a batch that the query is not at: it is of another query, whose id no task can say.

        While Spark writes batch N, the checkpoint of its query has ``offsets/N``, and not ``commits/N``.

        Args:
            batch_id: Spark's id of the batch.

        Raises:
            InvalidConfigError: the query has not begun the batch, or has done it.
            StorageError: the checkpoint cannot be read.
        """
        if self._has(f"offsets/{batch_id}") and not self._has(f"commits/{batch_id}"):
            return
        raise InvalidConfigError(
            f"hudistream.checkpoint.location={self._location} is the checkpoint of a query that is not at batch "
            f"{batch_id}: the batch is of another query. Give each query a sink of its own, with the query's own "
            "checkpointLocation; nothing was written"
        )

    def _has(self, path: str) -> bool:
        try:
            self._storage.read(path)
        except FileNotFoundError:
            return False
        return True

    def positions_of(self, batch_id: int) -> "CheckpointPositions":
        """Where the sources stand around a batch."""
        return CheckpointPositions(self, batch_id)

    def load_end(self, batch_id: int) -> Positions | None:
        """Where the sources stand after a batch; None: the file cannot be read, which is logged once.

        It is read each time: a checkpoint that has lost offsets gets another file of that name.
        """
        try:
            found = decode_offset_log(self._storage.read(f"offsets/{batch_id}").decode())
        except (FileNotFoundError, StorageError, ValueError) as error:
            self._tell(f"offsets/{batch_id}", error)
            return None
        self._last = batch_id, found
        return found

    def load_start(self, batch_id: int) -> Positions | None:
        """Where the sources stand before a batch.

        Spark writes where a Kafka source began into ``sources/N/0``. Other sources do not say.
        """
        if batch_id > 0:
            if self._last is not None and self._last[0] == batch_id - 1:
                return self._last[1]
            return self.load_end(batch_id - 1)
        end = self.load_end(batch_id)
        if end is None:
            return None
        try:
            read = (self._storage.read(f"sources/{number}/0") for number in range(len(end)))
            begun = tuple(decode_initial_offsets(content) for content in read)
        except (FileNotFoundError, StorageError, ValueError):
            return None
        # other sources keep something else in that file, such as the names of their files
        return begun if all(kafka_offsets(position) is not None for position in begun) else None

    def _tell(self, name: str, error: Exception) -> None:
        if not self._is_told:
            self._is_told = True
            log.warning(
                "positions_not_recorded",
                checkpoint=self._location,
                file=name,
                error=str(error),
                hint="commits do not tell where the sources stood, so a stream whose checkpoint is lost cannot be "
                "continued from the table; give a hudistream.checkpoint.location that the driver can read",
            )


class CheckpointPositions:
    """Where the sources of a query stand around one batch.

    Args:
        checkpoint: of the query.
        batch_id: Spark's id of the batch.
    """

    def __init__(self, checkpoint: QueryCheckpoint, batch_id: int) -> None:
        self._checkpoint, self._batch_id = checkpoint, batch_id

    def load_start(self) -> Positions | None:
        """Before the batch; None: it cannot be found out."""
        return self._checkpoint.load_start(self._batch_id)

    def load_end(self) -> Positions | None:
        """After the batch; None: it cannot be found out."""
        return self._checkpoint.load_end(self._batch_id)


def tell_temporary_checkpoint(query_id: str) -> None:
    """Warns if a query has no ``checkpointLocation``.

    The DataFrame API does not say where a checkpoint lies. But where none is given, Spark makes one in the temporary
    folder of the driver's machine (StreamingQueryManager), and the file ``metadata`` in it holds the query's id.

    Args:
        query_id: of the streaming query.
    """
    found = Path(tempfile.gettempdir()).glob("temporary-*/metadata")
    for metadata in islice(found, _MOST_LOOKED_AT):
        with suppress(OSError, ValueError, KeyError, TypeError):
            if json.loads(metadata.read_bytes())["id"] == query_id:
                log.warning(
                    "checkpoint_is_temporary",
                    checkpoint=str(metadata.parent),
                    query_id=query_id,
                    hint="the stream has no checkpointLocation, and Spark deletes this checkpoint when it stops: the "
                    "next start would read the source from its beginning; give the stream "
                    '.option("checkpointLocation", PATH)',
                )
                return

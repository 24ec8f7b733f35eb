"""Follows a table: each batch has, for each key that a range of commits wrote, its latest row; or it has the changes.

A batch ends before the first pending write, so no commit is missed. If Spark repeats a batch after a crash, the batch
has the same range.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from pyspark_hudistream.batch_reader import feed_of, parcels_of, parcels_of_feed
from pyspark_hudistream.offsets import Offset, make_offset, since_of
from pyspark_hudistream.source_options import SourceOptions
from streaming.spark.split_rows import read_parcel
from table.errors import InvalidConfigError
from table.hudi_table import HudiTable
from table.log import get_logger
from table.scan.as_of import check_kept, commits_between, instant_time_of
from table.scan.change_range import EARLIEST, newest_settled
from table.scan.pinned import HeldPin, plan_pinned
from table.scan.predicate import with_terms
from table.scan.scan import Scan, make_range, make_scan
from table.schema.avro_schema import COMMIT_TIME
from table.snapshot import Snapshot

log = get_logger("hudistream.read")


class ChangesReader(DataSourceStreamReader):
    """The common part of the stream readers: the start of a stream and the rows of a batch. Subclasses set its end.

    Args:
        asked: the options.
        schema: the columns, with Spark's types.
    """

    def __init__(self, asked: SourceOptions, schema: StructType) -> None:
        self._asked, self._schema = asked, schema
        self._began_after: str | None = None
        self._pins: list[tuple[str, HeldPin]] = []  # end of the batch, and the pin that protects its files

    def initialOffset(self) -> Offset:  # noqa: N802 Spark's name
        """Where a new stream begins: ``starting_offset``.

        Raises:
            InvalidConfigError: the value is neither ``earliest`` nor ``latest`` nor a time, or the table has no commit.
        """
        start = (self._asked.read.start or "earliest").strip()
        table = self._open()
        if Snapshot.load(table).load_schema() is None:
            raise InvalidConfigError(
                f"the table at {self._asked.path!r} has no commit yet, so its columns are not known: start the stream "
                "after the first commit"
            )
        if start.lower() == "latest":
            first = newest_settled(table.load_timeline()) or EARLIEST
        elif start.lower() == "earliest":
            first = EARLIEST
        else:
            first = instant_time_of(start, table.config.timezone, "starting_offset")
        self._began_after = first
        return make_offset(first, first)

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        """The parcels of a batch.

        If cleaning has deleted files of the end's snapshot, the batch reads the rows of the same commits from the
        newest snapshot. Rows that later commits rewrote come with the batches of those commits, so no key is lost. A
        batch of a change feed is refused then: its deletes and old rows are not known any more.

        Raises:
            InvalidConfigError: the changes after the start cannot be read any more. Names the first instant that can.
            SchemaMismatchError: a column has another type than at the start of the stream.
        """
        since, until = since_of(start, end), end["instant"]
        table = self._open()
        if since > until and self._asked.feed is not None:  # Spark 4.0 and 4.1: the newest commits were undone
            feed_of(table, self._asked, since, None, self._schema.names).plan()  # refuses, and names them
        if since >= until:
            return []
        if self._asked.feed is not None:
            feed = feed_of(table, self._asked, since, until, self._schema.names)
            changes, held = feed.plan_pinned()
            self._pins.append((until, held))
            return parcels_of_feed(changes, self._schema)
        scan = self._changes(table, since, until)
        plan, pin = plan_pinned(table, scan.plan, scan.pin_s)
        self._pins.append((until, pin))
        return parcels_of(plan, self._schema)

    def _changes(self, table: HudiTable, since: str, until: str) -> Scan:
        columns, where = self._schema.names, self._asked.where
        snapshot = Snapshot.load(table)
        try:
            check_kept(snapshot, f"the end of a batch, {until}", [until])
        except InvalidConfigError:
            log.info("batch_read_from_newest_snapshot", since=since, until=until, table=self._asked.path)
            return make_scan(table, columns, with_terms(where, self._written_in(snapshot, since, until)))
        return make_range(table, since, until, columns, where)

    @staticmethod
    def _written_in(snapshot: Snapshot, since: str, until: str) -> list[tuple[str, str, Any]]:
        """The condition that a commit of a range wrote a row, or one that was archived since and is later."""
        times = commits_between(snapshot, since, until).times
        if times is None:
            return [(COMMIT_TIME, ">", since), (COMMIT_TIME, "<=", until)]
        return [(COMMIT_TIME, "in", sorted(times))]

    def commit(self, end: Offset) -> None:
        """Allows cleaning to delete the files of batches up to this one. The next batch of a change feed needs its end.

        Args:
            end: the end of a finished batch.
        """
        self._release(end["instant"])

    def _renew(self) -> None:
        """Lets pins live on while nothing new comes."""
        for _, pin in self._pins:
            pin.renew()

    def stop(self) -> None:
        """Allows cleaning to delete all files. If Spark ends the process without this call, the pins expire."""
        self._release(None)

    def _release(self, until: str | None) -> None:
        """Releases the pins of batches up to an end; None: all. A change feed keeps the snapshot of the end itself."""
        keeps_end = self._asked.feed is not None and until is not None
        pins, self._pins = self._pins, []
        for end, pin in pins:
            if until is not None and (end > until or (keeps_end and end == until)):
                self._pins.append((end, pin))
            if until is None or end <= until:
                pin.release(keeps_newest=keeps_end and end == until)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of a parcel.

        Raises:
            CorruptFileError, StorageError: a file cannot be decoded or read.
        """
        yield from read_parcel(partition.value)

    def _open(self) -> HudiTable:
        return HudiTable.open(self._asked.path, self._asked.storage_options)


class StreamReader(ChangesReader):
    """Reads all available commits in each batch: for Spark 4.0 and 4.1.

    Args:
        asked: the options.
        schema: the columns, with Spark's types.
    """

    def latestOffset(self) -> Offset:  # noqa: N802 Spark's name
        """The newest instant before which no write is pending."""
        self._renew()
        newest = newest_settled(self._open().load_timeline())
        if newest is None:
            return self.initialOffset()
        # after a restart, Spark 4.0 and 4.1 do not tell the reader where the stream began, and do not need it
        return make_offset(newest, self._began_after) if self._began_after is not None else {"instant": newest}

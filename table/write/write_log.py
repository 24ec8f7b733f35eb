"""Writes changes of one file group to log files of its newest file slice (HoodieAppendHandle).

A commit writes its own log files, and appends to no existing file. So a rollback undoes a failed commit by deleting its
files.
"""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from table import clock
from table.columns.take import take_rows
from table.errors import StorageError
from table.files.base.summary import BaseFileSummary
from table.files.column_ranges import Ranges, ranges_of_rows
from table.files.key_changes import KeyChanges
from table.files.log.delete_block import reads_as_none
from table.files.log.encode_blocks import data_blocks, delete_block
from table.files.log.framing import BlockType, LogBlock, encode_block
from table.files.log.record_positions import RecordPositions
from table.files.names import LogFileName, MarkerName, log_write_token, parse_base_file
from table.files.publication import discard, publish
from table.records.merge import MergeRules, delete_flags
from table.schema.avro_schema import RECORD_KEY
from table.storage.interface import join
from table.timeline.metadata.commit import WriteStat
from table.write.announce import announce, check_not_ended, check_still_wanted
from table.write.context import Attempt, LogSlot, WriteContext
from table.write.flushes import Flushes
from table.write.merge_bucket import Changes
from table.write.meta_columns import stamp_new_rows

Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class LogChanges:
    """Records that change a file group.

    Attributes:
        partition_path: "" in a non-partitioned table.
        file_id: id of the file group.
        slot: the file slice that the log files are added to.
        incoming: the records (table columns and ``_hoodie_record_key``).
        removes: for each record, whether it removes its key regardless of ordering values.
        inserted: how many of the records are new to the table, or count as new because their keys were not looked up.
        positions: of the rows that the records change; None if they are not known.
        keys: what the file group gets and loses by them, if write stats record it and it is known.
    """

    partition_path: str
    file_id: str
    slot: LogSlot
    incoming: pa.Table
    removes: Flags
    inserted: int = 0
    positions: RecordPositions | None = None
    keys: KeyChanges | None = None


def with_positions(changes: Changes, base_file: str | None) -> tuple[Changes, RecordPositions | None]:
    """Puts changes into the order of the rows that they change, if each changes one row of a base file (pure).

    Args:
        changes: of the file group.
        base_file: name of the file in which their keys were found; None if there is none.

    Returns:
        The changes, and the positions of their rows; the changes as they are and None if the positions are not known.
    """
    count, base = len(changes.incoming), parse_base_file(base_file or "")
    if base is None or len(changes.rows) != count or len(np.unique(changes.matches)) != count:
        return changes, None
    incoming, removes = take_rows(changes.incoming, changes.matches), changes.removes[changes.matches]
    positions = RecordPositions(base.instant_time, changes.rows)
    return Changes(incoming, changes.rows, np.arange(count), removes), positions


def can_be_logged(changes: Changes, rules: MergeRules) -> bool:
    """Whether readers of a log find the ordering values of the deletes among changes (pure).

    Where they do not, the changes go into the next base file.

    Args:
        changes: of the file group.
        rules: decide which record wins.
    """
    deletes = delete_flags(changes.incoming, rules) & ~changes.removes
    # without a value a delete wins, which is right where nothing is compared
    compares = rules.compares and (rules.orders_deletes or not rules.fills)
    if not compares or not deletes.any():
        return True
    order = _order_of(changes.incoming.filter(pa.array(deletes)), np.zeros(int(deletes.sum()), np.bool_), rules)
    return not reads_as_none(order)


def write_log(
    context: WriteContext, attempt: Attempt, changes: LogChanges
) -> Iterator[tuple[WriteStat, BaseFileSummary]]:
    """Writes the log files of one file group: several if the blocks exceed the size of one file.

    Args:
        attempt: the attempt that writes the files.
        changes: the records to write.

    Yields:
        The write stat of each finished file, and the report of how it was written.

    Raises:
        StorageError: the store fails, or the instant has ended.
    """
    log: _LogFile | None = None
    untold = changes.inserted  # of several files the first ones tell of them
    version, deletes = changes.slot.version, delete_flags(changes.incoming, context.merge) | changes.removes
    token = log_write_token(attempt.write_token, context.instant_time, has_deletes=bool(deletes.any()))
    before, stamped = changes.slot.log_files, _stamped(context, attempt, changes, deletes)
    # each file gets the ranges of all rows: bounds may be wider than needed
    ranges = ranges_of_rows([stamped], context.ranged) if context.ranged else None
    try:
        for block, records in _blocks(context, stamped, changes, deletes):
            if log is not None and log.size_bytes >= context.log_settings.file_bytes:
                written = log.close(untold)
                untold -= written[0].num_inserts
                yield written
                before, log, version = (*before, log.name), None, version + 1
            if log is None:
                log = _LogFile(
                    context,
                    attempt.flushes,
                    changes,
                    LogFileName(changes.file_id, changes.slot.base_instant_time, version, token),
                    before,
                    ranges,
                )
            log.write(block, records)
        if log is not None:
            yield log.close(untold)
    except BaseException:
        if log is not None:
            log.abandon()
        raise


def _stamped(context: WriteContext, attempt: Attempt, changes: LogChanges, deletes: Flags) -> pa.Table:
    """The records without deletes, with meta columns."""
    rows = changes.incoming.filter(pa.array(~deletes)) if deletes.any() else changes.incoming
    numbered = (attempt.task, attempt.take_numbers(len(rows)))
    # a log record names its file group, not a file
    return stamp_new_rows(rows, context.schema, context.instant_time, changes.partition_path, changes.file_id, numbered)


def _blocks(
    context: WriteContext, stamped: pa.Table, changes: LogChanges, deletes: Flags
) -> Iterator[tuple[LogBlock, int]]:
    """The data blocks, then the delete block, each with its number of records."""
    incoming, positions = changes.incoming, changes.positions
    if len(stamped):
        yield from data_blocks(
            stamped,
            context.avro_schema,
            context.instant_time,
            context.log_settings,
            context.settings,
            None if positions is None else positions.part(~deletes),
        )
    if deletes.any():
        gone, removes = incoming.filter(pa.array(deletes)), changes.removes[deletes]
        keys = _one_array(gone.column(RECORD_KEY))
        yield (
            delete_block(
                keys,
                _order_of(gone, removes, context.merge),
                changes.partition_path,
                context.avro_schema,
                context.instant_time,
                None if positions is None else positions.part(deletes),
            ),
            len(keys),
        )


def _order_of(gone: pa.Table, removes: Flags, rules: MergeRules) -> pa.Table:
    """The ordering values of deletes, a column a field; null for a delete that removes its key regardless of order.

    Where no delete has ordering values, the table has no columns.
    """
    fields = list(rules.ordering_fields)
    if rules.deletes_all or not {*fields} <= {*gone.column_names}:
        return gone.select([])
    order = gone.select(fields)
    return order.take(pa.array(np.arange(len(gone)), mask=removes)) if removes.any() else order


def _one_array(column: pa.ChunkedArray) -> pa.Array:
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)


@dataclass
class _LogFile:
    """One log file that a commit writes: announced before it is opened, published when it is whole."""

    context: WriteContext
    flushes: Flushes
    changes: LogChanges
    log_name: LogFileName
    before: tuple[str, ...]
    ranges: Ranges | None = None
    size_bytes: int = 0
    _records: dict[BlockType, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._started_s = clock.monotonic_s()
        self.path = join(self.changes.partition_path, self.name)
        slot, instant_time = self.changes.slot, self.context.instant_time
        if slot.base_instant_time != instant_time and self.context.storage.exists(self.path):
            # unlike a base file's name, the name of a log file does not hold the commit's instant
            raise StorageError(f"the log file {self.path} is there already: run the batch again")
        self._stage = announce(self.context, MarkerName(self.path, slot.marker))
        self._sink = self.context.storage.open_output(self.path, self._stage)

    @property
    def name(self) -> str:
        return str(self.log_name)

    def write(self, block: LogBlock, records: int) -> None:
        data = encode_block(block)
        self._sink.write(data)
        self.size_bytes += len(data)
        self._records[block.type] = self._records.get(block.type, 0) + records

    def close(self, inserted: int) -> tuple[WriteStat, BaseFileSummary]:
        storage = self.context.storage
        publish(storage, self.path, self._stage, self._sink, lambda: check_not_ended(self.context, self.path))
        self.flushes.begin(storage, self.path, self.size_bytes)
        check_still_wanted(self.context, self.path)
        return self._stat(inserted), BaseFileSummary(0, self.size_bytes, 0)

    def _stat(self, inserted: int) -> WriteStat:
        changes, slot = self.changes, self.changes.slot
        deletes = self._records.get(BlockType.DELETE, 0)
        writes = sum(self._records.values()) - deletes
        return WriteStat(
            file_id=changes.file_id,
            path=self.path,
            partition_path=changes.partition_path,
            prev_commit=slot.base_instant_time,
            num_writes=writes,
            num_inserts=min(inserted, writes),
            num_update_writes=writes - min(inserted, writes),
            num_deletes=deletes,
            total_write_bytes=self.size_bytes,
            file_size_bytes=self.size_bytes,
            upsert_ms=round((clock.monotonic_s() - self._started_s) * 1000),
            extra={
                "logVersion": self.log_name.version,
                "logOffset": 0,
                "baseFile": slot.base_file,
                "logFiles": [*self.before, self.name],
                "recordsStats": {"val": None},
            },
            ranges=self.ranges,
            keys=changes.keys,
        )

    def abandon(self) -> None:
        """Closes the open file after a failure. The rollback finds the file by its marker."""
        with suppress(OSError, StorageError):
            discard(self.context.storage, self.path, self._stage, self._sink)

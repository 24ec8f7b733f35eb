"""FeedPart: file groups of a change feed that are read together. It can be read in another process, by any engine."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from operator import attrgetter

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from table.columns.lots import SpilledLots
from table.config.table_config import TableConfig
from table.files.bloom.key_hashes import hash_keys
from table.index.virtual_keys import VirtualKeys, virtual_keys_of
from table.keys.arrow_keys import compute_record_keys
from table.scan.feed.choices import BEFORE, DELETED, INSERTED, INSTANT, OPERATION, UPDATED, FeedChoices, shown_schema
from table.scan.feed.compare import IDENTITY, KEY, TIME, UNTIL, Compared, Rules, compare_rows, uncommon_keys
from table.scan.log_records import find_blocks
from table.scan.partition_guarantee import with_folder_values
from table.scan.predicate import Predicate
from table.scan.read_plan import refused_condition
from table.scan.read_slice import SliceContext, deletion_named, read_slice
from table.schema.avro_schema import COMMIT_SEQNO, COMMIT_TIME, RECORD_KEY
from table.view.file_group import FileSlice, LogFile

PARTIAL_SINCE = 8  # version of tables whose logs may hold records that lack columns
_LOTS = 32
_SHOWN_ROWS = 65_536  # of a piece of the result
_order_of = attrgetter("order")


@dataclass(frozen=True)
class GroupChange:
    """A file group before and after a step.

    Attributes:
        partition_path: "" in a non-partitioned table.
        before: None where it had no rows yet.
        after: None where it was replaced.
        last: request time of the last commit of the step that changed it.
        logs: the log files that commits of the step wrote.
    """

    partition_path: str
    file_id: str
    before: FileSlice | None
    after: FileSlice | None
    last: str
    logs: tuple[LogFile, ...] = ()

    @property
    def slices(self) -> tuple[FileSlice, ...]:
        """Those that there are."""
        return tuple(found for found in (self.before, self.after) if found is not None)


@dataclass(frozen=True, eq=False)
class FeedReading:
    """What is read of the groups of a step. Small and picklable.

    Attributes:
        config: the table's properties.
        schema: every column of the table as it is now, meta columns first, all nullable (Arrow).
        names: the columns wanted, in order.
        predicate: which rows are wanted; None means all.
        choices: what is shown.
        rules: when a pair of rows is a change.
    """

    config: TableConfig
    schema: pa.Schema
    names: tuple[str, ...]
    predicate: Predicate | None
    choices: FeedChoices
    rules: Rules = field(default_factory=lambda: Rules((), frozenset()))

    @property
    def virtual(self) -> VirtualKeys | None:
        """How record keys are made; None where rows hold them."""
        return virtual_keys_of(self.config, self.schema)

    @property
    def wanted(self) -> pa.Schema:
        """The columns wanted."""
        return pa.schema([self.schema.field(name) for name in dict.fromkeys(self.names)])

    @property
    def identity(self) -> pa.Schema:
        """The stored columns that identify a row."""
        if self.virtual is not None:
            return self.virtual.columns
        return pa.schema([self.schema.field(name) for name in (RECORD_KEY, COMMIT_TIME, COMMIT_SEQNO)])

    @property
    def needed(self) -> pa.Schema:
        """The columns that are read."""
        asked = self.predicate.columns if self.predicate is not None else frozenset()
        names = dict.fromkeys([*self.names, *self.identity.names, *sorted(asked)])
        return pa.schema([self.schema.field(name) for name in names])

    @property
    def held(self) -> pa.Schema:
        """The columns of rows while they are compared."""
        texts = [pa.field(name, pa.string()) for name in (*IDENTITY, UNTIL)]
        return pa.schema([*self.wanted, *texts])


@dataclass(frozen=True, eq=False)
class FeedPart:
    """Some file groups of one step. Immutable and picklable; has no open file.

    Attributes:
        before: needed to read slices before the step.
        after: needed to read slices after it.
        groups: by partition path and file group.
        reading: what is read.
        joins: whether a row may be in one group before and in another one after.
    """

    before: SliceContext
    after: SliceContext
    groups: tuple[GroupChange, ...]
    reading: FeedReading
    joins: bool

    @property
    def slices(self) -> tuple[FileSlice, ...]:
        """The slices that are read."""
        return tuple(found for group in self.groups for found in group.slices)

    @property
    def size_bytes(self) -> int:
        """Compressed size of their files."""
        return sum(file.size_bytes for found in self.slices for file in found.files)

    @property
    def schema(self) -> pa.Schema:
        """The columns of its rows (Arrow)."""
        return shown_schema(
            pa.schema([self.reading.schema.field(name) for name in self.reading.names]), self.reading.choices
        )

    def to_batches(self) -> pa.RecordBatchReader:
        """Its changes as a stream; the rows of one file group are in memory, as far as they changed.

        Raises:
            CorruptFileError, StorageError: a file cannot be decoded or read.
        """
        batches = (batch for rows in self.read() for batch in rows.to_batches())
        return pa.RecordBatchReader.from_batches(self.schema, batches)

    def read(self) -> Iterator[pa.Table]:
        """Its changes in pieces. Raises as `to_batches`."""
        found = self._joined() if self.joins else (one for group in self.groups for one in self._compare(group))
        for one in found:
            yield from _shown(one, self.reading, self.schema)

    def _joined(self) -> Iterator[Compared]:
        """Pairs the rows that left one group with those that came to another, in lots by key on local disk."""
        held = self.reading.held
        with SpilledLots(held, _LOTS) as gone, SpilledLots(held, _LOTS) as come:
            for group in self.groups:
                for found in self._compare(group):
                    for lots, rows in ((gone, found.deleted), (come, found.inserted)):
                        lots.add(rows, hash_keys(rows.column(KEY)) % _LOTS)
                    nothing = held.empty_table()
                    yield Compared(found.old, found.new, nothing, nothing)
            for number in range(_LOTS):
                sides = [pa.concat_tables([held.empty_table(), *lots.read(number)]) for lots in (gone, come)]
                yield compare_rows(sides[0], sides[1], self.reading.rules)

    def _compare(self, group: GroupChange) -> Iterator[Compared]:
        """What became of the rows of a group. Rows of a group that is new, or is gone, are not held."""
        nothing = self.reading.held.empty_table()
        if group.before is None or group.after is None:
            for rows in self._rows(group, is_after=group.before is None):
                yield Compared(nothing, nothing, *((nothing, rows) if group.before is None else (rows, nothing)))
            return
        keys, rules = None, self._rules_for(group)
        if rules.by_identity:
            sides = [self._identities(group, is_after=is_after) for is_after in (False, True)]
            keys = uncommon_keys(sides[0], sides[1])
            if not len(keys):
                return
        found = [
            pa.concat_tables([nothing, *self._rows(group, is_after=is_after, keys=keys)]) for is_after in (False, True)
        ]
        yield compare_rows(found[0], found[1], rules)

    def _rules_for(self, group: GroupChange) -> Rules:
        """The rules for a group: by values where a log file holds partial updates, of which late ones count, too."""
        rules = self.reading.rules
        logs = {log for found in group.slices for log in found.log_files} | set(group.logs)
        if not rules.by_identity or self.reading.config.version < PARTIAL_SINCE or not logs:
            return rules
        written = FileSlice(group.partition_path, group.file_id, group.last, None, tuple(sorted(logs, key=_order_of)))
        with deletion_named(self.after.table.storage):
            blocks = find_blocks(self.after.table.storage, written, self.after.committed)
        return rules if all(found.columns is None for found in blocks) else replace(rules, by_identity=False)

    def _identities(self, group: GroupChange, *, is_after: bool) -> pa.Table:
        context, found = (self.after, group.after) if is_after else (self.before, group.before)
        assert found is not None
        names = self.reading.identity
        rows = pa.concat_tables([names.empty_table(), *read_slice(context, found, names)])
        return rows.rename_columns(list(IDENTITY))

    def _rows(self, group: GroupChange, *, is_after: bool, keys: pa.Array | None = None) -> Iterator[pa.Table]:
        """The rows of a group before or after, which fulfil the condition, with the columns of `FeedReading.held`.

        Args:
            group: of the part.
            is_after: whether the rows after are wanted.
            keys: record keys of the rows that are wanted; None means all.
        """
        context, found = (self.after, group.after) if is_after else (self.before, group.before)
        assert found is not None
        reading = self.reading
        for stored in read_slice(context, found, reading.needed):
            rows = with_folder_values(stored, reading.config, group.partition_path)
            if keys is not None:
                rows = rows.filter(pc.is_in(rows.column(RECORD_KEY), value_set=keys))
            if reading.predicate is not None:
                try:
                    rows = rows.filter(reading.predicate.expression)
                except pa.ArrowException as error:
                    raise refused_condition(reading.predicate, error) from error
            if len(rows):
                yield _held(rows, reading, group.last)


def _held(rows: pa.Table, reading: FeedReading, last: str) -> pa.Table:
    nothing = pa.nulls(len(rows), pa.string())
    if reading.virtual is not None:
        identity = [compute_record_keys(reading.virtual.rules, rows), nothing, nothing]
    else:
        identity = [rows.column(name) for name in reading.identity.names]
    columns = [rows.column(name) for name in reading.wanted.names]
    return pa.Table.from_arrays([*columns, *identity, pa.repeat(pa.scalar(last), len(rows))], schema=reading.held)


def _shown(found: Compared, reading: FeedReading, schema: pa.Schema) -> Iterator[pa.Table]:
    """Changes as rows of the feed: updates, deletes, inserts."""
    kinds = [(UPDATED, found.new, found.old), (DELETED, found.deleted, found.deleted), (INSERTED, found.inserted, None)]
    for operation, rows, before in kinds:
        if operation == DELETED and not reading.choices.deletes:
            continue
        for at in range(0, len(rows), _SHOWN_ROWS):
            old = before.slice(at, _SHOWN_ROWS) if before is not None else None
            yield _piece(operation, rows.slice(at, _SHOWN_ROWS), old, reading, schema)


def _piece(operation: str, rows: pa.Table, old: pa.Table | None, reading: FeedReading, schema: pa.Schema) -> pa.Table:
    values = {OPERATION: pa.repeat(pa.scalar(operation), len(rows)), INSTANT: _instants(operation, rows, reading)}
    if reading.choices.before:
        kind = schema.field(BEFORE).type
        values[BEFORE] = pa.nulls(len(rows), kind) if old is None else _as_structs(old, reading.names, kind)
    columns = [values[name] if name in values else rows.column(name) for name in schema.names]
    return pa.Table.from_arrays(columns, schema=schema)


def _instants(operation: str, rows: pa.Table, reading: FeedReading) -> pa.ChunkedArray:
    """The commit of each change: the one that wrote the row; of a deleted row the last one that changed its group."""
    if operation == DELETED or not reading.rules.written:
        # a feed from the earliest on names no commits: its rows do
        known = rows.column(TIME)
        return rows.column(UNTIL) if operation == DELETED or known.null_count else known
    wrote = pc.is_in(rows.column(TIME), value_set=pa.array(sorted(reading.rules.written), pa.string()))
    return pc.if_else(wrote, rows.column(TIME), rows.column(UNTIL))


def _as_structs(rows: pa.Table, names: tuple[str, ...], kind: pa.StructType) -> pa.Array:
    columns = [rows.column(name).combine_chunks() for name in names]
    whole = [pa.concat_arrays(one.chunks) if isinstance(one, pa.ChunkedArray) else one for one in columns]
    if not whole:
        return pa.array(np.full(len(rows), None), kind)
    return pa.StructArray.from_arrays(whole, fields=list(kind))

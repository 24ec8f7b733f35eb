"""Writes the next base file of a file group whose records change (HoodieMergeHandle).

Row groups without a changed record are copied. In large row groups with changed records only the changed columns are
encoded, and the others are copied. All other row groups are decoded, merged and encoded a batch of rows at a time. At
most about two row groups of the configured size are in memory, however large the file is.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from table.columns.take import take_rows
from table.config.merge_mode import MergeMode
from table.files.base.continued import Continued
from table.files.base.repeated_columns import file_schema, restamp_carried_rows
from table.files.base.stored_file import StoredBaseFile
from table.files.base.summary import BaseFileSummary
from table.files.base.writer import BaseFileWriter, CopyInDoubtError
from table.files.key_changes import KeyChanges
from table.files.parquet.carried_dictionaries import settled_dictionaries, with_dictionaries
from table.files.parquet.copy_checks import why_encoded_anew
from table.records.merge import MergeOutcome, changed_columns, decide_merge, delete_flags, merge_rows
from table.records.present_columns import PRESENT_COLUMN
from table.schema.avro_schema import FILE_NAME, PARTITION_PATH, RECORD_KEY
from table.timeline.metadata.commit import WriteStat
from table.write.base_file import WrittenFile, open_base_file
from table.write.bucket_file import BucketFile
from table.write.change_file import ChangeFile
from table.write.context import Attempt, Bucket, WriteContext
from table.write.merge_plan import MergePlan, plan_merge

Positions = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Changes:
    """Incoming records whose keys a base file holds.

    Attributes:
        incoming: the records (table columns and ``_hoodie_record_key``); each key occurs once.
        rows: positions in the file of the rows with these keys, ascending.
        matches: for each of these rows, the position of its record in `incoming`.
        removes: for each incoming record, whether it removes its key regardless of ordering values.
    """

    incoming: pa.Table
    rows: Positions
    matches: Positions
    removes: npt.NDArray[np.bool_]


class MergedFile(WrittenFile, Protocol):
    """The file that the merge writes: the version that it continues, and the meta columns of incoming records."""

    @property
    def name(self) -> str:
        """Name of the new file."""

    @property
    def stored(self) -> StoredBaseFile | None:
        """The open older version that this file continues; never None if its rows change."""

    @property
    def changes(self) -> ChangeFile | None:
        """The change file beside it."""

    def stamp(self, rows: pa.Table) -> pa.Table:
        """Puts the meta columns before incoming records."""


def merge_bucket(
    context: WriteContext,
    bucket: Bucket,
    attempt: Attempt,
    changes: Changes,
    inserts: pa.Table,
) -> tuple[WriteStat, BaseFileSummary]:
    """Writes the next version of a file group.

    Args:
        bucket: an UPDATE bucket.
        attempt: the attempt that writes the file.
        changes: records whose keys the file holds.
        inserts: records that are new to the table.

    Returns:
        The write stat, and the writer's report of the file.
    """
    file = BucketFile(context, bucket, attempt)
    try:
        merge = FileMerge(file, changes, inserts)
        summary = merge.write()
        keys = KeyChanges(tuple(inserts.column(RECORD_KEY).chunks), merge.gone_keys)
        stat = file.report(summary, keys, inserted=len(inserts), updated=merge.updated, deleted=merge.deleted)
        return stat, summary
    except BaseException:
        file.abandon()
        raise


def _one_record_a_row(changes: Changes) -> Changes:
    """The same changes, with a copy of the record for each row if the file holds a key several times."""
    matches = changes.matches
    if len(np.unique(matches)) == len(matches):
        return changes
    incoming = take_rows(changes.incoming, matches)
    return Changes(incoming, changes.rows, np.arange(len(matches)), changes.removes[matches])


class FileMerge:
    """One file group's merge.

    Args:
        file: the new file.
        changes: records whose keys the older file holds.
        inserts: records of other keys.

    Attributes:
        updated: number of stored rows that were replaced.
        deleted: number of stored rows that were deleted.
        gone: their record keys.
        stays: record keys of changed rows that stayed, where the file holds a key several times.
    """

    def __init__(self, file: MergedFile, changes: Changes, inserts: pa.Table) -> None:
        assert file.stored is not None
        self._file, self._stored, self._context = file, file.stored, file.context
        self._changes, self._inserts = _one_record_a_row(changes), inserts
        self._starts = np.cumsum([0, *file.stored.group_rows])
        self._stamped = file.stamp(self._changes.incoming)
        self.updated = self.deleted = 0
        self.gone: list[pa.Array] = []
        self.stays: list[pa.Array] = []
        self._has_doubles = self._changes is not changes

    @property
    def gone_keys(self) -> tuple[pa.Array, ...]:
        """The record keys of which no row is left."""
        if not self.stays:
            return tuple(self.gone)
        stay = pa.chunked_array(self.stays, pa.string())
        gone = (keys.filter(pc.invert(pc.is_in(keys, value_set=stay))) for keys in self.gone)
        return tuple(keys for keys in gone if len(keys))

    def _plan(self) -> MergePlan:
        """Decides for each row group whether it is copied, patched or decoded."""
        changes, rules = self._changes, self._context.merge
        removes = (delete_flags(changes.incoming, rules) | changes.removes)[changes.matches]
        return plan_merge(
            self._stored.group_rows,
            self._groups_of(changes.rows),
            self._groups_of(changes.rows[removes]),
            len(self._inserts),
            self._stored.row_bytes,
            self._context.settings.row_group_bytes,
        )

    def _plan_anew(self) -> MergePlan:
        """The plan by which all rows are decoded and encoded."""
        return MergePlan((), tuple(range(len(self._stored.group_rows))))

    def _groups_of(self, rows: Positions) -> list[int]:
        groups: list[int] = np.unique(np.searchsorted(self._starts, rows, side="right") - 1).tolist()
        return groups

    def write(self) -> BaseFileSummary:
        """Writes the file. If a check of its copied parts fails, it is written once more, with all rows encoded."""
        reason = why_encoded_anew(self._stored, self._file.schema, self._context.settings)
        try:
            return self._write(self._plan_anew() if reason is not None else self._plan(), reason)
        except CopyInDoubtError as doubt:
            return self._write(self._plan_anew(), doubt.reason)

    def _write(self, plan: MergePlan, reason: str | None) -> BaseFileSummary:
        self.updated = self.deleted = 0
        self.gone, self.stays = [], []
        if self._file.changes is not None:
            self._file.changes.restart()
        patches = {group: partial(self._make_patch, group) for group in plan.patched}
        older = Continued(self._stored, reason, frozenset(plan.decoded), patches)
        writer = open_base_file(self._file, older)
        try:
            for group in plan.decoded:
                self._merge(writer, group)
            inserted = self._file.stamp(self._inserts)
            writer.write(inserted)
            if self._file.changes is not None:
                self._file.changes.inserted(inserted)
            return writer.close()
        except BaseException:
            writer.abandon()
            raise

    def _make_patch(self, group: int) -> pa.Table:
        """The changed columns of a row group. Record keys and partition paths are not read: they cannot change."""
        rules = self._context.merge
        same = (FILE_NAME, RECORD_KEY, PARTITION_PATH, self._context.key_column)
        names = [name for name in self._file.schema.names if name not in same or name in rules.ordering_fields]
        # if the order decides, the ordering columns alone show whether any row changes
        decides = rules.ordering_fields and rules.mode is MergeMode.EVENT_TIME
        decisive = list(rules.ordering_fields) if decides else names
        found = self._found(int(self._starts[group]), self._stored.group_rows[group])
        if not (found >= 0).any():
            return pa.table({})
        rows = self._read(group, decisive)
        outcome = decide_merge(rows, self._stamped, found, rules)
        if decisive != names and outcome.wins.any():
            rest = self._read(group, [name for name in names if name not in decisive])
            rows = pa.table({name: (rows if name in decisive else rest).column(name) for name in names})
        self.updated += outcome.updated
        if self._file.changes is not None and outcome.wins.any():
            self._note_patched(self._file.changes, group, outcome)
        return settled_dictionaries(changed_columns(rows, outcome))

    def _note_patched(self, changes: ChangeFile, group: int, outcome: MergeOutcome) -> None:
        """Notes the replaced rows of a patched row group with all their columns."""
        read = self._stored.read_rows_at(self._file.schema, group, outcome.rows[outcome.wins])
        before = pa.concat_tables(read)
        fresh = take_rows(outcome.fresh, outcome.chosen[outcome.wins])
        columns = [(fresh if name in fresh.column_names else before).column(name) for name in before.column_names]
        changes.updated(before, pa.table(columns, names=before.column_names))

    def _read(self, group: int, names: Sequence[str]) -> pa.Table:
        schema, rules = file_schema(self._file.schema), self._context.merge
        wanted = pa.schema([schema.field(name) for name in names])
        # code that compares or fills values needs plain columns, not dictionaries
        if self._context.settings.dictionary and not (rules.fills or PRESENT_COLUMN in self._stamped.column_names):
            held = self._stored.columns_in_dictionaries(group) - {*rules.ordering_fields}
            wanted = with_dictionaries(wanted, held)
        # read in one piece: otherwise each piece has its own dictionary, and they must be joined
        return pa.concat_tables(self._stored.read_batches(wanted, [group], max(1, self._stored.group_rows[group])))

    def _merge(self, writer: BaseFileWriter, group: int) -> None:
        at = int(self._starts[group])
        for chunk in self._stored.read_batches(file_schema(self._file.schema), [group]):
            named = restamp_carried_rows(chunk, self._file.name) if self._context.settings.has_meta_fields else chunk
            rows, found = named, self._found(at, len(chunk))
            merged = merge_rows(rows, self._stamped, found, self._context.merge, self._changes.removes)
            writer.write(merged.rows, carried=True)
            at += len(chunk)
            self.updated, self.deleted = self.updated + merged.updated, self.deleted + merged.deleted
            if self._file.changes is not None:
                self._file.changes.updated(take_rows(rows, merged.changed), merged.fresh)
                self._file.changes.deleted(take_rows(rows, merged.gone))
            if merged.deleted and self._context.tells_keys:
                self.gone += rows.column(RECORD_KEY).take(pa.array(merged.gone)).chunks
            if self._has_doubles and self._context.tells_keys:  # of a key that it deletes, another row may stay
                stays = np.setdiff1d(np.flatnonzero(found >= 0), merged.gone)
                self.stays += rows.column(RECORD_KEY).take(pa.array(stays)).chunks

    def _found(self, at: int, count: int) -> Positions:
        """For each of the `count` rows from position `at`: the position of its record in `incoming`, or -1."""
        changes = self._changes
        found = np.full(count, -1, np.int64)
        low, high = np.searchsorted(changes.rows, (at, at + count))
        found[changes.rows[low:high] - at] = changes.matches[low:high]
        return found

"""Reads the rows of a plan: Arrow reads many files at a time, and a bounded number of batches ahead.

Files whose columns Arrow can convert to the table's types are read as one dataset. Arrow skips row groups by their
statistics, decodes on all cores and keeps the order. Where statistics hide rows from Arrow, this module chooses the row
groups (`table.scan.hidden_floats`). Other slices (older files with other types, slices with log files)
are read alone, several at a time.
"""

import os
from collections.abc import Generator, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import groupby

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from table.errors import CorruptFileError, HudiError, InvalidConfigError
from table.files.base.stored_file import StoredBaseFile
from table.scan.hidden_floats import PARQUET, unseen_groups
from table.scan.partition_guarantee import partition_guarantee, with_folder_values
from table.scan.plan import ScanPlan
from table.scan.predicate import Predicate
from table.scan.read_ahead import read_ahead
from table.scan.read_slice import deletion_named, read_slice
from table.storage.at_once import each_at_once
from table.storage.interface import Storage, failed
from table.view.file_group import FileSlice

FILES_AT_ONCE = 32  # open at a time, with their footers
_MOST_FILES_AHEAD = 4
_BYTES_AHEAD = 64 * 1024 * 1024  # of row groups, which Arrow decodes whole
_BATCH_READAHEAD = 8
_WANTED = "\0wanted"  # no column of a table has this name


@dataclass(frozen=True, eq=False)
class _Opened:
    """A slice that is about to be read.

    Attributes:
        found: the slice.
        fragment: its base file, if Arrow reads it in a dataset.
        is_chosen: whether the fragment has only the row groups that may hold a wanted row, and Arrow would pass over
            some of them.
    """

    found: FileSlice
    fragment: ds.ParquetFileFragment | None
    is_chosen: bool = False


def read_batches(plan: ScanPlan, limit: int | None = None) -> Generator[pa.RecordBatch, None, None]:
    """Rows in the order of the plan's slices, as record batches with the columns `ScanPlan.shown`.

    Args:
        plan: of the scan.
        limit: the largest number of rows; None means all.

    Raises:
        CorruptFileError, StorageError: a file cannot be decoded or read.
    """
    remaining = limit
    if remaining == 0:
        return
    for batch in _all_batches(plan):
        if not batch.num_rows:
            continue
        if remaining is not None and batch.num_rows >= remaining:
            yield batch.slice(0, remaining)
            return
        remaining = remaining - batch.num_rows if remaining is not None else None
        yield batch


def read_rows(plan: ScanPlan, limit: int | None = None) -> pa.Table:
    """All rows in memory; see `read_batches`."""
    if limit is not None:
        return pa.Table.from_batches(read_batches(plan, limit), plan.shown)
    tables = [plan.shown.empty_table()]
    for run in _runs(plan):
        if run[0].fragment is None:
            tables += _read_alone(plan, run)
            continue
        with _damage_named(plan, run):
            if not run[0].is_chosen:
                tables.append(_shown(plan, _scanner(plan, run).to_table()))
            else:
                tables += [_shown(plan, rows) for rows in _filtered(plan, run)]
    return pa.concat_tables(tables)


def count_rows(plan: ScanPlan) -> int:
    """The number of rows, counted one by one: of files that Arrow reads only the condition's columns are read.

    Args:
        plan: of the scan; a column of it is read where a slice is read alone.

    Raises:
        CorruptFileError, StorageError: a file cannot be decoded or read.
    """
    count = 0
    for run in _runs(plan):
        if run[0].fragment is None:
            count += sum(len(rows) for rows in _read_alone(plan, run))
            continue
        with _damage_named(plan, run), closing(_mask_scanner(plan, run).to_batches()) as batches:
            count += sum(pc.sum(batch.column(0)).as_py() or 0 for batch in batches)
    return count


def _mask_scanner(plan: ScanPlan, run: Sequence[_Opened]) -> ds.Scanner:
    """Whether each row is wanted; row groups that hold no wanted row are left out."""
    wanted = plan.predicate.expression if plan.predicate is not None else pc.scalar(True)
    found = [one.fragment for one in run if one.fragment is not None]
    if not run[0].is_chosen:
        found = [fragment.subset(wanted, schema=plan.schema) for fragment in found]
    return ds.FileSystemDataset(found, plan.schema, PARQUET, None).scanner(columns={_WANTED: wanted})


def _all_batches(plan: ScanPlan) -> Iterator[pa.RecordBatch]:
    for run in _runs(plan):
        if run[0].fragment is None:
            for rows in _read_alone(plan, run):
                yield from rows.to_batches()
            continue
        with _damage_named(plan, run), closing(_filtered(plan, run)) as pieces:
            for rows in pieces:
                yield from _shown(plan, rows).to_batches()


def _runs(plan: ScanPlan) -> Iterator[list[_Opened]]:
    """Groups neighbouring slices that are read in the same way. Their files stay open while they are read."""
    needed = plan.needed
    for at in range(0, len(plan.slices), FILES_AT_ONCE):
        window = plan.slices[at : at + FILES_AT_ONCE]
        with ExitStack() as files:
            opened = open_slices(plan, window, needed, files)
            for _, run in groupby(opened, key=lambda one: (one.fragment is None, one.is_chosen)):
                yield list(run)


def open_slices(plan: ScanPlan, window: Sequence[FileSlice], needed: pa.Schema, files: ExitStack) -> list[_Opened]:
    """Opens slices and reads the footers of their base files.

    Args:
        plan: of the scan.
        window: slices of the plan.
        needed: columns that are read.
        files: closes them.
    """
    storage = plan.context.table.storage

    def open_one(found: FileSlice) -> tuple[_Opened, pa.NativeFile | None]:
        if found.base_file is None or found.log_files:
            return _Opened(found, None), None
        with deletion_named(storage):
            source = storage.open_input(found.base_file.path, found.base_file.size_bytes)
            known = partition_guarantee(plan.context.table.config, plan.schema, found.partition_path)
            fragment = PARQUET.make_fragment(source, partition_expression=known)
            try:
                with _damage_named(plan, [_Opened(found, None)]):
                    fits = reads_as(fragment.physical_schema, needed)
                    chosen = unseen_groups(plan.hidden, fragment, known) if fits else None
                    if chosen is not None:
                        fragment = fragment.subset(row_group_ids=chosen)
            except BaseException:
                source.close()
                raise
        return _Opened(found, fragment if fits else None, chosen is not None), source

    opened = []
    for one, source in each_at_once(storage, open_one, window):
        if source is not None:
            files.callback(source.close)
        opened.append(one)
    return opened


def reads_as(stored: pa.Schema, wanted: pa.Schema) -> bool:
    """Whether Arrow's dataset reader converts a file's columns to the types wanted, as Hudi does.

    Args:
        stored: the file's columns.
        wanted: the columns to be read; a column that the file does not have is read as null.
    """
    for field in wanted:
        if stored.names.count(field.name) > 1:
            return False
        number = stored.get_field_index(field.name)
        if number >= 0 and not _widens(stored.field(number).type, field.type):
            return False
    return True


def _widens(stored: pa.DataType, wanted: pa.DataType) -> bool:
    if stored.equals(wanted):
        return True
    return bool(pa.types.is_int32(stored) and pa.types.is_int64(wanted))


def _filtered(plan: ScanPlan, run: Sequence[_Opened]) -> Generator[pa.Table, None, None]:
    """The rows wanted, a batch of Arrow's at a time."""
    # to_reader() starts the scan with the interpreter's lock held, and waits for threads that may wait for that lock
    with closing(_scanner(plan, run).to_batches()) as batches:
        for batch in batches:
            rows = pa.Table.from_batches([batch])
            yield rows.filter(rows.column(_WANTED)) if run[0].is_chosen else rows


def _scanner(plan: ScanPlan, run: Sequence[_Opened]) -> ds.Scanner:
    """Arrow's scan of a run. Where bounds hide rows, the condition is a column: of a filter Arrow would prune by it."""
    dataset = ds.FileSystemDataset([one.fragment for one in run], plan.schema, PARQUET, None)
    columns = {name: ds.field(name) for name in dict.fromkeys(plan.names)}
    condition = plan.predicate.expression if plan.predicate is not None else None
    if run[0].is_chosen:
        columns[_WANTED], condition = condition, None
    return dataset.scanner(
        columns=columns,
        filter=condition,
        batch_readahead=_BATCH_READAHEAD,
        fragment_readahead=_files_ahead(run),
    )


def _files_ahead(run: Sequence[_Opened]) -> int:
    """How many files are decoded at a time: several if row groups are small, one if they are large."""
    groups = (group.total_byte_size for one in run if one.fragment is not None for group in one.fragment.row_groups)
    return max(1, min(_MOST_FILES_AHEAD, _BYTES_AHEAD // max(1, max(groups, default=0))))


def _read_alone(plan: ScanPlan, run: Sequence[_Opened]) -> Iterator[pa.Table]:
    """Rows of slices that are not read as one dataset: one slice per core."""
    readers = [partial(_read_one, plan, opened.found) for opened in run]
    yield from read_ahead(readers, min(_MOST_FILES_AHEAD, os.cpu_count() or 1))


def _read_one(plan: ScanPlan, found: FileSlice) -> Iterator[pa.Table]:
    for stored in read_slice(plan.context, found, plan.needed):
        rows = with_folder_values(stored, plan.context.table.config, found.partition_path)
        try:
            kept = rows.filter(plan.predicate.expression) if plan.predicate is not None else rows
        except pa.ArrowException as error:
            raise refused_condition(plan.predicate, error) from error
        yield _shown(plan, kept)


def refused_condition(predicate: Predicate | None, error: Exception) -> InvalidConfigError:
    """The error for a condition that Arrow cannot evaluate for the rows of a table.

    Args:
        predicate: the condition.
        error: Arrow's.
    """
    condition = predicate.expression if predicate is not None else None
    return InvalidConfigError(f"where={condition}: it cannot be evaluated for the rows of the table: {error}")


def _shown(plan: ScanPlan, rows: pa.Table) -> pa.Table:
    """The columns wanted, in order, with exactly the table's types."""
    return pa.Table.from_arrays([rows.column(name) for name in plan.names], schema=plan.shown)


def _read_again(storage: Storage, path: str, names: Sequence[str]) -> None:
    """Reads a base file to its end, for its error.

    Raises:
        CorruptFileError, StorageError: it is damaged, or the store fails.
    """
    with StoredBaseFile(storage, path) as file:
        try:
            for _ in file.read_stored(names):
                pass
        except OSError as error:
            raise failed("read", path, error) from error


@contextmanager
def _damage_named(plan: ScanPlan, run: Sequence[_Opened]) -> Iterator[None]:
    """Names the damaged file. Arrow does not name it, so the files are read again one by one until one fails.

    Where none fails, the condition does: a value of some row cannot be converted or compared as it says.
    """
    try:
        yield
    except HudiError:
        raise
    except (pa.ArrowException, OSError, KeyError, ValueError) as error:
        storage = plan.context.table.storage
        for one in run:
            if one.found.base_file is not None:
                _read_again(storage, one.found.base_file.path, plan.needed.names)
        if plan.predicate is not None and isinstance(error, pa.ArrowException):
            raise refused_condition(plan.predicate, error) from error
        paths = ", ".join(file.path for one in run for file in one.found.files)
        raise CorruptFileError(f"{paths} of {storage.base_uri!r} cannot be decoded: {error}") from error

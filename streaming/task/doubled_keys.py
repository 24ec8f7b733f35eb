"""Keys that several base files of a merge-on-read table hold, and of which some files only hold a deleted row.

A log deletes the row; the base file keeps it until a compaction. A writer that looks up keys by a record index does not
know the deleted row, and inserts the key into another file group. A lookup in base files then finds both. A change that
went to both would bring the deleted row back, and the table would have the key twice. And an insert that drops known
keys would drop a row whose key has only a deleted row.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from streaming.plan.task_plan import TaskPlan
from streaming.task.locate_keys import Located
from streaming.task.slice_reading import reading_of
from table.errors import StorageError
from table.index.key_lookup import FileHits
from table.scan.merge_slice import merge_slice
from table.schema.avro_schema import RECORD_KEY
from table.view.file_group import BaseFile, FileSlice
from table.view.file_system_view import list_file_groups

Flags = npt.NDArray[np.bool_]
Positions = npt.NDArray[np.int64]
_Slices = Mapping[str, FileSlice]


def without_deleted_rows(plan: TaskPlan, rows: pa.Table, located: Located) -> Located:
    """Leaves out files that hold only a deleted row of a key, where another file holds the key, too.

    If the batch drops known keys, a key that has only deleted rows is not known.

    Args:
        plan: from the driver.
        rows: with ``_hoodie_record_key``.
        located: where their keys are, by a lookup in base files.

    Returns:
        The same places. A key of which all rows are deleted keeps one of its files.

    Raises:
        CorruptFileError: a file is damaged.
        UnsupportedTableError: a log file has a block that is not supported.
        StorageError: a file cannot be read, or is not there any more.
    """
    assert plan.changes is not None
    drops_known = plan.changes.drops_known
    if plan.logs is None or len(located.hits) < (1 if drops_known else 2):
        return located
    asked = located.known if drops_known else _find_doubled(located.hits, len(rows))
    if not asked.any():
        return located
    keys = rows.column(RECORD_KEY).combine_chunks()
    mine = [np.flatnonzero(asked & _has(hit, len(rows))) for hit in located.hits]
    paths = {hit.file.partition_path for hit, at in zip(located.hits, mine, strict=True) if len(at)}
    slices = {path: _list_slices(plan, path) for path in sorted(paths)}
    dead = [
        at[~_are_rows(plan, _slice_of(hit.file, slices), keys.take(pa.array(at)))] if len(at) else at
        for hit, at in zip(located.hits, mine, strict=True)
    ]
    if drops_known:
        return replace(located, known=_with_rows(mine, dead, len(rows)))
    return replace(located, hits=_without(located.hits, mine, dead, len(rows)))


def _has(hit: FileHits, count: int) -> Flags:
    found = np.zeros(count, np.bool_)
    found[hit.sought] = True
    return found


def _find_doubled(hits: Sequence[FileHits], count: int) -> Flags:
    """The rows whose key is in several files (pure)."""
    files = np.zeros(count, np.int64)
    for hit in hits:
        files += _has(hit, count)
    return files > 1


def _with_rows(mine: Sequence[Positions], dead: Sequence[Positions], count: int) -> Flags:
    """Which rows have a key that some file holds, and not as a deleted row (pure). Arguments as for `_without`."""
    lives = np.zeros(count, np.bool_)
    for at, gone in zip(mine, dead, strict=True):
        lives[np.setdiff1d(at, gone)] = True
    return lives


def _without(
    hits: Sequence[FileHits], mine: Sequence[Positions], dead: Sequence[Positions], count: int
) -> tuple[FileHits, ...]:
    """The hits without deleted rows; of a key that has no other row, the last file stays (pure).

    Args:
        hits: files that hold keys.
        mine: for each file the rows whose keys other files hold, too.
        dead: those of them that are deleted in the file.
        count: number of rows.
    """
    lives, kept = _with_rows(mine, dead, count), []
    for hit, gone in zip(reversed(hits), reversed(dead), strict=True):
        drops = gone[lives[gone]]
        lives[gone] = True
        stays = ~np.isin(hit.sought, drops)
        if stays.any():
            kept.append(replace(hit, stored=hit.stored[stays], sought=hit.sought[stays]))
    return tuple(reversed(kept))


def _list_slices(plan: TaskPlan, path: str) -> _Slices:
    """File id -> the slice that readers merge."""
    return {group.file_id: group.merged_slice for group in list_file_groups(plan.listing, path, plan.committed)}


def _slice_of(file: BaseFile, slices: Mapping[str, _Slices]) -> FileSlice:
    found = slices[file.partition_path].get(file.file_id)
    if found is None:
        raise StorageError(f"{file.path!r} was listed before, and is not there now: run the batch again")
    return found


def _are_rows(plan: TaskPlan, found: FileSlice, keys: pa.Array) -> Flags:
    """Which of the keys have a row in a slice whose base file holds them."""
    if not found.log_files:
        return np.ones(len(keys), np.bool_)
    held = np.zeros(len(keys), np.bool_)
    for rows in merge_slice(plan.context.storage, found, reading_of(plan, (RECORD_KEY,))):
        held |= pc.is_in(keys, value_set=rows.column(RECORD_KEY).combine_chunks()).to_numpy(zero_copy_only=False)
    return held

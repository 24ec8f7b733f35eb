"""Decides for each row whether it updates, moves or inserts its key, if keys may be in any partition path (pure)."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from table.index.key_lookup import FileHits

Flags = npt.NDArray[np.bool_]
Positions = npt.NDArray[np.int64]


@dataclass(frozen=True)
class FileWays:
    """Rows whose keys one file holds.

    Attributes:
        hit: the file.
        updates: rows that are merged into the file.
        leaving: rows that name another partition path. If the row is new enough, its key leaves the file.
        leaving_stored: for each row in `leaving`, the position of its key in the file.
    """

    hit: FileHits
    updates: Positions
    leaving: Positions
    leaving_stored: Positions


@dataclass(frozen=True)
class Ways:
    """The decision for each row.

    Attributes:
        of_files: rows whose keys are stored, by file. A row whose key is in several files is listed for each.
        stays: for each row whether its key is stored in the partition path that the row names.
        fresh: for each row whether it is new to the table.
    """

    of_files: tuple[FileWays, ...]
    stays: Flags
    fresh: Flags


def decide_ways(
    hits: Sequence[FileHits], known: Flags, paths: pa.DictionaryArray, deletes: Flags, *, may_leave: bool
) -> Ways:
    """Decides for each row whether it updates, moves or inserts its key.

    Args:
        hits: files that hold keys; `FileHits.sought` are positions of rows.
        known: for each row whether the table has its key.
        paths: for each row the partition path that it names.
        deletes: for each row whether it deletes its key. The key is then deleted in every file that holds it.
        may_leave: whether a key that comes with another partition path moves there.
    """
    numbers = {path: number for number, path in enumerate(paths.dictionary.to_pylist())}
    path_of_row = paths.indices.to_numpy()
    stays = np.zeros(len(known), np.bool_)
    of_files = []
    for hit in hits:
        is_here = path_of_row == numbers.get(hit.file.partition_path, -1)
        rows, first = np.unique(hit.sought, return_index=True)
        every = hit.every
        stays[every[is_here[every]]] = True
        leaves = ~is_here[rows] & ~deletes[rows] & may_leave
        # no key moves in a table with log files
        updates = np.union1d(rows[~leaves], hit.logged)
        of_files.append(FileWays(hit, updates, rows[leaves], hit.stored[first[leaves]]))
    return Ways(tuple(of_files), stays, ~known & ~deletes)

"""Finds keys in log files by reading these: an index that looks into base files does not find them there.

Where the writers of a merge-on-read table find keys by its record index, new rows may lie in log files alone. A batch
that cannot use the index reads the slices with log files.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streaming.plan.task_plan import TaskPlan
from streaming.task.locate_keys import Located
from streaming.task.slice_reading import reading_of
from table.index.key_lookup import FileHits, Positions
from table.scan.merge_slice import merge_slice
from table.schema.avro_schema import RECORD_KEY
from table.view.file_group import BaseFile, FileSlice
from table.view.file_system_view import list_file_groups


class LogLookup:
    """Looks into the log files of a table.

    Args:
        plan: from the driver.
    """

    def __init__(self, plan: TaskPlan) -> None:
        self._plan = plan
        self._slices: dict[str, Mapping[str, FileSlice]] = {}

    def has_rows(self, file: BaseFile, keys: pa.Array) -> bool:
        """Whether all of some keys are rows of a file's slice, where the file does not have them.

        Args:
            file: the base file of the slice.
            keys: record keys (string), none twice.

        Raises:
            CorruptFileError: a file is damaged.
            UnsupportedTableError: a log file has a block that is not supported.
            StorageError: a file cannot be read.
        """
        found = self._of(file.partition_path).get(file.file_id) if self._plan.logs is not None else None
        return found is not None and len(self._find_in(found, keys)) == len(keys)

    def complete(self, rows: pa.Table, located: Located, paths: Iterable[str]) -> Located:
        """Adds the keys that lie in log files alone, and leaves out deleted rows of keys that have a row elsewhere.

        Args:
            rows: with ``_hoodie_record_key``.
            located: where their keys are, by a lookup in base files.
            paths: the partition paths that may hold them.

        Raises:
            CorruptFileError, UnsupportedTableError, StorageError: as of `has_rows`.
        """
        encoded = rows.column(RECORD_KEY).combine_chunks().dictionary_encode()
        codes, count = encoded.indices.to_numpy(), len(encoded.dictionary)
        last = np.zeros(count, np.int64)
        last[codes] = np.arange(len(codes))  # of rows with the same key the last one counts
        hits = {hit.file: hit for hit in located.hits}
        logged = {
            found.base_file: self._find_in(found, encoded.dictionary)
            for path in paths
            for found in self._of(path).values()
            if found.log_files and found.base_file is not None
        }
        lives = np.zeros(count, np.bool_)
        for keys in (*logged.values(), *(codes[hit.sought] for file, hit in hits.items() if file not in logged)):
            lives[keys] = True
        for file, keys in logged.items():
            hit = hits.pop(file, None) or FileHits(file, last[:0], last[:0])
            held = codes[hit.sought]
            stays = np.isin(held, keys) | ~lives[held]
            alone = last[np.setdiff1d(keys, held)]
            if stays.any() or len(alone):
                hits[file] = FileHits(file, hit.stored[stays], hit.sought[stays], alone)
        return replace(located, hits=tuple(hits.values()), known=located.known | lives[codes])

    def _of(self, path: str) -> Mapping[str, FileSlice]:
        """File id -> the slice that readers merge."""
        if path not in self._slices:
            groups = list_file_groups(self._plan.listing, path, self._plan.committed)
            self._slices[path] = {group.file_id: group.merged_slice for group in groups}
        return self._slices[path]

    def _find_in(self, found: FileSlice, keys: pa.Array) -> Positions:
        """Positions of the keys that are rows of a slice with log files."""
        held = np.zeros(len(keys), np.bool_)
        if not found.log_files:
            return np.flatnonzero(held)
        for rows in merge_slice(self._plan.context.storage, found, reading_of(self._plan, (RECORD_KEY,))):
            held |= pc.is_in(keys, value_set=rows.column(RECORD_KEY).combine_chunks()).to_numpy(zero_copy_only=False)
        return np.flatnonzero(held)

"""Small-file state of a partition path -> the bucket of the next rows (pure; Flink's BucketAssigner).

The smallest file is filled first, then the next, then new file groups. Rows are not assigned one by one: n rows become
a few (bucket, count) pairs.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from zlib import crc32

from table.index.bucket import is_of_bucket
from table.view.file_group import BaseFile
from table.write.context import Bucket, BucketType


@dataclass(frozen=True, slots=True)
class AssignRules:
    """Sizes that decide how many rows a file takes.

    Attributes:
        max_file_size_bytes: a file is full at this size.
        small_file_limit_bytes: files below it take rows; 0 or less: none do.
        record_size_bytes: average size of a row in a base file.
        rows_per_new_file: fixed size of new files, or None to derive it.
        is_guess: whether the row size of the table is not known. A task then measures its rows first.
        share: this writer's number among the writers of the table, from 0, and the number of writers. Each writer
            fills other small files.
    """

    max_file_size_bytes: int
    small_file_limit_bytes: int
    record_size_bytes: int
    rows_per_new_file: int | None = None
    is_guess: bool = False
    share: tuple[int, int] = (0, 1)

    @property
    def new_file_rows(self) -> int:
        """Rows that a new file group takes."""
        return self.rows_per_new_file or max(1, self.max_file_size_bytes // self.record_size_bytes)

    def owns(self, file_id: str) -> bool:
        """Whether this writer fills a file group. Only one of several writers fills it."""
        place, writers = self.share
        return writers == 1 or crc32(file_id.encode()) % writers == place

    def capacity(self, small_file: BaseFile) -> int:
        """Rows that still fit into a small file (SmallFileAssignState.totalUnassigned)."""
        return max(0, (self.max_file_size_bytes - small_file.size_bytes) // self.record_size_bytes)


def find_small_files(files: Iterable[BaseFile], rules: AssignRules) -> tuple[BaseFile, ...]:
    """The files of a partition path that are small, smallest first (WriteProfile.smallFilesProfile).

    Files of buckets take no rows by their size: a writer with the bucket index would not find these.
    """
    limit = rules.small_file_limit_bytes
    owned = (file for file in files if rules.owns(file.file_id) and not is_of_bucket(file.file_id))
    small = (file for file in owned if 0 < file.size_bytes < limit)
    return tuple(sorted(small, key=lambda file: (file.size_bytes, file.file_id)))


def drop_costly(
    small_files: tuple[BaseFile, ...], expected_rows: float, rules: AssignRules, max_rewrite_ratio: float | None
) -> tuple[BaseFile, ...]:
    """The small files that are worth rewriting for the rows that are expected to be added to them.

    Args:
        small_files: of one path, smallest first.
        expected_rows: rows of the next batch for the path.
        rules: sizes.
        max_rewrite_ratio: most bytes that are rewritten per byte added; None keeps all files.
    """
    if max_rewrite_ratio is None:
        return small_files
    kept, expected = [], expected_rows
    for file in small_files:
        added = min(expected, rules.capacity(file))
        if added > 0 and file.size_bytes <= max_rewrite_ratio * added * rules.record_size_bytes:
            kept.append(file)
            expected -= added
    return tuple(kept)


def share_of_slot(small_files: tuple[BaseFile, ...], slot: int, slots: int) -> tuple[BaseFile, ...]:
    """The small files that one slot owns: disjoint from every other slot's (smallFilesOfThisTask)."""
    return small_files[slot::slots]


class BucketAssigner:
    """Assigns the rows of one slot of one partition path.

    Args:
        partition_path: the path.
        small_files: the slot's own, smallest first.
        rules: sizes.
        new_file_id: makes the id of a new file group.
    """

    def __init__(
        self,
        partition_path: str,
        small_files: tuple[BaseFile, ...],
        rules: AssignRules,
        new_file_id: Callable[[], str],
    ) -> None:
        self._partition_path, self._rules, self._new_file_id = partition_path, rules, new_file_id
        self._small_files = [file for file in small_files if rules.capacity(file) > 0]
        self._bucket: Bucket | None = None
        self._left = 0

    def assign(self, rows: int) -> list[tuple[Bucket, int]]:
        """Buckets of the next rows, in order, with how many go into each; the counts add up to `rows`."""
        assigned = []
        while rows > 0:
            if self._left == 0:
                self._bucket, self._left = self._next_bucket()
            assert self._bucket is not None
            count = min(rows, self._left)
            assigned.append((self._bucket, count))
            self._left -= count
            rows -= count
        return assigned

    def _next_bucket(self) -> tuple[Bucket, int]:
        if self._small_files:
            file = self._small_files.pop(0)
            bucket = Bucket(BucketType.UPDATE, self._partition_path, file.file_id, file.name, file.size_bytes)
            return bucket, self._rules.capacity(file)
        bucket = Bucket(BucketType.INSERT, self._partition_path, self._new_file_id())
        return bucket, self._rules.new_file_rows

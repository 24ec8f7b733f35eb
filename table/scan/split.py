"""ScanSplit: the part of a scan for one file slice. It can be read in another process, by any engine."""

from collections.abc import Collection
from dataclasses import dataclass, replace

import pyarrow as pa

from table.scan.plan import Pruning, ScanPlan
from table.scan.predicate import Predicate
from table.scan.read_plan import read_batches, read_rows
from table.scan.read_slice import SliceContext
from table.view.file_group import FileSlice


@dataclass(frozen=True, eq=False)
class ScanSplit:
    """One file slice, with the columns and rows wanted. Immutable and picklable; has no open file.

    Attributes:
        context: needed to read a slice.
        found: the slice.
        table_schema: every column of the table (Arrow).
        names: the columns wanted, in order.
        predicate: which rows are wanted; None means all.
    """

    context: SliceContext
    found: FileSlice
    table_schema: pa.Schema
    names: tuple[str, ...]
    predicate: Predicate | None

    @staticmethod
    def of(plan: ScanPlan, found: FileSlice) -> "ScanSplit":
        """The part of a plan for one slice. It contains only the replaced file groups of the slice's partition."""
        return ScanSplit(narrowed(plan.context, [found.partition_path]), found, plan.schema, plan.names, plan.predicate)

    @property
    def partition_path(self) -> str:
        """The path of its partition; "" in a non-partitioned table."""
        return self.found.partition_path

    @property
    def file_id(self) -> str:
        """The file group."""
        return self.found.file_id

    @property
    def size_bytes(self) -> int:
        """Compressed size of its files."""
        return sum(file.size_bytes for file in self.found.files)

    @property
    def schema(self) -> pa.Schema:
        """The columns of its rows (Arrow)."""
        return self._plan.shown

    def to_arrow(self) -> pa.Table:
        """Its rows in memory.

        Raises:
            CorruptFileError, StorageError: a file cannot be decoded or read.
        """
        return read_rows(self._plan)

    def to_batches(self) -> pa.RecordBatchReader:
        """Its rows as a stream. Raises as `to_arrow`."""
        return pa.RecordBatchReader.from_batches(self.schema, read_batches(self._plan))

    @property
    def _plan(self) -> ScanPlan:
        return ScanPlan(self.context, self.table_schema, self.names, self.predicate, (self.found,), None, Pruning())


def narrowed(context: SliceContext, paths: Collection[str]) -> SliceContext:
    """What is needed to read slices that are made: smaller, for it travels to other processes.

    Args:
        context: of the snapshot.
        paths: partition paths of the slices.
    """
    here = {path: ids for path, ids in context.committed.replaced.items() if path in paths}
    return replace(context, committed=replace(context.committed, replaced=here, completions={}))  # the slice is made

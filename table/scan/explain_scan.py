"""Counts what a scan reads and what it skips."""

from contextlib import ExitStack
from dataclasses import asdict, dataclass

from table.scan.plan import Pruning, ScanPlan
from table.scan.read_plan import FILES_AT_ONCE, open_slices


@dataclass(frozen=True)
class ScanExplanation:
    """What a scan reads and what it skips.

    Attributes:
        as_of: instant time of the last visible write; None where the table has none.
        columns: the columns that are read, with the columns of the condition.
        pruning: partitions and files that are skipped, and why.
        files_read: file slices that are opened for rows.
        bytes_of_files: their size, compressed.
        files_pruned_by_statistics: how many of the files read have no row group that can hold a row.
        row_groups: row groups of the files read.
        row_groups_pruned: how many of these row groups the statistics in the footer rule out.
        files_conformed: how many of the files read are converted to the table's types one by one, without statistics:
            older files with other types, and slices with log files.
        since: only rows of later commits are read; None means all rows.
    """

    as_of: str | None
    columns: tuple[str, ...]
    pruning: Pruning
    files_read: int
    bytes_of_files: int
    files_pruned_by_statistics: int
    row_groups: int
    row_groups_pruned: int
    files_conformed: int
    since: str | None = None

    def to_json(self) -> dict[str, object]:
        """As an object for ``json.dumps``."""
        document = asdict(self)
        return {**document.pop("pruning"), **document}

    def __str__(self) -> str:
        """One line for each kind of pruning."""
        cut = self.pruning
        lines = [
            f"{self._when}, columns {', '.join(self.columns)}",
            f"partitions: {cut.partitions - cut.partitions_pruned} of {cut.partitions}",
            f"files: {self.files_read} of {cut.files} ({self.bytes_of_files:,} bytes)",
            f"  skipped by partition path: {cut.files_in_pruned_partitions}",
            f"  skipped by the metadata table's statistics: {cut.files_pruned_by_column_stats}",
            f"  skipped by key range: {cut.files_pruned_by_key_range}",
            f"  skipped by bloom filter: {cut.files_pruned_by_bloom_filter}",
            f"  skipped, no commit of the range wrote them: {cut.files_without_changes}",
            f"  without a row group that can match: {self.files_pruned_by_statistics}",
            f"row groups: {self.row_groups - self.row_groups_pruned} of {self.row_groups}",
            f"files brought into the table's types one by one: {self.files_conformed}",
        ]
        return "\n".join(lines)

    @property
    def _when(self) -> str:
        as_of = f"as of {self.as_of or '(no commit)'}"
        return f"{as_of}, changes since {self.since}" if self.since is not None else as_of


def explain_plan(plan: ScanPlan) -> ScanExplanation:
    """Explains a plan. Reads the footers of its files."""
    groups = pruned = emptied = conformed = 0
    for at in range(0, len(plan.slices), FILES_AT_ONCE):
        with ExitStack() as files:
            for opened in open_slices(plan, plan.slices[at : at + FILES_AT_ONCE], plan.needed, files):
                if opened.fragment is None:
                    conformed += 1
                    continue
                there = opened.fragment.metadata.num_row_groups
                kept = opened.fragment.num_row_groups
                if plan.predicate is not None and not opened.is_chosen:
                    kept = len(opened.fragment.subset(plan.predicate.expression, schema=plan.schema).row_groups)
                groups, pruned = groups + there, pruned + there - kept
                emptied += there > 0 and kept == 0
    return ScanExplanation(
        plan.as_of,
        tuple(plan.needed.names),
        plan.pruning,
        len(plan.slices),
        sum(file.size_bytes for found in plan.slices for file in found.files),
        emptied,
        groups,
        pruned,
        conformed,
        plan.changes.since if plan.changes is not None else None,
    )

"""The summary of the services after a commit: a frozen value for callbacks and metrics."""

from dataclasses import dataclass


@dataclass(frozen=True)
class UpkeepSummary:
    """One run of a table's services.

    Attributes:
        table: the table's address.
        cleans: cleans that were carried out.
        files_deleted: files that they deleted.
        files_failed: files that they could not delete.
        instants_archived: instants that left the active timeline.
        compactions: compactions that were carried out.
        clusterings: clusterings that were carried out beside the batches.
        clean_seconds: wall time of cleaning, planning included; None where nothing cleans.
        error: the failure, or None. The counts include the work that was done before it.
    """

    table: str
    cleans: int = 0
    files_deleted: int = 0
    files_failed: int = 0
    instants_archived: int = 0
    compactions: int = 0
    clusterings: int = 0
    clean_seconds: float | None = None
    error: str | None = None

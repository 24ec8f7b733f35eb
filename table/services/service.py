"""The interface of a service that a sink runs after its commits to keep a table in order, such as cleaning.

A service decides when it runs, plans what is due and requests it, and carries the plan out. The sink runs its
services one after another, in the order of the list (`table.services.after_commit`). If a service fails, the others
still run.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Protocol, TypeVar

from table.config.table_config import TableConfig
from table.hudi_table import HudiTable
from table.options.choices import CleanFailure
from table.snapshot import Snapshot
from table.timeline.metadata.commit import WriteStat

PlanT = TypeVar("PlanT")

Stats = tuple[WriteStat, ...]
Piece = Callable[[int], Stats]  # picklable: does the piece of work with this number, and tells of the files it wrote
Spread = Callable[[Piece, int], Sequence[Stats]]  # has so many pieces done on other machines; results in order


class Trigger(Enum):
    """When a service runs, after a commit."""

    BACKGROUND = "in a thread, beside the next batch"
    INLINE = "before the next batch begins"
    AFTER_COMPACTION = "once a compaction of the same run is committed"
    NOT_NOW = "not after this commit"


@dataclass(frozen=True)
class ServiceOutcome:
    """What one run of a service did. A service gives what it counts; the rest stays zero.

    Attributes:
        cleans: cleans that were carried out.
        files_deleted: files that they deleted.
        files_failed: files that they could not delete.
        instants_archived: instants that left the active timeline.
        compactions: compactions that were carried out.
        clusterings: clusterings that were carried out.
        emptied: partition paths without files, whose folders the writer removes.
    """

    cleans: int = 0
    files_deleted: int = 0
    files_failed: int = 0
    instants_archived: int = 0
    compactions: int = 0
    clusterings: int = 0
    emptied: tuple[str, ...] = ()


class TableService(Protocol[PlanT]):
    """One service of a table. A service inherits from it what most services have in common."""

    @property
    def name(self) -> str:
        """For logs and summaries."""

    @property
    def on_failure(self) -> CleanFailure:
        """What its failure leads to: PAUSE stops all services of this sink."""

    @property
    def plans_between_batches(self) -> bool:
        """Whether it plans before the next batch begins, although it is carried out beside it."""
        return False

    @property
    def follows_commits(self) -> bool:
        """Whether it informs others of each commit, so that it must run after the last one, too.

        Other services may leave a commit to the next run: what is due then is due still.
        """
        return False

    def note_commit(self, snapshot: Snapshot) -> None:  # noqa: ARG002
        """Counts a commit, and logs, once, what the user should know of its settings. Calls no store.

        Args:
            snapshot: the table, with the commit on its timeline.
        """
        return

    def trigger(self, config: TableConfig) -> Trigger:
        """When it runs after the commits that it has noted, in a table with these properties; changes nothing."""

    def plan(self, table: HudiTable) -> PlanT | None:
        """Plans what is due and makes it known to others, under the table's lock; None where nothing is.

        Raises:
            HudiError: nothing was begun.
        """

    def execute(self, table: HudiTable, plan: PlanT, spread: Spread | None = None) -> ServiceOutcome:
        """Carries a plan out. Can be repeated by every process that finds the plan.

        Args:
            plan: as `plan` gave it.
            spread: has pieces of work done on other machines; None: there are none.

        Raises:
            HudiError: it was not finished.
        """

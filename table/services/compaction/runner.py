"""Runs the compaction of a plan's slices: in threads of this process, or on other machines if the plan is large."""

from dataclasses import dataclass
from itertools import chain

from table import threads
from table.options.groups import CompactionSettings
from table.services.compaction.choose_tasks import choose_tasks, cores_at_hand, memory_at_hand
from table.services.service import Piece, Spread
from table.timeline.metadata.commit import WriteStat
from table.timeline.metadata.compaction import CompactionPlan


@dataclass(frozen=True)
class CompactionRunner:
    """Runs the compaction of slices.

    Attributes:
        tasks: slices at a time in this process.
        elsewhere: has slices compacted on other machines; None: there are none.
        elsewhere_from_mb: a plan that reads at least so many MB is carried out there.
    """

    tasks: int = 1
    elsewhere: Spread | None = None
    elsewhere_from_mb: int = 0

    @classmethod
    def of(
        cls, settings: CompactionSettings, elsewhere: Spread | None = None, *, beside_batches: bool = False
    ) -> "CompactionRunner":
        """The runner for these settings.

        Args:
            settings: how many slices at a time, and from how many MB on other machines.
            elsewhere: has slices compacted on other machines; None: there are none.
            beside_batches: whether this process writes batches meanwhile.
        """
        chosen = choose_tasks(cores_at_hand(), memory_at_hand(), beside_batches=beside_batches)
        return cls(settings.tasks or chosen, elsewhere, settings.executors_from_mb)

    def run(self, plan: CompactionPlan, piece: Piece) -> tuple[WriteStat, ...]:
        """Has every slice of a plan compacted.

        Args:
            plan: the slices.
            piece: compacts one.

        Returns:
            The stats of the files, in the order of the plan.

        Raises:
            HudiError: one could not be compacted.
        """
        count = len(plan.operations)
        if self.elsewhere is not None and read_mb(plan) >= self.elsewhere_from_mb:
            return tuple(chain.from_iterable(self.elsewhere(piece, count)))
        with threads.make_pool(self.tasks, "hudistream-compaction") as pool:
            return tuple(chain.from_iterable(pool.map(piece, range(count))))


def read_mb(plan: CompactionPlan) -> float:
    """MB of base and log files that a plan reads, as far as it says."""
    return sum(operation.metrics.get("TOTAL_IO_READ_MB", 0.0) for operation in plan.operations)

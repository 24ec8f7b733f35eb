"""How many slices a compaction takes at a time, and what its plan reads."""

from table.options.groups import CompactionSettings
from table.services.compaction.choose_tasks import choose_tasks, cores_at_hand, memory_at_hand
from table.services.runner import PieceRunner
from table.services.service import Spread
from table.timeline.metadata.compaction import CompactionPlan


def runner_of(
    settings: CompactionSettings, elsewhere: Spread | None = None, *, beside_batches: bool = False
) -> PieceRunner:
    """The runner of a compaction.

    Args:
        settings: how many slices at a time, and from how many MB on other machines.
        elsewhere: compacts slices on other machines; None: there are no other machines.
        beside_batches: whether this process writes batches meanwhile.
    """
    chosen = choose_tasks(cores_at_hand(), memory_at_hand(), beside_batches=beside_batches)
    return PieceRunner(settings.tasks or chosen, elsewhere, settings.executors_from_mb)


def read_mb(plan: CompactionPlan) -> float:
    """MB of base and log files that a plan reads, as far as it says."""
    return sum(operation.metrics.get("TOTAL_IO_READ_MB", 0.0) for operation in plan.operations)

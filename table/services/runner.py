"""Runs the pieces of a service's plan: in threads of this process, or on other machines if the plan is large."""

from dataclasses import dataclass
from itertools import chain

from table import threads
from table.services.service import Piece, Spread
from table.timeline.metadata.commit import WriteStat


@dataclass(frozen=True)
class PieceRunner:
    """Runs the pieces of a plan.

    Attributes:
        tasks: pieces at a time in this process.
        elsewhere: runs pieces on other machines; None: there are no other machines.
        elsewhere_from_mb: a plan that reads at least this many MB is carried out there.
    """

    tasks: int = 1
    elsewhere: Spread | None = None
    elsewhere_from_mb: int = 0

    def run(self, piece: Piece, count: int, read_mb: float) -> tuple[WriteStat, ...]:
        """Runs every piece of a plan.

        Args:
            piece: does the piece of work with a number.
            count: number of pieces.
            read_mb: MB of files that the plan reads, as far as it says.

        Returns:
            The stats of the files, in the order of the pieces.

        Raises:
            HudiError: a piece failed.
        """
        if self.elsewhere is not None and read_mb >= self.elsewhere_from_mb:
            return tuple(chain.from_iterable(self.elsewhere(piece, count)))
        with threads.make_pool(self.tasks, "hudistream-service") as pool:
            return tuple(chain.from_iterable(pool.map(piece, range(count))))

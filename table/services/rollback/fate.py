"""What becomes of a pending instant, once a writer holds the table: one rule for who does it and who says it (pure).

A batch does it before it writes (`rollback.py`). Doctor, health, check and explain say it (`outlook.py` looks).
"""

from dataclasses import dataclass
from enum import Enum

from table.timeline.end_record import EndRecord
from table.timeline.instant import Action, Instant
from table.transaction.heartbeat import WriterIdentity

WRITES = (Action.COMMIT, Action.DELTA_COMMIT, Action.REPLACE_COMMIT, Action.CLUSTERING)
_BATCH = "the next batch {does}, or `hudistream check --repair`"


class Fate(Enum):
    """What the next batch does with a pending instant."""

    REFUSED = "refused"  # no batch begins before somebody else has ended it
    UNDER_WAY = "under way"  # its writer lives, and may write beside the batch
    FINISHED = "finished"
    CARRIED_OUT = "carried out"
    ROLLED_BACK = "rolled back"
    LEFT = "left"  # its service, or the engine that planned it, carries it out


def judge_pending(
    action: Action, *, lives: bool = False, may_live: bool = True, is_planned: bool = False, is_decided: bool = False
) -> Fate:
    """What the next batch does with a pending instant.

    Args:
        action: of the instant.
        lives: whether its writer is alive.
        may_live: whether that writer may write beside the batch.
        is_planned: whether it is a clustering that another engine planned, and whose end is not decided.
        is_decided: whether its end record says "commit". A batch need not know: it asks when it ends the instant.
    """
    if action is Action.RESTORE:
        return Fate.REFUSED
    if action is Action.ROLLBACK:
        return Fate.UNDER_WAY if lives else Fate.FINISHED
    if action not in WRITES or is_planned:
        return Fate.LEFT
    if lives:
        return Fate.UNDER_WAY if may_live else Fate.REFUSED
    return Fate.CARRIED_OUT if is_decided else Fate.ROLLED_BACK


@dataclass(frozen=True)
class Outlook:
    """A pending instant, and what the next batch does with it.

    Attributes:
        instant: requested or inflight.
        fate: what becomes of it.
        writer: who writes it, by a heartbeat that counts; None: nobody.
        is_planned: whether it is a clustering that another engine planned.
        end: its end record, where one decides how it ends.
        damage: why its end record or its plan cannot be read.
    """

    instant: Instant
    fate: Fate
    writer: WriterIdentity | None = None
    is_planned: bool = False
    end: EndRecord | None = None
    damage: str = ""

    @property
    def text(self) -> str:
        """What is so."""
        name, writer = self.instant.file_name, self.writer
        if self.damage:
            return f"{name} is pending, and {self.damage}"
        if self.fate is Fate.REFUSED and writer is not None:
            return f"{name} is being written by a live writer (sink {writer.sink_id!r}, query {writer.query_id!r})"
        return {
            Fate.UNDER_WAY: f"{name} is being written",
            Fate.CARRIED_OUT: f"{name} is decided to be committed, and was not yet",
            Fate.ROLLED_BACK: f"{name} is of a writer that gives no sign of life",
        }.get(self.fate, f"{name} is pending")

    @property
    def way(self) -> str:
        """What ends it."""
        if self.damage:
            return "no batch is written until then; `hudistream check PATH` says what can be done"
        if self.fate is Fate.LEFT or (self.fate is Fate.REFUSED and self.writer is None):
            return _way_of_service(self.instant, is_planned=self.is_planned)
        return {
            Fate.REFUSED: "no other sink writes a batch until it is dead or has stopped",
            Fate.UNDER_WAY: "its writer ends it",
            Fate.FINISHED: _BATCH.format(does="finishes it"),
            Fate.CARRIED_OUT: _BATCH.format(does="carries it out"),
            Fate.ROLLED_BACK: _BATCH.format(does="rolls it back"),
        }[self.fate]

    @property
    def has_command(self) -> bool:
        """Whether a command of its own ends it."""
        return self.is_planned or self.instant.action in (*_COMMANDS, Action.CLUSTERING)

    @property
    def stops_batches(self) -> bool:
        """Whether batches are refused until it has ended, or those that change certain rows."""
        return self.fate is Fate.REFUSED or self.is_planned or self.instant.action is Action.CLUSTERING

    def __str__(self) -> str:
        return f"{self.text}: {self.way}"


_COMMANDS = {
    Action.CLEAN: "`hudistream clean PATH`, or nothing: the next clean finishes it",
    Action.RESTORE: "`hudistream savepoint restore PATH INSTANT`; no batch is written until then",
    Action.SAVEPOINT: "make it again (`hudistream savepoint create PATH {time}`), or delete it",
    Action.COMPACTION: (
        "`hudistream compact PATH --execute`, or nothing: the stream carries it out after its next commit"
    ),
}


def _way_of_service(instant: Instant, *, is_planned: bool) -> str:
    if is_planned or instant.action is Action.CLUSTERING:
        return (
            f"`hudistream cluster PATH --execute`, or `hudistream rollback PATH {instant.time}`, unless another engine "
            "carries it out; no batch changes rows of its file groups until then"
        )
    return _COMMANDS.get(instant.action, "finish it with the writer that began it").format(time=instant.time)

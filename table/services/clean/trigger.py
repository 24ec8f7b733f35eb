"""When a table is cleaned after a commit, and how long a reader's files stay (pure)."""

from enum import Enum

from table.clock import parse_instant_time
from table.services.service import Trigger

COMMITS_SEEN = 5


class Cleaning(str, Enum):
    """When a table is cleaned."""

    AT_CHECKPOINT = "in the background after each commit"
    INLINE = "after each commit, before the next batch begins"
    AFTER_COMPACTION = "after each compaction, by who commits it"
    NEVER = "never"

    @property
    def trigger(self) -> Trigger:
        """What that means for the end of a commit."""
        triggers = {Cleaning.AT_CHECKPOINT: Trigger.BACKGROUND, Cleaning.INLINE: Trigger.INLINE}
        return triggers.get(self, Trigger.NOT_NOW)


def choose_cleaning(
    table_type: str, *, compaction_async: bool, clean_async: bool, inline: bool = False, automatic: bool = True
) -> Cleaning:
    """When a table is cleaned: the gate of Flink's sink (HoodieTableSink, CleanFunction, CompactionCommitSink).

    ==============  ================  ===================  ==================
    table           async compaction  clean.async.enabled  cleaned
    ==============  ================  ===================  ==================
    copy-on-write   any               true                 at the checkpoint
    copy-on-write   any               false                never
    merge-on-read   yes               true                 at the checkpoint
    merge-on-read   yes               false                after compaction
    merge-on-read   no                as said              checkpoint or never
    ==============  ================  ===================  ==================

    Args:
        table_type: ``COPY_ON_WRITE`` or ``MERGE_ON_READ``.
        compaction_async: whether compactions run beside the stream.
        clean_async: ``clean.async.enabled``, Flink's switch.
        inline: whether ``hoodie.clean.async.enabled``, Hudi's own, is off: what the gate lets through does not run
            in the background.
        automatic: ``hoodie.clean.automatic``: False: never.
    """
    if not automatic:
        return Cleaning.NEVER
    if clean_async:
        return Cleaning.INLINE if inline else Cleaning.AT_CHECKPOINT
    if table_type == "MERGE_ON_READ" and compaction_async:
        return Cleaning.AFTER_COMPACTION
    return Cleaning.NEVER


def retention_s(commit_times: list[str], commits_retained: int) -> float | None:
    """For about how many seconds a reader's files stay, by the pace of the last commits; None: too few to tell."""
    last = commit_times[-COMMITS_SEEN:]
    if len(last) < COMMITS_SEEN:
        return None
    pace_ms = (parse_instant_time(last[-1]) - parse_instant_time(last[0])) / (len(last) - 1)
    return pace_ms / 1000 * commits_retained

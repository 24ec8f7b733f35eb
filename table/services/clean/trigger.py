"""When a table is cleaned after a commit (pure)."""

from enum import Enum

from table.services.service import Trigger


class Cleaning(str, Enum):
    """When a table is cleaned."""

    AT_CHECKPOINT = "in the background after each commit"
    INLINE = "after each commit, before the next batch begins"
    AFTER_COMPACTION = "after each compaction, by who commits it"
    NEVER = "never"

    @property
    def trigger(self) -> Trigger:
        """When the cleaning service runs after a commit."""
        triggers = {
            Cleaning.AT_CHECKPOINT: Trigger.BACKGROUND,
            Cleaning.INLINE: Trigger.INLINE,
            Cleaning.AFTER_COMPACTION: Trigger.AFTER_COMPACTION,
        }
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

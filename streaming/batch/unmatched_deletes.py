"""A warning about deletes of keys that the table does not have: they may have come without their partition path."""

from table.hudi_table import HudiTable
from table.log import get_logger
from table.options.choices import IndexType

log = get_logger("hudistream.sink")


def explain_unmatched(partition_fields: tuple[str, ...], index: IndexType) -> str:
    """What a delete without a row comes from, and the way out (pure).

    Args:
        partition_fields: of the table.
        index: how keys are found.
    """
    gone = "the rows were deleted before, or never came"
    if not partition_fields or index.is_global:
        return gone
    return (
        "a key is looked for in the partition path of its delete. If the deletes lack the right value of "
        f"{', '.join(partition_fields)} (as Debezium's do without REPLICA IDENTITY FULL), the rows are still there: "
        f"send it, or use hoodie.index.type=GLOBAL_BLOOM. Else {gone}"
    )


class UnmatchedDeletes:
    """Warns once about deletes without a row; the summaries of batches count all of them."""

    def __init__(self) -> None:
        self._has_told = False

    def note(self, table: HudiTable, index: IndexType, count: int) -> None:
        """Looks at a batch.

        Args:
            table: the table.
            index: how keys are found.
            count: deletes of the batch whose key was not found.
        """
        if not count or self._has_told:
            return
        self._has_told = True
        hint = explain_unmatched(table.config.partition_fields, index)
        log.warning("deletes_without_a_row", table=table.storage.base_uri, deletes=count, hint=hint)

"""Inserts that would not keep every row (pure)."""

from table.errors import InvalidConfigError
from table.options.choices import IndexType, TableType
from table.options.operation import Operation
from table.options.write_groups import DuplicateSettings


def check_inserts_stay(
    operation: Operation, index: IndexType, duplicates: DuplicateSettings, table_type: str | None
) -> None:
    """Refuses inserts whose rows readers would merge: they go to the log of a bucket, where one row per key is left.

    Args:
        operation: of a batch.
        index: how keys are found.
        duplicates: whether inserts add a key that the table has.
        table_type: of the table; None: it is not known yet.

    Raises:
        InvalidConfigError: names the three options and the way out.
    """
    keeps_all = operation is Operation.INSERT and duplicates.allow_on_insert and not duplicates.drop_on_insert
    if keeps_all and index.has_buckets and table_type == TableType.MERGE_ON_READ:
        raise InvalidConfigError(
            f"hoodie.datasource.write.operation=insert with hoodie.index.type={index} into a merge-on-read table would "
            "not keep every row: rows go to log files, and readers of these keep one row per key. Use "
            "hoodie.datasource.write.operation=upsert, or to keep rows with the same key: "
            "hoodie.datasource.write.table.type=COPY_ON_WRITE, or another index"
        )

"""Inserts that would not keep every row, and new rows that other indexes would not find (pure)."""

from table.errors import InvalidConfigError
from table.options.choices import IndexType, TableType
from table.options.operation import Operation
from table.options.write_groups import DuplicateSettings, IndexSettings, SizeSettings


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


def check_combines(operation: Operation, duplicates: DuplicateSettings) -> None:
    """Refuses a bulk insert that is to keep one record per key: its tasks sort rows, and compare none.

    Args:
        operation: of a batch.
        duplicates: whether records of one key are merged within the batch.

    Raises:
        InvalidConfigError: names both options and the way out.
    """
    if operation.is_bulk and duplicates.combine_before_insert:
        raise InvalidConfigError(
            "hoodie.combine.before.insert=true with hoodie.datasource.write.operation=bulk_insert: a bulk insert keeps "
            "all records of a key. Use the operation insert, or upsert; or leave hoodie.combine.before.insert out, and "
            "drop what is there twice before the sink"
        )


def check_joins_logs(sizes: SizeSettings, index: IndexSettings, table_type: str | None) -> None:
    """Refuses new rows in log files where the index of the writer does not find them.

    Args:
        sizes: whether new rows join log files.
        index: how keys are found.
        table_type: of the table; None: it is not known yet.

    Raises:
        InvalidConfigError: names the option and the way out.
    """
    if not sizes.joins_logs:
        return
    name = "hudistream.new.rows.join.logs=true"
    if index.type is not IndexType.RECORD_INDEX:
        raise InvalidConfigError(
            f"{name} and hoodie.index.type={index.type}: that index looks for keys in base files, and would double "
            "those of log files; set hoodie.index.type=RECORD_INDEX, or leave the option out"
        )
    if table_type == TableType.COPY_ON_WRITE:
        raise InvalidConfigError(f"{name}: a copy-on-write table has no log files; leave the option out")

"""Hudi's write operations, which a batch carries out, and their properties (pure; WriteOperationType)."""

from typing import Literal

from table.config.choice import Choice

OperationName = Literal[
    "insert", "bulk_insert", "upsert", "delete", "insert_overwrite", "insert_overwrite_table", "delete_partition"
]


class Operation(Choice):
    """``hoodie.datasource.write.operation``.

    Attributes:
        INSERT: adds the rows without looking for their keys in the table.
        BULK_INSERT: adds the rows in new files, without filling small ones.
        UPSERT: replaces the row of each key that the table has, and adds the others.
        DELETE: deletes the row of each key.
        INSERT_OVERWRITE: the rows replace all rows of their partition paths.
        INSERT_OVERWRITE_TABLE: the rows replace all rows of the table.
        DELETE_PARTITION: deletes all rows of partition paths.
    """

    INSERT = "insert"
    BULK_INSERT = "bulk_insert"
    UPSERT = "upsert"
    DELETE = "delete"
    INSERT_OVERWRITE = "insert_overwrite"
    INSERT_OVERWRITE_TABLE = "insert_overwrite_table"
    DELETE_PARTITION = "delete_partition"

    @property
    def hudi_name(self) -> str:
        """``operationType`` of the commit, such as ``UPSERT``."""
        return self.value.upper()

    @property
    def looks_for_keys(self) -> bool:
        """Whether the operation looks for every row's key in the table."""
        return self in (Operation.UPSERT, Operation.DELETE)

    @property
    def can_write_buckets(self) -> bool:
        """Whether rows can be sent to the buckets of a bucket index."""
        return self in (Operation.INSERT, Operation.UPSERT, Operation.DELETE)

    @property
    def may_drop_duplicates(self) -> bool:
        """Whether options can make the operation drop rows whose key the table already has."""
        return self is Operation.INSERT

    @property
    def deletes_all(self) -> bool:
        """Whether every row deletes its key, whatever its ordering value."""
        return self is Operation.DELETE

    @property
    def takes_keys_alone(self) -> bool:
        """Whether rows need only the columns of key and partition path."""
        return self in (Operation.DELETE, Operation.DELETE_PARTITION)

    @property
    def is_bulk(self) -> bool:
        """Whether rows are written as they come, into files of their own."""
        return self is Operation.BULK_INSERT

    @property
    def overwrites(self) -> bool:
        """Whether the rows replace rows of the table regardless of keys."""
        return self in (Operation.INSERT_OVERWRITE, Operation.INSERT_OVERWRITE_TABLE)

    @property
    def overwrites_table(self) -> bool:
        """Whether every file group of the table is replaced."""
        return self is Operation.INSERT_OVERWRITE_TABLE

    @property
    def removes_partitions(self) -> bool:
        """Whether the operation writes no rows and only removes file groups."""
        return self is Operation.DELETE_PARTITION

    @property
    def replaces(self) -> bool:
        """Whether its commit is a replace commit: file groups leave the table."""
        return self.overwrites or self.removes_partitions

    @property
    def fills_small_files(self) -> bool:
        """Whether new rows join small files of the table."""
        return not (self.is_bulk or self.overwrites)

"""The Hudi table format, and everything a table can do to itself, without Spark."""

from table.errors import (
    BatchRefusedError,
    BrokenInvariantError,
    CommitConflictError,
    CommitOutcomeUnknownError,
    CorruptFileError,
    HudiError,
    InvalidConfigError,
    InvalidRecordError,
    SchemaMismatchError,
    StorageError,
    TableExistsError,
    TableNotFoundError,
    UnsupportedTableError,
)
from table.hudi_table import HudiTable, create_table
from table.options import WriteOptions, parse_options
from table.read.read_table import read_table

__all__ = [
    "BatchRefusedError",
    "BrokenInvariantError",
    "CommitConflictError",
    "CommitOutcomeUnknownError",
    "CorruptFileError",
    "HudiError",
    "HudiTable",
    "InvalidConfigError",
    "InvalidRecordError",
    "SchemaMismatchError",
    "StorageError",
    "TableExistsError",
    "TableNotFoundError",
    "UnsupportedTableError",
    "WriteOptions",
    "create_table",
    "parse_options",
    "read_table",
]

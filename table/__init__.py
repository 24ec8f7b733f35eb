"""The Hudi table format, and everything a table can do to itself, without Spark."""

from table.config.merge_mode import MergeMode
from table.errors import (
    ActionPendingError,
    BatchOrderError,
    BatchRefusedError,
    BrokenInvariantError,
    CatalogError,
    CommitConflictError,
    CommitOutcomeUnknownError,
    CorruptFileError,
    HudiError,
    InstantEndedError,
    InvalidConfigError,
    InvalidRecordError,
    SchemaMismatchError,
    StorageError,
    TableExistsError,
    TableHeldError,
    TableNotFoundError,
    TaskFailedError,
    UnsupportedTableError,
    WriteConflictError,
)
from table.options.catalog_settings import CatalogSettings
from table.options.choices import IndexType
from table.options.clustering_settings import ClusteringSettings
from table.options.groups import (
    ArchiveSettings,
    BaseFileSettings,
    CleanSettings,
    CompactionSettings,
    HeartbeatSettings,
    LogFileSettings,
)
from table.options.list_options import OptionRow, list_options
from table.options.lock_settings import LockSettings
from table.options.operation import Operation
from table.options.write_groups import (
    BadRowSettings,
    DuplicateSettings,
    IndexSettings,
    KeySettings,
    OverwriteSettings,
    SchemaSettings,
    SinkSettings,
    SizeSettings,
    TableSettings,
    TaskSettings,
)
from table.options.write_options import WriteOptions, parse_options
from table.quarantine.read import read_bad_rows
from table.scan.explain_scan import ScanExplanation
from table.scan.polars_source import scan_hudi
from table.scan.read_table import read_table
from table.scan.scan import Scan
from table.scan.split import ScanSplit
from table.services.archival.archival import archive
from table.services.check.check import check
from table.services.check.finding import CheckReport, Finding
from table.services.clean.clean import clean
from table.services.clustering.clustering import ClusteringOutcome
from table.services.clustering.command import cluster
from table.services.compaction.compaction import compact
from table.services.rollback.undo_commit import roll_back
from table.services.savepoint.restore import restore_to_savepoint
from table.services.savepoint.savepoint import create_savepoint, delete_savepoint
from table.user_table import HudiTable, create_table

__all__ = [
    "ActionPendingError",
    "ArchiveSettings",
    "BadRowSettings",
    "BaseFileSettings",
    "BatchOrderError",
    "BatchRefusedError",
    "BrokenInvariantError",
    "CatalogError",
    "CatalogSettings",
    "CheckReport",
    "CleanSettings",
    "ClusteringOutcome",
    "ClusteringSettings",
    "CommitConflictError",
    "CommitOutcomeUnknownError",
    "CompactionSettings",
    "CorruptFileError",
    "DuplicateSettings",
    "Finding",
    "HeartbeatSettings",
    "HudiError",
    "HudiTable",
    "IndexSettings",
    "IndexType",
    "InstantEndedError",
    "InvalidConfigError",
    "InvalidRecordError",
    "KeySettings",
    "LockSettings",
    "LogFileSettings",
    "MergeMode",
    "Operation",
    "OptionRow",
    "OverwriteSettings",
    "Scan",
    "ScanExplanation",
    "ScanSplit",
    "SchemaMismatchError",
    "SchemaSettings",
    "SinkSettings",
    "SizeSettings",
    "StorageError",
    "TableExistsError",
    "TableHeldError",
    "TableNotFoundError",
    "TableSettings",
    "TaskFailedError",
    "TaskSettings",
    "UnsupportedTableError",
    "WriteConflictError",
    "WriteOptions",
    "archive",
    "check",
    "clean",
    "cluster",
    "compact",
    "create_savepoint",
    "create_table",
    "delete_savepoint",
    "list_options",
    "parse_options",
    "read_bad_rows",
    "read_table",
    "restore_to_savepoint",
    "roll_back",
    "scan_hudi",
]

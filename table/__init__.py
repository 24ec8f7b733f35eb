"""The Hudi table format, and everything a table can do to itself, without Spark.

A name is loaded when it is used: a task of Spark loads what it needs alone, in each Python process anew.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
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
        LostDataError,
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
    from table.scan.feed.feed import ChangeFeed
    from table.scan.polars_source import scan_hudi
    from table.scan.read_table import read_table
    from table.scan.scan import Scan
    from table.scan.split import ScanSplit
    from table.services.accept_losses import Losses, accept_losses, find_losses
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

_MODULES = {
    "ActionPendingError": "table.errors",
    "ArchiveSettings": "table.options.groups",
    "BadRowSettings": "table.options.write_groups",
    "BaseFileSettings": "table.options.groups",
    "BatchOrderError": "table.errors",
    "BatchRefusedError": "table.errors",
    "BrokenInvariantError": "table.errors",
    "CatalogError": "table.errors",
    "CatalogSettings": "table.options.catalog_settings",
    "ChangeFeed": "table.scan.feed.feed",
    "CheckReport": "table.services.check.finding",
    "CleanSettings": "table.options.groups",
    "ClusteringOutcome": "table.services.clustering.clustering",
    "ClusteringSettings": "table.options.clustering_settings",
    "CommitConflictError": "table.errors",
    "CommitOutcomeUnknownError": "table.errors",
    "CompactionSettings": "table.options.groups",
    "CorruptFileError": "table.errors",
    "DuplicateSettings": "table.options.write_groups",
    "Finding": "table.services.check.finding",
    "HeartbeatSettings": "table.options.groups",
    "HudiError": "table.errors",
    "IndexSettings": "table.options.write_groups",
    "IndexType": "table.options.choices",
    "InstantEndedError": "table.errors",
    "InvalidConfigError": "table.errors",
    "InvalidRecordError": "table.errors",
    "KeySettings": "table.options.write_groups",
    "LockSettings": "table.options.lock_settings",
    "LogFileSettings": "table.options.groups",
    "Losses": "table.services.accept_losses",
    "LostDataError": "table.errors",
    "MergeMode": "table.config.merge_mode",
    "Operation": "table.options.operation",
    "OptionRow": "table.options.list_options",
    "OverwriteSettings": "table.options.write_groups",
    "Scan": "table.scan.scan",
    "ScanExplanation": "table.scan.explain_scan",
    "ScanSplit": "table.scan.split",
    "SchemaMismatchError": "table.errors",
    "SchemaSettings": "table.options.write_groups",
    "SinkSettings": "table.options.write_groups",
    "SizeSettings": "table.options.write_groups",
    "StorageError": "table.errors",
    "TableExistsError": "table.errors",
    "TableHeldError": "table.errors",
    "TableNotFoundError": "table.errors",
    "TableSettings": "table.options.write_groups",
    "TaskFailedError": "table.errors",
    "TaskSettings": "table.options.write_groups",
    "UnsupportedTableError": "table.errors",
    "WriteConflictError": "table.errors",
    "WriteOptions": "table.options.write_options",
    "accept_losses": "table.services.accept_losses",
    "archive": "table.services.archival.archival",
    "check": "table.services.check.check",
    "clean": "table.services.clean.clean",
    "cluster": "table.services.clustering.command",
    "compact": "table.services.compaction.compaction",
    "create_savepoint": "table.services.savepoint.savepoint",
    "delete_savepoint": "table.services.savepoint.savepoint",
    "find_losses": "table.services.accept_losses",
    "list_options": "table.options.list_options",
    "parse_options": "table.options.write_options",
    "read_bad_rows": "table.quarantine.read",
    "read_table": "table.scan.read_table",
    "restore_to_savepoint": "table.services.savepoint.restore",
    "roll_back": "table.services.rollback.undo_commit",
    "scan_hudi": "table.scan.polars_source",
}

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
    "ChangeFeed",
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
    "IndexSettings",
    "IndexType",
    "InstantEndedError",
    "InvalidConfigError",
    "InvalidRecordError",
    "KeySettings",
    "LockSettings",
    "LogFileSettings",
    "Losses",
    "LostDataError",
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
    "accept_losses",
    "archive",
    "check",
    "clean",
    "cluster",
    "compact",
    "create_savepoint",
    "delete_savepoint",
    "find_losses",
    "list_options",
    "parse_options",
    "read_bad_rows",
    "read_table",
    "restore_to_savepoint",
    "roll_back",
    "scan_hudi",
]


def __getattr__(name: str) -> Any:
    if name in ("HudiTable", "create_table"):
        return getattr(import_module("table.user_table"), name)
    if name not in _MODULES:
        raise AttributeError(f"module 'table' has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)


def __dir__() -> list[str]:
    return [*globals(), *__all__]

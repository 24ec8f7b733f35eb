"""Everything that users of hudistream need, under one name.

``from hudistream import HudiSink, HudiTable, read_hudi`` imports from the packages `streaming` and `table`. A name is
loaded when it is used, so ``import hudistream`` needs neither pyspark nor pyarrow. Where Python finds somebody else's
module called `streaming` or `table`, the `ImportError` names both files.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from streaming import (
        BatchSummary,
        FailedBatch,
        HudiSink,
        NullShare,
        PendingBatch,
        RowCount,
        Unique,
        UpkeepSummary,
        read_hudi,
    )
    from streaming.metrics import PrometheusMetrics
    from table import (
        BatchRefusedError,
        BrokenInvariantError,
        CheckReport,
        CommitConflictError,
        CommitOutcomeUnknownError,
        CorruptFileError,
        Finding,
        HudiError,
        HudiTable,
        InvalidConfigError,
        InvalidRecordError,
        SchemaMismatchError,
        StorageError,
        TableExistsError,
        TableNotFoundError,
        TaskFailedError,
        UnsupportedTableError,
        WriteOptions,
        archive,
        check,
        clean,
        create_savepoint,
        create_table,
        delete_savepoint,
        parse_options,
        read_table,
        restore_to_savepoint,
        roll_back,
    )
    from table.version import VERSION as __version__  # noqa: N811 the name that Python gives it
else:
    from hudistream.lazy import __dir__, __getattr__  # noqa: F401 Python asks these for names

__all__ = [
    "BatchRefusedError",
    "BatchSummary",
    "BrokenInvariantError",
    "CheckReport",
    "CommitConflictError",
    "CommitOutcomeUnknownError",
    "CorruptFileError",
    "FailedBatch",
    "Finding",
    "HudiError",
    "HudiSink",
    "HudiTable",
    "InvalidConfigError",
    "InvalidRecordError",
    "NullShare",
    "PendingBatch",
    "PrometheusMetrics",
    "RowCount",
    "SchemaMismatchError",
    "StorageError",
    "TableExistsError",
    "TableNotFoundError",
    "TaskFailedError",
    "Unique",
    "UnsupportedTableError",
    "UpkeepSummary",
    "WriteOptions",
    "__version__",
    "archive",
    "check",
    "clean",
    "create_savepoint",
    "create_table",
    "delete_savepoint",
    "parse_options",
    "read_hudi",
    "read_table",
    "restore_to_savepoint",
    "roll_back",
]

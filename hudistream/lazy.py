"""Names of `streaming` and `table`, loaded when they are used, and a clear error where another module has that name."""

import importlib
import os
import sys
from collections.abc import Mapping
from importlib.metadata import packages_distributions
from importlib.util import find_spec
from types import MappingProxyType
from typing import Any

DISTRIBUTION = "hudistream"
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

_STREAMING = (
    "BatchSummary",
    "FailedBatch",
    "HudiSink",
    "NullShare",
    "PendingBatch",
    "PrometheusMetrics",
    "RowCount",
    "Unique",
    "UpkeepSummary",
    "read_hudi",
)
_TABLE = (
    "ArchiveSettings",
    "BadRowSettings",
    "BaseFileSettings",
    "BatchRefusedError",
    "BrokenInvariantError",
    "CheckReport",
    "CleanSettings",
    "CommitConflictError",
    "CommitOutcomeUnknownError",
    "CorruptFileError",
    "DuplicateSettings",
    "Finding",
    "HeartbeatSettings",
    "HudiError",
    "HudiTable",
    "IndexSettings",
    "IndexType",
    "InvalidConfigError",
    "InvalidRecordError",
    "KeySettings",
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
    "TableNotFoundError",
    "TableSettings",
    "TaskFailedError",
    "TaskSettings",
    "UnsupportedTableError",
    "WriteOptions",
    "archive",
    "check",
    "clean",
    "create_savepoint",
    "create_table",
    "delete_savepoint",
    "list_options",
    "parse_options",
    "read_table",
    "restore_to_savepoint",
    "roll_back",
)

# name -> (module, name in that module)
NAMES: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        **{name: ("streaming", name) for name in _STREAMING},
        **{name: ("table", name) for name in _TABLE},
        "__version__": ("table.version", "VERSION"),
    }
)


def __getattr__(name: str) -> Any:
    """The value of a public name of hudistream.

    Raises:
        AttributeError: hudistream has no such name.
        ImportError: another module has the name of one of hudistream's packages, or pyspark is missing.
    """
    if name not in NAMES:
        raise AttributeError(f"module {DISTRIBUTION!r} has no attribute {name!r}")
    module, attribute = NAMES[name]
    value = _load(module, attribute)
    setattr(sys.modules[DISTRIBUTION], name, value)
    return value


def __dir__() -> list[str]:
    """All public names, loaded or not."""
    return sorted({*vars(sys.modules[DISTRIBUTION]), *NAMES})


def _load(module: str, attribute: str) -> Any:
    packages = ("table", "streaming") if module.startswith("streaming") else ("table",)
    for package in packages:
        _check_not_shadowed(package)
    try:
        return getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        _check_not_overwritten(packages, error)
        raise


def _check_not_shadowed(package: str) -> None:
    """Python finds the package beside this one, not another module of that name (a script ``streaming.py``)."""
    ours = os.path.join(ROOT, package, "__init__.py")
    spec = getattr(sys.modules.get(package), "__spec__", None) or find_spec(package)
    if spec is None:
        raise ImportError(f"hudistream is installed without its package {package!r}, expected at {ours}: reinstall it")
    found = spec.origin or next(iter(spec.submodule_search_locations or ()), "a module without a file")
    if os.path.realpath(found) != os.path.realpath(ours):
        raise ImportError(
            f"{found} shadows hudistream's package {package!r} ({ours}): rename or remove it, or put {ROOT} before "
            "its folder on sys.path"
        )


def _check_not_overwritten(packages: tuple[str, ...], error: Exception) -> None:
    """No other distribution has installed its files over hudistream's (mosaicml-streaming has a `streaming`, too)."""
    owners = packages_distributions()
    for package in packages:
        others = sorted({*owners.get(package, ())} - {DISTRIBUTION})
        if others:
            raise ImportError(
                f"{', '.join(others)} has installed its own package {package!r} over hudistream's "
                f"({os.path.join(ROOT, package)}): install the two in environments of their own"
            ) from error

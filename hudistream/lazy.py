"""Loads names of `streaming` and `table` when they are used. Raises a clear error if another module shadows them."""

import importlib
import os
import sys
from collections.abc import Collection
from importlib.metadata import packages_distributions
from importlib.util import find_spec
from typing import Any

DISTRIBUTION = "hudistream"
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

# of this package
_OWN = frozenset({"HudiTable", "create_table"})
# the names in `hudistream.__all__` that are in `streaming`; all others are in `table`
_STREAMING = frozenset(
    {
        "ArrowSink",
        "BatchSummary",
        "Erasure",
        "FailedBatch",
        "HudiRouter",
        "HudiSink",
        "NullShare",
        "PendingBatch",
        "PrometheusMetrics",
        "RouterLimits",
        "RowCount",
        "RunningBatch",
        "Unique",
        "UpkeepSummary",
        "as_upserts",
        "avro_to_json",
        "debezium",
        "erase",
        "read_hudi",
        "starting_offsets",
        "write_hudi",
    }
)


def __getattr__(name: str) -> Any:
    """The value of a public name of hudistream.

    Raises:
        AttributeError: hudistream has no such name.
        ImportError: another module has the name of one of hudistream's packages, or pyspark is missing.
    """
    if name not in _offered():
        raise AttributeError(f"module {DISTRIBUTION!r} has no attribute {name!r}")
    value = _load(*place_of(name))
    setattr(sys.modules[DISTRIBUTION], name, value)
    return value


def __dir__() -> list[str]:
    """All public names, loaded or not."""
    return sorted({*vars(sys.modules[DISTRIBUTION]), *_offered()})


def place_of(name: str) -> tuple[str, str]:
    """Module of a public name, and the name in that module."""
    if name == "__version__":
        return "table.version", "VERSION"
    if name in _OWN:
        return "hudistream.user_table", name
    return ("streaming" if name in _STREAMING else "table"), name


def _offered() -> Collection[str]:
    # while the package is being imported it asks for names itself, and has no list yet
    names: Collection[str] = vars(sys.modules[DISTRIBUTION]).get("__all__", ())
    return names


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
    """Checks that Python finds the package beside this one, not another module of that name (``streaming.py``)."""
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
    """Checks that no other distribution has installed its files over hudistream's (mosaicml-streaming can do so)."""
    owners = packages_distributions()
    for package in packages:
        others = sorted({*owners.get(package, ())} - {DISTRIBUTION})
        if others:
            raise ImportError(
                f"{', '.join(others)} has installed its own package {package!r} over hudistream's "
                f"({os.path.join(ROOT, package)}): install the two in environments of their own"
            ) from error

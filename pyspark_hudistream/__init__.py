"""Spark 4 looks for modules called ``pyspark_…`` and registers their `DefaultSource`: the format ``hudistream``.

The class is loaded when it is first used, because PySpark before 4 has no Python data sources.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark_hudistream.data_source import DefaultSource

__all__ = ["DefaultSource"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'pyspark_hudistream' has no attribute {name!r}")
    return getattr(import_module("pyspark_hudistream.data_source"), name)

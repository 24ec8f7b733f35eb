"""Writers on top of the table format: `HudiSink` for Spark Structured Streaming, `ArrowSink` without Spark.

A name is loaded when it is used; pyspark is needed when Spark's rows are written or a table is read with it. Stateful
operators in front of a sink need nothing here (docs/guides/stateful.md).
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from streaming.arrow_sink import ArrowSink, write_hudi
    from streaming.batch.failed_batch import FailedBatch
    from streaming.batch.progress import RunningBatch
    from streaming.batch.summary import BatchSummary
    from streaming.batch.upkeep_summary import UpkeepSummary
    from streaming.erasure import Erasure, erase
    from streaming.hudi_router import HudiRouter
    from streaming.kafka import starting_offsets
    from streaming.metrics import PrometheusMetrics
    from streaming.router.template import RouterLimits
    from streaming.sink import HudiSink
    from streaming.spark.avro_values import avro_to_json
    from streaming.spark.debezium import debezium
    from streaming.spark.read_hudi import read_hudi
    from streaming.upserts import as_upserts
    from streaming.validators import NullShare, PendingBatch, RowCount, Unique

_MODULES = {
    "ArrowSink": "streaming.arrow_sink",
    "BatchSummary": "streaming.batch.summary",
    "Erasure": "streaming.erasure",
    "FailedBatch": "streaming.batch.failed_batch",
    "HudiRouter": "streaming.hudi_router",
    "HudiSink": "streaming.sink",
    "NullShare": "streaming.validators",
    "PendingBatch": "streaming.validators",
    "PrometheusMetrics": "streaming.metrics",
    "RouterLimits": "streaming.router.template",
    "RowCount": "streaming.validators",
    "RunningBatch": "streaming.batch.progress",
    "Unique": "streaming.validators",
    "UpkeepSummary": "streaming.batch.upkeep_summary",
    "as_upserts": "streaming.upserts",
    "avro_to_json": "streaming.spark.avro_values",
    "debezium": "streaming.spark.debezium",
    "erase": "streaming.erasure",
    "read_hudi": "streaming.spark.read_hudi",
    "starting_offsets": "streaming.kafka",
    "write_hudi": "streaming.arrow_sink",
}

__all__ = [
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
]


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'streaming' has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)


def __dir__() -> list[str]:
    return [*globals(), *__all__]

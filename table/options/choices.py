"""Closed choices among options, each with Hudi's own values (pure)."""

from types import MappingProxyType

from table.config.choice import Choice
from table.errors import InvalidConfigError


class PartitionKind(Choice):
    """How the custom key generator makes one part of the partition path."""

    SIMPLE = "SIMPLE"
    TIMESTAMP = "TIMESTAMP"


class InstantZone(Choice):
    """``hoodie.table.timeline.timezone``: the zone of instant times."""

    UTC = "UTC"
    LOCAL = "LOCAL"


class WriteLocation(Choice):
    """``hudistream.write.location``: who writes the files of a batch of Spark."""

    EXECUTORS = "executors"
    DRIVER = "driver"


class IndexType(Choice):
    """``hoodie.index.type``: how keys are found."""

    BLOOM = "BLOOM"
    SIMPLE = "SIMPLE"
    BUCKET = "BUCKET"
    GLOBAL_BLOOM = "GLOBAL_BLOOM"
    GLOBAL_SIMPLE = "GLOBAL_SIMPLE"
    RECORD_INDEX = "RECORD_INDEX"
    FLINK_STATE = "FLINK_STATE"

    @property
    def is_global(self) -> bool:
        """Whether a key is unique in the table, not only in its partition path."""
        return self in (IndexType.GLOBAL_BLOOM, IndexType.GLOBAL_SIMPLE, IndexType.RECORD_INDEX)

    @property
    def has_filters(self) -> bool:
        """Whether the index checks key range and bloom filter in footers before it reads keys."""
        return self in (IndexType.BLOOM, IndexType.GLOBAL_BLOOM, IndexType.RECORD_INDEX)

    @property
    def has_buckets(self) -> bool:
        """Whether the hash of a key determines its file group."""
        return self is IndexType.BUCKET


_GLOBAL = {IndexType.BLOOM: IndexType.GLOBAL_BLOOM, IndexType.SIMPLE: IndexType.GLOBAL_SIMPLE}


def resolve_index(index: IndexType, global_keys: bool | None) -> IndexType:  # noqa: FBT001 three states
    """The index that a type and Flink's ``index.global.enabled`` mean together.

    Args:
        index: the type as given.
        global_keys: Flink's switch; None: not given.

    Raises:
        InvalidConfigError: the two contradict each other.
    """
    if index is IndexType.FLINK_STATE:  # unique in the table unless the switch says otherwise, as in Flink
        return IndexType.BLOOM if global_keys is False else IndexType.GLOBAL_BLOOM
    if global_keys and not index.is_global:
        if index not in _GLOBAL:
            raise InvalidConfigError(
                f"index.global.enabled=true: the index {index} finds a key in its own partition path only; leave the "
                f"switch out, or set hoodie.index.type={IndexType.GLOBAL_BLOOM}"
            )
        return _GLOBAL[index]
    if global_keys is False and index.is_global:
        raise InvalidConfigError(
            f"index.global.enabled=false and hoodie.index.type={index} say different things: keep one"
        )
    return index


class SchemaMode(Choice):
    """``hudistream.schema.mode``: the columns that a batch may have (`table.schema.evolution`)."""

    STRICT = "strict"
    ADD = "add"
    RECONCILE = "reconcile"


class SortMode(Choice):
    """``hoodie.bulkinsert.sort.mode``."""

    NONE = "NONE"
    GLOBAL_SORT = "GLOBAL_SORT"
    PARTITION_SORT = "PARTITION_SORT"
    PARTITION_PATH_REPARTITION = "PARTITION_PATH_REPARTITION"
    PARTITION_PATH_REPARTITION_AND_SORT = "PARTITION_PATH_REPARTITION_AND_SORT"


class ConcurrencyMode(Choice):
    """``hoodie.write.concurrency.mode``: whether other writers may write the table (WriteConcurrencyMode)."""

    SINGLE_WRITER = "SINGLE_WRITER"
    OPTIMISTIC = "OPTIMISTIC_CONCURRENCY_CONTROL"


class FailedWrites(Choice):
    """``hoodie.clean.failed.writes.policy``: when dead writers' instants end (HoodieFailedWritesCleaningPolicy)."""

    EAGER = "EAGER"
    LAZY = "LAZY"


class BadRows(Choice):
    """``hudistream.bad.rows``: what a batch does with rows that cannot be stored."""

    FAIL = "fail"
    QUARANTINE = "quarantine"


class BadRowsShown(Choice):
    """``hudistream.bad.rows.shown``: the columns that errors show of rows that cannot be stored."""

    KEYS = "keys"
    ROWS = "rows"


class Codec(Choice):
    """``hoodie.parquet.compression.codec``."""

    ZSTD = "zstd"
    SNAPPY = "snappy"
    GZIP = "gzip"
    LZ4 = "lz4"
    NONE = "none"


class BloomType(Choice):
    """``hoodie.bloom.index.filter.type``."""

    SIMPLE = "SIMPLE"
    DYNAMIC_V0 = "DYNAMIC_V0"


class TableType(Choice):
    """``hoodie.datasource.write.table.type``."""

    COPY_ON_WRITE = "COPY_ON_WRITE"
    MERGE_ON_READ = "MERGE_ON_READ"


class LogBlockFormat(Choice):
    """``hoodie.logfile.data.block.format``: the form of rows in log files."""

    AVRO = "avro"
    PARQUET = "parquet"


class CompactionTrigger(Choice):
    """``hoodie.compact.inline.trigger.strategy``: the event that makes a compaction due."""

    NUM_COMMITS = "NUM_COMMITS"
    TIME_ELAPSED = "TIME_ELAPSED"
    NUM_AND_TIME = "NUM_AND_TIME"
    NUM_OR_TIME = "NUM_OR_TIME"


class CompactionStrategy(Choice):
    """``hoodie.compaction.strategy``: which slices a compaction takes, and in which order."""

    LOG_FILE_SIZE = "LOG_FILE_SIZE"
    LOG_FILE_NUM = "LOG_FILE_NUM"
    BOUNDED_IO = "BOUNDED_IO"
    UNBOUNDED = "UNBOUNDED"
    DAY_BASED = "DAY_BASED"


# Hudi's classes in org.apache.hudi.table.action.compact.strategy
COMPACTION_STRATEGY_CLASSES = MappingProxyType(
    {
        "LogFileSizeBasedCompactionStrategy": CompactionStrategy.LOG_FILE_SIZE,
        "LogFileNumBasedCompactionStrategy": CompactionStrategy.LOG_FILE_NUM,
        "BoundedIOCompactionStrategy": CompactionStrategy.BOUNDED_IO,
        "UnBoundedCompactionStrategy": CompactionStrategy.UNBOUNDED,
        "DayBasedCompactionStrategy": CompactionStrategy.DAY_BASED,
    }
)


class CleanPolicy(Choice):
    """``hoodie.clean.policy``."""

    KEEP_LATEST_COMMITS = "KEEP_LATEST_COMMITS"
    KEEP_LATEST_FILE_VERSIONS = "KEEP_LATEST_FILE_VERSIONS"
    KEEP_LATEST_BY_HOURS = "KEEP_LATEST_BY_HOURS"


class TableCreation(Choice):
    """``hudistream.table.create``: whether a sink creates a missing table."""

    IF_ABSENT = "if_absent"
    NEVER = "never"


class CleanFailure(Choice):
    """``hudistream.clean.on.failure``: what a failed clean or archival leads to."""

    WARN = "warn"
    PAUSE = "pause"
    FAIL = "fail"

"""When and how file groups are rewritten so that rows lie where queries look (HoodieClusteringConfig)."""

from dataclasses import dataclass, replace

from table.config.choice import Choice
from table.errors import InvalidConfigError
from table.options.numbers import Size, Whole
from table.options.settings import Settings, option
from table.options.values import Flag, Names, OneOf, Text, check_pattern

_MB = 1024 * 1024
MOST_AXES = 8  # most columns of a curve: each gets at least eight bits


class Layout(Choice):
    """``hoodie.layout.optimize.strategy``: the order of the rows of several sort columns."""

    LINEAR = "LINEAR"
    Z_ORDER = "Z_ORDER"
    HILBERT = "HILBERT"


class PartitionFilter(Choice):
    """``hoodie.clustering.plan.partition.filter.mode``: the partition paths that a plan looks at."""

    NONE = "NONE"
    RECENT_DAYS = "RECENT_DAYS"
    SELECTED_PARTITIONS = "SELECTED_PARTITIONS"
    DAY_ROLLING = "DAY_ROLLING"


LAYOUT = OneOf(Layout, {"z-order": Layout.Z_ORDER, "zorder": Layout.Z_ORDER}, "layout")
_FILTER = OneOf(PartitionFilter, what="filter of partitions")


@dataclass(frozen=True)
class RowOrder:
    """Where rows lie in the files that a write or a clustering makes.

    Attributes:
        columns: sort columns, the most significant first.
        layout: the order if there are several columns.
    """

    columns: tuple[str, ...]
    layout: Layout = Layout.LINEAR


@dataclass(frozen=True)
class ClusteringSettings(Settings):
    """When file groups are clustered, which of them, and in which order their rows lie.

    Attributes:
        inline: a clustering that is due runs after the commit, before the batch returns.
        in_background: a clustering that is due is planned after the commit, and carried out beside the next batches.
        schedules: a clustering that is due is planned after the commit. Another process carries it out, such as
            `hudistream cluster --execute` or a job of Hudi, unless `in_background` is set, too.
        max_commits: a clustering is due after this many commits since the last one.
        sort_columns: columns by which the rows of a group are sorted; none: small files are combined, and their rows
            keep their order.
        layout: the order of the rows if there are several sort columns.
        small_file_bytes: only files below this size are candidates.
        target_bytes: approximate size of the new files.
        group_bytes: bytes of files whose rows are sorted together. Rows that do not fit into memory go to local disk.
        most_groups: most groups in one plan. A larger table is clustered by several plans.
        takes_single: whether a file that is alone in its group is rewritten, for the order of its rows.
        partition_filter: which partition paths a plan looks at.
        days: number of newest partitions that RECENT_DAYS takes.
        days_skipped: number of newest partitions that RECENT_DAYS skips before it takes any.
        first_partition: SELECTED_PARTITIONS: the first partition path, by name; None: no bound.
        last_partition: SELECTED_PARTITIONS: the last partition path, by name; None: no bound.
        partition_pattern: a regular expression that a partition path must match as a whole.
        partitions: only these partition paths are taken; none: all are.
        executors_from_mb: a stream's clustering that reads at least this many MB of files runs on Spark's executors, on
            at most half of their cores.
    """

    inline: bool = option(default=False, kind=Flag())
    in_background: bool = option(default=False, kind=Flag())
    schedules: bool = option(default=False, kind=Flag())
    max_commits: int = option(4, Whole(1))
    sort_columns: tuple[str, ...] = option((), Names())
    layout: Layout = option(Layout.LINEAR, LAYOUT)
    small_file_bytes: int = option(300 * _MB, Size(1))
    target_bytes: int = option(1024 * _MB, Size(1))
    group_bytes: int = option(2048 * _MB, Size(1))
    most_groups: int = option(30, Whole(1))
    takes_single: bool = option(default=True, kind=Flag())
    partition_filter: PartitionFilter = option(PartitionFilter.NONE, _FILTER)
    days: int = option(2, Whole(1))
    days_skipped: int = option(0, Whole(0))
    first_partition: str | None = option(None, Text())
    last_partition: str | None = option(None, Text())
    partition_pattern: str | None = option(None, Text())
    partitions: tuple[str, ...] = option((), Names("partition paths, separated by commas"))
    executors_from_mb: int = option(256, Whole(0))

    @property
    def way(self) -> str | None:
        """The option by which a sink clusters its table; None: it does not."""
        ways = {
            "hoodie.clustering.inline": self.inline,
            "hoodie.clustering.async.enabled": self.in_background,
            "hoodie.clustering.schedule.inline": self.schedules,
        }
        return next((name for name, is_set in ways.items() if is_set), None)

    def _check(self) -> None:
        """Refuses an invalid pattern, a column named twice, a curve through too few or too many of the columns, and
        two ways of running at once.
        """
        if self.inline and (self.in_background or self.schedules):
            other = replace(self, inline=False).way
            raise InvalidConfigError(
                f"hoodie.clustering.inline=true and {other}=true: choose one of them. A clustering "
                "runs between two batches (inline), beside batches (async), or in another job (schedule)"
            )
        if self.partition_pattern is not None:
            check_pattern("hoodie.clustering.plan.strategy.partition.regex.pattern", self.partition_pattern)
        twice = sorted({name for name in self.sort_columns if self.sort_columns.count(name) > 1})
        if twice:
            raise InvalidConfigError(
                f"hoodie.clustering.plan.strategy.sort.columns names {', '.join(twice)} twice: name each column once"
            )
        if self.sort_columns:
            check_layout(self.layout, self.sort_columns)


def check_layout(
    layout: Layout, columns: tuple[str, ...], key: str = "hoodie.clustering.plan.strategy.sort.columns"
) -> None:
    """Refuses a curve through too few or too many columns.

    Args:
        layout: the order of the columns.
        columns: the sort columns.
        key: the option that names them.

    Raises:
        InvalidConfigError: names the layout and the columns.
    """
    if layout is Layout.LINEAR:
        return
    if len(columns) > MOST_AXES:
        raise InvalidConfigError(
            f"hoodie.layout.optimize.strategy={layout} takes at most {MOST_AXES} columns, and {key} names "
            f"{len(columns)}: with more of them none would narrow a query"
        )
    if len(columns) < 2:
        raise InvalidConfigError(
            f"hoodie.layout.optimize.strategy={layout} needs two or more columns in {key}, not "
            f"{', '.join(columns) or 'none'}: name them, or leave the strategy at LINEAR"
        )

"""Read options: the ``hoodie.*`` strings of Hudi's Spark reader -> typed values (pure).

As for writing, each key is honoured, refused with a reason, or has no effect (DataSourceReadOptions). A write option
has no effect on reading. Any other key is an error with the nearest name.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime
from types import MappingProxyType
from typing import Any

from table.columns.near_name import did_you_mean
from table.config.choice import Choice
from table.errors import InvalidConfigError
from table.options.keys import ALIASES, HONOURED
from table.options.refused import REFUSED
from table.options.values import Flag, OneOf
from table.options.vocabulary import Refusals, Vocabulary, sort_keys
from table.options.without_effect import WITHOUT_EFFECT, WITHOUT_EFFECT_PREFIXES
from table.secret_names import hiding

Time = str | date | datetime

QUERY_TYPE = "hoodie.datasource.query.type"
AS_OF = "as.of.instant"
BEGIN = "hoodie.datasource.read.begin.instanttime"
END = "hoodie.datasource.read.end.instanttime"
START_OFFSET = "hoodie.datasource.streaming.startOffset"
_VIEW_TYPE = "hoodie.datasource.view.type"
_AS_READ_OPTIMIZED = "hoodie.query.as.ro.table"
_PATH = "hoodie.base.path"
CONFIRM = "hudistream.read.confirm"


class QueryType(Choice):
    """``hoodie.datasource.query.type``."""

    SNAPSHOT = "snapshot"
    READ_OPTIMIZED = "read_optimized"
    INCREMENTAL = "incremental"


@dataclass(frozen=True)
class ReadOptions:
    """A question to a table.

    Attributes:
        query_type: all rows, the rows of base files alone, or the rows that a range of commits wrote.
        as_of: which snapshot; None means the newest.
        since: the range begins after this instant; None means with the first commit.
        until: the range ends with this instant; None means as far as every write is completed.
        start: where a stream begins: ``earliest``, ``latest`` or an instant time; None: not given.
        names_hudis_begin: whether Hudi's key gave the beginning of the range; the meaning of that key depends on the
            table's version.
        confirms: as `Scan.confirmed`.
    """

    query_type: QueryType = QueryType.SNAPSHOT
    as_of: Time | None = None
    since: Time | None = None
    until: Time | None = None
    start: str | None = None
    names_hudis_begin: bool = False
    confirms: bool = False


@dataclass(frozen=True)
class ParsedReadOptions:
    """Read options, and the given keys that have no effect.

    Attributes:
        options: the typed options.
        without_effect: key -> why it has no effect.
    """

    options: ReadOptions
    without_effect: Mapping[str, str]


READ_HONOURED: Mapping[str, str] = MappingProxyType(
    {
        QUERY_TYPE: "snapshot, read_optimized (base files alone) or incremental (rows that a range of commits wrote)",
        _VIEW_TYPE: "the older key: realtime and read_optimized mean snapshot, as Hudi translates them; or incremental",
        _AS_READ_OPTIMIZED: "true: read_optimized",
        AS_OF: "the snapshot of that time",
        BEGIN: "incremental: rows of later commits; zeros or earliest mean all commits",
        END: "incremental: rows of commits up to this one; left out: as far as every write is completed",
        START_OFFSET: "streams: earliest, latest, or the instant after which the stream begins",
        CONFIRM: "true: fail where a file of the newest snapshot is gone or has another size than its commit says",
        _PATH: "the path of the table; must agree with the one given",
    }
)

READ_REFUSED: Refusals = MappingProxyType(
    {
        "hoodie.datasource.query.incremental.format": (
            ("latest_state",),
            "files of changes are not read: give deletes=true and before=true, which compare file slices",
        ),
        "hoodie.datasource.merge.type": (("payload_combine",), "records of log files are always merged"),
        "hoodie.datasource.read.paths": (("",), "a whole table is read; give where= to read a part of it"),
        "hoodie.datasource.read.incr.filters": (("",), "give where= instead"),
        "hoodie.datasource.read.incr.path.glob": (("",), "give where= on a partition column instead"),
        "hoodie.datasource.read.schema.use.end.instanttime": (
            ("true",),
            "the columns are those of the newest snapshot, as with Hudi's default",
        ),
        "hoodie.datasource.read.incr.fallback.fulltablescan.enable": (
            ("false",),
            "a range whose files are gone is refused instead of guessed",
        ),
        "hoodie.datasource.read.extract.partition.values.from.path": (("false",), "values are read from the files"),
        "hoodie.datasource.read.partition.value.extractor.enabled": (("false",), "values are read from the files"),
        "hoodie.read.timeline.holes.resolution.policy": (
            ("fail", "block"),
            "a range ends before the first write that is pending",
        ),
        "hoodie.datasource.read.handle.hollow.commit": (
            ("fail", "block"),
            "a range ends before the first write that is pending",
        ),
        "hoodie.schema.on.read.enable": (("false",), "schema history is not kept"),
        "hoodie.datasource.read.table.valued.function.timeline.relation": (("false",), "use HudiTable.history()"),
        "hoodie.datasource.read.create.filesystem.relation": (("false",), "use HudiTable.files()"),
        "read.start-commit": (("",), "the start of Flink's range belongs to it: give since=, which does not"),
        "read.end-commit": (("",), "give until="),
        "read.streaming.enabled": (("false",), "use spark.readStream.format('hudistream')"),
        "read.utc-timezone": (("true",), "times are instants, in UTC"),
    }
)

_READ_WITHOUT_EFFECT = {
    "how the JVM lists and skips files; here where= skips them": """
        hoodie.file.index.enable hoodie.enable.data.skipping hoodie.datasource.read.file.index.listing.mode
        hoodie.datasource.read.file.index.listing.partition-path-prefix.analysis.enabled
        hoodie.datasource.read.file.index.optimize.listing.using.path.filter
        hoodie.datasource.read.file.index.list.partitions.from.catalog
    """,
    "which version Hudi assumes; here the table says it": """
        hoodie.datasource.read.streaming.table.version hoodie.datasource.read.incr.table.version
    """,
    "rows say which commit wrote them, and compaction and clustering keep that": """
        hoodie.datasource.read.incr.skip_compact hoodie.datasource.read.incr.skip_cluster
    """,
    "Flink's source: here spark.readStream, or a scan": """
        catalog.path lookup.join.cache.ttl read.cdc.from.changelog read.commits.limit read.data.skipping.enabled
        read.record.index.keys.max.count read.splits.limit read.streaming.check-interval read.streaming.skip_clustering
        read.streaming.skip_compaction read.streaming.skip_insertoverwrite read.tasks
    """,
    "internal to the JVM's reader": """
        _hoodie.hfile.use.native.reader hoodie.bucket.index.query.pruning hoodie.compaction.lazy.block.read
        hoodie.compaction.reverse.log.read hoodie.datasource.partition_extractor_class hoodie.file.group.reader.enabled
        hoodie.file.index.cache.spillable.mem hoodie.file.index.cache.use.spillable.map hoodie.hfile.block.cache.enabled
        hoodie.hfile.block.cache.size hoodie.hfile.block.cache.ttl.minutes hoodie.lance.read.allocator.size.bytes
        hoodie.lance.read.metadata.allocator.size.bytes hoodie.merge.use.record.positions
        hoodie.metadata.fallback.enable
        hoodie.metadata.file.cache.max.size.mb hoodie.metadata.max.reader.buffer.size hoodie.metadata.max.reader.memory
        hoodie.metadata.optimized.log.blocks.scan.enable hoodie.read.blob.inline.mode
        hoodie.datasource.read.table.valued.function.timeline.relation.archived
        hoodie.datasource.read.table.valued.function.filesystem.relation.subpath
        hoodie.spark.polaris.catalog.class
    """,
}

READ_WITHOUT_EFFECT: Mapping[str, str] = MappingProxyType(
    {key: reason for reason, keys in _READ_WITHOUT_EFFECT.items() for key in keys.split()}
)

# other spellings
READ_ALIASES: Mapping[str, str] = MappingProxyType({"path": _PATH})

_QUERY_TYPE = OneOf(QueryType, what="query type")
# DataSourceOptionsHelper.viewTypeValueMap
_OLD_VIEW = OneOf(QueryType, {"realtime": QueryType.SNAPSHOT, "read_optimized": QueryType.SNAPSHOT}, what="view type")


def parse_read_options(
    options: Mapping[str, Any], given: ReadOptions | None = None, base_path: str | None = None
) -> ParsedReadOptions:
    """Parses read options.

    Args:
        options: keys and values, as users give them to ``spark.read``. None means that the option is not given.
        given: options from arguments of the call; a contradicting option is refused.
        base_path: the table's path; ``path`` must agree with it.

    Raises:
        InvalidConfigError: names the key, its value, and the way out; refused and unknown keys all at once.
    """
    with hiding(options):
        found = sort_keys(options, _VOCABULARY)
    honoured = {name: value.strip() for name, (_, value) in found.honoured.items()}
    _check_path(honoured.pop(_PATH, None), base_path)
    return ParsedReadOptions(_agreed(honoured, given or ReadOptions()), found.without_effect)


def _reason_without_effect(key: str) -> str | None:
    if key in READ_WITHOUT_EFFECT:
        return READ_WITHOUT_EFFECT[key]
    of_writers = key in HONOURED or key in REFUSED or key in ALIASES or key in WITHOUT_EFFECT
    return "an option of writers" if of_writers or key.startswith(tuple(WITHOUT_EFFECT_PREFIXES)) else None


def _unknown(key: str) -> str:
    hint = did_you_mean(key, [*READ_HONOURED, *READ_REFUSED, *READ_WITHOUT_EFFECT])
    return f"unknown option {key}{hint or '; docs/guides/reading.md lists those of reading'}"


_VOCABULARY = Vocabulary(READ_HONOURED, READ_REFUSED, READ_ALIASES, _reason_without_effect, _unknown)


def _check_path(given: str | None, base_path: str | None) -> None:
    if given is not None and base_path is not None and given.rstrip("/") != base_path.rstrip("/"):
        raise InvalidConfigError(f"the options say the table is at {given!r}, the call reads {base_path!r}: keep one")


def _agreed(named: Mapping[str, str], given: ReadOptions) -> ReadOptions:
    """Merges options and arguments, and refuses contradictions."""
    as_of = _one_of("as_of", given.as_of, AS_OF, named.get(AS_OF))
    since = _one_of("since", given.since, BEGIN, named.get(BEGIN))
    until = _one_of("until", given.until, END, named.get(END))
    start = _one_of("start", given.start, START_OFFSET, named.get(START_OFFSET))
    kind = _query_type(named)
    if kind is None and (given.since is not None or given.until is not None):
        kind = QueryType.INCREMENTAL
    kind = kind or QueryType.SNAPSHOT
    ranged = [name for name, value in (("since", since), ("until", until)) if value is not None]
    if kind is QueryType.INCREMENTAL:
        if as_of is not None:
            raise InvalidConfigError(
                f"as_of={as_of!r} names a snapshot, and a range of commits is asked for: give until="
            )
        if not ranged:
            raise InvalidConfigError(f"{QUERY_TYPE}=incremental needs {BEGIN}: zeros mean all commits")
    elif ranged:
        key = BEGIN if "since" in ranged else END
        raise InvalidConfigError(
            f"{ranged[0]} ({key}) asks for a range of commits, and {QUERY_TYPE}={kind}: set it to incremental"
        )
    confirms = CONFIRM in named and bool(Flag().read(CONFIRM, named[CONFIRM]))
    return ReadOptions(kind, as_of, since, until, str(start) if start is not None else None, BEGIN in named, confirms)


def _query_type(named: Mapping[str, str]) -> QueryType | None:
    found: dict[str, QueryType] = {}
    if QUERY_TYPE in named:
        found[f"{QUERY_TYPE}={named[QUERY_TYPE]}"] = _QUERY_TYPE.read(QUERY_TYPE, named[QUERY_TYPE])
    elif _VIEW_TYPE in named:
        found[f"{_VIEW_TYPE}={named[_VIEW_TYPE]}"] = _OLD_VIEW.read(_VIEW_TYPE, named[_VIEW_TYPE])
    if _AS_READ_OPTIMIZED in named and Flag().read(_AS_READ_OPTIMIZED, named[_AS_READ_OPTIMIZED]):
        found[f"{_AS_READ_OPTIMIZED}=true"] = QueryType.READ_OPTIMIZED
    if len({*found.values()}) > 1:
        raise InvalidConfigError(f"{' and '.join(found)} say different things: keep one")
    return next(iter(found.values()), None)


def _one_of(name: str, argument: Time | None, key: str, option: str | None) -> Time | None:
    if argument is None or option is None:
        return argument if option is None else option
    if str(argument) != option:
        raise InvalidConfigError(f"{name}={argument!r} and {key}={option} say different things: keep one")
    return argument

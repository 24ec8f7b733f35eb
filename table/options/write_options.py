"""Options: ``hoodie.*`` strings as users write them -> one frozen, typed value (pure).

Every key falls into one of three classes: honoured (`table.options.keys`), refused (`table.options.refused`; ignoring
it would change results), or without effect here (`table.options.without_effect`; the log names it once).
Old, new and Flink spellings are accepted. Any other key is an error with the nearest name.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, cast

from table.columns.near_name import did_you_mean
from table.errors import InvalidConfigError
from table.options.catalog_settings import CatalogSettings, check_names_catalog
from table.options.clustering_settings import ClusteringSettings, Layout, RowOrder
from table.options.groups import (
    ArchiveSettings,
    BaseFileSettings,
    CleanSettings,
    CompactionSettings,
    HeartbeatSettings,
    LogFileSettings,
    ServiceSettings,
)
from table.options.inserts import check_combines, check_inserts_stay, check_joins_logs
from table.options.keys import ALIASES, HONOURED
from table.options.lock_settings import LockSettings
from table.options.operation import Operation
from table.options.refused import REFUSED
from table.options.rules import check_clean_spellings, check_sort_columns, checked_retention, choose_bloom_type
from table.options.vocabulary import Vocabulary, sort_keys
from table.options.without_effect import MISSED, WITHOUT_EFFECT, WITHOUT_EFFECT_EXCEPT, WITHOUT_EFFECT_PREFIXES
from table.options.write_groups import (
    GROUPS,
    OPERATION,
    BadRowSettings,
    ConcurrencySettings,
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
from table.secret_names import hiding, shown_value

DEFAULT_OPERATION = Operation.UPSERT  # Hudi's
SPLIT_SIZE = 500_000  # rows; Hudi's default
_NO_ARCHIVE_SETTINGS = cast("ArchiveSettings", None)


@dataclass(frozen=True)
class WriteOptions:
    """All write options, typed. Values are checked on construction by the same rules as option strings.

    Text is accepted wherever an enum or number stands (``operation="UPSERT"``), and a mapping of fields for a group.

    Attributes:
        operation: what a batch does; None: not named, which means ``upsert`` (see `effective_operation`).
        keys: columns that identify a row, place it and order it.
        table: properties of a new table.
        sizes: how large base files become.
        base_file: how base files are encoded, bloom filters included.
        log_files: how log files of merge-on-read tables are written.
        compaction: when log files are folded into base files.
        clustering: when rows are put where queries look, and in which order.
        index: how the index looks for keys in the table.
        duplicates: how rows with the same key are treated.
        overwrite: limits of overwriting operations.
        schema: the columns that a batch may have.
        tasks: how a batch is spread over tasks.
        bad_rows: how a batch treats rows that cannot be stored.
        sink: the name under which commits record the batches of this sink.
        concurrency: whether other writers may write the table.
        heartbeat: how often a running batch shows that it is alive.
        services: whether the sink cleans, archives and compacts at all.
        clean: which old versions of files are deleted, and when.
        archive: when instants leave the active timeline. Without it Hudi's defaults hold, moved up if cleaning retains
            more commits.
        lock: how several writers take the shared lock.
        catalog: where the table is registered after commits.

    Raises:
        InvalidConfigError: names field, value and way out.
    """

    operation: Operation | None = None
    keys: KeySettings = field(default_factory=KeySettings)
    table: TableSettings = field(default_factory=TableSettings)
    sizes: SizeSettings = field(default_factory=SizeSettings)
    base_file: BaseFileSettings = field(default_factory=BaseFileSettings)
    log_files: LogFileSettings = field(default_factory=LogFileSettings)
    compaction: CompactionSettings = field(default_factory=CompactionSettings)
    clustering: ClusteringSettings = field(default_factory=ClusteringSettings)
    index: IndexSettings = field(default_factory=IndexSettings)
    duplicates: DuplicateSettings = field(default_factory=DuplicateSettings)
    overwrite: OverwriteSettings = field(default_factory=OverwriteSettings)
    schema: SchemaSettings = field(default_factory=SchemaSettings)
    tasks: TaskSettings = field(default_factory=TaskSettings)
    bad_rows: BadRowSettings = field(default_factory=BadRowSettings)
    sink: SinkSettings = field(default_factory=SinkSettings)
    concurrency: ConcurrencySettings = field(default_factory=ConcurrencySettings)
    heartbeat: HeartbeatSettings = field(default_factory=HeartbeatSettings)
    services: ServiceSettings = field(default_factory=ServiceSettings)
    clean: CleanSettings = field(default_factory=CleanSettings)
    archive: ArchiveSettings = _NO_ARCHIVE_SETTINGS
    lock: LockSettings = field(default_factory=LockSettings)
    catalog: CatalogSettings = field(default_factory=CatalogSettings)

    def __post_init__(self) -> None:
        if self.operation is not None:
            object.__setattr__(self, "operation", OPERATION.read("WriteOptions.operation", self.operation))
        given = self.archive is not None
        if not given:
            object.__setattr__(self, "archive", ArchiveSettings())
        for name in GROUPS:
            object.__setattr__(self, name, _as_group(name, getattr(self, name)))
        if self.catalog.enabled:
            check_names_catalog(self.catalog)
        object.__setattr__(self, "archive", checked_retention(self.clean, self.archive, given=given))
        self._check_clustering()
        check_joins_logs(self.sizes, self.index, self.table.table_type)
        check_combines(self.effective_operation, self.duplicates)
        check_inserts_stay(self.effective_operation, self.index.type, self.duplicates, self.table.table_type)
        check_sort_columns(self.tasks.bulk_insert_columns, self.clustering)

    def _check_clustering(self) -> None:
        """Refuses a clustering by the sink that cannot be, or would never be due."""
        way = self.clustering.way
        if way is None:
            return
        if self.index.type.has_buckets:
            raise InvalidConfigError(
                f"{way}=true and hoodie.index.type={self.index.type}: the key of a row decides in "
                "which bucket it lies, so that clustering cannot move it; leave one of them out"
            )
        most, kept = self.clustering.max_commits, self.archive.min_commits
        if self.archive.automatic and most > kept:
            raise InvalidConfigError(
                f"hoodie.clustering.inline.max.commits={most} is more than archival keeps on the timeline "
                f"(hoodie.keep.min.commits={kept}), so that none would be due: lower the one or raise the other"
            )

    @property
    def bulk_insert_order(self) -> RowOrder | None:
        """The order of the rows of a bulk insert within each partition path; None: as its sort mode says."""
        columns, layout = self.tasks.bulk_insert_columns, self.clustering.layout
        if self.effective_operation.is_bulk and columns:
            return RowOrder(columns, layout if len(columns) > 1 else Layout.LINEAR)
        return None

    @property
    def effective_operation(self) -> Operation:
        """The named operation, else Hudi's default."""
        return self.operation or DEFAULT_OPERATION

    @property
    def file_settings(self) -> BaseFileSettings:
        """How base files are encoded, with the configured size of a full file."""
        return replace(self.base_file, full_bytes=self.sizes.max_file_bytes)


def _as_group(name: str, given: Any) -> Any:
    group = GROUPS[name]
    if isinstance(given, group):
        return given
    if not isinstance(given, Mapping):
        raise InvalidConfigError(
            f"WriteOptions.{name}={given!r}: give a {group.__name__}, or a mapping of its fields to values"
        )
    known = [each.name for each in fields(group)]
    for each in given:
        if each not in known:
            raise InvalidConfigError(f"{group.__name__} has no field {each!r}{did_you_mean(str(each), known)}")
    return group(**given)


@dataclass(frozen=True)
class ParsedOptions:
    """Typed options, and the keys without effect.

    Attributes:
        options: the typed options.
        without_effect: key -> why it has no effect.
        missed: those of them by whose value the user may wait for what does not come.
    """

    options: WriteOptions
    without_effect: Mapping[str, str]
    missed: frozenset[str] = frozenset()


def parse_options(options: Mapping[str, Any], base_path: str | None = None) -> ParsedOptions:
    """Reads option strings.

    Args:
        options: keys and values as users write them; values may be strings, numbers, booleans, enums and lists of
            names. None means that the option is not given.
        base_path: where the sink writes; ``hoodie.base.path`` must agree with it.

    Raises:
        InvalidConfigError: names the key, its value, and the way out; refused and unknown keys all at once.
    """
    with hiding(options):
        found = sort_keys(options, _VOCABULARY)
        missed = frozenset(key for key in found.without_effect if _is_missed(key, options[key]))
        return ParsedOptions(_build(found.honoured, base_path), found.without_effect, missed)


def _is_missed(key: str, value: Any) -> bool:
    return key in MISSED and str(value).strip().lower() not in {harmless.lower() for harmless in ("", *MISSED[key])}


def _reason_without_effect(key: str) -> str | None:
    if key in WITHOUT_EFFECT or key.startswith(WITHOUT_EFFECT_EXCEPT):
        return WITHOUT_EFFECT.get(key)
    return next((reason for prefix, reason in WITHOUT_EFFECT_PREFIXES.items() if key.startswith(prefix)), None)


def _unknown(key: str) -> str:
    hint = did_you_mean(key, [*HONOURED, *REFUSED, *ALIASES, *WITHOUT_EFFECT])
    return f"unknown option {key}{hint or '; see the table of options in the documentation'}"


_VOCABULARY = Vocabulary(HONOURED, REFUSED, ALIASES, _reason_without_effect, _unknown)


def _build(values: Mapping[str, tuple[str, str]], base_path: str | None) -> WriteOptions:
    parsed, timebased = _read(values)
    given_path = parsed.pop("base_path", None)
    if given_path is not None and base_path is not None and given_path.rstrip("/") != base_path.rstrip("/"):
        raise InvalidConfigError(f"the options say the table is at {given_path!r}, the sink writes to {base_path!r}")
    auto_split, split_size = parsed.pop("auto_split", True), parsed.pop("split_size", SPLIT_SIZE)
    if not auto_split:
        parsed["sizes.rows_per_new_file"] = split_size
    if timebased:
        parsed["keys.timebased"] = timebased
    operation = parsed.pop("operation", None)
    of_groups: dict[str, dict[str, Any]] = {name: {} for name in GROUPS}
    for path, value in parsed.items():
        group, name = path.split(".")
        of_groups[group][name] = value
    groups: dict[str, Any] = {name: GROUPS[name](**given) for name, given in of_groups.items()}
    bounds_given = bool({"min_commits", "max_commits"} & of_groups["archive"].keys())
    groups["archive"] = checked_retention(groups["clean"], groups["archive"], given=bounds_given)
    return WriteOptions(operation, **groups)


def _read(values: Mapping[str, tuple[str, str]]) -> tuple[dict[str, Any], dict[str, str]]:
    """Field -> value of the honoured keys, and the settings of the timestamp key generator."""
    parsed: dict[str, Any] = {}
    timebased: dict[str, str] = {}
    spelled: dict[str, str] = {}
    for name, (key, value) in values.items():
        honoured = HONOURED[name]
        found = honoured.kind.read(key, value)
        if found is None:
            continue  # the value means the same as leaving the key out
        if honoured.path == "keys.timebased":
            timebased[name] = found
            continue
        if parsed.setdefault(honoured.path, found) != found:
            raise InvalidConfigError(
                f"{spelled[honoured.path]} and {key}={shown_value(key, value)} say different things: keep one"
            )
        spelled[honoured.path] = f"{key}={shown_value(key, value)}"
    check_clean_spellings(parsed, spelled)
    choose_bloom_type(parsed, spelled)
    return parsed, timebased

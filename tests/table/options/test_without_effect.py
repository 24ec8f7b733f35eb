"""Keys without effect: each stands under a reason, and each reason is tried on tables and code as they are."""

import json
import re
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import structlog
from engine import Engine, leave_a_dead_batch, rows
from fake_catalog import FakeCatalog
from hudi_options import OPTIONS_OF_HUDI

from hudistream import ArrowSink
from streaming.metrics import PrometheusMetrics
from table import (
    BatchRefusedError,
    InvalidConfigError,
    SchemaMismatchError,
    clock,
    parse_options,
)
from table.catalog.registration import CatalogColumn
from table.catalog.sync import sync_table
from table.config.table_config import TableConfig, checksum
from table.errors import WriteConflictError
from table.files.base.stored_file import StoredBaseFile
from table.files.parquet.row_groups import chunks_of
from table.hudi_table import HudiTable
from table.keys.arrow_keys import compute_record_keys
from table.keys.keygen import build_key_expressions
from table.options.agreement import new_table_config
from table.options.clustering_settings import Layout
from table.options.groups import HeartbeatSettings
from table.options.keys import ALIASES, HONOURED
from table.options.read_options import READ_HONOURED, READ_REFUSED, READ_WITHOUT_EFFECT
from table.options.refused import REFUSED
from table.options.without_effect import MISSED, WITHOUT_EFFECT, WITHOUT_EFFECT_PREFIXES
from table.options.write_options import WriteOptions
from table.scan.stored_key import encoding_of
from table.schema.evolution import evolve_schema
from table.services.catalog_service import CatalogService
from table.services.clustering.clustering import LOCALLY
from table.snapshot import Snapshot
from table.storage.opening import open_storage
from table.timeline import history
from table.timeline.instant import Action
from table.transaction.checkpoint import SINK_KEY
from table.transaction.lease import Lease
from table.write.row_order import order_of

ROOT = Path(__file__).parents[3]
DEFAULTS = {option.key: option.default for option in OPTIONS_OF_HUDI}
ROOMS = ("table", "streaming", "hudistream", "pyspark_hudistream")
CODE = {path: path.read_text() for room in ROOMS for path in sorted((ROOT / room).rglob("*.py"))}
UPSERTS = {"hoodie.datasource.write.operation": "upsert"}
CLEANS = {"hoodie.clean.automatic": "true", "hoodie.clean.commits.retained": "1"}
ARCHIVES = {"hoodie.archive.automatic": "true", "hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3"}
INDEXES = {
    "hoodie.metadata.enable": "true",
    "hoodie.metadata.index.column.stats.enable": "true",
    "hoodie.metadata.record.index.enable": "true",
    "hoodie.write.table.version": "8",
}
LISTS = {"hoodie.metadata.enable": "true", "hoodie.metadata.compact.max.delta.commits": "2"}


def write_table(path, options, batches=4, keys=lambda _: range(3), dies_at=None):
    engine = Engine(str(path), options)
    for number in range(batches):
        if number == dies_at:
            leave_a_dead_batch(engine, number, rows(keys(number)))
            engine = Engine(str(path), options)
        engine.write(number, rows(keys(number), ts=number))
        engine.writer.services.wait()
    engine.writer.stop()
    return sorted(str(file.relative_to(path)) for file in Path(path).rglob("*") if file.is_file())


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """Names of the files of some tables: an upserted one, one with indexes, one of log files, one that only grows."""
    root = tmp_path_factory.mktemp("without_effect")
    logs = {**UPSERTS, "hoodie.datasource.write.table.type": "MERGE_ON_READ", "compaction.schedule.enabled": "false"}
    made = SimpleNamespace(root=root)
    made.upserted = write_table(root / "upserted", {**UPSERTS, **CLEANS, **ARCHIVES}, 8, dies_at=2)
    made.indexed = write_table(root / "indexed", {**UPSERTS, **INDEXES}, 6)
    made.listed = write_table(root / "listed", {**UPSERTS, **LISTS, "hoodie.write.table.version": "8"}, 6)
    made.logs = write_table(root / "logs", {**logs, "hoodie.compact.inline": "false"}, 6)
    grows = {**CLEANS, "hoodie.datasource.write.operation": "bulk_insert"}
    made.grown = write_table(root / "grown", grows, keys=lambda number: [number])
    return made


def no_file(pattern, of="upserted"):
    """No file of a table has such a name."""
    return lambda world: [name for name in getattr(world, of) if re.search(pattern, name)] == []


def some_file(pattern, of="upserted"):
    """Some file of a table has such a name."""
    return lambda world: [name for name in getattr(world, of) if re.search(pattern, name)] != []


def refused(**options):
    """What would give the keys an effect is refused."""

    def check(_):
        with pytest.raises(InvalidConfigError):
            parse_options({key.replace("__", "."): value for key, value in options.items()})
        return True

    return check


def honoured(*keys):
    """What decides instead is honoured."""
    return lambda _: all(parse_options({key: value}).options != WriteOptions() for key, value in keys)


def no_code(pattern, *rooms):
    """No line of these rooms has the pattern."""
    wanted = re.compile(pattern)
    rooms = rooms or ROOMS
    return lambda _: (
        [
            path.name
            for path, text in CODE.items()
            if str(path.relative_to(ROOT)).startswith(rooms)
            and path.name != "without_effect.py"
            and wanted.search(text)
        ]
        == []
    )


def all_of(*checks):
    return lambda world: all(check(world) for check in checks)


def readers_know_them(_):
    known = {*READ_HONOURED, *READ_REFUSED, *READ_WITHOUT_EFFECT}
    return [key for key, reason in WITHOUT_EFFECT.items() if reason.startswith("reading:") and key not in known] == []


def groups_of(world, index):
    names = [name for name in world.indexed if name.startswith(f".hoodie/metadata/{index}/") and ".log." in name]
    return {name.rpartition("/")[2].split("_")[0] for name in names}


def has_known_indexes(world):
    folders = {name.split("/")[2] for name in world.indexed if name.startswith(".hoodie/metadata/")} - {".hoodie"}
    defined = json.loads((world.root / "indexed/.hoodie/.index_defs/index.json").read_text())["indexDefinitions"]
    return folders == {"files", "column_stats", "partition_stats", "record_index"} and set(defined) <= folders


def has_groups_of_hudi(world):
    hudis = DEFAULTS
    counts = {"column_stats": "hoodie.metadata.index.column.stats.file.group.count"}
    counts["partition_stats"] = "hoodie.metadata.index.partition.stats.file.group.count"
    return all(len(groups_of(world, index)) == int(hudis[key]) for index, key in counts.items())


def lists_have_no_filters(world):
    bases = [world.root / "indexed" / name for name in world.indexed if name.endswith(".hfile")]
    return bases and all(b"bloomFilter" not in base.read_bytes() for base in bases)


def lists_are_compacted(world):
    timeline = [name for name in world.listed if name.startswith(".hoodie/metadata/.hoodie/")]
    return any(name.endswith(".commit") for name in timeline) and not any("logcompact" in name for name in timeline)


def waits_only_where_known(_):
    waits = {path.name for path, text in CODE.items() if "sleep_s(" in text} - {"clock.py"}
    others = {"erasure.py", "registry.py", "conflict_retries.py"}  # for other processes and tasks
    return waits & {"creation.py", "local_versions.py"} and all(
        "list" not in line for path in CODE if path.name in waits - others for line in _before_sleep(CODE[path])
    )


def _before_sleep(text):
    lines = text.splitlines()
    return [lines[at - 1] for at, line in enumerate(lines) if "sleep_s(" in line]


def options_reach_the_backend(_):
    given = {"config_kwargs": {"retries": {"max_attempts": 7}}}
    return open_storage("s3://bucket/t", given).options["config_kwargs"] == given["config_kwargs"]


def dead_batch_was_rolled_back(world):
    return some_file(r"\.rollback$")(world) and no_file("backup")(world)


def one_commit_names_each_file(world):
    snapshot = Snapshot.load(HudiTable.open(str(world.root / "indexed")))
    writes = snapshot.timeline.completed_writes
    named = [stat.path for instant in writes for stat in snapshot.commits.read(instant).stats]
    there = [name for name in world.indexed if name.endswith(".parquet") and not name.startswith(".hoodie")]
    return len(named) == len(set(named)) and set(named) == set(there)


def keys_stay_as_they_are_spelled(_):
    rows = pa.table({"id": ["1"], "p": ["a"]})
    for stored in ("1", "id:1"):
        encoding = encoding_of(rows.append_column("_hoodie_record_key", pa.array([stored])), "id")
        config = TableConfig("t", ("id",), ("p",), keygen_type="COMPLEX", key_encoding=encoding)
        made = compute_record_keys(build_key_expressions(config, rows.schema).rules, rows).to_pylist()
        assert made == [stored]
    return True


def other_columns_are_refused(_):
    table = pa.schema([pa.field("id", pa.string(), nullable=False)])
    with pytest.raises(SchemaMismatchError):
        evolve_schema(pa.schema([("id", pa.list_(pa.int64()))]), table)
    added = evolve_schema(table.append(pa.field("n", pa.int64(), nullable=False)), table)
    return added.field("n").nullable


def one_batch_is_one_commit(world):
    path = world.root / "rated"
    write_table(path, {"write.rate.limit": "1"}, 1, keys=lambda _: range(1000))
    [file] = Path(path).rglob(".hoodie/*.commit")
    written = json.loads(file.read_text())["partitionToWriteStats"]
    return sum(stat["numWrites"] for stats in written.values() for stat in stats) == 1000


def speculation_is_refused(_):
    [place] = [text for path, text in CODE.items() if path.name == "environment.py"]
    return "spark.speculation=true is refused" in place and "block.writes" not in place


def checksum_is_computed(world):
    told = (world.root / "upserted/.hoodie/hoodie.properties").read_text()
    return f"hoodie.table.checksum={checksum('t')}" in told


def times_grow(world):
    last = clock.format_instant_time(clock.now_ms() + 500)
    commits = [name.rpartition("/")[2] for name in world.indexed if re.match(r"\.hoodie/timeline/.*\.commit$", name)]
    times = [name.split("_")[0] for name in commits]
    return clock.next_instant_time(last, clock.now_ms(), "UTC") > last and len(times) == len(set(times)) > 0


def archive_is_merged_as_hudis(_):
    hudis = DEFAULTS
    return (
        int(hudis["hoodie.timeline.compaction.batch.size"]),
        int(hudis["hoodie.timeline.manifest.retained.versions"]),
    ) == (history._FILES_MERGED, history._MANIFESTS_KEPT)


def parquet_is_plain(world):
    [name, *_] = [name for name in world.upserted if name.endswith(".parquet") and ".hoodie" not in name]
    storage = open_storage(str(world.root / "upserted"))
    with StoredBaseFile(storage, name) as stored:
        groups = [stored.footer.largest_group] if stored.footer.largest_group else []
        metas = [chunk[3].value for group in groups for chunk in chunks_of(group)]
    schema = pq.read_schema(world.root / "upserted" / name)
    named = [field for field in schema if b"PARQUET:field_id" in (field.metadata or {})]
    return metas and all(14 not in meta for meta in metas) and not named  # 14: bloom_filter_offset


def file_ids_are_uuids(world):
    names = [name.rpartition("/")[2] for name in world.upserted if name.endswith(".parquet") and ".hoodie" not in name]
    return names and all(re.match(r"[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}-\d+_", name) for name in names)


def properties_follow_the_table(_):
    keys = [key for key, reason in WITHOUT_EFFECT.items() if reason == "properties that a table gets by what it is"]
    given = {"hoodie.datasource.write.recordkey.field": "id"}
    plain, told = (parse_options({**given, **more}).options for more in ({}, dict.fromkeys(keys, "7")))
    return keys and new_table_config(plain, "t") == new_table_config(told, "t")


def one_clean_is_pending(world):
    path = world.root / "waits"
    write_table(path, {**UPSERTS, **CLEANS, "hudistream.clean.execute": "false"}, 5)
    return len(HudiTable.open(str(path)).load_timeline().pending_of(Action.CLEAN)) == 1


def a_batch_stops_at_a_planned_clustering(world):
    path = world.root / "clustered"
    plans = {"hoodie.clustering.schedule.inline": "true", "hoodie.clustering.inline.max.commits": "1"}
    write_table(
        path, {**plans, "hoodie.datasource.write.operation": "bulk_insert"}, 2, keys=lambda number: [3 * number]
    )
    engine = Engine(str(path), UPSERTS)
    with pytest.raises(WriteConflictError, match="pending clustering"):
        engine.write(7, rows([0], ts=9))
    engine.writer.stop()
    return True


def curve_goes_by_ranks(_):
    numbers = pa.array([(7 * number) % 64 for number in range(64)], pa.int64())
    others = pa.array([(29 * number) % 64 for number in range(64)], pa.int64())
    bent = pa.array(
        [2 ** value.as_py() % (2**62) if value.as_py() < 60 else 2**60 + value.as_py() for value in numbers]
    )
    plain, curved = (pa.table({"a": one, "b": others}) for one in (numbers, bent))
    return order_of(plain, Layout.HILBERT).tolist() == order_of(curved, Layout.HILBERT).tolist()


def a_failed_batch_is_not_tried_again(world):
    tries = []

    def refuse(_):
        tries.append(1)
        return "no"

    options = {"hoodie.datasource.write.streaming.retry.count": "3", "hoodie.datasource.write.recordkey.field": "id"}
    with ArrowSink(str(world.root / "refused"), options, validators=[refuse]) as sink, pytest.raises(BatchRefusedError):
        sink.write(rows([1]))
    return len(tries) == 1


def no_event_times(world):
    commits = list((world.root / "upserted/.hoodie").glob("*.commit"))
    stats = [stat for one in commits for told in _stats_in(one).values() for stat in told]
    return stats and not any(stat.get("minEventTime") or stat.get("maxEventTime") for stat in stats)


def _stats_in(commit):
    return json.loads(commit.read_text())["partitionToWriteStats"]


def commits_name_their_sink(world):
    commits = list((world.root / "upserted/.hoodie").glob("*.commit"))
    return commits and all(SINK_KEY in json.loads(one.read_text())["extraMetadata"] for one in commits)


def sync_reads_commits(world):
    catalog, settings = FakeCatalog(), parse_options({}).options.catalog
    path = str(world.root / "upserted")
    sync_table(HudiTable.open(path), catalog, settings)
    catalog.calls.clear()
    Engine(path, UPSERTS).write(99, rows([9], ts=99))
    report = sync_table(HudiTable.open(path), catalog, settings)
    return "list_partitions" not in catalog.calls and not report.has_listed


# reason -> what shows that it is true
REASONS = {
    "reading: a sink reads by no option": readers_know_them,
    "the metadata table: no bloom filters and no secondary or expression indexes are made": has_known_indexes,
    "the metadata table: its statistics have as many file groups as Hudi's by default": has_groups_of_hudi,
    "the metadata table: its base files have no bloom filters": lists_have_no_filters,
    "the metadata table: hoodie.metadata.compact.max.delta.commits says when it is compacted": lists_are_compacted,
    "the metadata table: the process that commits makes it and keeps it up, without tasks": no_code(
        r"\b(Spread|Workers|SparkSession)\b", "table/metadata_table"
    ),
    "stores: a new object is listed at once, and nothing waits for it": waits_only_where_known,
    "stores: retries are an option of each backend of fsspec": options_reach_the_backend,
    "no server runs beside a sink": no_code(r"http\.server|socketserver|start_http_server|\.listen\("),
    "markers: each data file has a file of its own, and a rollback goes by them": no_file("MARKERS"),
    "rollbacks: the end record of an instant lets one process end it, and no copy of it is kept": (
        dead_batch_was_rolled_back
    ),
    "memory: hudistream.task.memory.bytes bounds what a task holds": honoured(
        ("hudistream.task.memory.bytes", "99999999")
    ),
    "tasks: as many as hoodie.upsert.shuffle.parallelism and its like say": honoured(
        ("hoodie.upsert.shuffle.parallelism", "7"), ("hoodie.clean.parallelism", "7"), ("compaction.tasks", "7")
    ),
    "DataFrames: none is cached": no_code(r"\.persist\(|\.cache\(\)", "streaming", "hudistream", "pyspark_hudistream"),
    "lookups: the task that merges a file looks for its keys, and remembers hudistream.index.cache.bytes": honoured(
        ("hudistream.index.cache.bytes", "1")
    ),
    "buckets: their number is fixed": refused(hoodie__index__bucket__engine="CONSISTENT_HASHING"),
    "bulk inserts: sorted by hoodie.bulkinsert.sort.mode, or by the columns that are named": honoured(
        ("hoodie.bulkinsert.sort.mode", "GLOBAL_SORT"), ("hoodie.bulkinsert.user.defined.partitioner.sort.columns", "a")
    ),
    "inserts: small files are filled, up to hoodie.parquet.small.file.limit": honoured(
        ("hoodie.parquet.small.file.limit", "7")
    ),
    "sizes: the size of a row is measured, unless hoodie.copyonwrite.record.size.estimate says it": honoured(
        ("hoodie.copyonwrite.record.size.estimate", "7")
    ),
    "speculation: spark.speculation=true is always refused": speculation_is_refused,
    "files: one commit names each, and none that a repeated task left": one_commit_names_each_file,
    "keys: a table is continued as its keys are spelled": keys_stay_as_they_are_spelled,
    "versions before 6 are refused": refused(hoodie__write__table__version="5"),
    "schemas: a batch whose columns do not fit is always refused, and an added column is nullable": (
        other_columns_are_refused
    ),
    "services: what a failed one leads to is said by hudistream.clean.on.failure": honoured(
        ("hudistream.clean.on.failure", "fail")
    ),
    "services: strategies and filters say what a plan looks at": honoured(
        ("hoodie.clustering.plan.partition.filter.mode", "RECENT_DAYS"), ("hoodie.compaction.strategy", "UNBOUNDED")
    ),
    "conflicts: they are found when a batch completes, and it is written anew": honoured(
        ("hoodie.write.num.retries.on.conflict.failures", "9")
    ),
    "the batch is as large as Spark's source makes it": one_batch_is_one_commit,
    "the checksum is computed": checksum_is_computed,
    "instants: each time is greater than all before it, and created once": times_grow,
    "archival: it follows the commits": some_file(r"\.hoodie/archived/"),
    "archival: ten files of the archive become one, and three manifests stay": archive_is_merged_as_hudis,
    "files: base files are Parquet, and no ORC, HFile or Lance": all_of(
        no_file(r"^p\d/.*\.(orc|hfile|lance)$"), refused(hoodie__base__file__format="ORC")
    ),
    "files: their Parquet has no bloom filter of its own, and no field ids": parquet_is_plain,
    "files: their ids are UUIDs": file_ids_are_uuids,
    "bootstrap of foreign files, refused where its path is named": refused(hoodie__bootstrap__base__path="/elsewhere"),
    "properties that a table gets by what it is": properties_follow_the_table,
    "cleaning: one clean at a time, planned in one process": one_clean_is_pending,
    "cleaning: a clean that has nothing to delete is not written": no_file(r"\.clean", of="grown"),
    "clustering: one group after another, planned in one process": lambda _: LOCALLY.tasks == 1,
    "clustering: a batch that changes rows of one that another job planned is refused": (
        a_batch_stops_at_a_planned_clustering
    ),
    "clustering: a curve runs through the ranks of the values, not through their bits": curve_goes_by_ranks,
    "clustering: the order is on where sort columns are named": honoured(
        ("hoodie.clustering.plan.strategy.sort.columns", "a")
    ),
    "compaction: hoodie.compaction.strategy says which slices, and none waits for a time-out": refused(
        hoodie__compaction__strategy="x.PartitionRegexBasedCompactionStrategy"
    ),
    "compaction: log files are not put together without their base file": all_of(
        no_file("logcompaction", of="logs"), some_file(r"\.log\.5_", of="logs")
    ),
    "Hudi's SQL: hoodie.datasource.write.operation says what a batch does": honoured(
        ("hoodie.datasource.write.operation", "insert")
    ),
    "retries: a failed batch raises, and whoever runs it runs it again": a_failed_batch_is_not_tried_again,
    "the streamer's error table, refused when enabled": refused(hoodie__errortable__enable="true"),
    "event times: commits do not record them": no_event_times,
    "the HBase index, refused when named": refused(hoodie__index__type="HBASE"),
    "the meta server, refused when enabled": refused(hoodie__metaserver__enabled="true"),
    "metrics: hudistream.metrics tells them": lambda _: callable(PrometheusMetrics),
    "partition expiry, refused when enabled": refused(hoodie__partition__ttl__inline="true"),
    "the JVM's validators, refused when named": refused(hoodie__precommit__validators="x.Validator"),
    "the table service manager, refused when enabled": refused(hoodie__table__service__manager__enabled="true"),
    "HTTP callbacks, refused when switched on": refused(hoodie__write__commit__callback__on="true"),
    "locks of a metastore, refused when named": refused(
        hoodie__write__lock__provider="org.apache.hudi.hive.transaction.lock.HiveMetastoreBasedLockProvider"
    ),
    "locks: their options hold as they are given, and a lock names its holder": all_of(
        honoured(("hoodie.write.lock.wait_time_ms", "7")),
        lambda world: Lease(open_storage(str(world.root)), HeartbeatSettings()).owner,
    ),
    "commits always record sink, query and batch": commits_name_their_sink,
    "catalogs: a metastore is reached by thrift, without a user": refused(hoodie__datasource__hive_sync__mode="jdbc"),
    "catalogs: one that cannot be reached fails no batch, and the next sync catches up": (
        lambda _: CatalogService.on_failure == "warn"
    ),
    "catalogs: columns are registered without comments and buckets": (
        lambda _: [*CatalogColumn.__dataclass_fields__] == ["name", "type"]
    ),
    "catalogs: a sync reads the commits since the last one, and asks for a partition once": sync_reads_commits,
    "Hudi Streamer: another program, which runs by itself": no_code(r"[\"']hoodie\.(delta)?streamer\.(?!keygen)"),
    "catalogs of other programs, refused where their sync tool is named": refused(
        hoodie__meta__sync__client__tool__class="org.apache.hudi.gcp.bigquery.BigQuerySyncTool"
    ),
    "Kafka's clients: rows come from Spark's source, whose options they are": no_code(r"[\"']properties\."),
    "Hadoop's file systems: a store is reached by fsspec, with storage_options": options_reach_the_backend,
}

OF_OTHERS = (
    "hoodie.table.",
    "hoodie.timeline.",
    "hoodie.datasource.",
    "hoodie.read.",
    "read.",
    "as.of.",
    "hoodie.query.",
)
BOTH = {**WITHOUT_EFFECT, **WITHOUT_EFFECT_PREFIXES}


def test_every_reason_is_tried():
    assert set(REASONS) == set(BOTH.values())


def test_each_reason_is_true_of_tables_and_code_as_they_are(world):
    assert [reason for reason, is_true in REASONS.items() if not is_true(world)] == []


def test_no_code_reads_a_key_that_is_said_to_have_no_effect():
    quoted = {
        match
        for path, text in CODE.items()
        if path.name != "without_effect.py"
        for match in re.findall(r'"([a-z_][a-z0-9_.\-]+)"', text)
    }
    read = quoted & set(WITHOUT_EFFECT)
    # keys of a table's properties and of reading are read there, and not as options of a writer
    of_others = {key for key in read if key.startswith(OF_OTHERS)}
    assert read - of_others == set()


def test_keys_without_effect_change_no_option():
    parsed = parse_options(dict.fromkeys(WITHOUT_EFFECT, "7"))
    assert parsed.options == WriteOptions()
    assert parsed.without_effect == WITHOUT_EFFECT
    assert parsed.missed == set(MISSED)


def test_a_user_who_may_wait_for_an_effect_is_warned(tmp_path):
    assert set(MISSED) <= set(WITHOUT_EFFECT)
    given = {
        "hoodie.metrics.on": "true",
        "hoodie.log.compaction.enable": "FALSE",
        "hoodie.write.executor.type": "SIMPLE",
    }
    with structlog.testing.capture_logs() as logs:
        ArrowSink(str(tmp_path / "t"), given, key="id").stop()
    told = {entry["key"]: entry["log_level"] for entry in logs if entry["event"] == "option_without_effect"}
    assert told == {**dict.fromkeys(given, "info"), "hoodie.metrics.on": "warning"}


# spellings of Flink, of programs whose classes are not in the bundle, and of releases before it
OTHERS = re.compile(
    r"(_hoodie\.(hfile|spark|writes)\.|hoodie\.(aws|index\.hbase|instant_state|write\.lock\.dynamodb)\.|compaction\.sequence$"
    r"|hoodie\.datasource\.meta\.sync\.glue\.|hoodie\.streamer\.keygen\.|hoodie\.(record\.merge\.property|payload\.delete)\."
    r"|(input|output)\.\w+|timestamp\.\w+|timezone$|read\.|write\.|record\.merge\.mode$)"
)
OLDER = set("""
    hive_sync.conditional_sync hoodie.auto.commit hoodie.bulkinsert.are.partitioner.records.sorted
    hoodie.datasource.hive_sync.assume_date_partitioning hoodie.datasource.hive_sync.enabled
    hoodie.datasource.hive_sync.use_pre_apache_input_format hoodie.datasource.read.handle.hollow.commit
    hoodie.datasource.write.new.columns.nullable hoodie.hbase.index.update.partition.path
    hoodie.metadata.fallback.enable hoodie.metadata.index.partition.stats.enable
    hoodie.parquet.compression.codec.name hoodie.query.as.ro.table
    hoodie.write.partial.update.unavailable.value
    """.split())  # fmt: skip


def test_each_key_is_one_of_hudis():
    """A key that Hudi does not have is misspelled here, or belongs to an older release or another program."""
    hudis = {one for option in OPTIONS_OF_HUDI for one in (option.key, *option.others)}
    known = hudis | set((ROOT / "tests/data/flink-options.txt").read_text().split()) | OLDER
    ours = {*HONOURED, *REFUSED, *ALIASES, *WITHOUT_EFFECT}
    assert {key for key in ours - known if not key.startswith("hudistream.") and not OTHERS.match(key)} == set()
    assert not OLDER & hudis

"""Keys without effect: each stands under a reason, and the reason is tried, or the key fits what it speaks of."""

import re
from pathlib import Path

import pytest
from engine import Engine, rows

from table import InvalidConfigError, parse_options
from table.options.without_effect import WITHOUT_EFFECT, WITHOUT_EFFECT_PREFIXES
from table.options.write_options import WriteOptions
from table.services.clustering.clustering import LOCALLY

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """Names of the files of a table after inserts, upserts, a clean and an archival."""
    path = tmp_path_factory.mktemp("without_effect") / "t"
    options = {"hoodie.clean.automatic": "true", "hoodie.archive.automatic": "true"}
    options |= {"hoodie.clean.commits.retained": "1", "hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3"}
    engine = Engine(str(path), {**options, "hoodie.datasource.write.operation": "upsert"})
    for number in range(8):
        engine.write(number, rows(range(3), ts=number))
        engine.writer.services.wait()
    engine.writer.stop()
    return sorted(str(file.relative_to(path)) for file in path.rglob("*") if file.is_file())


def no_file(pattern):
    """No file of a table has such a name."""
    return lambda written: [name for name in written if re.search(pattern, name)] == []


def some_file(pattern):
    """Some file of a table has such a name."""
    return lambda written: [name for name in written if re.search(pattern, name)] != []


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


# reason -> (what its keys look like, what shows that it is true)
JVM = lambda _: True  # noqa: E731 about parts that only a JVM has: the names of the keys say which
OWN_PARTS = (
    r"executor|server|level$|markers\.|parallelism|estimator|detect|conflict|bulkinsert\.|provider|validat|backup"
    r"|sensitive|positions|writestatus|spill|duplicate|lock\.configs|empty|release|archiving|exception|incremental"
)
REASONS = {
    "how the JVM's readers read": (r"read|merge\.type|file\.group\.reader|record\.positions", JVM),
    "the metadata table: parts that are not written here, and the JVM's own ways": (
        r"metadata|file\.listing", no_file(r"\.hoodie/metadata/"),
    ),
    "eventually consistent stores: every one supported is consistent now": (r"consistency", JVM),
    "the JVM writer's own executors, caches, markers and retries": (OWN_PARTS, JVM),
    "rows travel in pieces of Arrow, not through a queue: hudistream.task.memory.bytes bounds what a task holds": (
        r"write\.buffer\.", honoured(("hudistream.task.memory.bytes", "99999999")),
    ),
    "markers: each data file has a file of its own, and a rollback goes by them": (
        r"markers", no_file(r"MARKERS"),
    ),
    "the batch is as large as Spark's source makes it: maxOffsetsPerTrigger and the like": (r"rate\.limit", JVM),
    "the checksum is computed": (r"checksum", some_file(r"hoodie\.properties$")),
    "instants come from one clock and are made unique by create-if-absent": (r"time\.generator", JVM),
    "archival: it follows cleaning, in the same thread": (
        r"archive|timeline\.compaction", some_file(r"\.hoodie/archived/"),
    ),
    "the JVM's file writers, ORC and HFile": (
        r"orc|hfile|parquet|avro|io\.factory|storage\.class", no_file(r"\.(orc|hfile)$"),
    ),
    "how the JVM looks keys up": (r"index\.", JVM),
    "bootstrap of foreign files": (r"bootstrap", refused(hoodie__bootstrap__base__path="/elsewhere")),
    "properties that the table itself keeps": (r"table\.|bootstrap\.index|timeline\.history", JVM),
    "internal to the JVM writer": (r"bulkinsert\.schema", JVM),
    "cleaning: one clean at a time, and no bootstrap files": (r"clean", some_file(r"\.clean$")),
    "clustering: one group after another; a batch of the same stream waits for its end": (
        r"clustering", lambda _: LOCALLY.tasks == 1,
    ),
    "clustering: a curve runs through the ranks of the values, not through their bits": (r"layout\.optimize", JVM),
    "switches of Hudi 0.10: the order is on where sort columns are named": (r"layout\.optimize", JVM),
    "clustering: Flink's own classes": (r"clustering\.plan", JVM),
    "the JVM's spillable maps and file index": (r"map|mem|file\.index|holes", JVM),
    "which slices are compacted: by hoodie.compaction.strategy": (
        r"compaction", refused(hoodie__compaction__strategy="x.PartitionRegexBasedCompactionStrategy"),
    ),
    "the JVM data source": (r"datasource|as\.of|sql|skipping|canonicalize", JVM),
    "the JVM streamer's error table": (r"errortable", refused(hoodie__errortable__enable="true")),
    "event times: commits do not record them": (r"event\.?time", JVM),
    "secondary indexes: none are written": (r"expression\.index|index\.name", no_file(r"index_defs")),
    "file systems retry by their own settings": (r"filesystem\.operation", JVM),
    "the JVM's file system view server": (r"filesystem\.", JVM),
    "the HBase index: inserts look up no keys": (r"hbase", refused(hoodie__index__type="HBASE")),
    "the parser of the timestamp key generator, which is our own": (r"datetime\.parser", JVM),
    "the JVM's memory fractions": (r"memory", JVM),
    "the meta server, refused when enabled": (r"metaserver", refused(hoodie__metaserver__enabled="true")),
    "the JVM's metrics reporters": (r"metrics", JVM),
    "partition expiry, refused when enabled": (r"ttl", refused(hoodie__partition__ttl__inline="true")),
    "the JVM's validators, refused when named": (r"precommit", refused(hoodie__precommit__validators="x.Validator")),
    "the storage layout's partitioner": (r"layout", JVM),
    "the table service manager, refused when enabled": (
        r"service\.manager", refused(hoodie__table__service__manager__enabled="true"),
    ),
    "HTTP callbacks, refused when switched on": (r"callback", refused(hoodie__write__commit__callback__on="true")),
    "locks: conflicts are found by one rule, and no metastore keeps locks": (
        r"lock",
        refused(hoodie__write__lock__provider="org.apache.hudi.hive.transaction.lock.HiveMetastoreBasedLockProvider"),
    ),
    "commits always record sink, query and batch": (r"extra\.metadata", JVM),
    "lookups: a record index is asked for any number of keys": (
        r"record\.index", refused(hoodie__index__type="RECORD_LEVEL_INDEX"),
    ),
    "Flink's own memory, parallelism, state and reading": (
        r"^(read|write|index|lookup|clustering|compaction|metadata|catalog|source)\.", JVM,
    ),
    "catalog sync: what the JVM's tools add": (
        r"sync|datahub|onehouse", refused(hoodie__meta__sync__client__tool__class="x.DataHubSyncTool"),
    ),
    "Hudi Streamer's sources": (r"streamer", JVM),
    "Kafka clients of Flink's connector": (r"properties", JVM),
}  # fmt: skip

OF_OTHERS = ("hoodie.table.", "hoodie.timeline.", "hoodie.datasource.", "hoodie.read.", "read.", "as.of.")
BOTH = {**WITHOUT_EFFECT, **WITHOUT_EFFECT_PREFIXES}


def test_every_reason_is_tried():
    assert set(REASONS) == set(BOTH.values())


@pytest.mark.parametrize("reason", REASONS)
def test_a_reason_is_true_of_a_table_that_was_written(written, reason):
    assert REASONS[reason][1](written)


@pytest.mark.parametrize("key", BOTH)
def test_a_key_stands_under_a_reason_that_speaks_of_it(key):
    looks = REASONS[BOTH[key]][0]
    assert re.search(looks, key), f"{key} does not look like one of: {BOTH[key]}"


def test_no_code_reads_a_key_that_is_said_to_have_no_effect():
    sources = [file for room in ("table", "streaming", "pyspark_hudistream") for file in (ROOT / room).rglob("*.py")]
    told = [file.read_text() for file in sources if file.name != "without_effect.py"]
    quoted = {match for text in told for match in re.findall(r'"([a-z_][a-z0-9_.\-]+)"', text)}
    read = quoted & set(WITHOUT_EFFECT)
    # keys of a table's properties and of reading are read there, and not as options of a writer
    of_others = {key for key in read if key.startswith(OF_OTHERS)}
    assert read - of_others == set()


def test_keys_without_effect_change_no_option():
    parsed = parse_options(dict.fromkeys(WITHOUT_EFFECT, "7"))
    assert parsed.options == WriteOptions()
    assert parsed.without_effect == WITHOUT_EFFECT


@pytest.mark.parametrize(
    "given",
    [
        {"hoodie.archive.beyond.savepoint": "true"},
        {"hoodie.datasource.write.record.merger.impls": "com.example.Merger"},
        {"write.utc-timezone": "false"},
    ],
)
def test_keys_that_would_change_rows_or_what_is_kept_are_refused(given):
    with pytest.raises(InvalidConfigError, match="is refused"):
        parse_options(given)

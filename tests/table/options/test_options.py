from operator import attrgetter
from pathlib import Path

import pytest
from hudi_options import OPTIONS_OF_HUDI

from table.config.merge_mode import MergeMode
from table.errors import InvalidConfigError
from table.options.agreement import new_table_config
from table.options.keys import ALIASES, HONOURED
from table.options.refused import REFUSED
from table.options.settings import kinds_of
from table.options.without_effect import WITHOUT_EFFECT, WITHOUT_EFFECT_PREFIXES
from table.options.write_groups import GROUPS
from table.options.write_options import WriteOptions, parse_options

HUDI_KEYS = [name for option in OPTIONS_OF_HUDI for name in (option.key, *option.others)]
FLINK_KEYS = Path(__file__).parents[2].joinpath("data", "flink-options.txt").read_text().split()
# what users bring that Hudi's own list leaves out: the data source, sync, and Flink's spellings
BROUGHT = """
hoodie.datasource.write.operation hoodie.datasource.write.table.type hoodie.datasource.write.table.name
hoodie.datasource.write.commitmeta.key.prefix hoodie.datasource.write.insert.drop.duplicates
hoodie.datasource.insert.dup.policy hoodie.datasource.write.streaming.checkpoint.identifier
hoodie.datasource.write.streaming.ignore.failed.batch hoodie.datasource.write.streaming.retry.count
hoodie.datasource.write.row.writer.enable hoodie.datasource.write.record.merger.impls
hoodie.datasource.hive_sync.enable hoodie.datasource.hive_sync.mode hoodie.datasource.hive_sync.table
hoodie.datasource.hive_sync.database hoodie.datasource.hive_sync.partition_fields hoodie.datasource.meta.sync.enable
hoodie.meta.sync.client.tool.class hoodie.cleaner.commits.retained hoodie.cleaner.fileversions.retained
hoodie.cleaner.hours.retained hoodie.cleaner.policy hoodie.clean.max.commits hoodie.write.lock.provider
hoodie.write.lock.filesystem.path hoodie.payload.ordering.field hoodie.payload.event.time.field table.type
write.operation write.precombine write.precombine.field precombine.field
write.tasks write.bucket_assign.tasks write.batch.size write.task.max.size write.rate.limit write.insert.deduplicate
write.insert.cluster write.parquet.max.file.size write.parquet.block.size write.parquet.page.size
write.ignore.failed payload.class index.type index.global.enabled index.bootstrap.enabled index.state.ttl
clean.async.enabled clean.policy clean.retain_commits clean.retain_hours clean.retain_file_versions
archive.max_commits archive.min_commits compaction.async.enabled compaction.schedule.enabled compaction.delta_commits
compaction.trigger.strategy compaction.tasks compaction.max_memory clustering.schedule.enabled
clustering.async.enabled metadata.enabled changelog.enabled cdc.enabled hive_sync.enable hive_sync.enabled
hive_sync.mode hive_sync.metastore.uris read.streaming.enabled read.streaming.check-interval read.start-commit
read.tasks source.avro-schema.path partition.default_name
""".split()


def classes_of(key):
    name = ALIASES.get(key, key)
    found = [label for label, table in (("honoured", HONOURED), ("refused", REFUSED)) if name in table]
    if key in WITHOUT_EFFECT or (not found and key.startswith(tuple(WITHOUT_EFFECT_PREFIXES))):
        found.append("without effect")
    return found


def test_every_key_is_in_exactly_one_class():
    keys = {key for key in HUDI_KEYS + FLINK_KEYS + BROUGHT if not key.startswith("hoodie{")}
    assert len(keys) > 800
    assert {key: classes_of(key) for key in keys if len(classes_of(key)) != 1} == {}


def test_aliases_lead_to_keys_that_are_honoured_or_refused():
    assert {name for name in ALIASES.values() if name not in HONOURED and name not in REFUSED} == set()
    assert not set(ALIASES) & (set(HONOURED) | set(REFUSED))


def test_honoured_keys_fill_fields_that_exist():
    fields = {f"{group}.{field}" for group, kind in GROUPS.items() for field in kinds_of(kind)} | {"operation"}
    special = {"auto_split", "split_size", "base_path"}
    assert {honoured.path for honoured in HONOURED.values()} - fields == special


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"hoodie.parquet.max.file.size": "1000"}, {"sizes.max_file_bytes": 1000}),
        ({"write.parquet.max.file.size": "2"}, {"sizes.max_file_bytes": 2 << 20}),
        ({"hoodie.parquet.small.file.limit": 0}, {"sizes.small_file_limit_bytes": 0}),
        ({"precombine.field": "ts"}, {"keys.ordering_fields": ("ts",)}),
        ({"hoodie.table.recordkey.fields": "a, b"}, {"keys.record_key_fields": ("a", "b")}),
        ({"hoodie.combine.before.insert": True}, {"duplicates.combine_before_insert": True}),
        ({"hoodie.merge.allow.duplicate.on.inserts": "False"}, {"duplicates.allow_on_insert": False}),
        ({"hoodie.copyonwrite.insert.split.size": "9"}, {"sizes.rows_per_new_file": None}),
        (
            {"hoodie.copyonwrite.insert.split.size": "9", "hoodie.copyonwrite.insert.auto.split": "false"},
            {"sizes.rows_per_new_file": 9},
        ),
        ({"hoodie.insert.shuffle.parallelism": "0"}, {"tasks.insert_parallelism": None}),
        ({"hoodie.write.record.merge.mode": "COMMIT_TIME_ORDERING"}, {"table.merge_mode": MergeMode.COMMIT_TIME}),
        (
            {"payload.class": "org.apache.hudi.common.model.DefaultHoodieRecordPayload"},
            {"table.merge_mode": MergeMode.EVENT_TIME},
        ),
        (
            {"hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.NonpartitionedKeyGenerator"},
            {"keys.keygen_type": "NON_PARTITION"},
        ),
    ],
)
def test_values(options, expected):
    parsed = parse_options(options).options
    assert {name: attrgetter(name)(parsed) for name in expected} == expected


# HoodieWriteConfig's builder as people call it: our field, its value, and who spells the key how
BUILDER = [
    ("table.name", "events", {"hoodie.table.name": "events"}),
    ("tasks.insert_parallelism", 4, {"hoodie.insert.shuffle.parallelism": "4"}),
    ("tasks.upsert_parallelism", 5, {"hoodie.upsert.shuffle.parallelism": "5"}),
    ("tasks.bulk_insert_parallelism", 6, {"hoodie.bulkinsert.shuffle.parallelism": "6"}),
    ("tasks.delete_parallelism", 7, {"hoodie.delete.shuffle.parallelism": "7"}),
    (
        "table.merge_mode",
        MergeMode.COMMIT_TIME,
        dict.fromkeys(
            (
                "hoodie.datasource.write.payload.class",
                "hoodie.compaction.payload.class",
                "payload.class",
                "write.payload.class",
            ),
            MergeMode.COMMIT_TIME.payload_class,
        ),
    ),
    (
        "keys.ordering_fields",
        ("seq",),
        dict.fromkeys(
            (
                "hoodie.datasource.write.precombine.field",
                "hoodie.payload.ordering.field",
                "hoodie.table.precombine.field",
                "hoodie.table.ordering.fields",
                "precombine.field",
                "write.precombine.field",
            ),
            "seq",
        ),
    ),
    ("index.type", "BLOOM", {"hoodie.index.type": "BLOOM", "index.type": "BLOOM"}),
    ("base_file.bloom_fpp", 0.000002, {"hoodie.index.bloom.fpp": "0.000002"}),
    ("base_file.bloom_max_entries", 150_000, {"hoodie.bloom.index.filter.dynamic.max.entries": "150000"}),
    ("index.prune_by_ranges", False, {"hoodie.bloom.index.prune.by.ranges": "false"}),
    ("archive.min_commits", 150, dict.fromkeys(("hoodie.keep.min.commits", "archive.min_commits"), "150")),
    ("archive.max_commits", 200, dict.fromkeys(("hoodie.keep.max.commits", "archive.max_commits"), "200")),
    ("sizes.small_file_limit_bytes", 1 << 20, {"hoodie.parquet.small.file.limit": "1048576"}),
    ("sizes.record_bytes_estimate", 200, {"hoodie.copyonwrite.record.size.estimate": "200"}),
    (
        "clean.commits_retained",
        100,
        dict.fromkeys(
            ("hoodie.clean.commits.retained", "hoodie.cleaner.commits.retained", "clean.retain_commits"), "100"
        ),
    ),
    (
        "sizes.max_file_bytes",
        2 << 20,
        {"hoodie.parquet.max.file.size": "2097152", "write.parquet.max.file.size": "2"},
    ),
]


def test_the_whole_builder_of_a_write_config_is_understood_in_every_spelling():
    every = {key: value for _, _, spellings in BUILDER for key, value in spellings.items()}
    first = dict(next(iter(spellings.items())) for _, _, spellings in BUILDER)
    last = dict(list(spellings.items())[-1] for _, _, spellings in BUILDER)
    # bounds that go together, for spellings that are given alone
    alone = {"hoodie.keep.min.commits": "150", "hoodie.keep.max.commits": "200"}
    ones = [
        {**{k: v for k, v in alone.items() if field.split(".")[0] in ("archive", "clean")}, key: value}
        for field, _, spellings in BUILDER
        for key, value in spellings.items()
    ]
    for given in (every, first, last, *ones):
        parsed = parse_options({**given, "hoodie.payload.event.time.field": "ts"})
        for field, value, spellings in BUILDER:
            if set(spellings) & set(given):
                assert attrgetter(field)(parsed.options) == value, (field, given)
        assert parsed.without_effect == {
            "hoodie.payload.event.time.field": "event times: commits do not record them",
        }
    # none of the values is what would hold anyway
    untold = parse_options({}).options
    assert [field for field, value, _ in BUILDER if attrgetter(field)(untold) == value] == ["index.type"]


def test_several_fields_order_the_records_of_version_9_alone():
    given = {"hoodie.datasource.write.recordkey.field": "id", "hoodie.table.ordering.fields": "day, seq"}
    with pytest.raises(InvalidConfigError, match=r"day,seq: one field .* version 6; name one, or give .*version=9"):
        new_table_config(parse_options(given).options, "t")
    config = new_table_config(parse_options({**given, "hoodie.write.table.version": "9"}).options, "t")
    assert config.ordering_fields == ("day", "seq")
    assert config.to_properties()["hoodie.table.ordering.fields"] == "day,seq"
    twice = {**given, "hoodie.table.ordering.fields": "day,day", "hoodie.write.table.version": "9"}
    with pytest.raises(InvalidConfigError, match=r"precombine\.field=day,day names a column twice"):
        new_table_config(parse_options(twice).options, "t")


def test_the_ordering_field_of_the_payload_is_the_new_tables():
    given = {"hoodie.datasource.write.recordkey.field": "id", "hoodie.payload.ordering.field": "seq"}
    assert new_table_config(parse_options(given).options, "t").ordering_fields == ("seq",)


@pytest.mark.parametrize(
    ("codec", "expected", "level"),
    [("gzip", "gzip", None), ("ZSTD", "zstd", 1), ("uncompressed", "none", None), ("lz4_raw", "lz4", None)],
)
def test_codecs(codec, expected, level):
    settings = parse_options({"hoodie.parquet.compression.codec": codec}).options.base_file
    assert (settings.codec, settings.level) == (expected, level)


def test_custom_key_generator_takes_a_kind_with_each_field():
    custom = {"hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.CustomKeyGenerator"}
    parsed = parse_options({**custom, "hoodie.datasource.write.partitionpath.field": "a:simple,b:TIMESTAMP"}).options
    assert (parsed.keys.partition_fields, parsed.keys.partition_kinds) == (("a", "b"), ("SIMPLE", "TIMESTAMP"))
    with pytest.raises(InvalidConfigError, match="'a' is neither"):
        parse_options({**custom, "hoodie.datasource.write.partitionpath.field": "a"})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"hoodie.datasource.write.recordkey.feild": "id"}, "did you mean hoodie.datasource.write.recordkey.field"),
        ({"hoodie.nonsense.at.all.xyz": "1"}, "unknown option hoodie.nonsense.at.all.xyz"),
        ({"hudistream.nonsense": "1"}, "unknown option hudistream.nonsense"),
        ({"hoodie.parquet.max.file.size": "big"}, "hoodie.parquet.max.file.size=big: no size: give a number"),
        ({"hoodie.parquet.max.file.size": "0"}, "hoodie.parquet.max.file.size=0"),
        ({"hoodie.combine.before.insert": "maybe"}, "hoodie.combine.before.insert=maybe"),
        ({"write.precombine": "true", "write.operation": "bulk_insert"}, "a bulk insert keeps all records of a key"),
        ({"hoodie.index.bloom.fpp": "2"}, "hoodie.index.bloom.fpp=2"),
        ({"hoodie.auto.commit": "false"}, "hoodie.auto.commit=false is refused: the stream's checkpoint"),
        ({"table.type": "MERGE_ON_WRITE"}, "table.type=MERGE_ON_WRITE"),
        ({"hoodie.datasource.write.operation": "upsurt"}, "hoodie.datasource.write.operation=upsurt"),
        ({"hoodie.index.type": "HBASE"}, "hoodie.index.type=HBASE: this index is not supported; use one of BLOOM"),
        ({"hoodie.datasource.hive_sync.enable": "true"}, "nothing says in which"),
        ({"hoodie.datasource.write.keygenerator.class": "com.acme.X"}, "com.acme.X"),
        ({"hoodie.parquet.compression.codec": "brotli"}, "brotli"),
        ({"hoodie.write.table.version": "7"}, "use one of 6, 8, 9"),
        (
            {"hoodie.table.precombine.field": "a", "precombine.field": "b"},
            "hoodie.table.precombine.field=a and precombine.field=b say different things",
        ),
        (
            {"hoodie.parquet.max.file.size": "5", "write.parquet.max.file.size": "5"},
            "hoodie.parquet.max.file.size=5 and write.parquet.max.file.size=5 say different things: keep one",
        ),
        (
            {"hoodie.datasource.write.precombine.field": "ts", "hoodie.payload.ordering.field": "seq"},
            "hoodie.datasource.write.precombine.field=ts and hoodie.payload.ordering.field=seq say different things",
        ),
        (
            {"hoodie.payload.ordering.field": "seq", "precombine.field": "ts"},
            "hoodie.payload.ordering.field=seq and precombine.field=ts say different things",
        ),
        ({"path": "/elsewhere"}, "'/elsewhere'"),
        ({"hoodie.table.name": " "}, "hoodie.table.name is empty"),
    ],
)
def test_what_is_wrong_is_named_with_the_way_out(options, message):
    with pytest.raises(InvalidConfigError) as error:
        parse_options(options, "/here")
    assert message in str(error.value)


def test_keys_without_effect_are_told_with_the_reason():
    told = parse_options({"hoodie.archive.async": "true", "hoodie.metrics.graphite.host": "x"}).without_effect
    assert told == {
        "hoodie.archive.async": "archival: it follows the commits",
        "hoodie.metrics.graphite.host": "metrics: hudistream.metrics tells them",
    }


@pytest.mark.parametrize(
    "key",
    [
        "hoodie.datasource.hive_sync.databse", "hoodie.datasource.meta.sync.glue.tabel_name",
        "hive_sync.partition_field", "hoodie.meta.sync.incremantal", "clustering.plan.strategy.sort.column",
        "hoodie.metrics.onn",
        "hoodie.streamer.keygen.timebased.timestamp.typo", "metadata.compaction.delta_commit",
    ],
)  # fmt: skip
def test_misspelled_keys_are_told_below_each_prefix_of_hudi(key):
    with pytest.raises(InvalidConfigError, match=f"unknown option {key}; did you mean"):
        parse_options({key: "x"})


def test_all_that_is_refused_or_unknown_is_named_at_once():
    given = {
        "hoodie.auto.commit": "false",
        "hoodie.index.bucket.engine": "CONSISTENT_HASHING",
        "hoodie.nonsense.at.all.xyz": "1",
        "hoodie.datasource.write.recordkey.feild": "id",
        "hoodie.table.cdc.enabled": "false",
    }
    with pytest.raises(InvalidConfigError) as error:
        parse_options(given)
    message = str(error.value)
    assert message.startswith("4 options cannot be used: ")
    assert "hoodie.auto.commit=false is refused" in message
    assert "hoodie.index.bucket.engine=CONSISTENT_HASHING is refused" in message
    assert "unknown option hoodie.nonsense.at.all.xyz" in message
    assert "did you mean hoodie.datasource.write.recordkey.field?" in message
    assert "cdc" not in message


@pytest.mark.parametrize("text", ["id", ["id"], ("id",), "['id']", '["id"]', " [ 'id' ] "])
def test_a_list_of_one_name_is_that_name(text):
    keys = {"hoodie.datasource.write.recordkey.field": text, "hoodie.datasource.write.precombine.field": text}
    parsed = parse_options(keys).options.keys
    assert (parsed.record_key_fields, parsed.ordering_fields) == (("id",), ("id",))


@pytest.mark.parametrize("text", ["a,b", "a, b", ["a", "b"], ("a", "b"), "['a', 'b']"])
def test_a_list_of_names_is_joined(text):
    parsed = parse_options({"hoodie.datasource.write.recordkey.field": text}).options.keys
    assert parsed.record_key_fields == ("a", "b")


def test_brackets_in_a_name_are_a_name():
    assert parse_options({"hoodie.datasource.write.recordkey.field": "[id]"}).options.keys.record_key_fields == (
        "[id]",
    )


def test_none_means_not_given():
    given = {"hoodie.datasource.write.operation": None, "hoodie.auto.commit": None, "hoodie.nonsense": None}
    assert parse_options(given).options == WriteOptions()


def test_the_same_said_as_list_and_as_text_is_no_contradiction():
    given = {"hoodie.datasource.write.recordkey.field": ["a", "b"], "hoodie.table.recordkey.fields": "a,b"}
    assert parse_options(given).options.keys.record_key_fields == ("a", "b")


@pytest.mark.parametrize(
    "key", ["hoodie.bulkinsert.overwrite.operation.type", "hoodie.static.overwrite.partition.paths"]
)
def test_refusals_about_overwriting_name_the_operations_that_overwrite(key):
    with pytest.raises(InvalidConfigError, match="insert_overwrite"):
        parse_options({key: "x"})

"""Switches of services and of the index: what they do to a table."""

import json
import os
import time
from collections import Counter
from operator import attrgetter

import pyarrow as pa
import pytest
from command_line import said
from engine import Engine, leave_a_dead_batch, rows
from snapshots import list_snapshot_files

from streaming.batch import profile_cache
from table import (
    InvalidConfigError,
    InvalidRecordError,
    SchemaMismatchError,
    UnsupportedTableError,
    parse_options,
    read_table,
)
from table.config.table_config import update_properties
from table.files.base.hudi_footer import filter_of_footer
from table.files.base.stored_file import StoredBaseFile
from table.files.bloom.bloom_filter import DynamicBloomFilter
from table.hudi_table import HudiTable
from table.options.choices import IndexType
from table.options.write_groups import IndexSettings
from table.storage.local import LocalStorage
from table.timeline.instant import Action

MERGE_ON_READ = {
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.datasource.write.operation": "upsert",
    "hoodie.parquet.small.file.limit": "0",
    "hoodie.compact.inline.max.delta.commits": "2",
}
CLEANS = {"hoodie.clean.automatic": "true", "hoodie.clean.commits.retained": "1"}
ARCHIVES = {"hoodie.archive.automatic": "true", "hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3"}


def written(path, options, batches=6, keys=range(3), first=0):
    """The timeline after so many batches, each with its services done."""
    engine = Engine(path, options)
    for number in range(first, first + batches):
        engine.write(number, rows(keys, lambda _: "p", ts=number))
        engine.writer.services.wait()
    return HudiTable.open(path).load_timeline()


def compactions(timeline):
    """How many are completed, and how many pending."""
    return len(timeline.completed_of(Action.COMMIT)), len(timeline.pending_of(Action.COMPACTION))


@pytest.mark.parametrize(("enabled", "runs"), [("true", True), ("false", False)])
def test_without_table_services_nothing_is_cleaned_archived_or_compacted(tmp_path, enabled, runs):
    path = str(tmp_path / "t")
    options = {**MERGE_ON_READ, **CLEANS, **ARCHIVES, "hoodie.table.services.enabled": enabled}
    timeline = written(path, options, 12)
    assert bool(timeline.completed_of(Action.CLEAN)) is runs
    assert bool(timeline.completed_of(Action.COMMIT)) is runs
    assert (len(timeline.completed_of(Action.DELTA_COMMIT)) < 12) is runs
    assert not timeline.pending_of(Action.COMPACTION, Action.CLEAN)


@pytest.mark.parametrize(
    ("options", "done", "pending"),
    [
        ({}, True, False),
        ({"hoodie.compact.inline": "true"}, True, False),
        ({"hoodie.datasource.compaction.async.enable": "false"}, False, False),
        ({"hoodie.datasource.write.streaming.disable.compaction": "true"}, False, False),
        ({"compaction.schedule.enabled": "false"}, False, False),
        ({"compaction.async.enabled": "false", "compaction.schedule.enabled": "true"}, False, True),
        ({"compaction.async.enabled": "false", "hoodie.compact.schedule.inline": "true"}, False, True),
        (
            {
                "hoodie.datasource.write.streaming.disable.compaction": "true",
                "hoodie.compact.schedule.inline": "true",
            },
            False,
            True,
        ),
        ({"hoodie.compact.schedule.inline": "true"}, True, False),
    ],
)
def test_a_sink_requests_and_executes_compactions_as_its_switches_say(tmp_path, options, done, pending):
    completed, open_ones = compactions(written(str(tmp_path / "t"), {**MERGE_ON_READ, **options}))
    assert (completed > 0, open_ones > 0) == (done, pending)


def test_a_job_executes_what_a_sink_requested_and_the_sink_requests_the_next(tmp_path, capsys):
    path = str(tmp_path / "t")
    options = {**MERGE_ON_READ, "compaction.async.enabled": "false", "compaction.schedule.enabled": "true"}
    engine = Engine(path, options)
    for number in range(8):
        engine.write(number, rows(range(3), lambda _: "p", ts=number, v=str(number)))
        engine.writer.services.wait()
        if number in (4, 7):
            assert "completed" in said(capsys, "compact", path, "--execute")
    assert compactions(HudiTable.open(path).load_timeline()) == (2, 0)
    assert set(read_table(path).column("v").to_pylist()) == {"7"}


def test_a_sink_that_requests_no_compaction_executes_those_of_others(tmp_path, capsys):
    path = str(tmp_path / "t")
    options = {**MERGE_ON_READ, "compaction.schedule.enabled": "false"}
    assert compactions(written(path, options, 2)) == (0, 0)
    assert "requested" in said(capsys, "compact", path, "--schedule-only")
    assert compactions(written(path, options, 3, first=2)) == (1, 0)


@pytest.mark.parametrize(
    "options",
    [
        {"hoodie.datasource.write.streaming.disable.compaction": "true", "hoodie.compact.inline": "true"},
        {"compaction.schedule.enabled": "false", "hoodie.compact.schedule.inline": "true"},
    ],
)
def test_switches_of_compaction_that_contradict_each_other_are_refused(options):
    with pytest.raises(InvalidConfigError, match="keep one") as error:
        parse_options(options)
    assert all(key in str(error.value) for key in options)


def test_a_sink_requests_cleans_and_a_job_executes_them(tmp_path, capsys):
    path = str(tmp_path / "t")
    timeline = written(path, {**CLEANS, "hudistream.clean.execute": "false"}, 4)
    assert not timeline.completed_of(Action.CLEAN)
    assert len(timeline.pending_of(Action.CLEAN)) == 1
    before = read_table(path)
    assert "deleted" in said(capsys, "clean", path, "--execute")
    timeline = HudiTable.open(path).load_timeline()
    assert (len(timeline.completed_of(Action.CLEAN)), timeline.pending_of(Action.CLEAN)) == (1, ())
    assert read_table(path).equals(before)


def test_a_clean_is_requested_by_one_job_and_executed_by_another(tmp_path, capsys):
    path = str(tmp_path / "t")
    written(path, {}, 4)
    settings = ("--set", "hoodie.clean.commits.retained=1", "--set", "hudistream.clean.grace.ms=0")
    assert "nothing to clean" in said(capsys, "clean", path, "--execute", *settings)
    assert "requested clean" in said(capsys, "clean", path, "--schedule-only", *settings)
    assert not HudiTable.open(path).load_timeline().completed_of(Action.CLEAN)
    assert "deleted" in said(capsys, "clean", path, "--execute", *settings)


@pytest.mark.parametrize(
    ("given", "switch", "meant"),
    [
        ("FLINK_STATE", None, "GLOBAL_BLOOM"),
        ("INMEMORY", None, "GLOBAL_BLOOM"),
        ("FLINK_STATE", "true", "GLOBAL_BLOOM"),
        ("FLINK_STATE", "false", "BLOOM"),
        (None, "true", "GLOBAL_BLOOM"),
        ("SIMPLE", "true", "GLOBAL_SIMPLE"),
        ("GLOBAL_SIMPLE", "true", "GLOBAL_SIMPLE"),
        ("BLOOM", "false", "BLOOM"),
        ("BUCKET", "false", "BUCKET"),
    ],
)
def test_flinks_switch_of_global_keys_decides_whether_a_key_may_be_in_two_paths(tmp_path, given, switch, meant):
    options = {"index.type": given, "index.global.enabled": switch}
    assert parse_options(options).options.index.type is IndexType(meant)
    path = str(tmp_path / "t")
    engine = Engine(path, {"hoodie.datasource.write.operation": "upsert", **options})
    engine.write(0, rows([1], lambda _: "a", ts=1))
    engine.write(1, rows([1], lambda _: "b", ts=2))
    assert read_table(path).column("p").to_pylist() == (["b"] if meant.startswith("GLOBAL") else ["a", "b"])


@pytest.mark.parametrize(("given", "switch"), [("BUCKET", "true"), ("GLOBAL_BLOOM", "false")])
def test_a_switch_of_global_keys_that_the_index_cannot_follow_is_refused(given, switch):
    with pytest.raises(InvalidConfigError, match=rf"index.global.enabled={switch}.*{given}"):
        parse_options({"index.type": given, "index.global.enabled": switch})


def test_an_index_that_was_resolved_stays_so_in_a_copy():
    settings = IndexSettings(type="flink_state", global_keys=False)
    assert IndexSettings(type=settings.type, global_keys=settings.global_keys) == settings


def test_another_name_for_the_folder_of_rows_without_a_partition_value_is_refused():
    with pytest.raises(InvalidConfigError, match="partition.default_name=none is refused"):
        parse_options({"partition.default_name": "none"})
    parse_options({"partition.default_name": "__HIVE_DEFAULT_PARTITION__"})


AVRO = json.dumps(
    {
        "type": "record",
        "name": "r",
        "fields": [
            {"name": "id", "type": "string"},
            {"name": "p", "type": "string"},
            {"name": "ts", "type": "long"},
            {"name": "v", "type": "string"},
        ],
    }
)


@pytest.mark.parametrize("key", ["hoodie.avro.schema", "hoodie.write.schema", "source.avro-schema"])
def test_a_schema_that_is_announced_must_be_the_batchs(tmp_path, key):
    path = str(tmp_path / "t")
    Engine(path, {key: AVRO}).write(0, rows([1]))
    with pytest.raises(SchemaMismatchError, match="'ts' is int64 in the batch and int32 in the schema"):
        Engine(path, {key: AVRO.replace("long", "int")}).write(1, rows([2]))
    with pytest.raises(InvalidConfigError, match="no Avro schema"):
        parse_options({key: "id string"})
    assert read_table(path).column("id").to_pylist() == ["k1"]


def test_a_new_table_keeps_the_schema_that_it_is_created_with(tmp_path):
    path = str(tmp_path / "t")
    record = json.loads(AVRO)
    record["fields"] += [{"name": "w", "type": ["null", "int"], "default": None}]
    wider = json.dumps(record)
    fills = {"hoodie.write.set.null.for.missing.columns": "true"}
    Engine(path, {"hoodie.table.create.schema": wider, **fills}).write(0, rows([1]))
    table = HudiTable.open(path)
    assert table.config.extra["hoodie.table.create.schema"] == wider
    assert read_table(path).schema.names[-5:] == ["id", "p", "ts", "v", "w"]
    Engine(path, {"hoodie.table.create.schema": AVRO, **fills}).write(
        1, rows([2])
    )  # of a new table: this one has its own
    assert HudiTable.open(path).config.extra["hoodie.table.create.schema"] == wider
    with pytest.raises(InvalidConfigError, match="no Avro schema"):
        parse_options({"hoodie.table.create.schema": "id string"})


def test_the_write_config_of_the_article_starts(tmp_path):
    path = str(tmp_path / "t")
    Engine(
        path,
        {
            "hoodie.avro.schema": AVRO,
            "hoodie.insert.shuffle.parallelism": "2",
            "hoodie.upsert.shuffle.parallelism": "2",
            "hoodie.delete.shuffle.parallelism": "2",
            "hoodie.index.type": "BLOOM",
            "hoodie.index.bloom.fpp": "0.000001",
            "hoodie.bloom.index.filter.dynamic.max.entries": "150000",
            "hoodie.keep.min.commits": "150",
            "hoodie.keep.max.commits": "200",
            "hoodie.clean.commits.retained": "100",
        },
    ).write(0, rows([1]))
    (file,) = list_snapshot_files(HudiTable.open(path))
    with StoredBaseFile(LocalStorage(path), file.path) as stored:
        assert isinstance(filter_of_footer(stored.footer, 0), DynamicBloomFilter)


def test_a_bound_of_dynamic_filters_does_not_go_with_simple_ones():
    with pytest.raises(InvalidConfigError, match="drop one"):
        parse_options(
            {"hoodie.bloom.index.filter.dynamic.max.entries": "9", "hoodie.bloom.index.filter.type": "SIMPLE"}
        )


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"write.log_block.size": "3"}, ("log_files.block_bytes", 3 << 20)),
        ({"write.log.max.size": "4"}, ("log_files.file_bytes", 4 << 20)),
        ({"metadata.enabled": "false"}, ("table.metadata_enabled", False)),
        ({"write.fail.fast": "true"}, ("bad_rows.action", "fail")),
        ({"compaction.trigger.strategy": "num_commits_after_last_request"}, ("compaction.trigger", "NUM_COMMITS")),
        ({"hoodie.merge.small.file.group.candidates.limit": "3"}, ("sizes.groups_filled", 3)),
    ],
)
def test_flinks_spellings_fill_the_fields_of_hudis(options, expected):
    assert attrgetter(expected[0])(parse_options(options).options) == expected[1]


@pytest.mark.parametrize(
    "options",
    [
        {"write.fail.fast": "true", "hudistream.bad.rows": "quarantine"},
        {"write.partition.overwrite.mode": "STATIC"},
        {"hoodie.datasource.overwrite.mode": "static"},
        {"write.buffer.sort.enabled": "true"},
        {"compaction.sequence": "LIFO"},
        {"hoodie.datasource.write.commitmeta.key.prefix": "my_"},
        {"hoodie.partition.ttl.inline": "true"},
    ],
)
def test_what_would_change_results_is_refused_with_the_way_out(options):
    with pytest.raises(InvalidConfigError, match="keep one|leave it out, or set"):
        parse_options(options)


def test_a_clean_by_hand_rolls_back_what_dead_writers_of_several_left(tmp_path, capsys):
    path = str(tmp_path / "t")
    shared = {"hoodie.write.concurrency.mode": "optimistic_concurrency_control"}
    engine = Engine(path, {**shared, "hoodie.client.heartbeat.interval_in_ms": "100"})
    engine.write(0, rows(range(3)))
    leave_a_dead_batch(engine, 1, rows(range(3, 6)))
    assert len(HudiTable.open(path).load_timeline().pending) == 1
    time.sleep(0.5)
    given = [word for key, value in shared.items() for word in ("--set", f"{key}={value}")]
    fast = ("--set", "hoodie.client.heartbeat.interval_in_ms=100")
    assert "nothing to clean" in said(capsys, "clean", path, *fast)
    assert len(HudiTable.open(path).load_timeline().pending) == 1, "a single writer rolls back before its batches"
    said(capsys, "clean", path, *given, *fast)
    timeline = HudiTable.open(path).load_timeline()
    assert not timeline.pending
    assert len(timeline.completed_of(Action.ROLLBACK)) == 1
    assert read_table(path).num_rows == 3


@pytest.mark.parametrize("operation", ["insert", "upsert"])
def test_the_log_names_the_small_files_that_a_batch_fills(tmp_path, monkeypatch, operation):
    told = []
    monkeypatch.setattr(profile_cache.log, "debug", lambda event, **fields: told.append((event, fields)))
    engine = Engine(str(tmp_path / "t"), {"hoodie.datasource.write.operation": operation})
    engine.write(0, rows(range(3), lambda _: "p"))
    engine.write(1, rows(range(3, 6), lambda _: "p"))
    engine.writer.stop()
    (found,) = [fields for event, fields in told if event == "small_files_found"]
    assert found["partition_path"] == "p"
    assert [size > 0 for size in found["size_bytes"].values()] == [True]


def base_files_per_group(path):
    """How many base files each file group has had, with the groups that a batch filled at 2."""
    names = [name for name in os.listdir(os.path.join(path, "p")) if name.endswith(".parquet")]
    return sorted(Counter(name.partition("_")[0] for name in names).values())


@pytest.mark.parametrize("operation", ["insert", "upsert"])
@pytest.mark.parametrize(("limit", "filled"), [("0", 0), ("1", 1), ("2", 2)])
def test_a_batch_fills_as_many_small_file_groups_as_are_allowed(tmp_path, operation, limit, filled):
    path = str(tmp_path / "t")
    plain = {**MERGE_ON_READ, "hoodie.clean.automatic": "false", "hoodie.datasource.compaction.async.enable": "false"}
    plain["hoodie.datasource.write.operation"] = operation
    first = Engine(path, plain)
    for number in range(3):
        first.write(number, rows(range(3 * number, 3 * number + 3), lambda _: "p"))
    first.writer.stop()
    assert base_files_per_group(path) == [1, 1, 1]
    size = max(entry.stat().st_size for entry in os.scandir(os.path.join(path, "p")) if "parquet" in entry.name)
    sizes = {"hoodie.parquet.small.file.limit": str(size + 1), "hoodie.parquet.max.file.size": str(size + 1500)}
    sizes |= {"hoodie.copyonwrite.insert.split.size": "1000", "hoodie.copyonwrite.insert.auto.split": "false"}
    limited = {"hoodie.merge.small.file.group.candidates.limit": limit}
    engine = Engine(path, {**plain, **sizes, **limited})
    engine.write(3, rows(range(100, 160), lambda _: "p"))  # each of the three has room for some of them
    engine.writer.stop()
    assert base_files_per_group(path).count(2) == filled
    assert read_table(path).num_rows == 69


@pytest.mark.parametrize("bad_rows", [{}, {"write.fail.fast": "true"}])
def test_fail_fast_fails_the_batch_with_a_bad_row(tmp_path, bad_rows):
    path = str(tmp_path / "t")
    engine = Engine(path, bad_rows)
    bad = rows(range(3)).append_column("extra", pa.array([1, 2, 3]))
    bad = bad.set_column(bad.schema.get_field_index("id"), "id", pa.array(["a", None, "c"]))
    with pytest.raises(InvalidRecordError):
        engine.write(0, bad)
    engine.writer.stop()


def test_log_blocks_and_log_files_are_as_large_as_flinks_options_say(tmp_path):
    plain = {**MERGE_ON_READ, "hoodie.datasource.compaction.async.enable": "false"}

    def log_sizes(folder, options):
        engine = Engine(str(folder), {**plain, **options})
        many = rows(range(20_000), lambda _: "p")
        wide = pa.array([f"{number:0300d}" for number in range(20_000)])
        many = many.set_column(many.schema.get_field_index("v"), "v", wide)
        engine.write(0, many)
        engine.write(1, many)
        engine.writer.stop()
        return sorted(entry.stat().st_size for entry in os.scandir(folder / "p") if ".log." in entry.name)

    assert len(log_sizes(tmp_path / "one", {})) == 1
    several = log_sizes(tmp_path / "several", {"write.log_block.size": "1", "write.log.max.size": "1"})
    assert len(several) > 1
    assert all(size < 5 << 20 for size in several)


def test_a_metadata_table_is_dropped_with_flinks_switch(tmp_path):
    path = str(tmp_path / "t")
    Engine(path).write(0, rows(range(3)))
    update_properties(LocalStorage(path), {"hoodie.table.metadata.partitions": "bloom_filters,files"})
    with pytest.raises(UnsupportedTableError, match="metadata"):
        Engine(path).write(1, rows(range(3)))
    engine = Engine(path, {"metadata.enabled": "false"})
    engine.write(1, rows(range(3)))
    engine.writer.stop()
    assert not HudiTable.open(path).config.metadata_partitions.strip()

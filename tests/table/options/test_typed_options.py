import dataclasses
import pickle
from typing import get_args

import pytest

from table import WriteOptions, parse_options
from table.config.key_generator import KeyGenerator
from table.config.merge_mode import MergeMode, merge_mode_of
from table.config.table_config import KEYGEN_CLASSES
from table.errors import InvalidConfigError
from table.options.choices import IndexType, SchemaMode
from table.options.groups import ArchiveSettings, BaseFileSettings, CleanSettings, HeartbeatSettings
from table.options.operation import Operation, OperationName
from table.options.settings import describe_fields
from table.options.write_groups import (
    GROUPS,
    BadRowSettings,
    IndexSettings,
    KeySettings,
    SizeSettings,
    TableSettings,
    TaskSettings,
)
from table.schema.evolution import SCHEMA_MODES


@pytest.mark.parametrize("operation", ["upsert", "UPSERT", " Upsert ", Operation.UPSERT])
def test_text_becomes_the_operation(operation):
    assert WriteOptions(operation=operation).operation is Operation.UPSERT


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: WriteOptions(operation="upsrt"), ["WriteOptions.operation=upsrt", "bulk_insert", "mean upsert?"]),
        (lambda: WriteOptions(operation=3), ["WriteOptions.operation=3", "upsert"]),
        (lambda: WriteOptions(keys="id"), ["WriteOptions.keys='id'", "KeySettings"]),
        (lambda: WriteOptions(keys={"record_key": "id"}), ["'record_key'", "mean record_key_fields?"]),
        (lambda: SizeSettings(max_file_bytes=-1), ["SizeSettings.max_file_bytes=-1", "1 is the least"]),
        (lambda: SizeSettings(max_file_bytes="big"), ["SizeSettings.max_file_bytes=big", "as in 120MB"]),
        (lambda: SizeSettings(max_file_bytes=True), ["SizeSettings.max_file_bytes=True", "not a whole number"]),
        (lambda: SizeSettings(max_file_bytes=None), ["SizeSettings.max_file_bytes=None", "leave it out"]),
        (lambda: IndexSettings(type="HBASE"), ["IndexSettings.type=HBASE", "use one of BLOOM"]),
        (lambda: IndexSettings(buckets=0), ["IndexSettings.buckets=0"]),
        (lambda: BaseFileSettings(bloom_fpp=2), ["BaseFileSettings.bloom_fpp=2", "between 0 and 1"]),
        (lambda: BaseFileSettings(codec="snappy", codec_level=3), ["level=3", "snappy", "none"]),
        (lambda: BaseFileSettings(codec="gzip", codec_level=0), ["level=0", "1 to 9"]),
        (lambda: BaseFileSettings(verify_share=float("nan")), ["BaseFileSettings.verify_share=nan"]),
        (lambda: BadRowSettings(action="skip"), ["BadRowSettings.action=skip", "quarantine"]),
        (lambda: HeartbeatSettings(interval_ms=0), ["HeartbeatSettings.interval_ms=0"]),
        (lambda: CleanSettings(policy="KEEP_ALL"), ["CleanSettings.policy=KEEP_ALL", "KEEP_LATEST_COMMITS"]),
        (lambda: CleanSettings(most_share=1.5), ["CleanSettings.most_share=1.5"]),
        (lambda: CleanSettings(asynchronous=False, at_checkpoint=False), ["asynchronous=False", "keep one"]),
        (lambda: TableSettings(archive_folder="../x"), ["TableSettings.archive_folder=../x"]),
        (lambda: TableSettings(name=" "), ["TableSettings.name is empty"]),
        (lambda: KeySettings(record_key_fields=[1]), ["KeySettings.record_key_fields=[1]"]),
        (lambda: KeySettings(partition_fields=["a"], keygen_type="CUSTOM"), ["field:SIMPLE", "'a' is neither"]),
        (lambda: KeySettings(partition_fields="a,b", partition_kinds=["SIMPLE"]), ["1 kinds for 2 fields"]),
        (lambda: KeySettings(timebased={"hoodie.keygen.timebased.zone": "UTC"}), ["timebased.zone", "did you mean"]),
        (
            lambda: WriteOptions(clean=CleanSettings(commits_retained=30), archive=ArchiveSettings()),
            ["hoodie.clean.commits.retained=30", "hoodie.keep.min.commits=20", "spread the three numbers"],
        ),
        (
            lambda: WriteOptions(archive=ArchiveSettings(min_commits=40)),
            ["hoodie.keep.min.commits=40", "hoodie.keep.max.commits=30"],
        ),
    ],
)
def test_typed_values_are_refused_by_the_rules_of_strings(make, told):
    with pytest.raises(InvalidConfigError) as error:
        make()
    assert [part for part in told if part not in str(error.value)] == []


def test_typed_values_are_read_as_text_is():
    typed = WriteOptions(
        operation="BULK_INSERT",
        keys=KeySettings(record_key_fields=["a", "b"], partition_fields="p:timestamp", keygen_type="custom"),
        table=TableSettings(merge_mode="commit_time", timezone="utc"),
        index=IndexSettings(type="flink_state"),
        base_file=BaseFileSettings(codec="LZ4_RAW"),
        tasks=TaskSettings(insert_parallelism=0, upsert_parallelism="4"),
    )
    texts = parse_options(
        {
            "hoodie.datasource.write.operation": "BULK_INSERT",
            "hoodie.datasource.write.recordkey.field": "a,b",
            "hoodie.datasource.write.partitionpath.field": "p:timestamp",
            "hoodie.datasource.write.keygenerator.type": "custom",
            "hoodie.record.merge.mode": "commit_time_ordering",
            "hoodie.table.timeline.timezone": "utc",
            "hoodie.index.type": "flink_state",
            "hoodie.parquet.compression.codec": "LZ4_RAW",
            "hoodie.insert.shuffle.parallelism": "0",
            "hoodie.upsert.shuffle.parallelism": "4",
        }
    ).options
    assert typed == texts
    assert typed.keys.partition_fields == ("p",)
    assert typed.tasks.insert_parallelism is None


def test_more_retained_commits_move_the_bounds_of_archival_unless_they_are_given():
    options = WriteOptions(clean=CleanSettings(commits_retained=50))
    assert (options.archive.min_commits, options.archive.max_commits) == (60, 70)
    assert options == parse_options({"hoodie.clean.commits.retained": 50}).options
    off = parse_options({"hoodie.clean.commits.retained": 50, "hoodie.archive.automatic": "false"}).options
    assert (off.archive.automatic, off.archive.min_commits) == (False, 60)


def test_a_group_may_be_a_mapping_of_its_fields():
    assert WriteOptions(clean={"commits_retained": "5"}) == WriteOptions(clean=CleanSettings(commits_retained=5))


def test_nothing_named_means_hudis_default_and_is_known_not_to_be_named():
    options = parse_options({}).options
    assert options == WriteOptions()
    assert options.operation is None
    assert options.effective_operation is Operation.UPSERT
    assert WriteOptions(operation="insert").effective_operation is Operation.INSERT


def test_options_survive_a_copy_and_a_pickle():
    options = WriteOptions(operation="delete", clean=CleanSettings(policy="keep_latest_by_hours"))
    assert pickle.loads(pickle.dumps(options)) == options
    changed = dataclasses.replace(options, operation="insert")
    assert (changed.operation, changed.clean) == (Operation.INSERT, options.clean)


def test_choices_print_and_compare_as_their_text():
    assert f"{Operation.UPSERT}|{Operation.UPSERT:>8}|{Operation.UPSERT!s}" == "upsert|  upsert|upsert"
    assert {Operation.UPSERT: 1}["upsert"] == 1


def test_editors_know_every_choice():
    assert get_args(OperationName) == tuple(Operation)
    assert {*KeyGenerator} <= {*KEYGEN_CLASSES}
    assert tuple(SchemaMode) == SCHEMA_MODES


@pytest.mark.parametrize(
    ("index", "expected"),
    [
        ("BLOOM", {"has_filters"}),
        ("SIMPLE", set()),
        ("BUCKET", {"has_buckets"}),
        ("GLOBAL_BLOOM", {"has_filters", "is_global"}),
        ("GLOBAL_SIMPLE", {"is_global"}),
    ],
)
def test_how_each_index_finds_keys(index, expected):
    assert {name for name in ("has_filters", "has_buckets", "is_global") if getattr(IndexType(index), name)} == expected


@pytest.mark.parametrize("group", GROUPS.values())
def test_every_field_is_described(group):
    assert describe_fields(group).keys() == {field.name for field in dataclasses.fields(group)}
    assert describe_fields(WriteOptions).keys() == {field.name for field in dataclasses.fields(WriteOptions)}


# what each operation does, one line each; a property that changes changes the table's content
PROPERTIES = (
    "looks_for_keys deletes_all takes_keys_alone is_bulk overwrites removes_partitions replaces fills_small_files "
    "can_write_buckets may_drop_duplicates overwrites_table"
).split()


@pytest.mark.parametrize(
    ("operation", "expected"),
    [
        ("insert", {"fills_small_files", "can_write_buckets", "may_drop_duplicates"}),
        ("bulk_insert", {"is_bulk"}),
        ("upsert", {"looks_for_keys", "fills_small_files", "can_write_buckets"}),
        ("delete", {"looks_for_keys", "deletes_all", "takes_keys_alone", "fills_small_files", "can_write_buckets"}),
        ("insert_overwrite", {"overwrites", "replaces"}),
        ("insert_overwrite_table", {"overwrites", "overwrites_table", "replaces"}),
        ("delete_partition", {"takes_keys_alone", "removes_partitions", "replaces", "fills_small_files"}),
    ],
)
def test_what_each_operation_does(operation, expected):
    assert {name for name in PROPERTIES if getattr(Operation(operation), name)} == expected


@pytest.mark.parametrize(
    ("payload", "mode"),
    [
        ("org.apache.hudi.common.model.DefaultHoodieRecordPayload", MergeMode.EVENT_TIME),
        ("OverwriteWithLatestAvroPayload", MergeMode.COMMIT_TIME),
        ("org.apache.hudi.common.model.PartialUpdateAvroPayload", MergeMode.PARTIAL_UPDATE),
        ("com.acme.PartialUpdateAvroPayload", None),
    ],
)
def test_a_payload_class_says_the_merge_mode(payload, mode):
    assert merge_mode_of(payload) is mode
    assert mode is None or merge_mode_of(mode.payload_class) is mode

"""The plan of a batch from options, table and profile: who looks up keys, which files are filled, what is refused."""

import re
from dataclasses import replace

import pyarrow as pa
import pytest

from streaming.plan import plan_tasks as module
from streaming.plan.plan_tasks import (
    Scene,
    check_ordering,
    looks_everywhere,
    merge_rules,
    plan_changes,
    plan_tasks,
    remembered_below,
)
from streaming.plan.task_plan import LogPlan
from streaming.plan.write_profile import PathProfile, WriteProfile
from table.config.merge_mode import MergeMode
from table.config.table_config import TableConfig
from table.errors import InvalidConfigError
from table.options.write_options import WriteOptions
from table.records.merge import MergeRules
from table.storage.local import LocalStorage
from table.view.file_group import CommittedInstants, base_file_of
from table.view.store_listing import StorageListing

CONFIG = TableConfig("t", ("id", "p"), ("p",), ("ts",))
KEY = pa.string()
SCHEMA = pa.schema([pa.field("id", KEY, nullable=False), ("p", pa.string()), ("ts", pa.int64())])
STORAGE = LocalStorage("/lake/t")
SCENE = Scene(STORAGE, StorageListing(STORAGE), "20260101000000001", CommittedInstants(frozenset(), None, {}))
A, B, LARGE = (base_file_of("p", f"{size}-0_0-0-0_1.parquet", size) for size in (1, 2, 2**40))
PROFILE = WriteProfile(paths={"p": PathProfile((LARGE, B, A))}, batches=1, has_all_paths=True)
DROPS, UNIQUE, COMBINES = {"drop_on_insert": True}, {"allow_on_insert": False}, {"combine_before_insert": True}


def options(operation, index="BLOOM", duplicates=(), **groups):
    return WriteOptions(operation, index={"type": index}, duplicates=dict(duplicates), **groups)


def plan(wanted, config=CONFIG, **scene):
    return plan_tasks(wanted, config, PROFILE, SCHEMA, replace(SCENE, **scene), 4)


@pytest.mark.parametrize(
    ("operation", "table", "rules"),
    [
        ("upsert", {}, MergeRules(MergeMode.EVENT_TIME, ("ts",))),
        ("upsert", {"payload_class": "OverwriteWithLatestAvroPayload"}, MergeRules(MergeMode.COMMIT_TIME, ("ts",))),
        ("upsert", {"payload_class": "com.acme.Mine"}, MergeRules(MergeMode.EVENT_TIME, ("ts",))),
        ("upsert", {"version": 9}, MergeRules(MergeMode.EVENT_TIME, ("ts",), orders_deletes=True)),
        ("delete", {"version": 8}, MergeRules(MergeMode.EVENT_TIME, ("ts",), deletes_all=True)),
    ],
)
def test_the_table_says_how_records_are_merged_and_the_operation_whether_all_are_deletes(operation, table, rules):
    assert merge_rules(options(operation), replace(CONFIG, **table)) == rules


@pytest.mark.parametrize(
    ("wanted", "changes", "everywhere"),
    [
        (options("insert"), None, False),
        (options("insert", "GLOBAL_BLOOM", UNIQUE), None, False),
        (options("bulk_insert", duplicates=DROPS), None, False),
        (options("insert_overwrite", "GLOBAL_SIMPLE", DROPS), None, False),
        (options("upsert"), (True, False, False), False),
        (options("upsert", "GLOBAL_SIMPLE", {"combine_before_upsert": False}), (False, False, False), True),
        (options("delete", "BUCKET"), (True, False, False), False),
        (options("insert", "GLOBAL_BLOOM", DROPS), (True, True, False), True),
        (options("insert", "BUCKET"), (False, False, True), False),
        (options("insert", "BUCKET", UNIQUE), (False, False, False), False),
        (options("insert", "BUCKET", DROPS), (True, True, False), False),
    ],
)
def test_only_where_keys_are_looked_up_or_have_buckets_records_change_and_every_file_counts(
    wanted, changes, everywhere
):
    made = plan_changes(wanted, CONFIG)
    assert (made and (made.combines, made.drops_known, made.adds_only)) == changes
    small = wanted.sizes.small_file_limit_bytes if wanted.effective_operation.fills_small_files else 0
    assert remembered_below(wanted) == (small if changes is None else None)
    assert looks_everywhere(wanted) is everywhere


@pytest.mark.parametrize(
    "wanted",
    [
        options("upsert"),
        options("insert", "BLOOM", UNIQUE),
        options("insert", "BLOOM", DROPS),
        options("insert", "BLOOM", COMBINES),
        options("insert", "BUCKET", COMBINES),
    ],
)
@pytest.mark.parametrize(
    ("field", "kind", "said"),
    [
        ("tss", pa.int64(), "=tss: the table has no such column; it has id, ts; did you mean ts?"),
        ("ts", pa.binary(), "=ts: a column of type binary has no order that records could follow; use a number, "),
    ],
)
def test_a_field_that_cannot_order_is_refused_where_records_are_compared(wanted, field, kind, said):
    with pytest.raises(InvalidConfigError, match=re.escape(f"hoodie.datasource.write.precombine.field{said}")):
        check_ordering(wanted, replace(CONFIG, ordering_fields=(field,)), pa.schema([("id", KEY), ("ts", kind)]))


@pytest.mark.parametrize("wanted", [options("insert"), options("insert", "BUCKET"), options("delete")])
def test_a_field_that_cannot_order_does_no_harm_where_no_two_records_are_compared(wanted):
    check_ordering(wanted, CONFIG, pa.schema([("id", KEY), ("ts", pa.binary())]))


@pytest.mark.parametrize(
    ("operation", "logs", "small"),
    [
        ("insert", None, (A, B)),
        ("insert", LogPlan({("p", A.file_id): "1", ("q", B.file_id): "1"}), (B,)),
        ("insert_overwrite", None, ()),
        ("bulk_insert", None, ()),
    ],
)
def test_new_rows_join_small_files_that_no_compaction_reads_unless_the_operation_opens_its_own(operation, logs, small):
    assert plan(options(operation), logs=logs).small_files.of("p") == small


def test_a_batch_that_changes_records_gets_large_files_too_and_a_global_one_gets_more_of_them(monkeypatch):
    assert set(plan(options("upsert")).changes.files.of("p")) == {A, B, LARGE}
    monkeypatch.setattr(module, "FILES_SENT", 2)
    assert plan(options("upsert")).changes.files.of("p") is None
    everywhere = plan(options("upsert", "GLOBAL_BLOOM"), partition_paths=("p", "q")).changes
    assert set(everywhere.files.of("p")) == {A, B, LARGE}
    assert (everywhere.partition_paths, everywhere.apart) == (("p", "q"), True)


@pytest.mark.parametrize(("shown", "columns"), [("keys", ("id", "p", "p")), ("rows", None)])
@pytest.mark.parametrize(("layout", "positions"), [(1, False), (2, True)])
def test_the_plan_says_what_may_be_null_what_is_shown_and_whether_blocks_have_positions(
    layout, positions, shown, columns
):
    made = plan(options("upsert", bad_rows={"shown": shown}), replace(CONFIG, layout_version=layout))
    assert made.context.log_settings.record_positions is positions
    assert made.shown == columns
    assert (made.context.required, made.context.schema.field("id").nullable) == (("id",), True)

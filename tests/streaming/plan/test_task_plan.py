"""The plan of a task: which way rows take, whether their order counts, and that it arrives on a worker whole."""

import pickle
from dataclasses import replace

import pyarrow as pa
import pytest

from streaming.plan.bucket_assigner import AssignRules
from streaming.plan.live_files import LiveFiles
from streaming.plan.routes import Routes
from streaming.plan.task_plan import ChangePlan, LogPlan, Pipeline, TaskPlan
from table.options.choices import IndexType, SortMode
from table.options.groups import BaseFileSettings
from table.records.merge import MergeRules
from table.storage.local import LocalStorage
from table.view.file_group import CommittedInstants, base_file_of
from table.view.store_listing import StorageListing
from table.write.context import WriteContext

STORAGE = LocalStorage("/lake/t")
CONTEXT = WriteContext(STORAGE, "20260101000000001", pa.schema([("id", pa.string())]), "{}", BaseFileSettings())
PLAN = TaskPlan(
    CONTEXT,
    Routes(1),
    AssignRules(120, 100, 10),
    LiveFiles(),
    CommittedInstants(frozenset(), None, {}),
    StorageListing(STORAGE),
)
CHANGES = ChangePlan(IndexType.BLOOM)
CHANGING = replace(PLAN, changes=CHANGES)


@pytest.mark.parametrize(
    ("changed", "pipeline"),
    [
        ({}, Pipeline.APPEND),
        ({"changes": CHANGES}, Pipeline.UPSERT),
        ({"changes": replace(CHANGES, apart=True)}, Pipeline.TAGGED_UPSERT),
        ({"sort_mode": SortMode.NONE}, Pipeline.BULK),
        ({"sort_mode": SortMode.NONE, "changes": CHANGES}, Pipeline.BULK),
    ],
)
def test_rows_take_the_way_that_operation_and_index_ask_for(changed, pipeline):
    assert replace(PLAN, **changed).pipeline is pipeline


@pytest.mark.parametrize(
    ("of_context", "counts"),
    [({}, False), ({"allow_duplicates": False}, True), ({"combine_before_insert": True}, True)],
)
def test_the_order_of_added_rows_counts_only_where_keys_are_compared(of_context, counts):
    context = replace(CONTEXT, **of_context)
    adding = replace(PLAN, context=context)
    assert (adding.keeps_order, adding.is_sorted) == (counts, counts)
    for other in (replace(adding, changes=CHANGES), replace(adding, sort_mode=SortMode.NONE)):
        assert (other.keeps_order, other.is_sorted) == (False, False)


@pytest.mark.parametrize("mode", SortMode)
def test_a_bulk_insert_is_sorted_by_the_modes_that_sort(mode):
    sorting = {SortMode.GLOBAL_SORT, SortMode.PARTITION_SORT, SortMode.PARTITION_PATH_REPARTITION_AND_SORT}
    assert replace(PLAN, sort_mode=mode).is_sorted is (mode in sorting)


@pytest.mark.parametrize(
    ("plan", "numbers"),
    [(PLAN, False), (CHANGING, True), (replace(PLAN, changes=replace(CHANGES, combines=False)), False)],
)
def test_rows_are_numbered_where_a_batch_that_changes_records_is_combined(plan, numbers):
    assert plan.numbers_rows is numbers
    assert ("_hudistream_arrival" in plan.arriving_schema.names) is numbers
    assert "_hudistream_arrival" not in plan.tagged_schema.names


@pytest.mark.parametrize("deletes", [False, True])
def test_only_a_batch_that_deletes_needs_no_more_than_keys(deletes):
    context = replace(CONTEXT, merge=MergeRules(deletes_all=deletes))
    assert replace(CHANGING, context=context).needs_keys_only is deletes


@pytest.mark.parametrize(
    ("index", "is_global", "prunes", "is_bucket"),
    [
        (IndexType.BLOOM, False, True, False),
        (IndexType.GLOBAL_BLOOM, True, True, False),
        (IndexType.SIMPLE, False, False, False),
        (IndexType.GLOBAL_SIMPLE, True, False, False),
        (IndexType.BUCKET, False, False, True),
    ],
)
def test_each_index_says_where_and_how_keys_are_found(index, is_global, prunes, is_bucket):
    plan = ChangePlan(index)
    assert (plan.is_global, plan.prunes, plan.is_bucket) == (is_global, prunes, is_bucket)


def test_a_worker_gets_the_plan_that_the_driver_made():
    files = LiveFiles({"p": (base_file_of("p", "a-0_0-1-2_20260101000000000.parquet", 7),)}, is_complete=True)
    whole = replace(CHANGING, changes=replace(CHANGES, files=files), logs=LogPlan({("p", "a-0"): "1"}), shown=("id",))
    there = pickle.loads(pickle.dumps(whole))
    kept = ("context", "routes", "rules", "committed", "listing", "logs", "shown", "pipeline", "arriving_schema")
    assert [getattr(there, name) for name in kept] == [getattr(whole, name) for name in kept]
    assert there.changes.files.of("p") == files.of("p")

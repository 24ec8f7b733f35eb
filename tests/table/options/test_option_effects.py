"""Options whose effect nothing else shows: each is seen in what is written, not only in what is parsed."""

from operator import attrgetter

import pyarrow as pa
import pytest
from engine import OPTIONS, Engine, key_set, rows
from snapshots import base_files, list_snapshot_files

from table import parse_options, read_table
from table.files.base.hudi_footer import filter_of_footer
from table.files.base.stored_file import StoredBaseFile
from table.files.bloom.bloom_filter import DYNAMIC_V0, DynamicBloomFilter
from table.hudi_table import HudiTable
from table.storage.local import LocalStorage
from table.timeline.instant import Action

UPSERT = {"hoodie.datasource.write.operation": "upsert"}
DELETE = {"hoodie.datasource.write.operation": "delete"}


def one_path(_number):
    return "p"


@pytest.mark.parametrize(("given", "by_range", "by_filter"), [(None, 1, 0), ("true", 1, 0), ("false", 0, 1)])
def test_key_ranges_are_asked_unless_they_are_not_to_be(tmp_path, given, by_range, by_filter):
    path = str(tmp_path / "t")
    Engine(path).write(0, rows(range(100, 200), one_path))
    options = {"hoodie.bloom.index.prune.by.ranges": given} if given else {}
    summary = Engine(path, {**UPSERT, **options}).write(1, rows([900], one_path))
    assert (summary.lookup.files, summary.lookup.pruned_by_range, summary.lookup.pruned_by_filter) == (
        1,
        by_range,
        by_filter,
    )


@pytest.mark.parametrize(("given", "held"), [(None, 1), ("true", 1), ("false", 2)])
def test_upserts_of_one_key_in_a_batch_are_combined_unless_they_are_not_to_be(tmp_path, given, held):
    path = str(tmp_path / "t")
    options = {"hoodie.combine.before.upsert": given} if given else {}
    batch = pa.concat_tables([rows([1], one_path, ts=1, v="old"), rows([1], one_path, ts=2, v="new")])
    Engine(path, {**UPSERT, **options}).write(0, batch)
    assert sorted(read_table(path).column("v").to_pylist()) == ["new", "old"][:held]


@pytest.mark.parametrize(("given", "combined"), [(None, True), ("true", True), ("false", False)])
def test_deletes_of_one_key_in_a_batch_are_combined_unless_they_are_not_to_be(tmp_path, given, combined):
    path = str(tmp_path / "t")
    Engine(path).write(0, rows(range(3), one_path))
    options = {"hoodie.combine.before.delete": given} if given else {}
    engine = Engine(path, {**DELETE, **options})
    summary = engine.write(1, rows([1, 1, 2], one_path))
    assert (summary.rows_deleted, key_set(read_table(path))) == (2, ["k0"])
    # what is not combined travels without the number that would tell equals apart
    (plan,) = engine.plans
    assert ("_hudistream_arrival" in plan.arriving_schema.names) is combined


@pytest.mark.parametrize(
    ("operation", "options", "tasks"),
    [
        ("insert", {}, 2),
        ("insert", {"insert": "3"}, 3),
        ("insert", {"upsert": "5", "delete": "7"}, 2),
        ("upsert", {}, 2),
        ("upsert", {"insert": "3"}, 3),
        ("upsert", {"insert": "3", "upsert": "5"}, 5),
        ("upsert", {"upsert": "0"}, 2),
        ("upsert", {"delete": "7"}, 2),
        ("delete", {}, 2),
        ("delete", {"insert": "3"}, 3),
        ("delete", {"insert": "3", "delete": "7"}, 7),
        ("delete", {"upsert": "5"}, 2),
        ("bulk_insert", {"insert": "3"}, 2),
        ("bulk_insert", {"bulkinsert": "4"}, 4),
    ],
)
def test_each_operation_is_written_by_as_many_tasks_as_it_is_told(tmp_path, operation, options, tasks):
    path = str(tmp_path / "t")
    Engine(path).write(0, rows(range(3)))
    keys = {f"hoodie.{name}.shuffle.parallelism": value for name, value in options.items()}
    # rows are many: of few, one task is enough
    many = {"hudistream.slots.per.partition": "8", "hoodie.copyonwrite.record.size.estimate": "100000000"}
    engine = Engine(path, {"hoodie.datasource.write.operation": operation, **many, **keys})
    engine.write(1, rows(range(30), lambda number: f"new{number}"))
    (plan,) = engine.plans
    assert plan.routes.tasks == tasks


def load_filter(path):
    (file,) = list_snapshot_files(HudiTable.open(path))
    with StoredBaseFile(LocalStorage(path), file.path) as stored:
        found = filter_of_footer(stored.footer, 0)
    assert isinstance(found, DynamicBloomFilter)
    assert found.may_contain(pa.array([f"k{number}" for number in range(60)])).all()
    return found


@pytest.mark.parametrize(("most", "parts"), [("20", 2), ("40", 4), (None, 6)])
def test_a_dynamic_filter_stops_growing_at_its_bound(tmp_path, most, parts):
    path = str(tmp_path / "t")
    options = {"hoodie.bloom.index.filter.type": DYNAMIC_V0, "hoodie.index.bloom.num_entries": "10"}
    if most is not None:
        options["hoodie.bloom.index.filter.dynamic.max.entries"] = most
    Engine(path, options).write(0, rows(range(60), one_path))
    assert len(load_filter(path).rows) == parts


def test_the_bound_of_a_dynamic_filter_holds_for_keys_that_are_added_later(tmp_path):
    path = str(tmp_path / "t")
    options = {"hoodie.bloom.index.filter.type": DYNAMIC_V0, "hoodie.index.bloom.num_entries": "10"}
    engine = Engine(path, {**options, "hoodie.bloom.index.filter.dynamic.max.entries": "30"})
    for number in range(6):
        engine.write(number, rows(range(10 * number, 10 * number + 10), one_path))
    assert len(load_filter(path).rows) == 3


def test_what_holds_when_nothing_is_said_about_cleaning_and_retention():
    """README and Hudi's documentation promise these: one that moves is a change of behaviour."""
    options = parse_options({}).options
    expected = {
        "clean.automatic": True,
        "clean.asynchronous": True,
        "clean.policy": "KEEP_LATEST_COMMITS",
        "clean.commits_retained": 10,
        "clean.versions_retained": 3,
        "clean.hours_retained": 24,
        "clean.trigger_commits": 1,
        "clean.incremental": True,
        "clean.grace_ms": 600_000,
        "clean.readers_share": 1.0,
        "clean.most_share": None,
        "clean.on_failure": "warn",
        "archive.automatic": True,
        "archive.min_commits": 20,
        "archive.max_commits": 30,
        "archive.batch": 10,
    }
    assert {name: attrgetter(name)(options) for name in expected} == expected


def test_a_stream_without_a_word_about_cleaning_keeps_ten_commits_and_thirty_instants(tmp_path):
    path = str(tmp_path / "t")
    engine = Engine(path, {})
    parsed = parse_options(
        {key: value for key, value in OPTIONS.items() if not key.startswith(("hoodie.clean", "hoodie.archive"))}
    ).options
    engine.writer = type(engine.writer)(LocalStorage(path), parsed, "t")
    for number in range(31):
        engine.write(number, rows([number], one_path))
        engine.writer.services.wait()
    timeline = HudiTable.open(path).load_timeline()
    # the versions of the last ten commits, and the one before them that their readers see
    assert len(base_files(path)) == 11
    assert len(timeline.completed_writes) == 20
    assert timeline.completed_of(Action.CLEAN)
    assert key_set(read_table(path)) == sorted(f"k{number}" for number in range(31))

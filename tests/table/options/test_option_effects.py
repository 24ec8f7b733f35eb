"""Options whose effect nothing else shows: each is seen in what is written, not only in what is parsed."""

from hashlib import sha512
from operator import attrgetter

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from engine import OPTIONS, Engine, key_set, rows
from snapshots import base_files, list_snapshot_files

from table import InvalidConfigError, parse_options, read_table
from table.files.base.hudi_footer import filter_of_footer
from table.files.base.stored_file import StoredBaseFile
from table.files.bloom.bloom_filter import DYNAMIC_V0, DynamicBloomFilter
from table.hudi_table import HudiTable
from table.storage.local import LocalStorage
from table.timeline.active_timeline import read_instant
from table.timeline.instant import Action
from table.timeline.metadata.clean import decode_clean_metadata

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


def wide_rows(count):
    """Rows whose column v no codec makes smaller by much."""
    texts = pa.array([sha512(str(number).encode()).hexdigest() * 4 for number in range(count)])
    return rows(range(count), one_path).set_column(3, "v", texts)


@pytest.mark.parametrize(("key", "small"), [("hoodie.parquet.page.size", "2000"), ("hoodie.parquet.page.size", "4KB")])
def test_smaller_pages_are_more_pages(tmp_path, key, small):
    sizes = []
    for name, options in (("default", {}), ("small", {key: small}), ("same", {"write.parquet.page.size": "1"})):
        path = str(tmp_path / name)
        Engine(path, {**options, "hoodie.parquet.dictionary.enabled": "false"}, batch_rows=5000).write(
            0, wide_rows(5000)
        )
        (file,) = list_snapshot_files(HudiTable.open(path))
        meta = pq.ParquetFile(tmp_path / name / file.path).metadata.row_group(0)
        sizes.append(meta.column(meta.num_columns - 1).total_uncompressed_size)
    assert sizes[0] == sizes[2] < sizes[1] - 1000  # each page has a header


@pytest.mark.parametrize(("key", "value", "groups"), [("hoodie.parquet.block.size", "200KB", 8), (None, None, 1)])
def test_row_groups_are_as_large_as_they_are_told(tmp_path, key, value, groups):
    path = str(tmp_path / "t")
    Engine(path, {key: value} if key else {}, batch_rows=500).write(0, wide_rows(3000))
    (file,) = list_snapshot_files(HudiTable.open(path))
    assert (pq.ParquetFile(f"{path}/{file.path}").metadata.num_row_groups >= groups) == (groups > 1 or key is None)


@pytest.mark.parametrize(("given", "has"), [({}, True), ({"hoodie.parquet.dictionary.enabled": "false"}, False)])
def test_columns_have_dictionaries_unless_they_are_not_to(tmp_path, given, has):
    path = str(tmp_path / "t")
    Engine(path, given).write(0, rows(range(100), one_path))
    (file,) = list_snapshot_files(HudiTable.open(path))
    meta = pq.ParquetFile(f"{path}/{file.path}").metadata.row_group(0)
    encodings = {meta.column(number).path_in_schema: meta.column(number).has_dictionary_page for number in range(9)}
    assert encodings["v"] is has


@pytest.mark.parametrize(("given", "commits"), [({}, 1), ({"hoodie.allow.empty.commit": "true"}, 2)])
def test_a_batch_without_rows_is_a_commit_only_if_it_may_be(tmp_path, given, commits):
    path = str(tmp_path / "t")
    engine = Engine(path, given)
    engine.write(0, rows([1]))
    summary = engine.write(1, rows([]))
    assert (summary.instant_time is not None) is (commits == 2)
    assert len(HudiTable.open(path).load_timeline().completed_writes) == commits
    again = engine.write(1, rows([]))  # the checkpoint of the sink has it
    assert again.skipped is (commits == 2)
    engine.write(2, rows([2]))
    assert key_set(read_table(path)) == ["k1", "k2"]


def test_a_database_is_a_property_of_the_table(tmp_path):
    Engine(str(tmp_path / "t"), {"hoodie.database.name": "lake"}).write(0, rows([1]))
    assert "hoodie.database.name=lake" in (tmp_path / "t/.hoodie/hoodie.properties").read_text()


@pytest.mark.parametrize(("given", "held"), [({}, 2), ({"hoodie.datasource.insert.dup.policy": "drop"}, 1)])
def test_inserts_of_keys_that_the_table_has_are_dropped_if_they_are_to_be(tmp_path, given, held):
    path = str(tmp_path / "t")
    engine = Engine(path, given)
    engine.write(0, rows([1], one_path))
    engine.write(1, rows([1], one_path))
    assert len(key_set(read_table(path))) == held


@pytest.mark.parametrize(("given", "files"), [({}, 1), ({"hudistream.max.rewrite.ratio": "0.001"}, 9)])
def test_few_rows_join_no_file_that_is_much_larger(tmp_path, given, files):
    path = str(tmp_path / "t")
    engine = Engine(path, given)
    engine.write(0, wide_rows(500))
    for number in range(1, 9):  # the rows of a batch are reckoned from the last ones
        engine.write(number, rows([9000 + number], one_path))
    assert len(list_snapshot_files(HudiTable.open(path))) == files


CLEANS = {"hoodie.clean.automatic": "true", "hoodie.clean.commits.retained": "1", "hoodie.clean.async.enabled": "false"}


def cleaned_to(path):
    """The earliest commit that each clean retained, as its place among the commits."""
    timeline = HudiTable.open(path).load_timeline()
    storage, times = LocalStorage(path), [one.time for one in timeline.writes_by_time]
    cleans = [
        decode_clean_metadata(read_instant(storage, one), one.file_name) for one in timeline.completed_of(Action.CLEAN)
    ]
    return [times.index(one.plan.earliest[0]) for one in cleans]


@pytest.mark.parametrize(("given", "reached"), [({}, [2, 6]), ({"hoodie.clean.max.commits.to.clean": "2"}, [2, 4])])
def test_one_clean_moves_on_by_so_many_commits_at_most(tmp_path, given, reached):
    path = str(tmp_path / "t")
    for number in range(7):
        cleans = {**CLEANS, **given} if number in (2, 6) else {}
        Engine(path, {**UPSERT, **cleans}).write(number, rows([1], one_path, ts=number))
    assert cleaned_to(path) == reached


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ({}, set()),
        ({"hoodie.clean.partition.filter.regex": "p[01]"}, {"p2"}),
        ({"hoodie.clean.partition.filter.regex": "p"}, {"p0", "p1", "p2"}),
        ({"hoodie.cleaner.partition.filter.selected": "p2", "hoodie.clean.partition.filter.regex": "p0"}, {"p0", "p1"}),
    ],
)
def test_only_the_chosen_partition_paths_are_cleaned(tmp_path, given, kept):
    path = str(tmp_path / "t")
    options = {**UPSERT, **CLEANS, "hoodie.clean.incremental.enabled": "false", **given}
    for number in range(3):
        Engine(path, options).write(number, rows(range(3), ts=number))
    versions = {name: len(list((tmp_path / "t" / name).glob("*.parquet"))) for name in ("p0", "p1", "p2")}
    assert {name for name, count in versions.items() if count == 3} == kept


def test_a_filter_of_partition_paths_does_not_go_with_incremental_cleans():
    for name, value in (("regex", "p.*"), ("selected", "p0")):
        with pytest.raises(InvalidConfigError, match="needs hoodie.clean.incremental.enabled=false"):
            parse_options({f"hoodie.clean.partition.filter.{name}": value})
    with pytest.raises(InvalidConfigError, match="no regular expression"):
        parse_options({"hoodie.clean.partition.filter.regex": "("})


@pytest.mark.parametrize(
    ("given", "active"), [({}, (2, 3)), ({"hoodie.archive.block.on.latest.clean.ectr": "true"}, (5,))]
)
def test_commits_wait_for_a_clean_before_they_are_archived(tmp_path, given, active):
    path = str(tmp_path / "t")
    for number in range(3):
        Engine(path, {**UPSERT, **CLEANS}).write(number, rows([1], one_path, ts=number))
    assert cleaned_to(path) == [2]
    bounds = {"hoodie.archive.automatic": "true", "hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3"}
    retains = {"hoodie.clean.commits.retained": "1"}
    for number in range(3, 7):
        engine = Engine(path, {**UPSERT, **bounds, **retains, **given})
        engine.write(number, rows([1], one_path, ts=number))
        engine.writer.services.wait()
    assert len(HudiTable.open(path).load_timeline().completed_writes) in active


LISTS = {
    "hoodie.metadata.enable": "true",
    "hoodie.metadata.record.index.enable": "true",
    "hoodie.write.table.version": "8",
}
INDEX = "hoodie.metadata.global.record.level.index"


@pytest.mark.parametrize(
    ("given", "groups"),
    [
        ({}, 10),
        ({f"{INDEX}.min.filegroup.count": "3"}, 3),
        ({"hoodie.metadata.record.index.min.filegroup.count": "2", f"{INDEX}.max.filegroup.count": "2"}, 2),
        # ten keys, room for five of them: 480 bytes of 48 in groups of 96
        ({f"{INDEX}.min.filegroup.count": "1", "hoodie.metadata.record.index.max.filegroup.size": "96",
          "hoodie.metadata.record.index.growth.factor": "1.0"}, 5),
    ],
)  # fmt: skip
def test_a_record_index_has_as_many_file_groups_as_it_is_told(tmp_path, given, groups):
    path = str(tmp_path / "t")
    Engine(path, UPSERT).write(0, rows(range(10)))
    Engine(path, {**UPSERT, **LISTS, **given}).write(1, rows([11]))
    files = (tmp_path / "t/.hoodie/metadata/record_index").iterdir()
    assert len({file.name.partition("_")[0].lstrip(".") for file in files if "record-index" in file.name}) == groups
    assert len(key_set(read_table(path))) == 11


def test_a_record_index_has_no_more_file_groups_at_least_than_at_most():
    with pytest.raises(InvalidConfigError, match=r"min.filegroup.count=9 is more than .*max.filegroup.count=8"):
        parse_options({f"{INDEX}.min.filegroup.count": "9", f"{INDEX}.max.filegroup.count": "8"})


def indexes_of(path):
    return HudiTable.open(path).config.metadata_indexes


def test_switches_of_the_metadata_table(tmp_path):
    path = str(tmp_path / "t")
    stats = {**LISTS, "hoodie.metadata.index.column.stats.enable": "true", **UPSERT}
    Engine(path, UPSERT | {"hoodie.write.table.version": "8"}).write(0, rows([1]))
    Engine(path, {**stats, "hoodie.metadata.auto.initialize": "false"}).write(1, rows([1]))
    assert indexes_of(path) == set()
    Engine(path, {**stats, "hoodie.metadata.index.partition.stats.enable": "false"}).write(2, rows([1]))
    assert indexes_of(path) == {"files", "column_stats", "record_index"}
    off = {"hoodie.metadata.record.index.enable": "false", "hoodie.metadata.index.column.stats.enable": "false"}
    Engine(path, {**UPSERT, **off, "hoodie.metadata.auto.delete.partitions": "false"}).write(3, rows([1]))
    assert indexes_of(path) == {"files", "column_stats", "record_index"}
    Engine(path, {**UPSERT, **off}).write(4, rows([1]))
    assert indexes_of(path) == {"files"}
    assert key_set(read_table(path)) == ["k1"]

"""Tables of versions 8 and 9 that real Hudi wrote: every question is answered, and they are continued."""

import os
import pickle
import shutil
import time
import zipfile
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from engine import Engine
from oracles import hudi_rs
from tiers import slow
from values import rows_of, tuples

import hudistream
from hudistream import HudiTable
from table import InvalidConfigError, UnsupportedTableError, clock, read_table
from table.config.metadata_indexes import COLUMN_STATS, FILES
from table.config.properties import parse_properties
from table.config.table_config import PROPERTIES_FILE, config_from_properties
from table.files.names import parse_log_file
from table.metadata_table.drop import drop_metadata_table
from table.metadata_table.file_lists import load_file_lists
from table.options.groups import BaseFileSettings, CompactionSettings
from table.scan.plan import plan_scan
from table.services.check.check import check
from table.services.compaction.compaction import compact
from table.snapshot import Snapshot
from table.timeline.instant import WRITE_ACTIONS, Action

EACH = sorted(file.stem for file in Path(__file__).parents[2].joinpath("golden").glob("v[89]_*.zip"))
# layout 2 is the same in both versions: of the tables of 8 some kinds run in `make test`
FEW = {"v8_cow_restored", "v8_cow_types", "v8_mor_compaction_pending", "v8_mor_partial_updates"}
TABLES = [name if name.startswith("v9") or name in FEW else slow(name) for name in EACH]
WITH_LOGS = {"mor_compacted", "mor_compaction_pending", "mor_logs", "mor_partial_updates", "mor_rolled_back"}
WRITES = pa.array([action.value for action in WRITE_ACTIONS])
SHOWN = ["_hoodie_record_key", "_hoodie_commit_time", "ts"]


def as_expected(rows, name):
    """By key. Hudi shows null where the partition path says so; the file holds the empty text that it was made of."""
    emptied = [{**row, "region": row["region"] or None} if "partitions" in name else row for row in rows]
    return sorted(emptied, key=lambda row: row["id"])


@pytest.mark.parametrize("name", TABLES)
def test_they_read_to_their_expected_rows(golden, name):
    path, expected = golden(name)
    table = HudiTable.open(path)
    wanted = as_expected(expected["rows"], name)
    assert as_expected(rows_of(read_table(path)), name) == wanted
    assert as_expected([row for part in table.scan().splits() for row in rows_of(part.to_arrow())], name) == wanted
    files = table.files()
    assert sorted(files.filter(pc.field("kind") == "base")["path"].to_pylist()) == sorted(expected["live_base_files"])
    assert bool(files.filter(pc.field("kind") == "log")) == (name[3:] in WITH_LOGS)


@pytest.mark.parametrize("name", TABLES)
def test_the_metadata_table_is_neither_needed_nor_trusted(golden, name):
    path, expected = golden(name)
    shutil.rmtree(os.path.join(path, ".hoodie", "metadata"), ignore_errors=True)
    assert as_expected(rows_of(read_table(path)), name) == as_expected(expected["rows"], name)


@pytest.mark.parametrize("name", TABLES)
def test_keys_and_conditions_find_what_a_whole_scan_finds(golden, name):
    table = HudiTable.open(golden(name)[0])
    whole = table.scan(meta_columns=True).to_arrow()
    keys = whole["_hoodie_record_key"].to_pylist()
    assert sorted(table.lookup([*keys[::3], "nobody"])["id"].to_pylist()) == sorted(keys[::3])
    for column in ("region", "ts", "_hoodie_record_key", "_hoodie_commit_time"):
        value = whole[column][len(whole) // 2].as_py()
        found = table.scan(["id"], where=[(column, "=", value)]).to_arrow()["id"].to_pylist()
        assert sorted(found) == sorted(whole.filter(pc.field(column) == value)["id"].to_pylist())
    told = table.scan(["id"], where=[("region", "=", "zanzibar")]).explain()
    assert told.files_read == told.files_pruned_by_statistics


@pytest.mark.parametrize("name", TABLES)
def test_history_and_partitions_tell_of_the_timeline(golden, name):
    path, _ = golden(name)
    table = HudiTable.open(path)
    history = table.history()
    files = os.listdir(os.path.join(path, ".hoodie", "timeline"))
    saved = {file.partition("_")[0] for file in files if file.endswith(".savepoint")}
    assert set(history.filter(pc.field("savepoint"))["instant"].to_pylist()) == saved
    assert history["instant"].to_pylist() == sorted(history["instant"].to_pylist(), reverse=True)
    assert history["state"].to_pylist().count("COMPLETED") == len([file for file in files if "_2026" in file])
    told = history.filter(pc.field("state") == "COMPLETED")["completed_at"].cast("int64").to_pylist()
    assert sorted(told) == sorted(clock.parse_instant_time(file[18:35], "LOCAL") for file in files if "_2026" in file)
    done = history.filter((pc.field("state") == "COMPLETED") & pc.is_in(pc.field("action"), WRITES))
    assert None not in done["operation"].to_pylist()
    assert sum(done["files_written"].to_pylist()) > 0
    assert set(table.partitions()["partition_path"].to_pylist()) == set(
        table.scan(["_hoodie_partition_path"]).to_arrow()["_hoodie_partition_path"].to_pylist()
    )


@pytest.mark.parametrize("name", TABLES)
def test_hudi_rs_sees_the_same_after_every_write(golden, name):
    """hudi-rs reads them through the metadata table where there is one, as we do not."""
    path, _ = golden(name)
    table = HudiTable.open(path)
    seen = 0
    for write in table.load_timeline().completed_writes:
        if was_cleaned(table, write.time):
            continue
        ours = table.scan(SHOWN, as_of=write.time).to_arrow()
        assert sorted(tuples(ours)) == sorted(tuples(hudi_rs.read(path, write.time).select(SHOWN)))
        assert max(ours["_hoodie_commit_time"].to_pylist()) <= write.time
        seen += 1
    assert seen


def was_cleaned(table, time):
    try:
        table.scan(as_of=time).plan()
    except InvalidConfigError as error:
        return "may have been cleaned" in str(error)
    return False


def test_positions_of_records_are_passed_over(golden):
    path, _ = golden("v8_mor_logs")
    [found] = [one for one in plan_scan(HudiTable.open(path)).slices if one.partition_path == "eu"]
    assert [parse_log_file(file.name).base_instant_time for file in found.log_files] == [
        "20261122113946517", "20261122113953341",
    ]  # fmt: skip
    assert found.base_instant_time == "20261122113938551"


def test_plans_and_splits_travel(golden):
    path, expected = golden("v9_mor_compacted")
    parts = pickle.loads(pickle.dumps(HudiTable.open(path).scan().splits()))
    assert sorted(row["id"] for part in parts for row in part.to_arrow().to_pylist()) == sorted(
        row["id"] for row in expected["rows"]
    )


def files_of(path):
    return {str(file.relative_to(path)): file.stat().st_mtime_ns for file in Path(path).rglob("*") if file.is_file()}


SERVICES = {
    "clean": lambda table: table.clean(),
    "archive instants of": lambda table: table.archive(),
    "roll back": lambda table: table.roll_back(table.load_timeline().completed_writes[-1].time),
    "make a savepoint of": lambda table: table.create_savepoint(),
    "delete a savepoint of": lambda table: table.delete_savepoint("20261122113432292"),
    "restore": lambda table: table.restore_to_savepoint("20261122113432292"),
    "check": lambda table: hudistream.check(table, repair=True),
    "drop the metadata table of": lambda table: drop_metadata_table(
        table.storage, replace(table.config, metadata_partitions="files")
    ),
    "compact": lambda table: compact(table, CompactionSettings(), BaseFileSettings()),
}


@pytest.mark.parametrize("verb", SERVICES)
@pytest.mark.parametrize("name", ["v9_cow_nometa", "v9_mor_compacted"])
def test_services_refuse_a_foreign_format_and_touch_nothing(golden, name, verb):
    path, _ = golden(name)
    with_property(path, "hoodie.table.format=iceberg")
    before = files_of(path)
    said = (
        f"cannot {verb} the table '{name}': it has hoodie.table.version=9 and hoodie.table.format=iceberg, "
        "which is not written here. It can be read"
    )
    with pytest.raises(UnsupportedTableError, match=said):
        SERVICES[verb](HudiTable.open(path))
    assert files_of(path) == before


@pytest.mark.parametrize("name", [name for name in EACH if name.endswith("compaction_pending")])
def test_a_compaction_that_hudi_requested_is_carried_out(golden, name):
    path, expected = golden(name)
    table = HudiTable.open(path)
    [pending] = table.load_timeline().pending_of(Action.COMPACTION)
    indexes = table.config.metadata_indexes
    assert COLUMN_STATS in indexes
    [done] = compact(table, CompactionSettings(), BaseFileSettings(), schedules=False)
    assert (done.time, done.is_completed) == (pending.time, True)
    table = HudiTable.open(path)
    assert table.config.metadata_indexes == indexes
    assert check(table).is_sound
    lists = load_file_lists(table.storage, [done.time])
    listed = {name for one in lists.partition_paths() for name in lists.files(one) if done.time in name}
    written = Snapshot.load(table).commits.read(table.load_timeline().find(done.time, Action.COMMIT)).stats
    assert {stat.path.rpartition("/")[2] for stat in written} <= listed
    logs = [log for found in plan_scan(table).slices for log in found.log_files]
    assert all(log.base_instant_time > done.time for log in logs)
    assert as_expected(rows_of(read_table(path)), name) == as_expected(expected["rows"], name)
    assert sorted(tuples(hudi_rs.read(path).select(SHOWN))) == sorted(tuples(read_table(path, SHOWN)))
    assert hudistream.check(table).is_sound


REFUSED = [
    ("v8_cow_nometa", "hoodie.table.precombine.field=ts,qty", "precombine.field=ts,qty: several .* upgrade the table"),
    ("v9_cow_nometa", "hoodie.table.format=iceberg", "hoodie.table.format=iceberg"),
    ("v9_cow_nometa", "hoodie.record.merge.mode=CUSTOM", "hoodie.record.merge.mode=CUSTOM"),
    ("v9_cow_indexes", "", "hoodie.table.metadata.partitions"),
]


@pytest.mark.parametrize(("name", "said", "refusal"), REFUSED)
def test_the_writer_refuses_by_name_and_touches_nothing(golden, name, said, refusal):
    path, _ = golden(name)
    batch = read_table(path)
    if said:
        with_property(path, said)
    before = files_of(path)
    with pytest.raises(UnsupportedTableError, match=refusal):
        Engine(path, as_the_table(path)).write(None, batch)
    assert files_of(path) == before


def as_the_table(path):
    """Options of a writer that agree with a table."""
    config = HudiTable.open(path).config
    return {
        "hoodie.table.name": config.name,
        "hoodie.datasource.write.recordkey.field": ",".join(config.record_key_fields),
        "hoodie.datasource.write.partitionpath.field": ",".join(config.partition_fields),
        "hoodie.datasource.write.precombine.field": ",".join(config.ordering_fields),
        "hoodie.datasource.write.operation": "upsert",
    }


def indexes_of(name):
    with zipfile.ZipFile(Path(__file__).parents[2] / "golden" / f"{name}.zip") as file:
        return config_from_properties(parse_properties(file.read(PROPERTIES_FILE))).metadata_indexes


CONTINUED = [(name, False) for name in EACH]
CONTINUED += [(name, True) for name in EACH if FILES in indexes_of(name) and "record_index" not in indexes_of(name)]


@pytest.mark.parametrize(
    ("name", "keeps"),
    [case if (case[1] and case[0].startswith("v9")) or case[0] in FEW else slow(case) for case in CONTINUED],
)
def test_each_is_continued(golden, name, keeps, utc):
    """An upsert, a delete, a compaction and a clean; the metadata table is dropped first, or kept."""
    path, _ = golden(name)
    rows = read_table(path).sort_by("id")
    changed = rows.slice(0, 1).set_column(rows.column_names.index("ts"), "ts", pa.array([10**12], pa.int64()))
    options = {"hoodie.metadata.enable": str(keeps).lower()}
    hudistream.write_hudi(path, changed, options=options)
    if len(rows) > 1:
        hudistream.write_hudi(path, rows.slice(1, 1), operation="delete", options=options)
    table = HudiTable.open(path)
    if table.config.table_type == "MERGE_ON_READ":
        compact(table, CompactionSettings(), BaseFileSettings())  # unless a batch above made one due
        assert not any(found.log_files for found in plan_scan(table).slices)
    table.clean()
    assert table.config.version == int(name[1])
    assert table.config.metadata_indexes == (indexes_of(name) if keeps else set())
    if keeps:
        assert check(table, sample=None).is_sound
        lists = load_file_lists(table.storage, [instant.time for instant in table.load_timeline().completed_writes])
        found = {one: lists.files(one) for one in lists.partition_paths()}
        stored = {
            one: {e.name: e.size_bytes for e in entries if not e.is_dir and "hoodie_partition" not in e.name}
            for one, entries in table.store_listing.walk()
        }
        assert {one: names for one, names in found.items() if names} == {o: n for o, n in stored.items() if n}
    wanted = pa.concat_tables([changed, rows.slice(2)])
    assert rows_of(read_table(path, rows.column_names).sort_by("id")) == rows_of(wanted)
    assert sorted(hudi_rs.read(path)["id"].to_pylist()) == wanted["id"].to_pylist()
    done = [(instant.time, instant.action) for instant in table.load_timeline() if instant.is_completed]
    assert len(done) == len(set(done))
    assert hudistream.check(table).is_sound


def with_property(path, text):
    with open(os.path.join(path, PROPERTIES_FILE), "a") as file:
        file.write(f"\n{text}\n")
    return HudiTable.open(path)


@pytest.mark.parametrize(("said", "refusal"), [
    ("hoodie.table.version=7", "version=7 and hoodie.timeline.layout.version=2; read are version 6 with layout 1"),
    ("hoodie.table.version=7", "upgrade table --toVersion 8"),
    ("hoodie.table.version=10", "a later Hudi wrote it.* --toVersion 9.*hoodie.write.auto.upgrade=false"),
    ("hoodie.table.version=10", "version=10"),
    ("hoodie.table.version=6", "version=6 and hoodie.timeline.layout.version=2"),
    ("hoodie.timeline.layout.version=1", "version=9 and hoodie.timeline.layout.version=1"),
    ("hoodie.table.format=iceberg", "hoodie.table.format=iceberg; read is native"),
    ("hoodie.record.merge.mode=CUSTOM", "hoodie.record.merge.mode=CUSTOM: how it merges records"),
    ("hoodie.table.partial.update.mode=FILL_UNAVAILABLE", "partial.update.mode=FILL_UNAVAILABLE.*let Hudi write"),
    ("hoodie.record.merge.property.hoodie.payload.delete.field=op", "merge.property.hoodie.payload.delete.field=op"),
])  # fmt: skip
def test_what_is_not_known_is_refused_by_name(golden, said, refusal):
    table = with_property(golden("v9_mor_logs")[0], said)
    with pytest.raises(UnsupportedTableError, match=refusal):
        table.scan().to_arrow()


def test_how_log_records_are_merged_does_not_matter_where_there_are_none(golden):
    path, expected = golden("v9_cow_nometa")
    assert with_property(path, "hoodie.record.merge.mode=CUSTOM").scan().to_arrow().num_rows == len(expected["rows"])


def test_by_commit_time_the_later_record_stays(golden):
    path, _ = golden("v9_mor_logs")
    by_event_time = read_table(path, ["id", "ts"])
    by_commit_time = with_property(path, "hoodie.record.merge.mode=COMMIT_TIME_ORDERING").scan(["id", "ts"]).to_arrow()
    assert by_commit_time.num_rows <= by_event_time.num_rows


def test_they_are_copied_without_regard_to_modification_times(golden):
    path, expected = golden("v8_mor_compacted")
    for file in Path(path).rglob("*"):
        os.utime(file, (time.time(), time.time()))
    assert read_table(path).num_rows == len(expected["rows"])


def completed_writes(table):
    """(completion time, time of the request) of the writes, in the order of completion."""
    return sorted((seen, requested) for requested, seen in table.load_timeline().visible_times.items())


def shown_rows(scan):
    """Key, commit time and ordering value of the rows, sorted."""
    return sorted(tuples(scan.to_arrow().select(SHOWN)))


@pytest.mark.parametrize("name", TABLES)
def test_changes_are_ranges_of_completion_times(golden, name):
    table = HudiTable.open(golden(name)[0])
    whole, writes = shown_rows(table.scan(meta_columns=True)), completed_writes(table)
    assert table.newest_instant == writes[-1][0]
    assert shown_rows(table.changes()) == whole
    for number, (seen, _) in enumerate(writes):
        later = {requested for _, requested in writes[number + 1 :]}
        assert shown_rows(table.changes(seen)) == [row for row in whole if row[1] in later]
    assert table.changes(writes[-1][0]).plan().slices == ()


@pytest.mark.parametrize("name", TABLES)
def test_a_range_ends_with_a_completion(golden, name):
    table = HudiTable.open(golden(name)[0])
    answered = 0
    for seen, requested in completed_writes(table):
        try:
            expected = shown_rows(table.scan(as_of=requested, meta_columns=True))
        except InvalidConfigError:
            continue  # cleaned
        answered += 1
        assert shown_rows(table.changes(until=seen)) == expected
    assert answered


def test_a_range_that_reaches_into_the_history_finds_its_commits_there(golden):
    table = HudiTable.open(golden("v8_cow_archived")[0])
    retired = table.archived_timeline.find_completed_after("")
    completions = table.archived_timeline.find_completions(retired)
    assert retired == {*completions}
    for since in sorted(completions.values()):
        wanted = {requested for requested, seen in completions.items() if seen > since}
        wanted |= table.load_timeline().committed_times
        expected = [row for row in shown_rows(table.scan(meta_columns=True)) if row[1] in wanted]
        assert shown_rows(table.changes(since)) == expected

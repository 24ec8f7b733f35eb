"""With which types base files were written: by few commits, of the timeline or the archive, and by no file."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudistream import ArrowSink, HudiTable
from table.options.groups import CompactionSettings
from table.scan.plan import plan_scan
from table.scan.written_types import MOST_LOADS, Written, differences, find_written_types, reads_as, search_schemas
from table.services.compaction.compaction import compact, request_compaction
from table.services.rewriting import Rewriting
from table.snapshot import Snapshot

I32, I64, F32, F64, TEXT = pa.int32(), pa.int64(), pa.float32(), pa.float64(), pa.string()
TIMES = [f"{number:03}" for number in range(100)]


def schema(**columns):
    return pa.schema(list(columns.items()))


def struct(**columns):
    return pa.struct(list(columns.items()))


def history(*changes):
    """The schema of each of `TIMES`: (first time, schema), ascending. Also the times that were loaded."""
    loaded = []

    def load(time):
        loaded.append(time)
        return at(time)

    def at(time):
        columns = [columns for first, columns in changes if first <= time][-1]
        return columns if columns is None or isinstance(columns, Written) else Written(columns)

    return load, loaded, at


def test_a_table_that_never_changed_costs_no_more_than_the_write_before():
    load, loaded, at = history(("000", schema(v=I64, w=TEXT)))
    found = search_schemas(TIMES, schema(v=I64), load, at("000"))
    assert {differences(one.columns, schema(v=I64)) for one in found.values()} == {()}
    assert loaded == []
    assert search_schemas([], schema(v=I64), load) == {}


def test_a_column_that_was_added_is_searched_by_halves():
    load, loaded, at = history(("000", schema(v=I64)), ("037", schema(v=I64, w=F64)))
    present = schema(v=I64, w=F64)
    found = search_schemas(TIMES, present, load, at("000"))
    assert {differences(one.columns, present) for one in found.values()} == {()}
    assert len(loaded) <= 8


@pytest.mark.parametrize("at_time", ["001", "037"])
def test_the_commits_before_a_widening_are_loaded_one_by_one(at_time):
    load, loaded, at = history(("000", schema(v=I32)), (at_time, schema(v=I64)))
    found = search_schemas(TIMES, schema(v=I64), load, at("000"))
    assert {time: one.columns.field("v").type for time, one in found.items()} == {
        t: I32 if t < at_time else I64 for t in TIMES
    }
    assert len(loaded) <= int(at_time) + 8


def test_several_changes_are_found():
    """A column that comes late may have been narrower when it came."""
    load, _, at = history(
        ("000", schema(v=I32)), ("010", schema(v=I64)), ("020", schema(v=I64, w=F32)), ("030", schema(v=F64, w=F64))
    )
    present = schema(v=F64, w=F64)
    found = search_schemas(TIMES, present, load, at("000"))
    assert [differences(found[time].columns, present) for time in ("009", "010", "020", "029", "030", "099")] == [
        (pa.field("v", I32),),
        (pa.field("v", I64),),
        (pa.field("v", I64), pa.field("w", F32)),
        (pa.field("v", I64), pa.field("w", F32)),
        (),
        (),
    ]


def test_a_compaction_that_ran_after_the_widening_says_nothing_about_writes_behind_its_request():
    changes = [("000", schema(v=I32)), ("010", Written(schema(v=I64), is_service=True)), ("011", schema(v=I32))]
    load, _, at = history(*changes, ("020", schema(v=I64)))
    found = search_schemas(TIMES[10:], schema(v=I64), load, at("000"))
    assert {time: one.columns.field("v").type for time, one in found.items()} == {
        time: I64 if time == "010" or time >= "020" else I32 for time in TIMES[10:]
    }


def test_what_is_not_known_or_too_much_to_read_stays_unknown():
    load, loaded, _ = history(("000", None), ("040", schema(v=I64)))
    found = search_schemas(TIMES, schema(v=I64), load)
    assert all(one is None for time, one in found.items() if time < "040")
    assert found["060"].columns.field("v").type == I64
    assert len(loaded) <= MOST_LOADS
    load, loaded, at = history(("000", schema(v=I32)), ("090", schema(v=I64)))
    found = search_schemas(TIMES, schema(v=I64), load, at("000"))
    assert len(loaded) <= MOST_LOADS
    assert found["000"] is None
    assert found["089"].columns.field("v").type == I32


@pytest.mark.parametrize(
    ("written", "present", "same"),
    [
        (I64, I64, True),
        (I32, I64, False),
        (struct(x=I32), struct(x=I32, y=TEXT), True),
        (struct(x=I32), struct(x=I64), False),
        (struct(x=struct(y=F32)), struct(x=struct(y=F64)), False),
        (pa.list_(I32), pa.list_(pa.field("element", I32)), True),
        (pa.list_(I32), pa.list_(I64), False),
        (pa.map_(TEXT, I32), pa.map_(TEXT, I64), False),
        (pa.map_(TEXT, struct(x=I32)), pa.map_(TEXT, struct(x=I32, y=I64)), True),
        (pa.decimal128(10, 2), pa.decimal128(12, 2), False),
        (I64, TEXT, False),
        (struct(x=I32), I64, False),
    ],
    ids=str,
)
def test_which_stored_values_need_no_widening(written, present, same):
    assert reads_as(written, present) == same
    assert bool(differences(schema(v=written, other=I32), schema(v=present, new=I64))) != same


ARCHIVES = {"hoodie.keep.min.commits": "4", "hoodie.keep.max.commits": "5", "hoodie.clean.commits.retained": "2"}


def widened_table(path, version, *, commits):
    """A partition of one commit, then the widening, then as many commits."""
    options = {"hoodie.write.table.version": str(version), "hoodie.clean.async.enabled": "false", **ARCHIVES}
    with ArrowSink(str(path), options, key="id", partition_by="p", order_by="ts") as sink:

        def write(key, kind, at):
            sink.write(
                pa.table({"id": [key], "p": [f"p{key}"], "ts": [at], "v": pa.array([7], kind), "w": pa.array([1], I32)})
            )

        write("a", I32, 1)
        for number in range(commits):
            write(f"b{number % 2}", I64, number)
    return HudiTable.open(str(path))


@pytest.mark.parametrize("version", [6, 9])
@pytest.mark.parametrize("commits", [2, 16])
def test_commits_of_timeline_and_archive_are_found(tmp_path, version, commits):
    table = widened_table(tmp_path, version, commits=commits)
    snapshot, plan = Snapshot.load(table), plan_scan(table)
    times = {found.partition_path: found.base_file.instant_time for found in plan.slices}
    assert (times["pa"] in snapshot.timeline.committed_times) == (commits < 5)
    found = find_written_types(plan.snapshot, plan.needed, times.values())
    assert {path: found[time] for path, time in times.items()} == {"pa": (pa.field("v", I32),), "pb0": (), "pb1": ()}
    assert table.archived_timeline.find_commits("19700101000000000") == []
    if commits > 5:
        assert table.archived_timeline.find_commits(times["pa"])[-1].time == times["pa"]


@pytest.mark.parametrize("version", [6, 9])
def test_without_its_archive_a_file_is_unknown(tmp_path, version):
    table = widened_table(tmp_path, version, commits=16)
    plan = plan_scan(table)
    times = {found.partition_path: found.base_file.instant_time for found in plan.slices}
    for file in (tmp_path / table.archived_timeline.folder).iterdir():
        file.write_bytes(b"damaged")
    found = find_written_types(plan.snapshot, plan.needed, times.values())
    assert found[times["pa"]] is None
    assert found[times["pb1"]] == ()


def test_columns_that_nothing_widens_to_need_no_look(tmp_path):
    table = widened_table(tmp_path, 6, commits=2)
    assert find_written_types(None, schema(w=I32, b=pa.bool_()), ["1", "2"]) == {"1": (), "2": ()}
    plan = plan_scan(table)
    assert set(find_written_types(None, plan.needed, ["1", "2"]).values()) == {None}


@pytest.mark.parametrize("version", [6, 9])
@pytest.mark.parametrize(("by", "folded"), [("us", I32), ("earlier versions", I64)])
def test_the_types_are_those_in_the_footers_also_beside_a_compaction_that_ran_late(
    tmp_path, monkeypatch, version, by, folded
):
    """It was requested before the column was widened. We wrote the wider type under the earlier time once."""
    if by != "us":
        made = Rewriting.of
        monkeypatch.setattr(Rewriting, "of", lambda *given, **_: made(*given))
    options = {
        "hoodie.datasource.write.table.type": "MERGE_ON_READ",
        "hoodie.write.table.version": str(version),
        "hoodie.datasource.compaction.async.enable": "false",
    }
    table = None
    with ArrowSink(str(tmp_path), options, key="id", partition_by="p", order_by="ts") as sink:

        def write(path, kind, ts):
            sink.write(pa.table({"id": ["k"], "p": [path], "ts": pa.array([ts], I64), "v": pa.array([7], kind)}))

        write("folded", I32, 1)
        write("folded", I32, 2)
        table = HudiTable.open(str(tmp_path))
        request_compaction(table, CompactionSettings())
        write("behind", I32, 3)
        write("wide", I64, 4)
    compact(table, schedules=False)
    plan = plan_scan(table)
    assert not any(found.log_files for found in plan.slices)
    found = find_written_types(plan.snapshot, plan.needed, {one.base_file.instant_time for one in plan.slices})
    stored = {one.partition_path: pq.read_schema(tmp_path / one.base_file.path).field("v").type for one in plan.slices}
    told = {one.partition_path: found[one.base_file.instant_time] for one in plan.slices}
    assert stored == {"folded": folded, "behind": I32, "wide": I64}
    assert told == {path: () if kind == I64 else (pa.field("v", kind),) for path, kind in stored.items()}

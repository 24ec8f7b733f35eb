"""With which types base files were written: by few commits, of the timeline or the archive, and by no file."""

import pyarrow as pa
import pytest

from hudistream import ArrowSink, HudiTable
from table.scan.plan import plan_scan
from table.scan.written_types import differences, find_written_types, reads_as, search_schemas
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
        return [columns for first, columns in changes if first <= time][-1]

    return load, loaded


def test_a_table_that_never_changed_costs_one_commit():
    load, loaded = history(("000", schema(v=I64, w=TEXT)))
    found = search_schemas(TIMES, schema(v=I64), load)
    assert {differences(one, schema(v=I64)) for one in found.values()} == {()}
    assert loaded == ["000"]


@pytest.mark.parametrize("at", ["001", "037", "099"])
def test_the_commit_that_widened_a_column_is_searched_by_halves(at):
    load, loaded = history(("000", schema(v=I32)), (at, schema(v=I64)))
    found = search_schemas(TIMES, schema(v=I64), load)
    assert {time: one.field("v").type for time, one in found.items()} == {t: I32 if t < at else I64 for t in TIMES}
    assert len(loaded) <= 8


def test_several_changes_are_found_one_by_one():
    """A column that comes late may have been narrower when it came."""
    load, loaded = history(
        ("000", schema(v=I32)), ("010", schema(v=I64)), ("050", schema(v=I64, w=F32)), ("070", schema(v=F64, w=F64))
    )
    present = schema(v=F64, w=F64)
    found = {time: differences(one, present) for time, one in search_schemas(TIMES, present, load).items()}
    assert [found[time] for time in ("009", "010", "049", "050", "069", "070")] == [
        (pa.field("v", I32),),
        (pa.field("v", I64),),
        (pa.field("v", I64),),
        (pa.field("v", I64), pa.field("w", F32)),
        (pa.field("v", I64), pa.field("w", F32)),
        (),
    ]
    assert len(loaded) < 25


def test_commits_that_nobody_knows_any_more_stay_unknown():
    """An archive was deleted: what is behind it is found by halves, too."""
    load, loaded = history(("000", None), ("040", schema(v=I32)), ("060", schema(v=I64)))
    found = search_schemas(TIMES, schema(v=I64), load)
    assert [time for time, one in found.items() if one is None] == TIMES[:40]
    assert found["059"].field("v").type == I32
    assert found["060"].field("v").type == I64
    assert len(loaded) < 20
    assert search_schemas([], schema(v=I64), load) == {}


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
    assert table.archived_timeline.find_commit("19700101000000000") is None
    if commits > 5:
        assert table.archived_timeline.find_commit(times["pa"]).time == times["pa"]


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

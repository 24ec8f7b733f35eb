"""Readers pin what they read: their files stay for a while, whoever cleans; nothing is pinned for ever."""

import os

import pyarrow as pa
import pytest
from engine import Engine, rows
from snapshots import base_files
from structlog.testing import capture_logs

from hudistream import ArrowSink, HudiTable
from table import CleanSettings, InvalidConfigError, clock
from table.scan import pinned
from table.scan.pinned import plan_pinned
from table.services.clean.clean import carry_out_cleans, schedule_clean
from table.services.clean.judgement import judge_files
from table.storage.interface import FileInfo
from table.timeline.instant import Action
from table.timeline.pins import PINS_FOLDER, Pin, fresh_pin, load_live_pins, parse_pin, sort_pins, write_pin

UPSERT = {"hoodie.datasource.write.operation": "upsert"}
NEWEST_ONLY = CleanSettings(commits_retained=1, grace_ms=0, readers_share=100)


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "t")


def write(path, number):
    return Engine(path, UPSERT).write(None, rows(range(9), ts=number, v=f"v{number}")).instant_time


def values(rows_read):
    return set(rows_read.column("v").to_pylist())


def pin_names(path):
    folder = os.path.join(path, PINS_FOLDER)
    return sorted(name for name in os.listdir(folder) if parse_pin(name)) if os.path.isdir(folder) else []


def bury(path):
    """Two more commits, and a clean that keeps the newest version alone."""
    for number in (1, 2):
        write(path, number)
    return HudiTable.open(path).clean(NEWEST_ONLY)


def test_a_reader_that_goes_on_slowly_finds_its_files(path):
    write(path, 0)
    batches = HudiTable.open(path).scan(["v"]).to_batches()
    bury(path)
    assert values(batches.read_all()) == {"v0"}
    assert pin_names(path) == []  # it let go


def dataset(scan):
    return scan.to_dataset().to_table


def splits(scan):
    parts = scan.splits()
    return lambda: pa.concat_tables([part.to_arrow() for part in parts])


@pytest.mark.parametrize("ask", [dataset, splits])
def test_what_outlives_the_call_finds_its_files(path, ask):
    write(path, 0)
    later = ask(HudiTable.open(path).scan(["v"]))
    bury(path)
    assert values(later()) == {"v0"}
    assert len(pin_names(path)) == 1


def test_without_a_pin_they_are_gone(path):
    write(path, 0)
    parts = HudiTable.open(path).scan(["v"]).pinned_for(0).splits()
    bury(path)
    assert pin_names(path) == []
    with pytest.raises(Exception, match="deleted while it was read"):
        parts[0].to_arrow()


def test_reads_that_end_leave_nothing_behind(path):
    write(path, 0)
    table = HudiTable.open(path)
    table.scan().to_arrow()
    table.lookup(["k1"])
    table.scan().explain()
    next(iter(table.scan().to_batches()))
    assert len(pin_names(path)) <= 1  # a reader that is dropped lets go when it is collected


@pytest.mark.parametrize(
    "ask",
    [
        lambda table: table.scan().to_batches(),
        lambda table: table.scan(limit=0).to_batches(),
        lambda table: table.changes(deletes=True).to_batches(),
    ],
    ids=["scan", "no rows", "feed"],
)
def test_a_reader_that_is_dropped_before_its_first_batch_leaves_nothing_behind(path, ask):
    write(path, 0)
    write(path, 1)
    reader = ask(HudiTable.open(path))
    assert pin_names(path)
    del reader
    assert pin_names(path) == []


def test_rows_for_duckdb_are_pinned_while_they_are_asked(path):
    write(path, 0)
    with HudiTable.open(path).scan(["v"]).held_for_duckdb() as found:
        bury(path)
        assert values(found.to_table()) == {"v0"}
        assert pin_names(path)
    assert pin_names(path) == []


def test_a_pin_is_heeded_as_long_as_it_lives_and_then_deleted(path, monkeypatch):
    write(path, 0)
    table = HudiTable.open(path)
    table.scan().pinned_for(60).splits()
    bury(path)
    [name] = pin_names(path)
    held = {fate.rule for found in judge_files(table, NEWEST_ONLY) for fate in found.fates if fate.is_held}
    assert held == {f"a reader has pinned the snapshot {parse_pin(name).time}"}
    old = clock.now_ms() / 1000 - 61
    os.utime(os.path.join(path, PINS_FOLDER, name), (old, old))
    assert table.clean(NEWEST_ONLY)
    assert pin_names(path) == []
    assert len({file["base_instant"] for file in table.files().to_pylist()}) == 1


def test_pins_keep_a_bounded_share_and_the_newest_snapshot_comes_first(path):
    times = []
    for number in range(3):
        times.append(write(path, number))
        HudiTable.open(path).scan().pinned_for(60).splits()
    write(path, 3)
    table = HudiTable.open(path)
    settings = CleanSettings(commits_retained=1, grace_ms=0, readers_share=1.2)
    fates = [fate for found in judge_files(table, settings) for fate in found.fates]
    kept = {fate.file.instant_time for fate in fates if fate.is_held}
    # with one commit retained, the version that readers of the newest commit began with stays anyway
    assert kept == {times[1]}
    assert {fate.file.instant_time for fate in fates if fate.deleted} == {times[0]}


def test_a_clean_that_was_planned_before_the_pin_sees_it_before_it_deletes(path):
    first = write(path, 0)
    for number in (1, 2):
        write(path, number)
    table = HudiTable.open(path)
    planned = schedule_clean(table, NEWEST_ONLY)
    write_pin(table.storage, fresh_pin(first, 60))
    [done] = carry_out_cleans(planned, NEWEST_ONLY)
    assert not any(done.deleted.values())
    assert sum(map(len, done.failed.values())) == 3
    assert sum(f"_{first}.parquet" in file for file in base_files(path)) == 3


def test_a_reader_that_finds_its_files_in_an_earlier_plan_plans_again(path, monkeypatch):
    write(path, 0)
    table = HudiTable.open(path)
    scan = table.scan(["v"])
    made = []

    def plan():
        made.append(scan.plan())
        if len(made) == 1:  # while the reader is between its plan and its pin
            for number in (1, 2):
                write(path, number)
            carry_out_cleans(schedule_clean(table, NEWEST_ONLY), NEWEST_ONLY)
        return made[-1]

    found, pin = plan_pinned(table, plan, 60)
    assert len(made) == 2
    assert found.as_of == max(table.load_timeline().committed_times)
    assert len(pin_names(path)) == 1
    pin.release()


def test_a_snapshot_that_a_pending_clean_takes_away_is_refused(path):
    first = write(path, 0)
    for number in (1, 2):
        write(path, number)
    table = HudiTable.open(path)
    schedule_clean(table, NEWEST_ONLY)
    with pytest.raises(InvalidConfigError, match=f"cleaning deletes what readers of {first} need"):
        table.scan(as_of=first).to_arrow()
    assert pin_names(path) == []


def test_a_table_that_others_write_is_left_as_it_is(path):
    write(path, 0)
    table = HudiTable.open(path)
    os.rename(os.path.join(path, ".hoodie", ".hudistream"), os.path.join(path, "aside"))
    table.scan().splits()
    assert not os.path.exists(os.path.join(path, ".hoodie", ".hudistream"))


def test_a_reader_that_cannot_write_reads_without_a_pin(path):
    write(path, 0)
    # a file where the folder of the pins would be: root may write everywhere else
    pins = os.path.join(path, ".hoodie", ".hudistream", "pins")
    assert not os.path.exists(pins)
    open(pins, "w").close()
    with capture_logs() as told:
        assert values(HudiTable.open(path).scan().to_arrow()) == {"v0"}
    assert [line["event"] for line in told] == ["read_without_pin"]
    assert os.path.isfile(pins)


def test_a_dataset_that_cannot_be_made_leaves_no_pin(path):
    write(path, 0)
    with pytest.raises(InvalidConfigError, match="the condition needs the column 'v'"):
        HudiTable.open(path).scan(["id"], [("v", "=", "v0")]).to_dataset()
    assert pin_names(path) == []
    HudiTable.open(path).scan(["id"]).to_dataset()
    assert len(pin_names(path)) == 1


def test_it_says_once_that_it_has_no_pin(path, monkeypatch):
    write(path, 0)

    def refuse(storage, pin):
        raise pinned.StorageError("this place is read-only")

    monkeypatch.setattr(pinned, "write_pin", refuse)
    pinned._tell_once.cache_clear()
    with capture_logs() as told:
        for _ in range(3):
            assert values(HudiTable.open(path).scan().to_arrow()) == {"v0"}
    assert [line["event"] for line in told if line["event"] == "read_without_pin"] == ["read_without_pin"]


def test_a_long_read_renews_its_pin(path, monkeypatch):
    write(path, 0)
    table = HudiTable.open(path)
    _, held = plan_pinned(table, table.scan().plan, 30)
    [name] = pin_names(path)
    file = os.path.join(path, PINS_FOLDER, name)
    os.utime(file, (1, 1))
    held.renew()
    assert os.path.getmtime(file) == 1
    now = clock.monotonic_s()
    monkeypatch.setattr(clock, "monotonic_s", lambda: now + 11)
    held.renew()
    assert os.path.getmtime(file) > 1


NAMES = [
    ("20240101000000000_900_0a-1b", Pin("20240101000000000", 900, "0a-1b")),
    ("20240101000000000_999999_0a", Pin("20240101000000000", 86_400, "0a")),
    ("now", None),
    ("20240101_900_0a", None),
]


@pytest.mark.parametrize(("name", "pin"), NAMES)
def test_a_pin_is_its_name(name, pin):
    assert parse_pin(name) == pin
    assert pin is None or pin.lifetime_s != 900 or pin.path == f"{PINS_FOLDER}/{name}"


def test_pins_are_sorted_by_the_time_of_the_store():
    entries = [FileInfo(f"{digit * 17}_{life}_a", 0, written, False) for digit, life, written in
               [("1", 10, 1_000), ("2", 10, 999), ("3", 100, 5_000)]]  # fmt: skip
    live, expired = sort_pins([*entries, FileInfo("now", 0, 11_000, False)], 11_000)
    assert [pin.time[0] for pin in live] == ["3", "1"]
    assert [pin.time[0] for pin in expired] == ["2"]


def test_a_table_without_pins_is_looked_at_and_no_more(path):
    write(path, 0)
    table = HudiTable.open(path)
    assert load_live_pins(table.storage) == ()
    assert not os.path.exists(os.path.join(path, PINS_FOLDER))


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_a_pin_keeps_its_files_while_rows_are_deleted_and_files_become_smaller(path, table_type):
    """With the default share of bytes: the version that the reader needs is larger than each later one."""
    options = {
        "hoodie.datasource.write.table.type": table_type,
        "hoodie.clean.commits.retained": "1",
        "hoodie.clean.async": "false",
        "hoodie.compact.inline": "true",
        "hoodie.compact.inline.max.delta.commits": "1",
    }
    keys = [f"k{number}" for number in range(500)]
    with ArrowSink(path, options, key="id", order_by="ts") as sink:
        sink.write(pa.table({"id": keys, "ts": range(500), "v": [f"value {number}" for number in range(500)]}))
        parts = HudiTable.open(path).scan().splits()
        for number in range(6):
            sink.delete([f"k{number}"])
    table = HudiTable.open(path)
    assert table.load_timeline().completed_of(Action.CLEAN)
    assert sorted(key for part in parts for key in part.to_arrow().column("id").to_pylist()) == sorted(keys)
    assert table.scan().count() == 494

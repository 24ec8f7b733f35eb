"""Upgrades and downgrades: rows, history and archive stay, wherever the power goes."""

import os
import shutil
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from engine import Engine, leave_a_dead_batch, rows
from faults import FaultyStorage, Fuse, PowerCut, dying_process
from oracles import hudi_rs
from snapshots import assert_clean, contents
from tiers import quick

import hudistream
from hudistream import ArrowSink, HudiTable, check
from table import InvalidConfigError, UnsupportedTableError, clock
from table.cli.main import main
from table.clock import InstantClock
from table.config.merge_mode import IGNORE_DEFAULTS, LEGACY_PAYLOAD, PARTIAL_KEY, MergeMode, mode_in_force
from table.config.table_config import TableConfig, config_from_properties, load_table_config
from table.errors import CommitConflictError, TimelineMovedError
from table.files.names import parse_log_file
from table.metadata_table.changes import FileChanges
from table.services.conversion import convert
from table.services.conversion.convert import convert_table
from table.services.conversion.instants import completion_times
from table.services.conversion.properties import change_properties, check_convertible
from table.services.savepoint.restore import restore_to_savepoint
from table.services.savepoint.savepoint import create_savepoint
from table.storage.local import LocalStorage
from table.timeline.active_timeline import begin_instant, request_instant
from table.timeline.archived_timeline import read_archived_commits
from table.timeline.instant import REQUEST_TIME_NAMES, Action, Instant, State
from table.timeline.metadata.clean import (
    CleanMetadata,
    CleanPlan,
    decode_clean_plan,
    encode_clean_metadata,
    encode_clean_plan,
)
from table.transaction.completion import complete_service
from table.transaction.heartbeat import WriterIdentity
from table.transaction.lease import LEASE_FOLDER, find_holder
from table.transaction.lease_record import LeaseRecord
from table.transaction.register import Register

OPTIONS = {
    "hoodie.datasource.write.operation": "upsert",
    "hoodie.clean.automatic": "true",
    "hoodie.clean.async": "false",
    "hoodie.clean.commits.retained": "1",
    "hoodie.archive.automatic": "true",
    "hoodie.archive.async": "false",
    "hoodie.keep.min.commits": "2",
    "hoodie.keep.max.commits": "3",
}
LOGS = {
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.compact.inline": "true",
    "hoodie.compact.inline.max.delta.commits": "4",
}

MODE = "hoodie.record.merge.mode"


def build(path, more=None, first=0, last=7):
    """A table with an archive, a clean and, on merge-on-read, a compaction and log files."""
    engine = Engine(path, {**OPTIONS, **(more or {})})
    for number in range(first, last):
        engine.write(number, rows(range(number % 3, 12), ts=number, v=f"v{number}"))
    engine.writer.stop()
    return HudiTable.open(path)


def archived(table):
    return sorted((commit.time, commit.action) for commit in read_archived_commits(table.archived_timeline))


def told(table):
    """What the history says, but for times of completion and what follows from them: layout 1 does not name them."""
    rows_of_history = table.history(limit=100).to_pylist()
    return [
        {key: value for key, value in row.items() if "completed" not in key and key != "seconds"}
        for row in rows_of_history
    ]


@pytest.mark.parametrize("more", quick(1, [LOGS, {}]), ids=["logs", "plain"])
def test_a_table_goes_through_all_versions(tmp_path, more):
    path = str(tmp_path / "t")
    table = build(path, more)
    number = 7
    for version in (8, 9, 8, 6, 9, 6):
        before, history, retired = contents(path), told(table), archived(table)
        table = table.convert(version)
        assert table.config.version == HudiTable.open(path).config.version == version
        assert contents(path) == before
        assert archived(table) == retired != []
        assert [row for row in told(table) if row in history] == history
        assert hudistream.check(table).is_sound
        assert sorted(row["id"] for row in hudi_rs.read(path).to_pylist()) == [row[0] for row in sorted(before)]
        table = build(path, more, number, number + 3)
        number += 3
        assert_clean(path)
    assert load_table_config(LocalStorage(path)).extra["hoodie.table.name"] == "t"
    left = {entry.name for entry in LocalStorage(path).list_dir(".hoodie")}
    assert "timeline" not in left


@pytest.mark.parametrize("more", [pytest.param({}, marks=pytest.mark.slow), LOGS], ids=["plain", "logs"])
@pytest.mark.parametrize(("before", "after"), quick(1, [("6", 9), ("8", 6)]))
@pytest.mark.parametrize(
    ("step", "late"),
    [
        pytest.param(17, False, id="some calls"),
        *(pytest.param(1, late, marks=pytest.mark.slow) for late in (False, True)),
    ],
)
def test_one_that_stops_is_finished_by_the_next(tmp_path, more, before, after, step, late):
    """At every moment the table is whole, in one version or the other; a stream goes on in the one that it has."""
    first = str(tmp_path / "first")
    build(first, {**more, "hoodie.write.table.version": before})
    with dying_process():
        leave_a_dead_batch(Engine(first, {**OPTIONS, **more}), 7, rows(range(20, 23)))
    wanted = contents(first)
    fuse = Fuse()
    counted = shutil.copytree(first, str(tmp_path / "count"))
    convert_table(HudiTable(FaultyStorage(LocalStorage(counted), fuse), HudiTable.open(counted).config), after)
    versions = set()
    for number in range(1, len(fuse.calls) + 1, step):
        path = shutil.copytree(first, str(tmp_path / str(number)))
        config = HudiTable.open(path).config
        with dying_process(), suppress(PowerCut):
            convert_table(HudiTable(FaultyStorage(LocalStorage(path), Fuse(number, late)), config), after)
        version = HudiTable.open(path).config.version
        versions.add(version)
        assert contents(path) == wanted, fuse.calls[number - 1]
        stopped = shutil.copytree(path, str(tmp_path / "stopped"))
        build(path, more, 7, 8)  # plans of rollbacks hold whole paths: the table stays where it is
        assert_clean(path)
        assert HudiTable.open(path).config.version == version
        shutil.rmtree(path)
        os.rename(stopped, path)
        assert convert_table(HudiTable.open(path), after).config.version == after
        assert contents(path) == wanted, fuse.calls[number - 1]
        assert_clean(path)
        assert bool([f for f in LocalStorage(path).list_dir(".hoodie") if REQUEST_TIME_NAMES.parse(f.name)]) == (
            after == 6
        )
        shutil.rmtree(path)
    assert versions == {int(before), after}


def test_a_savepoint_is_kept_and_restored(tmp_path):
    path = str(tmp_path / "t")
    table = build(path)
    time, before = create_savepoint(table), contents(path)
    table = build(path, first=7, last=9).convert(9)
    assert contents(path) != before
    restore_to_savepoint(table, time, force=True)
    assert contents(path) == before


def test_log_files_that_a_savepoint_holds_keep_a_table_from_version_6(tmp_path):
    path = str(tmp_path / "t")
    table = build(path, {**LOGS, "hoodie.write.table.version": "8"})
    before = contents(path)
    create_savepoint(table)
    build(path, {**LOGS, "hoodie.compact.inline.max.delta.commits": "1"}, 7, 9)
    assert any(parse_log_file(file.name) for file in table.storage.list_dir("p0"))
    with pytest.raises(UnsupportedTableError, match=r"log.* is held by a savepoint or by a reader.*as it was"):
        table.convert(6)
    assert HudiTable.open(path).config.version == 8
    assert len(contents(path)) == len(before)


def test_a_table_that_is_being_written_is_left_alone(tmp_path):
    path = str(tmp_path / "t")
    table, engine = build(path), Engine(path, OPTIONS)
    engine.write(7, rows(range(3)))
    with pytest.raises(CommitConflictError):
        table.convert(8)
    engine.writer.stop()
    assert table.convert(8).config.version == 8


def test_an_object_from_before_does_not_show_an_empty_table(tmp_path):
    path = str(tmp_path / "t")
    old = build(path)
    old.convert(8)
    with pytest.raises(TimelineMovedError, match=r"has hoodie.table.version=8 by now, and had 6.*open it again"):
        old.scan().to_arrow()


def test_a_sink_upgrades_where_it_is_told_to(tmp_path):
    path = str(tmp_path / "t")
    build(path)
    build(path, {"hoodie.write.table.version": "9"}, 7, 8)
    assert HudiTable.open(path).config.version == 6
    build(path, {"hoodie.write.table.version": "9", "hoodie.write.auto.upgrade": "true"}, 8, 9)
    assert HudiTable.open(path).config.version == 9
    build(path, {"hoodie.write.table.version": "8", "hoodie.write.auto.upgrade": "true"}, 9, 10)
    assert HudiTable.open(path).config.version == 9


@pytest.mark.parametrize(
    ("changes", "to", "error", "said"),
    [
        ({}, 7, InvalidConfigError, "table version 7 is not written: choose one of 6, 8, 9"),
        (
            {"hoodie.compaction.payload.class": "org.example.Mine"},
            9,
            UnsupportedTableError,
            "Mine.*keep version 6 or 8",
        ),
        ({"hoodie.table.keygenerator.type": "COMPLEX"}, 9, UnsupportedTableError, "one record key field"),
    ],
)
def test_what_a_version_cannot_hold_is_refused_by_name(tmp_path, changes, to, error, said):
    path = str(tmp_path / "t")
    build(path, last=1)
    with open(f"{path}/.hoodie/hoodie.properties", "a") as file:
        file.writelines(f"{key}={value}\n" for key, value in changes.items())
    with pytest.raises(error, match=said):
        HudiTable.open(path).convert(to)
    assert HudiTable.open(path).config.version == 6


@pytest.mark.pure
@pytest.mark.parametrize("to", [6, 8])
def test_several_ordering_fields_keep_a_table_at_version_9(to):
    config = TableConfig("t", ("id",), ("p",), ("ts", "seq"), version=9, layout_version=2)
    check_convertible(config, 9)
    with pytest.raises(UnsupportedTableError, match=f"ordering.fields=ts,seq: .* version {to}; keep version 9"):
        check_convertible(config, to)


@pytest.mark.pure
def test_partial_updates_are_told_by_another_property_from_version_9_on():
    config = TableConfig("t", ("id",), payload_class=MergeMode.PARTIAL_UPDATE.payload_class)
    written = change_properties(config, 9).written
    told = {key: written[key] for key in (MODE, PARTIAL_KEY, LEGACY_PAYLOAD)}
    assert told == {MODE: "EVENT_TIME_ORDERING", PARTIAL_KEY: IGNORE_DEFAULTS, LEGACY_PAYLOAD: config.payload_class}
    later = config_from_properties({**written, "hoodie.table.name": "t"})
    assert mode_in_force(9, later.payload_class, later.extra) is MergeMode.PARTIAL_UPDATE
    assert new_properties(later)[PARTIAL_KEY] == IGNORE_DEFAULTS
    back = change_properties(later, 8)
    assert (back.written[MODE], back.written["hoodie.compaction.payload.class"]) == ("CUSTOM", config.payload_class)
    assert {PARTIAL_KEY, LEGACY_PAYLOAD} <= back.removed - back.written.keys()


def new_properties(config):
    return replace(config, extra={}, payload_class=MergeMode.PARTIAL_UPDATE.payload_class).to_properties()


def test_properties_come_back_as_they_were(tmp_path):
    config = build(str(tmp_path / "t"), last=1).config
    check_convertible(config, 9)
    change = change_properties(config, 9)
    assert change.written["hoodie.table.ordering.fields"] == "ts"
    assert change.written["hoodie.table.initial.version"] == "6"
    assert "hoodie.table.precombine.field" in change.removed - change.written.keys()
    table = HudiTable.open(str(tmp_path / "t"))
    before = {key: value for key, value in table.config.extra.items() if "checksum" not in key}
    after = table.convert(9).convert(8).convert(6).config.extra
    assert {key: value for key, value in after.items() if "checksum" not in key} == before


def test_a_folder_of_its_own_for_the_history_stays(tmp_path):
    """Versions 8 and 9 have one layout: what lies where the properties say it is not looked for elsewhere."""
    path = str(tmp_path / "t")
    table = build(path, {"hoodie.write.table.version": "8"})
    retired = archived(table)
    os.rename(f"{path}/.hoodie/timeline/history", f"{path}/.hoodie/timeline/past")
    with open(f"{path}/.hoodie/hoodie.properties", "a") as file:
        file.write("\nhoodie.timeline.history.path=past\n")
    assert archived(HudiTable.open(path).convert(9)) == retired != []
    assert archived(HudiTable.open(path)) == retired


def test_completion_times_follow_the_store_within_the_order_of_the_requests():
    first, second, third = (
        Instant(f"20260101000000{number}", Action.COMMIT, State.COMPLETED) for number in ("100", "200", "300")
    )
    clean = Instant("20260101000000150", Action.CLEAN, State.COMPLETED)
    ms = clock.parse_instant_time(second.time)
    # the file of the first is younger than the request of the second, and that of the third older than its own
    found = completion_times({first: ms + 5, clean: ms + 9, second: ms + 1, third: ms}, "UTC")
    assert {found[one][-3:] for one in (first, clean)} == {"199", "200"}
    assert (found[second][-3:], found[third][-3:]) == ("201", "301")


@pytest.mark.parametrize("way", ["copied", "converted twice"])
def test_log_files_that_a_compaction_folded_do_not_come_back(tmp_path, way):
    """Files of a table that was copied, or converted before, are younger than later requests."""
    path, logs = (
        str(tmp_path / "t"),
        {"hoodie.datasource.write.table.type": "MERGE_ON_READ", "hoodie.clean.automatic": "false"},
    )

    def write(value, *keys, operation="upsert"):
        rows = pa.table({"id": keys, "v": [value] * len(keys)})
        with ArrowSink(path, logs, key="id") as sink:
            sink.write(rows, operation=operation)

    write("first", "a", "b")
    write("second", "a", operation="delete")
    HudiTable.open(path).compact()
    write("third", "a")  # a new key: into the base file
    write("fourth", "c")
    wanted = [{"id": "a", "v": "third"}, {"id": "b", "v": "first"}, {"id": "c", "v": "fourth"}]
    if way == "copied":
        for folder, _, names in os.walk(path):
            for name in names:
                os.utime(os.path.join(folder, name))
    else:
        HudiTable.open(path).convert(8)
        HudiTable.open(path).convert(6)
    HudiTable.open(path).convert(8)

    def read():
        return HudiTable.open(path).scan().to_arrow().sort_by("id").to_pylist()

    assert read() == wanted
    write("fifth", "b")
    assert read() == [wanted[0], {"id": "b", "v": "fifth"}, wanted[2]]
    assert check(path, sample=None).findings == ()


def test_the_commands_say_what_they_did(tmp_path, capsys):
    path = str(tmp_path / "t")
    build(path, last=1)
    assert main(["upgrade", path, "--to", "8"]) == 0
    assert main(["upgrade", path, "--to", "8"]) == 0
    assert main(["downgrade", path, "--to", "6"]) == 0
    assert capsys.readouterr().out == "version 8, before 6\nversion 8, as before\nversion 6, before 8\n"
    assert main(["downgrade", path, "--to", "8"]) == 2
    assert "`hudistream upgrade --to 8` is meant" in capsys.readouterr().err


def test_a_conversion_that_was_taken_for_dead_does_not_switch(tmp_path, monkeypatch):
    """It was paused between its copies and the properties, and another writer took the table and committed."""
    path = str(tmp_path / "t")
    table, copy = build(path), convert._copy_archive

    def paused(*given):
        copy(*given)
        last = find_holder(table.storage)
        other = LeaseRecord(last.number + 1, WriterIdentity("another sink", "query", "owner"))
        assert Register(table.storage, LEASE_FOLDER).append(last.number, other.encode()) is not None

    monkeypatch.setattr(convert, "_copy_archive", paused)
    before = contents(path)
    with pytest.raises(CommitConflictError):
        table.convert(8)
    assert HudiTable.open(path).config.version == 6
    assert contents(path) == before


def test_a_conversion_beside_an_action_that_others_complete_does_not_switch(tmp_path, monkeypatch):
    """The action came after the timeline was copied. It needs no lease, and the copy does not have it."""
    path = str(tmp_path / "t")
    table, copy = build(path), convert._copy_archive

    def beside(*given):
        copy(*given)
        plan = encode_clean_plan(CleanPlan("KEEP_LATEST_COMMITS", None, ""))
        now = table.load_timeline()
        begun = begin_instant(table.storage, request_instant(table.storage, now, Action.CLEAN, InstantClock(), plan))
        outcome = CleanMetadata(begun.time, 0, decode_clean_plan(plan, "plan"), {"p0": ("gone",)})
        content = encode_clean_metadata(outcome)
        complete_service(table, begun, content, "another", FileChanges(deleted=outcome.deleted))

    monkeypatch.setattr(convert, "_copy_archive", beside)
    with pytest.raises(CommitConflictError, match="completed an action in it"):
        table.convert(8)
    table = HudiTable.open(path)
    assert table.config.version == 6
    cleans = len(table.load_timeline().completed_of(Action.CLEAN))
    monkeypatch.undo()
    assert len(table.convert(8).load_timeline().completed_of(Action.CLEAN)) == cleans > 1


def test_the_metadata_table_is_dropped(tmp_path):
    path = str(tmp_path / "t")
    table = build(path, {"hoodie.metadata.enable": "true"})
    assert table.config.metadata_partitions
    assert not table.convert(8).config.metadata_partitions
    assert not os.path.exists(f"{path}/.hoodie/metadata")


def test_what_the_archive_holds_twice_is_copied_once(tmp_path):
    """An archival that died after its write began again."""
    path = str(tmp_path / "t")
    table = build(path)
    folder = f"{path}/.hoodie/archived"
    names = sorted(name for name in os.listdir(folder) if ".archive." in name)
    once = archived(table)
    again = [Path(folder, name).read_bytes() for name in names]  # blocks of a log may follow each other
    Path(folder, names[-1].replace(".archive.", ".archive.9", 1)).write_bytes(b"".join(again))
    copied = table.convert(8).archived_timeline
    times = [(row.time, row.action) for rows_of_file in copied.read_rows() for row in rows_of_file]
    assert sorted(times) == sorted(set(times))
    assert {time for time, _ in once} <= {time for time, _ in times}


def test_an_archive_folder_of_the_tables_own_goes_along_and_leaves_nothing(tmp_path):
    path, own = str(tmp_path / "t"), {"hoodie.archivelog.folder": "past"}
    table = build(path, own)
    retired = archived(table)
    assert retired
    assert archived(later := table.convert(8)) == retired
    assert [name for name in os.listdir(f"{path}/.hoodie/past") if ".archive." in name] == []
    assert archived(later.convert(6)) == retired

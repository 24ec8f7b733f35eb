"""Check: each kind of damage made by hand is found; what is mended changes no row; healthy tables have no findings."""

import collections
import glob
import json
import os
import shutil
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path
from time import sleep
from unittest import mock

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from command_line import said
from engine import Engine, key_set, rows
from faults import FaultyStorage, Fuse, PowerCut, dying_process
from tiers import quick

from table import CommitConflictError, check, create_savepoint, read_table
from table.files.base.hudi_footer import AVRO_SCHEMA_KEY, BLOOM_KEY, MAX_KEY, MIN_KEY
from table.files.base.stored_file import StoredBaseFile
from table.files.bloom.bloom_filter import sized_filter
from table.files.names import parse_base_file
from table.hudi_table import HudiTable
from table.options.groups import ArchiveSettings, CleanSettings
from table.services.archival.archival import archive
from table.services.check import check as check_module
from table.services.check.finding import Finding, Kind, Repair, Severity, found_by_both
from table.services.clean.clean import clean
from table.services.rollback.undo_commit import roll_back
from table.storage.local import LocalStorage
from table.timeline.end_record import COMMIT, ROLLBACK, EndRecord, end_path
from table.timeline.instant import Action
from table.transaction.heartbeat import WriterIdentity, write_heartbeat
from table.transaction.lease import hold_table

ARCHIVE = ArchiveSettings(min_commits=3, max_commits=5)
CLEAN = CleanSettings(commits_retained=2, grace_ms=0)
LATER = "29990101000000000"
EARLIER = "20200101000000000"
ERROR, WARNING, NOTE = Severity
DONE, POSSIBLE, REFUSED = Repair


def fill(path, batches=4, first=0, **options):
    engine = Engine(path, options)
    for number in range(first, first + batches):
        engine.write(number, rows(range(10 * number, 10 * number + 10)))
    engine.writer.stop()


@pytest.fixture(scope="module")
def bases(tmp_path_factory):
    """Tables that are copied and damaged: four commits; nine of which six are archived."""
    folder = tmp_path_factory.mktemp("bases")
    fill(str(folder / "plain"))
    engine = Engine(str(folder / "archived"))
    engine.write(0, rows(range(1000, 1003), partition=lambda _: "old"))
    engine.writer.stop()
    fill(str(folder / "archived"), 8, 1)
    archive(HudiTable.open(str(folder / "archived")), ARCHIVE, CLEAN)
    return folder


@pytest.fixture
def plain(bases, tmp_path):
    return shutil.copytree(bases / "plain", str(tmp_path / "t"))


@pytest.fixture
def archived(bases, tmp_path):
    return shutil.copytree(bases / "archived", str(tmp_path / "t"))


def base_files(path):
    found = []
    for folder, _, names in os.walk(path):
        found += [os.path.relpath(os.path.join(folder, name), path) for name in names if parse_base_file(name)]
    return sorted(file for file in found if not file.startswith(".hoodie"))


def newest_files(path):
    last = commits(path)[-1]
    return [file for file in base_files(path) if last in file]


def commits(path):
    return [instant.time for instant in HudiTable.open(path).load_timeline().completed_writes]


def look(path, **settings):
    return check(HudiTable.open(path), **{"sample": None, **settings})


def of(report, kind):
    return [finding for finding in report.findings if finding.kind is kind]


def only(report, kind, severity, repair):
    found = of(report, kind)
    assert [(f.severity, f.repair) for f in found] == [(severity, repair)], report.findings
    assert bool(found[0].why) == (repair is REFUSED)
    return found[0]


def put(path, name, data=b"", age_s=0):
    full = os.path.join(path, name)
    os.makedirs(os.path.dirname(full), exist_ok=True)
    with open(full, "wb") as file:
        file.write(data)
    if age_s:
        now = os.stat(full).st_mtime
        os.utime(full, (now - age_s, now - age_s))


def copy_as(path, source, time, file_id="aaaa-0"):
    """A whole base file under the name of another file group and instant."""
    name = os.path.join(os.path.dirname(source), f"{file_id}_9-9-9_{time}.parquet")
    shutil.copy(os.path.join(path, source), os.path.join(path, name))
    return name


def between(path):
    return str(int(commits(path)[0]) + 1)


def mended(path, kind, severity, wanted, again=()):
    """`--repair` mends the one finding of that kind, and rows are what they are to be."""
    only(look(path), kind, severity, POSSIBLE)
    report = look(path, repair=True)
    only(report, kind, severity, DONE)
    assert report.is_sound
    assert key_set(read_table(path)) == wanted
    assert {f.kind for f in look(path).findings} <= set(again)


def test_healthy_tables_have_no_findings(tmp_path):
    path = str(tmp_path / "t")
    fill(path, 6)
    assert look(path).findings == ()
    create_savepoint(HudiTable.open(path), commits(path)[4])
    fill(path, 3, 6)
    clean(HudiTable.open(path), CLEAN)
    archive(HudiTable.open(path), ARCHIVE, CLEAN)
    assert look(path).findings == ()
    assert len(commits(path)) < 9
    roll_back(HudiTable.open(path), commits(path)[-1], force=True)
    die_in_batch(path, 8)
    Engine(path, {"hoodie.datasource.write.operation": "upsert"}).write(8, rows(range(0, 90, 4), v="new"))
    report = look(path)
    assert not [f for f in report.findings if f.severity is not NOTE]
    assert report.is_sound
    assert report.files == len(base_files(path))
    assert report.files_read == 3
    assert "the table is sound: 0 errors" in report.verdict


def die_in_batch(path, batch, call=-1):
    """A batch that dies before its commit file is created (-1), or its end record (-2)."""
    folder = path + "-count"
    shutil.copytree(path, folder)
    fuse = Fuse()
    writer = Engine(FaultyStorage(LocalStorage(folder), fuse))
    writer.write(batch, rows(range(700, 710)))
    creates = [(number, text) for number, text in enumerate(fuse.calls, 1) if text.startswith("create")]
    calls = [number for number, text in creates if text.endswith(".commit")]
    writer.writer.stop()
    shutil.rmtree(folder)
    with dying_process(), pytest.raises(PowerCut):
        Engine(FaultyStorage(LocalStorage(path), Fuse(calls[call]))).write(batch, rows(range(700, 710)))


def test_a_file_beside_a_commit(plain):
    wanted = key_set(read_table(plain))
    copy_as(plain, newest_files(plain)[0], commits(plain)[-1])
    assert key_set(read_table(plain)) != wanted
    mended(plain, Kind.STRAY_BESIDE_COMMIT, ERROR, wanted)


def test_a_file_beside_a_commit_stays_where_the_commits_own_file_is_missing(plain):
    file = newest_files(plain)[0]
    stray = copy_as(plain, file, commits(plain)[-1], parse_base_file(os.path.basename(file)).file_id)
    os.unlink(os.path.join(plain, file))
    report = look(plain, repair=True)
    assert "may hold its rows" in only(report, Kind.STRAY_BESIDE_COMMIT, ERROR, REFUSED).why
    only(report, Kind.MISSING_FILE, ERROR, REFUSED)
    assert stray in base_files(plain)
    assert not report.is_sound


def test_files_that_would_turn_visible_and_dangling_files(plain):
    wanted = key_set(read_table(plain))
    copy_as(plain, newest_files(plain)[0], between(plain))
    mended(plain, Kind.WOULD_TURN_VISIBLE, ERROR, wanted)
    copy_as(plain, newest_files(plain)[0], LATER)
    mended(plain, Kind.DANGLING_FILE, WARNING, wanted)


def test_a_lost_instant_that_a_later_commit_continued_is_put_back(plain):
    lost = commits(plain)[1]
    for file in glob.glob(f"{plain}/.hoodie/{lost}.*"):
        os.unlink(file)
    before = base_files(plain)
    only(look(plain), Kind.CONTRADICTED_END_RECORD, ERROR, POSSIBLE)
    only(look(plain, repair=True), Kind.CONTRADICTED_END_RECORD, ERROR, DONE)
    assert base_files(plain) == before
    assert lost in commits(plain)
    assert not look(plain).findings


def test_without_its_end_record_a_lost_instant_costs_no_data_file(plain):
    lost = commits(plain)[1]
    for file in (*glob.glob(f"{plain}/.hoodie/{lost}.*"), f"{plain}/{end_path(lost, Action.COMMIT)}"):
        os.unlink(file)
    before = base_files(plain)
    report = look(plain, repair=True)
    assert {f.repair for f in of(report, Kind.WOULD_TURN_VISIBLE)} == {REFUSED}
    assert base_files(plain) == before


def test_files_older_than_the_timeline(archived):
    wanted = key_set(read_table(archived))
    old = next(file for file in base_files(archived) if parse_base_file(os.path.basename(file)).instant_time
               < commits(archived)[0])  # fmt: skip
    copy_as(archived, old, parse_base_file(os.path.basename(old)).instant_time)
    mended(archived, Kind.VISIBLE_STRAY, ERROR, wanted)
    unproven = copy_as(archived, old, EARLIER)
    report = look(archived, repair=True)
    assert only(report, Kind.UNPROVEN_FILES, NOTE, REFUSED).where == unproven
    assert unproven in base_files(archived)
    assert report.is_sound


def test_a_file_of_a_rolled_back_instant_that_the_line_has_passed(plain):
    wanted = key_set(read_table(plain))
    die_in_batch(plain, 4, -2)
    late = next(iter(set(base_files(plain)) - set(base_files_of_commits(plain))))
    kept = open(os.path.join(plain, late), "rb").read()
    fill(plain, 6, 4)
    archive(HudiTable.open(plain), ARCHIVE, CLEAN)
    put(plain, late, kept)
    mended(plain, Kind.VISIBLE_STRAY, ERROR, sorted(wanted + [f"k{number}" for number in range(40, 100)]))


def base_files_of_commits(path):
    return [file for file in base_files(path) if parse_base_file(os.path.basename(file)).instant_time in commits(path)]


def test_missing_files(archived):
    create_savepoint(HudiTable.open(archived))
    held = newest_files(archived)[0]
    old = next(file for file in base_files(archived) if file.startswith("old/"))
    fill(archived, 1, 9)
    os.unlink(os.path.join(archived, held))
    os.unlink(os.path.join(archived, old))
    os.unlink(os.path.join(archived, newest_files(archived)[0]))
    lost = newest_files(archived)[0]
    os.unlink(os.path.join(archived, lost))
    before = base_files(archived)
    report = look(archived, repair=True)
    assert {f.where for f in of(report, Kind.MISSING_FROM_SAVEPOINT)} == {held, old}
    assert os.path.exists(f"{archived}/old/.hoodie_partition_metadata")  # for the file that may be brought back
    missing = of(report, Kind.MISSING_FILE)
    assert {f.where for f in missing} >= {old, lost}
    assert len(missing) == 3
    assert all(f.repair is REFUSED and "restore a savepoint" in f.advice for f in missing)
    assert base_files(archived) == before


def test_replaced_files(tmp_path):
    path = str(tmp_path / "t")
    fill(path, 1)
    engine = Engine(path, {"hoodie.datasource.write.operation": "insert_overwrite"})
    engine.write(1, rows([3, 6], v="over"))
    engine.writer.stop()
    wanted = key_set(read_table(path))
    replaced = next(file for file in base_files(path) if file.startswith("p0/") and commits(path)[0] in file)
    kept = open(os.path.join(path, replaced), "rb").read()
    assert only(look(path), Kind.REPLACED_STILL_THERE, NOTE, REFUSED).where == commits(path)[1]
    fill(path, 6, 2)
    clean(HudiTable.open(path), CLEAN)
    assert len(archive(HudiTable.open(path), ARCHIVE, CLEAN).instants) > 2
    assert look(path).findings == ()
    put(path, replaced, kept)
    report = look(path, repair=True)
    only(report, Kind.REPLACED_AND_VISIBLE, ERROR, REFUSED)
    os.unlink(os.path.join(path, replaced))
    assert set(wanted) <= set(key_set(read_table(path)))


def test_partitions_without_metadata_and_without_rows(plain):
    wanted = key_set(read_table(plain))
    os.unlink(f"{plain}/p1/.hoodie_partition_metadata")
    assert key_set(read_table(plain)) != wanted
    mended(plain, Kind.PARTITION_WITHOUT_METADATA, ERROR, wanted)
    put(plain, "a/b/.hoodie_partition_metadata")
    mended(plain, Kind.EMPTY_PARTITION, NOTE, wanted)
    assert not os.path.exists(f"{plain}/a")


def test_a_folder_with_nothing_but_strays_becomes_no_partition(plain):
    wanted = key_set(read_table(plain))
    os.makedirs(f"{plain}/stray")
    name = f"aaaa-0_9-9-9_{commits(plain)[-1]}.parquet"
    shutil.copy(os.path.join(plain, newest_files(plain)[0]), f"{plain}/stray/{name}")
    mended(plain, Kind.STRAY_BESIDE_COMMIT, ERROR, wanted)
    assert os.listdir(f"{plain}/stray") == []


def test_markers_are_kept_as_long_as_a_task_may_live_where_the_store_has_no_fence(plain):
    put(plain, f".hoodie/.temp/{commits(plain)[1]}/p0/nothing_0-0-0_{commits(plain)[1]}.parquet.marker.CREATE")
    with mock.patch.object(LocalStorage, "has_fence", False):
        assert look(plain).findings == ()
    shutil.move(f"{plain}/.hoodie/.temp/{commits(plain)[1]}", f"{plain}/.hoodie/.temp/{EARLIER}")
    with mock.patch.object(LocalStorage, "has_fence", False):
        only(look(plain), Kind.ENDED_MARKERS, WARNING, REFUSED)


def test_an_instant_of_a_live_writer_that_knows_no_leases_stays(plain):
    die_in_batch(plain, 4, -2)
    time = HudiTable.open(plain).load_timeline().pending[0].time
    put(plain, f".hoodie/.heartbeat/{time}")
    before = base_files(plain)
    assert look(plain).findings[0].kind is Kind.EXPIRED_LEASE
    stray = copy_as(plain, newest_files(plain)[0], LATER)
    assert {f.where for f in look(plain, repair=True).findings if f.repair is DONE} >= {stray}
    assert base_files(plain) == before
    assert not of(look(plain), Kind.PENDING_WRITE)


def test_what_writers_left_behind(plain):
    wanted = key_set(read_table(plain))
    over, last = commits(plain)[1], newest_files(plain)[0]
    put(plain, f".hoodie/.temp/{over}/{last}.marker.CREATE")
    os.unlink(f"{plain}/.hoodie/.temp/{over}/{last}.marker.CREATE")
    put(plain, f".hoodie/.temp/{over}/p0/nothing_0-0-0_{over}.parquet.marker.CREATE")
    mended(plain, Kind.ENDED_MARKERS, NOTE, wanted)
    put(plain, f".hoodie/.temp/{over}/p0/what is this")
    mended(plain, Kind.BROKEN_MARKERS, WARNING, wanted, {Kind.ENDED_MARKERS})
    write_heartbeat(LocalStorage(plain), between(plain), WriterIdentity("s", "q", "dead"))
    mended(plain, Kind.ENDED_HEARTBEAT, NOTE, wanted)
    os.makedirs(f"{plain}/.hoodie/.hudistream/staged/{over}")
    mended(plain, Kind.ENDED_STAGING, NOTE, wanted)
    put(plain, ".hoodie/.hudistream-half", b"x", age_s=3600)
    put(plain, ".hoodie/.hudistream-young", b"x")
    mended(plain, Kind.TEMPORARY_FILE, NOTE, wanted)
    assert os.path.exists(f"{plain}/.hoodie/.hudistream-young")
    with dying_process(), mock.patch("table.transaction.lease.Lease.release"), hold_table(LocalStorage(plain), "cron"):
        pass
    mended(plain, Kind.EXPIRED_LEASE, NOTE, wanted)


def test_markers_of_archived_instants_go_where_the_archive_tells_what_counts(archived):
    wanted = key_set(read_table(archived))
    old = [file for file in base_files(archived) if file.startswith("old/")][0]
    time = parse_base_file(os.path.basename(old)).instant_time
    put(archived, f".hoodie/.temp/{time}/{old}.marker.CREATE")
    mended(archived, Kind.ENDED_MARKERS, NOTE, wanted)
    put(archived, f".hoodie/.temp/{EARLIER}/{old}.marker.CREATE")
    report = look(archived, repair=True)
    only(report, Kind.ENDED_MARKERS, WARNING, REFUSED)
    assert old in base_files(archived)


def test_end_records(archived):
    wanted = key_set(read_table(archived))
    ends = {
        EARLIER: EndRecord(EARLIER, Action.COMMIT, COMMIT, "x"),
        LATER: EndRecord(LATER, Action.COMMIT, COMMIT, "x"),
        commits(archived)[-1]: EndRecord(commits(archived)[-1], Action.COMMIT, ROLLBACK, "x"),
    }
    put(archived, end_path(EARLIER, Action.COMMIT), ends[EARLIER].encode())
    mended(archived, Kind.ENDED_END_RECORD, NOTE, wanted)
    for time in (LATER, commits(archived)[-1]):
        put(archived, end_path(time, Action.COMMIT), ends[time].encode())
        assert only(look(archived, repair=True), Kind.CONTRADICTED_END_RECORD, WARNING, REFUSED).where.count(time)
        os.unlink(os.path.join(archived, end_path(time, Action.COMMIT)))
    put(archived, end_path(LATER, Action.COMMIT), b"{")
    assert not look(archived).is_sound
    only(look(archived, repair=True), Kind.BROKEN_END_RECORD, ERROR, REFUSED)


def test_a_dead_writers_instant_is_rolled_back_or_committed_as_was_decided(plain):
    wanted = key_set(read_table(plain))
    die_in_batch(plain, 4, -2)
    mended(plain, Kind.PENDING_WRITE, NOTE, wanted)
    die_in_batch(plain, 4)
    mended(plain, Kind.END_NOT_CARRIED_OUT, NOTE, sorted([*wanted, *(f"k{number}" for number in range(700, 710))]))
    assert HudiTable.open(plain).load_timeline().pending == ()


def test_services_that_are_pending(plain):
    for action, severity in (("clean", NOTE), ("restore", WARNING), ("compaction", NOTE), ("rollback", NOTE)):
        put(plain, f".hoodie/{LATER}.{action}.requested")
        repair = POSSIBLE if action == "rollback" else REFUSED
        assert action in only(look(plain), Kind.PENDING_SERVICE, severity, repair).text
        only(look(plain, repair=True), Kind.PENDING_SERVICE, severity, DONE if action == "rollback" else REFUSED)
        if action != "rollback":
            os.unlink(f"{plain}/.hoodie/{LATER}.{action}.requested")
    put(plain, f".hoodie/{commits(plain)[0]}.savepoint.inflight")
    only(look(plain), Kind.PENDING_SERVICE, NOTE, REFUSED)


def test_a_pending_restore_keeps_other_instants_from_being_ended(plain):
    die_in_batch(plain, 4)
    put(plain, f".hoodie/{LATER}.restore.requested")
    report = look(plain, repair=True)
    assert "finish the restore" in only(report, Kind.END_NOT_CARRIED_OUT, NOTE, REFUSED).why


def test_instants_that_do_not_hold_together(plain):
    first, second = commits(plain)[:2]
    os.unlink(f"{plain}/.hoodie/{first}.inflight")
    assert "no inflight" in only(look(plain), Kind.INSTANT_WITH_GAP, WARNING, REFUSED).text
    put(plain, f".hoodie/{second}.indexing")
    assert "commit and indexing" in only(look(plain), Kind.SAME_TIME, WARNING, REFUSED).text


def test_a_commit_that_continued_a_newer_file_lost_its_rows(plain):
    first, second, third = commits(plain)[:3]
    Path(plain, ".hoodie", f"{second}.commit").write_text(
        Path(plain, ".hoodie", f"{second}.commit").read_text().replace(first, third)
    )
    found = of(look(plain), Kind.CONTINUED_NEWER_FILE)
    assert len(found) == 3
    assert {(f.severity, f.repair) for f in found} == {(ERROR, REFUSED)}
    assert f"commit {second} continued the version of {third}" in found[0].text


def test_an_archival_that_died_is_a_note(plain):
    table, fuse = HudiTable.open(plain), Fuse()
    settings = ArchiveSettings(min_commits=2, max_commits=3)
    shutil.copytree(plain, plain + "-count")
    counted = HudiTable.open(plain + "-count")
    archive(HudiTable(FaultyStorage(counted.storage, fuse), counted.config), settings, CLEAN)
    deletes = [(number, call) for number, call in enumerate(fuse.calls, 1) if call.startswith("_delete")]
    at = next(number for number, call in deletes if call.endswith("commit"))
    with pytest.raises(PowerCut):
        archive(HudiTable(FaultyStorage(table.storage, Fuse(at)), table.config), settings, CLEAN)
    report = look(plain)
    assert {f.severity for f in report.findings} == {NOTE}
    only(report, Kind.INSTANT_WITH_GAP, NOTE, REFUSED)


def test_nothing_is_deleted_while_the_timeline_cannot_be_read(plain):
    copy_as(plain, newest_files(plain)[0], between(plain))
    lose_commit(plain, b"{")
    before = base_files(plain)
    report = look(plain, repair=True)
    only(report, Kind.UNREADABLE_TIMELINE, ERROR, REFUSED)
    assert "nothing is deleted" in of(report, Kind.WOULD_TURN_VISIBLE)[0].why
    assert base_files(plain) == before
    shutil.rmtree(f"{plain}/.hoodie/archived", ignore_errors=True)


def lose_commit(path, content):
    """The completed file of the second commit gets another content, and its end record is gone. Returns the instant."""
    time = commits(path)[1]
    put(path, f".hoodie/{time}.commit", content)
    os.unlink(os.path.join(path, end_path(time, Action.COMMIT)))
    return time


def test_a_commit_without_content_and_without_end_record_is_told(plain):
    time = lose_commit(plain, b"")
    found = only(look(plain, repair=True), Kind.UNREADABLE_TIMELINE, ERROR, REFUSED)
    assert found.where == f"{time}.commit"
    assert "Bring one of the two back" in found.text


def test_a_commit_of_another_engine_without_content_is_told(plain):
    time = lose_commit(plain, b"")
    put(plain, f".hoodie/{time}.inflight", b"{}")
    found = only(look(plain, repair=True), Kind.EMPTY_COMMIT, ERROR, REFUSED)
    assert found.where == f"{time}.commit"
    assert "restore a savepoint" in found.advice


def test_an_archive_that_cannot_be_read_is_told(archived):
    file = glob.glob(f"{archived}/.hoodie/*/.commits_.archive*")[0]
    os.truncate(file, os.path.getsize(file) - 3)
    report = look(archived, repair=True)
    only(report, Kind.UNREADABLE_TIMELINE, ERROR, REFUSED)


def rewrite(path, file, change=lambda rows: rows, **entries):
    """A base file with other rows, or other entries in its footer."""
    full = os.path.join(path, file)
    with StoredBaseFile(LocalStorage(path), file) as stored:
        known = {k: v for k, v in stored.footer.key_values.items() if k.startswith(("org", "hoodie", "parquet"))}
    table = change(pq.ParquetFile(full).read())
    kept = {key: value for key, value in {**known, **entries}.items() if value is not None}
    pq.write_table(table.replace_schema_metadata(kept), full)


def test_filters_and_key_ranges_that_do_not_cover_their_file(plain):
    file = newest_files(plain)[0]
    rewrite(plain, file)
    assert [found.kind for found in look(plain).findings] == [Kind.WRONG_SIZE]  # not that of its write stat
    wrong = sized_filter(10, 1e-6).added(pa.array(["other"])).encode()
    rewrite(plain, file, **{BLOOM_KEY: wrong})
    assert "upserts would insert them again" in only(look(plain), Kind.WRONG_FILTER, ERROR, REFUSED).text
    rewrite(plain, file, **{BLOOM_KEY: "no filter"})
    assert "cannot be read" in only(look(plain), Kind.WRONG_FILTER, ERROR, REFUSED).text
    rewrite(plain, file, **{BLOOM_KEY: None, AVRO_SCHEMA_KEY: None})
    only(look(plain), Kind.NO_HUDI_FOOTER, NOTE, REFUSED)
    rewrite(plain, file, **{MIN_KEY: "k", MAX_KEY: "k1"})
    only(look(plain), Kind.WRONG_KEY_RANGE, ERROR, REFUSED)
    assert of(look(plain, sample=0), Kind.WRONG_KEY_RANGE) == []


def test_files_that_cannot_be_read_and_schemas_that_do_not_fit(plain):
    one, other = newest_files(plain)[:2]

    def with_text(table):
        return table.set_column(table.column_names.index("ts"), "ts", pa.array(["no number"] * len(table)))

    rewrite(plain, one, with_text)
    assert "'ts' (string)" in only(look(plain), Kind.SCHEMA_DOES_NOT_FIT, ERROR, REFUSED).text
    os.truncate(os.path.join(plain, other), 100)
    assert only(look(plain, repair=True), Kind.UNREADABLE_FILE, ERROR, REFUSED).where == other


def test_a_savepoint_keeps_a_file_that_belongs_to_nothing(plain):
    stray = copy_as(plain, newest_files(plain)[0], commits(plain)[-1])
    create_savepoint(HudiTable.open(plain))
    assert "savepoint" in only(look(plain, repair=True), Kind.STRAY_BESIDE_COMMIT, ERROR, REFUSED).why
    assert stray in base_files(plain)


GOLDEN = sorted(file.stem for file in Path(__file__).parents[2].joinpath("golden").glob("*.zip"))


@pytest.mark.usefixtures("utc")
@pytest.mark.parametrize("name", GOLDEN)
def test_tables_that_hudi_wrote(golden, name):
    path, _ = golden(name)
    report = look(path)
    assert {f.severity for f in report.findings} <= {NOTE}
    assert report.files_read > 0
    pending = of(report, Kind.PENDING_WRITE)
    assert bool(pending) == ("failed_inflight" in name)
    if pending:
        wanted = key_set(read_table(path))
        before = set(base_files(path))
        assert not [f for f in look(path, repair=True).findings if f.repair is not DONE]
        assert before - set(base_files(path)) == {file for file in before if pending[0].where in file}
        assert key_set(read_table(path)) == wanted


def test_a_live_writer_is_left_alone(plain):
    engine = Engine(plain, query_id="live")
    engine.write(4, rows(range(40, 50)))
    assert look(plain).findings == ()
    with pytest.raises(CommitConflictError, match="sink"):
        look(plain, repair=True)
    seen = []

    def distribute(plan, table):
        result = Engine.distribute(engine, plan, table)
        seen.append(look(plain).findings)
        return result

    with mock.patch.object(engine, "distribute", distribute):
        engine.write(5, rows(range(50, 60)))
    assert seen == [()]


def test_what_a_writer_does_between_two_looks_is_no_finding(plain):
    real, looks = check_module.take_look, []

    def take_look(*args):
        looks.append(real(*args))
        if len(looks) == 1:
            fill(plain, 1, 4)
        return looks[-1]

    put(plain, "a/.hoodie_partition_metadata")
    with mock.patch.object(check_module, "take_look", take_look):
        assert {f.kind for f in look(plain).findings} == {Kind.EMPTY_PARTITION}
    assert len(looks) == 2
    one = Finding(Kind.DANGLING_FILE, WARNING, "a", "x", POSSIBLE)
    two = Finding(Kind.DANGLING_FILE, WARNING, "b", "x", POSSIBLE)
    assert found_by_both([one], [one, two]) == (one,)


def damage(path):
    """Everything at once that can be mended without a change of rows."""
    die_in_batch(path, 4)
    with hold_table(LocalStorage(path), "cron"):
        pass  # the dead batch's lease is over: a repair that dies has the same process
    copy_as(path, newest_files(path)[0], between(path), "bbbb-0")
    copy_as(path, newest_files(path)[0], LATER, "cccc-0")
    over = commits(path)[1]
    put(path, f".hoodie/.temp/{over}/p0/what is this")
    put(path, f".hoodie/.temp/{over}/p0/nothing_0-0-0_{over}.parquet.marker.CREATE")
    put(path, "empty/.hoodie_partition_metadata")
    put(path, end_path(EARLIER, Action.COMMIT), EndRecord(EARLIER, Action.COMMIT, COMMIT, "x").encode())
    put(path, ".hoodie/.hudistream-half", b"x", age_s=3600)
    write_heartbeat(LocalStorage(path), between(path), WriterIdentity("s", "q", "dead"))


@pytest.mark.parametrize(
    ("after", "step"),
    [
        pytest.param(False, 13, id="some calls"),
        pytest.param(False, 1, id="before the call", marks=pytest.mark.slow),
        pytest.param(True, 1, id="after the call", marks=pytest.mark.slow),
    ],
)
def test_a_repair_stopped_at_a_call_is_finished_by_the_next_one(plain, tmp_path, after, step):
    before = key_set(read_table(plain))
    damage(plain)
    later = sorted([*before, *(f"k{number}" for number in range(700, 710))])
    shutil.copytree(plain, tmp_path / "count")
    counted, fuse = HudiTable.open(str(tmp_path / "count")), Fuse()
    check(HudiTable(FaultyStorage(counted.storage, fuse), counted.config), repair=True, sample=0)
    files = base_files(str(tmp_path / "count"))
    assert len(fuse.calls) > 100
    writes = ("create", "_delete", "put", "fence", "remove", "publish", "revoke")
    for number in [n for n, call in enumerate(fuse.calls, 1) if not after or call.startswith(writes)][::step]:
        path = str(tmp_path / f"{number}")
        shutil.copytree(plain, path)
        table = HudiTable.open(path)
        with dying_process(), pytest.raises(PowerCut):
            check(HudiTable(FaultyStorage(table.storage, Fuse(number, after)), table.config), repair=True, sample=0)
        assert key_set(read_table(path)) in (before, later)
        report = check(table, repair=True, sample=0)
        assert all(f.repair is DONE for f in report.findings), (fuse.calls[number - 1], report.findings)
        assert key_set(read_table(path)) == later
        assert base_files(path) == files
        assert check(table).findings == ()
        shutil.rmtree(path)


@pytest.mark.parametrize("step", quick(1, [5, 1]))
def test_a_batch_and_an_archival_that_died_anywhere_are_no_damage(plain, tmp_path, step):
    """What crashes leave is not an error, not even a warning: it goes away by itself, or by a repair."""
    before = key_set(read_table(plain))
    both = sorted(before + [f"k{number}" for number in range(40, 50)])

    def batch(table):
        engine = Engine(table.storage, {"hoodie.datasource.write.operation": "upsert"})
        engine.write(4, rows(range(35, 50), v="new"))
        engine.writer.stop()

    def archival(table):
        archive(table, ArchiveSettings(min_commits=2, max_commits=3), CLEAN)

    for act in (batch, archival):
        fuse, path = Fuse(), str(tmp_path / "one")
        shutil.copytree(plain, path)
        act(HudiTable(FaultyStorage(LocalStorage(path), fuse), HudiTable.open(path).config))
        for number in range(1, len(fuse.calls) + 1, step):
            shutil.rmtree(path)
            shutil.copytree(plain, path)
            table = HudiTable.open(path)
            with dying_process(), suppress(PowerCut):
                act(HudiTable(FaultyStorage(table.storage, Fuse(number)), table.config))
            report = check(table)
            assert {f.severity for f in report.findings} <= {NOTE}, (fuse.calls[number - 1], report.findings)
            check(table, repair=True, sample=0)
            assert {f.kind for f in check(table, sample=0).findings} <= {Kind.INSTANT_WITH_GAP}
            assert key_set(read_table(path)) in (before, both)
        shutil.rmtree(path)


def test_the_command(plain, capsys):
    assert "the table is sound: 0 errors, 0 warnings, 0 notes in 12 files, 3 of them read" in said(
        capsys, "check", plain, "--sample", "all"
    )
    stray = copy_as(plain, newest_files(plain)[0], commits(plain)[-1])
    text = said(capsys, "check", plain, code=1)
    assert f"error   stray_beside_commit  {stray}" in text
    assert "what to do: stop all writers" in text
    document = json.loads(said(capsys, "check", plain, "--format", "json", "--sample", "1", code=1))
    assert (document["sound"], document["files"], document["files_read"]) == (False, 13, 1)
    assert document["findings"][0]["kind"] == "stray_beside_commit"
    assert document["findings"][0]["repair"] == "possible"
    code = "import sys; from table.cli.main import main; sys.exit(main(sys.argv[1:]))"
    for verbose in (["-v"], []):  # the log is apart from the result, and is there for whoever asks for it
        command = [sys.executable, "-c", code, "check", plain, "--format", "json", *verbose]
        done = subprocess.run(command, capture_output=True, check=False)
        assert (done.returncode, json.loads(done.stdout)["sound"]) == (1, False)
        assert (b"table_checked" in done.stderr) is bool(verbose)
    assert "repaired" in said(capsys, "check", plain, "--repair")
    assert "the table is sound" in said(capsys, "check", plain)


class SlowListing(FaultyStorage):
    """A store whose listings are requests: how many were made of each folder, and how many at a time."""

    calls_at_once = 8

    def __init__(self, inner):
        super().__init__(inner, Fuse())
        self.listed, self.under_way, self.most, self.lock = collections.Counter(), 0, 0, threading.Lock()

    def list_dir(self, path):
        with self.lock:
            self.listed[path] += 1
            self.under_way += 1
            self.most = max(self.most, self.under_way)
        sleep(0.01)
        try:
            return super().list_dir(path)
        finally:
            with self.lock:
                self.under_way -= 1


def test_the_folders_of_a_sound_table_are_listed_once_and_side_by_side(tmp_path):
    path = str(tmp_path / "t")
    Engine(path).write(0, rows(range(60), lambda number: f"p{number % 30:02}"))
    storage = SlowListing(LocalStorage(path))
    table = HudiTable.open(path)
    report = check(HudiTable(storage, table.config))
    assert report.is_sound
    folders = {folder: count for folder, count in storage.listed.items() if not folder.startswith(".hoodie")}
    assert folders == dict.fromkeys(["", *(f"p{number:02}" for number in range(30))], 1)
    assert storage.most > 2

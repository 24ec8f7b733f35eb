"""Check of merge-on-read tables: log files that belong to nothing, that are missing, that are damaged."""

import os
import shutil

import pytest
from engine import Engine, rows

from table import CommitConflictError, check, create_savepoint, read_table
from table.files.log.framing import BlockType, Header, LogBlock, encode_block
from table.files.names import parse_base_file, parse_log_file
from table.hudi_table import HudiTable
from table.options.groups import ArchiveSettings, BaseFileSettings, CleanSettings, CompactionSettings
from table.services.archival.archival import archive
from table.services.check.finding import Kind, Repair, Severity
from table.services.clean.clean import clean
from table.services.compaction.compaction import compact, request_compaction
from table.services.rollback.undo_commit import roll_back
from table.services.savepoint.restore import restore_to_savepoint

OPTIONS = {
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.datasource.write.operation": "upsert",
    "hoodie.parquet.small.file.limit": "0",
    "hoodie.datasource.compaction.async.enable": "false",
}
SOON, FILES = CompactionSettings(delta_commits=1, tasks=1), BaseFileSettings()
NARROW, CLEAN = ArchiveSettings(min_commits=2, max_commits=3), CleanSettings(commits_retained=1, grace_ms=0)
EARLIER, LATER = "20200101000000000", "29990101000000000"
ERROR, WARNING, NOTE = Severity
DONE, POSSIBLE, REFUSED = Repair


def write(path, first, last):
    engine = Engine(path, OPTIONS)
    for number in range(first, last):
        engine.write(number, rows(range(6), ts=number, v=f"v{number}"))
    engine.writer.stop()


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    path = str(tmp_path_factory.mktemp("check") / "t")
    write(path, 0, 4)
    return path


@pytest.fixture
def path(base, tmp_path):
    return shutil.copytree(base, str(tmp_path / "t"))


def look(path, **settings):
    return check(HudiTable.open(path), **{"sample": None, **settings})


def only(report, kind, severity, repair):
    [found] = report.findings
    assert (found.kind, found.severity, found.repair) == (kind, severity, repair), report.findings
    assert bool(found.why) == (repair is REFUSED)
    return found


def assert_sound(path):
    report = look(path)
    assert report.findings == ()
    assert report.files_read > 0


def times(path):
    return [instant.time for instant in HudiTable.open(path).load_timeline().completed_writes]


def files(path, parse):
    found = (os.path.join(os.path.relpath(f, path), n) for f, _, names in os.walk(path) for n in names if parse(n))
    return sorted(found, key=lambda name: os.path.getmtime(os.path.join(path, name)))


def logs(path):
    return files(path, parse_log_file)


def values(path):
    return set(read_table(path).column("v").to_pylist())


def bytes_of(path, name):
    with open(os.path.join(path, name), "rb") as file:
        return file.read()


def put(path, name, data):
    with open(os.path.join(path, name), "wb") as file:
        file.write(data)


def beside(path, name, data, version=9):
    """Another log file of the slice of that one."""
    parsed = parse_log_file(os.path.basename(name))
    new = os.path.join(os.path.dirname(name), f".{parsed.file_id}_{parsed.base_instant_time}.log.{version}_7-7-7")
    put(path, new, data)
    return new


def block(time, kind=BlockType.DELETE, **header):
    content = bytes.fromhex("000000030000000100") if kind is BlockType.DELETE else b""
    return encode_block(LogBlock(kind, {Header.INSTANT_TIME: time, **header}, content))


def rollback_block(target):
    more = {Header.TARGET_INSTANT_TIME: target, Header.COMMAND_BLOCK_TYPE: "0"}
    return encode_block(LogBlock(BlockType.COMMAND, {Header.INSTANT_TIME: LATER, **more}, b""))


def test_a_table_is_sound_whatever_its_services_did(path):
    table = HudiTable.open(path)
    assert_sound(path)
    compact(table, SOON, FILES)
    assert_sound(path)
    write(path, 4, 6)
    request_compaction(table, SOON)
    only(look(path), Kind.PENDING_SERVICE, NOTE, REFUSED)
    write(path, 6, 8)
    compact(table, SOON, FILES, schedules=False)
    time = create_savepoint(table)
    clean(table, CLEAN)
    write(path, 8, 10)
    archive(table, NARROW, CLEAN, SOON)
    assert_sound(path)
    roll_back(table, times(path)[-1], force=True)
    restore_to_savepoint(table, time, force=True)
    assert_sound(path)
    assert look(path, repair=True).findings == ()


@pytest.mark.parametrize(
    ("time", "kind", "severity"),
    [
        (LATER, Kind.DANGLING_FILE, WARNING),
        ("between", Kind.WOULD_TURN_VISIBLE, ERROR),
        ("last", Kind.STRAY_BESIDE_COMMIT, ERROR),
    ],
)
def test_a_log_file_that_no_commit_names(path, time, kind, severity):
    last = times(path)[-1]
    written_at = {"between": str(int(times(path)[1]) + 1), "last": last}.get(time, time)
    stray = beside(path, logs(path)[-1], block(written_at))
    assert only(look(path), kind, severity, POSSIBLE).where == stray
    # beside the blocks of others it stays
    alone = bytes_of(path, stray)
    put(path, stray, alone + block(str(int(times(path)[2]) + 1)))
    if time == LATER:
        only(look(path), Kind.WOULD_TURN_VISIBLE, ERROR, POSSIBLE)
    put(path, stray, alone + rollback_block("1"))
    assert_sound(path)  # whoever appends takes care of what the file holds
    put(path, stray, alone)
    if time != "last":
        # taken back by a later block: that never counts
        command = beside(path, stray, rollback_block(written_at), 10)
        assert_sound(path)
        os.unlink(os.path.join(path, command))
    create_savepoint(HudiTable.open(path))
    only(look(path, repair=True), kind, severity, REFUSED if time == "last" else DONE)
    assert os.path.exists(os.path.join(path, stray)) is (time == "last")
    assert values(path) == {"v3"}


def test_blocks_older_than_the_timeline_count(path):
    table = HudiTable.open(path)
    stray = beside(path, logs(path)[-1], block(times(path)[1]))
    archive(table, NARROW, CLEAN, SOON)
    assert only(look(path), Kind.VISIBLE_STRAY, ERROR, POSSIBLE).where == stray
    put(path, stray, block(EARLIER))
    only(look(path, repair=True), Kind.UNPROVEN_FILES, NOTE, REFUSED)
    put(path, stray, block(times(path)[0]) + block(EARLIER))
    only(look(path), Kind.STRAY_BESIDE_COMMIT, ERROR, POSSIBLE)
    put(path, stray, b"#HUDI#and no more")
    only(look(path, repair=True), Kind.DANGLING_FILE, WARNING, DONE)
    assert values(path) == {"v3"}


def test_a_pending_write_is_not_judged(path):
    table = HudiTable.open(path)
    beside(path, logs(path)[-1], block(LATER))
    put(path, f".hoodie/{LATER}.deltacommit.requested", b"")
    put(path, f".hoodie/{LATER}.deltacommit.inflight", b"")
    only(look(path), Kind.PENDING_WRITE, NOTE, POSSIBLE)
    assert table.load_timeline().pending


def test_what_a_commit_wrote_and_is_not_there(path):
    table = HudiTable.open(path)
    name, data = logs(path)[-1], bytes_of(path, logs(path)[-1])
    os.unlink(os.path.join(path, name))
    assert only(look(path, repair=True), Kind.MISSING_FILE, ERROR, REFUSED).where == name
    put(path, name, data)
    assert_sound(path)
    archive(table, NARROW, CLEAN, SOON)
    first = logs(path)[0]
    data = bytes_of(path, first)
    os.unlink(os.path.join(path, first))
    assert only(look(path), Kind.MISSING_FILE, ERROR, REFUSED).where == first
    put(path, first, data)
    compact(table, SOON, FILES)
    os.unlink(os.path.join(path, first))  # as cleaning does: it was folded
    assert_sound(path)


def test_damaged_blocks(path):
    name, data = logs(path)[-1], bytes_of(path, logs(path)[-1])
    put(path, name, data[:-9])
    found = {finding.kind: finding for finding in look(path).findings}
    assert set(found) == {Kind.DAMAGED_BLOCK, Kind.WRONG_SIZE}
    assert "rows of it are lost" in found[Kind.DAMAGED_BLOCK].text
    put(path, name, b"x" + data)
    only(look(path), Kind.UNREADABLE_FILE, ERROR, REFUSED)
    middle = len(data) - 120
    put(path, name, data[:middle] + bytes(100) + data[middle + 100 :])
    only(look(path), Kind.UNREADABLE_FILE, ERROR, REFUSED)
    put(path, name, data)
    assert_sound(path)
    unnamed = beside(path, name, block("1") + b"#HUDI#and no more")
    found = {finding.kind: finding for finding in look(path).findings}
    assert set(found) == {Kind.DAMAGED_BLOCK, Kind.UNPROVEN_FILES}
    assert found[Kind.DAMAGED_BLOCK].severity is WARNING
    assert found[Kind.DAMAGED_BLOCK].where == unnamed


def test_archival_deletes_what_would_turn_visible_and_stops_at_what_it_cannot(path):
    table = HudiTable.open(path)
    between = str(int(times(path)[0]) + 1)
    stray = beside(path, logs(path)[-1], block(between))
    for end in os.listdir(f"{path}/.hoodie/.hudistream/ends"):
        os.unlink(f"{path}/.hoodie/.hudistream/ends/{end}")  # as if another engine had written the commits
    shared = shutil.copytree(path, path + "-shared")
    hidden = shutil.copytree(path, path + "-hidden")
    assert archive(table, NARROW, CLEAN, SOON).orphans == (stray,)
    assert not os.path.exists(os.path.join(path, stray))
    beside(hidden, stray, rollback_block(between), 10)
    assert archive(HudiTable.open(hidden), NARROW, CLEAN, SOON).orphans == ()
    put(shared, stray, block(between) + block(times(path)[-1]))
    before = times(shared)
    with pytest.raises(Exception, match=f"holds blocks of {between}.*nothing is archived"):
        archive(HudiTable.open(shared), NARROW, CLEAN, SOON)
    assert times(shared) == before
    assert values(shared) == {"v3"}


def test_a_partition_of_log_files_alone_is_shown_again(path):
    for name in files(path, parse_base_file):
        if name.startswith("p0/"):
            os.unlink(os.path.join(path, name))
    os.unlink(f"{path}/p0/.hoodie_partition_metadata")
    kinds = {(f.kind, f.repair) for f in look(path, repair=True).findings}
    assert kinds == {(Kind.MISSING_FILE, REFUSED), (Kind.PARTITION_WITHOUT_METADATA, DONE)}


def test_a_live_writer_keeps_a_repair_away(path):
    engine = Engine(path, OPTIONS)
    engine.write(4, rows(range(6), ts=4))
    with pytest.raises(CommitConflictError):
        look(path, repair=True)
    engine.writer.stop()

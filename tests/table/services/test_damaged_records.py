"""Damage to the records of a table: completed files, end records, instants, properties, partition metadata files.

What one record lost, the record with the same content gives back. No file is deleted that one of them names.
"""

import os
import shutil
import zipfile
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from hudistream import ArrowSink
from table import CommitConflictError, CorruptFileError, check, cluster, create_savepoint, read_table
from table.config.held_change import MARK
from table.config.properties_copy import COPY_FILE, read_whole
from table.config.table_config import BACKUP_FILE, PROPERTIES_FILE, TableConfig, load_properties, load_table_config
from table.errors import TimelineMovedError
from table.files.partition_metadata import PARTITION_METAFILE
from table.hudi_table import HudiTable
from table.options.groups import ArchiveSettings, BaseFileSettings, CleanSettings, CompactionSettings
from table.references.strays import delete_before_first_commit, find_referenced
from table.services.archival.archival import archive
from table.services.check.finding import Kind, Repair, Severity
from table.services.check.properties import Evidence, find_contradiction, mend_properties
from table.services.compaction.compaction import compact
from table.services.rollback.undo_commit import roll_back
from table.services.savepoint.restore import restore_to_savepoint
from table.snapshot import Snapshot
from table.storage.local import LocalStorage
from table.timeline.end_record import ENDS_FOLDER, EndRecord, decode_end, end_path, find_end
from table.timeline.instant import Action
from table.timeline.lost_properties import count_commits
from table.timeline.metadata.rollback import RollbackPlan, encode_rollback_plan
from table.transaction.lease import hold_table
from table.transaction.mend_commits import mend_commits

GOLDEN = Path(__file__).parents[2] / "golden" / "cdc"
KINDS = [(version, kind) for version in ("6", "8", "9") for kind in ("COPY_ON_WRITE", "MERGE_ON_READ")]
OPTIONS = {
    "hoodie.clean.automatic": "false",
    "hoodie.archive.automatic": "false",
    "hoodie.datasource.compaction.async.enable": "false",
    "hoodie.parquet.small.file.limit": "0",
}
CLEAN = CleanSettings(grace_ms=0)


def options_of(version, kind):
    return {**OPTIONS, "hoodie.write.table.version": version, "hoodie.datasource.write.table.type": kind}


def write(path, number, options, operation="upsert", keys=6):
    rows = pa.table({"id": [f"k{n}" for n in range(keys)], "p": ["p"] * keys, "ts": [number] * keys})
    with ArrowSink(path, options, key="id", partition_by="p", order_by="ts", operation=operation) as sink:
        return sink.write(rows, batch_id=number)


def fill(path, version, kind):
    """A table with every action that has an end record with a commit in it."""
    options = options_of(version, kind)
    for number, operation in enumerate(("insert", "upsert", "upsert", "insert_overwrite", "upsert")):
        write(path, number, options, operation)
    if kind == "MERGE_ON_READ":
        compact(HudiTable.open(path), CompactionSettings(delta_commits=1, tasks=1), BaseFileSettings())
    write(path, 5, options, "insert", keys=9)
    cluster(path)
    return options


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    """Tables of each version and type, made once."""
    made = {}

    def table(version, kind):
        if (version, kind) not in made:
            path = str(tmp_path_factory.mktemp("made") / "t")
            fill(path, version, kind)
            made[version, kind] = path
        return made[version, kind]

    return table


def rows_of(path):
    return read_table(path).sort_by("id").to_pylist()


def writes_of(path):
    return HudiTable.open(path).load_timeline().completed_writes


def content(path, name):
    return Path(path, name).read_bytes()


def findings(report, kind):
    return [(found.severity, found.repair) for found in report.findings if found.kind is kind]


def lose(path, *times):
    """Deletes every instant file of these times."""
    names = HudiTable.open(path).layout.names
    for file in os.listdir(Path(path, names.folder)):
        parsed = names.parse(file)
        if parsed is not None and parsed.time in times:
            os.unlink(Path(path, names.folder, file))


DAMAGES = {
    "empty": lambda _: b"",
    "cut": lambda whole: whole[: len(whole) // 2],
    "short of one byte": lambda whole: whole[:-1],
    "zeros": lambda whole: bytes(len(whole)),
    "an empty object": lambda _: b"{}",
}


@pytest.mark.parametrize("how", DAMAGES)
@pytest.mark.parametrize(("version", "kind"), KINDS)
def test_damaged_completed_files_change_no_answer_and_are_written_again(tables, tmp_path, version, kind, how):
    path = shutil.copytree(tables(version, kind), str(tmp_path / "t"))
    wanted, before = rows_of(path), {instant.path: content(path, instant.path) for instant in writes_of(path)}
    assert {instant.action for instant in writes_of(path)} >= {Action.REPLACE_COMMIT}
    for name, whole in before.items():
        Path(path, name).write_bytes(DAMAGES[how](whole))
    assert rows_of(path) == wanted
    shutil.copytree(path, str(tmp_path / "by batch" / "t"))
    report = check(path, repair=True, sample=None)
    assert findings(report, Kind.DAMAGED_COMMIT) == [(Severity.ERROR, Repair.DONE)] * len(before)
    assert report.is_sound
    assert {name: content(path, name) for name in before} == before
    path = str(tmp_path / "by batch" / "t")
    assert write(path, 5, options_of(version, kind), "insert", keys=9).skipped, "the batch is in the table"
    assert {name: content(path, name) for name in before} == before
    assert rows_of(path) == wanted


@pytest.mark.parametrize(("version", "kind"), [("6", "COPY_ON_WRITE"), ("9", "MERGE_ON_READ")])
def test_every_cut_of_a_completed_file_is_seen(tables, tmp_path, version, kind):
    path = shutil.copytree(tables(version, kind), str(tmp_path / "t"))
    table, newest = HudiTable.open(path), writes_of(path)[-2]
    whole = content(path, newest.path)
    wanted = Snapshot.load(table).commits.read(newest)
    for size in (*range(0, len(whole) - 40, 29), *range(len(whole) - 40, len(whole))):
        Path(path, newest.path).write_bytes(whole[:size])
        assert Snapshot.load(table).commits.read(newest) == wanted, size


@pytest.mark.parametrize("end", [None, b"", b'{"end": "com'])
@pytest.mark.parametrize("damage", [b"", b'{"oops"'])
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_where_both_records_are_damaged_nothing_goes_on_in_silence(tmp_path, kind, damage, end):
    path, options = str(tmp_path / "t"), options_of("6", kind)
    for number in range(3):
        write(path, number, options, "insert")
    newest = writes_of(path)[-1]
    place = Path(path, end_path(newest.time, newest.action))
    Path(path, newest.path).write_bytes(damage)
    place.unlink() if end is None else place.write_bytes(end)
    with pytest.raises(CorruptFileError, match=newest.time):
        write(path, 2, options, "insert")
    report = check(path, repair=True)
    assert not report.is_sound
    assert findings(report, Kind.UNREADABLE_TIMELINE) == [(Severity.ERROR, Repair.REFUSED)]
    assert len(list(Path(path, "p").glob("*.parquet"))) == 3


def test_a_reader_refuses_a_replace_commit_of_which_nothing_is_known(tmp_path):
    path = str(tmp_path / "t")
    write(path, 0, OPTIONS)
    write(path, 1, OPTIONS, "insert_overwrite")
    newest = writes_of(path)[-1]
    Path(path, newest.path).write_bytes(b"")
    assert len(rows_of(path)) == 6
    Path(path, end_path(newest.time, newest.action)).unlink()
    for inflight in (content(path, newest.path.removesuffix("replacecommit") + "replacecommit.inflight"), b""):
        Path(path, f".hoodie/{newest.time}.replacecommit.inflight").write_bytes(inflight)
        with pytest.raises(CorruptFileError, match=newest.time):
            rows_of(path)


@pytest.mark.parametrize(("version", "kind"), KINDS)
def test_a_commit_whose_file_vanishes_after_the_listing_says_what_it_said(tables, tmp_path, version, kind):
    path = str(tmp_path / "t")
    shutil.copytree(tables(version, kind), path)
    whole, seen = (Snapshot.load(HudiTable.open(path)) for _ in range(2))
    outlines = list(whole.commits.find_outlines(whole.timeline.completed_writes))
    assert whole.committed.replaced
    for write in seen.timeline.completed_writes:
        Path(path, write.path).unlink()
    assert seen.committed == whole.committed
    assert list(seen.commits.find_outlines(seen.timeline.completed_writes)) == outlines


def test_a_replace_commit_that_vanishes_and_has_no_end_record_stops_whoever_listed_it(tmp_path):
    path = str(tmp_path / "t")
    write(path, 0, OPTIONS)
    write(path, 1, OPTIONS, "insert_overwrite")
    seen = Snapshot.load(HudiTable.open(path))
    Path(path, writes_of(path)[-1].path).unlink()
    shutil.rmtree(Path(path, ENDS_FOLDER))
    with pytest.raises(TimelineMovedError, match="was undone or deleted since the timeline was listed"):
        _ = seen.committed


@pytest.mark.parametrize(("version", "kind"), KINDS)
def test_a_lost_instant_is_put_back(tables, tmp_path, version, kind):
    path, options = str(tmp_path / "t"), options_of(version, kind)
    for number in range(3):
        write(path, number, options, "insert", keys=6 + number)
    wanted, newest = rows_of(path), writes_of(path)[-1]
    lose(path, newest.time)
    assert rows_of(path) != wanted
    report = check(path)
    assert findings(report, Kind.CONTRADICTED_END_RECORD) == [(Severity.ERROR, Repair.POSSIBLE)]
    assert check(path, repair=True, sample=None).is_sound
    assert writes_of(path)[-1] == newest
    assert rows_of(path) == wanted
    assert write(path, 2, options, "insert").skipped
    assert not check(path, sample=None).findings


@pytest.mark.parametrize("by_batch", [False, True])
@pytest.mark.parametrize("left", ["requested", "inflight"])
@pytest.mark.parametrize(("version", "kind"), KINDS)
def test_an_instant_that_lost_two_of_its_files_is_completed(tmp_path, version, kind, left, by_batch):
    path, options = str(tmp_path / "t"), options_of(version, kind)
    for number in range(2):
        write(path, number, options, "insert")
    wanted, newest = rows_of(path), writes_of(path)[-1]
    for file in HudiTable.open(path).load_timeline().files_of(newest.time, newest.action):
        if not file.path.endswith(left):
            Path(path, file.path).unlink()
    if by_batch:
        assert write(path, 1, options, "insert").skipped
    else:
        assert check(path, repair=True).is_sound
    assert writes_of(path)[-1] == newest
    assert rows_of(path) == wanted


def test_a_timeline_that_was_lost_whole_is_put_back(tmp_path):
    path = str(tmp_path / "t")
    for number in range(3):
        write(path, number, OPTIONS)
    wanted, before = rows_of(path), writes_of(path)
    lose(path, *(instant.time for instant in before))
    table = HudiTable.open(path)
    with pytest.raises(CorruptFileError, match="nothing was deleted"):
        delete_before_first_commit(table, "29990101000000000")
    assert check(path, repair=True, sample=None).is_sound
    assert writes_of(path) == before
    assert rows_of(path) == wanted


def test_a_lost_instant_is_not_put_back_behind_writes_that_were_made_without_it(tmp_path):
    path = str(tmp_path / "t")
    for number in range(3):
        write(path, number, OPTIONS, "insert")
    newest = writes_of(path)[-1]
    lose(path, newest.time)
    assert not write(path, 2, OPTIONS, "insert").skipped, "no record on the timeline tells of the batch"
    wanted = rows_of(path)
    report = check(path, repair=True)
    assert findings(report, Kind.CONTRADICTED_END_RECORD) == [(Severity.ERROR, Repair.REFUSED)]
    assert not report.is_sound
    assert len(list(Path(path, "p").glob("*.parquet"))) == 4
    for number in range(3, 9):
        write(path, number, OPTIONS)
    with pytest.raises(CorruptFileError, match="nothing is archived"):
        archive(HudiTable.open(path), ArchiveSettings(min_commits=2, max_commits=3), CLEAN)
    Path(path, end_path(newest.time, newest.action)).unlink()
    assert findings(check(path, repair=True), Kind.WOULD_TURN_VISIBLE) == [(Severity.ERROR, Repair.DONE)]
    assert len(wanted) == 18


@pytest.mark.parametrize("way", ["rollback", "restore"])
@pytest.mark.parametrize("version", ["6", "8"])
def test_files_of_an_instant_that_was_undone_are_strays_whatever_its_end_record_says(tmp_path, version, way):
    path, options = str(tmp_path / "t"), options_of(version, "COPY_ON_WRITE")
    write(path, 0, options, "insert")
    create_savepoint(path)
    write(path, 1, options, "insert")
    newest = writes_of(path)[-1]
    table = HudiTable.open(path)
    end = find_end(table.storage, newest.time, newest.action)
    kept = [(file, file.read_bytes()) for file in Path(path, "p").glob(f"*{newest.time}.parquet")]
    if way == "rollback":
        roll_back(path, newest.time, force=True)
    else:
        restore_to_savepoint(path, writes_of(path)[0].time, force=True)
    table.storage.put(end_path(newest.time, newest.action), end.encode())  # as where another engine undid it
    for file, data in kept:
        file.write_bytes(data)
    assert find_referenced(Snapshot.load(table), newest.time) == frozenset()
    report = check(path, repair=True)
    assert kept
    assert not any(file.exists() for file, _ in kept)
    assert findings(report, Kind.CONTRADICTED_END_RECORD) == []


def test_a_sweep_keeps_what_an_end_record_names_and_what_a_damaged_one_may_name(tmp_path):
    path = str(tmp_path / "t")
    for number in range(2):
        write(path, number, OPTIONS, "insert")
    newest = writes_of(path)[-1]
    [file] = Path(path, "p").glob(f"*{newest.time}.parquet")
    lose(path, newest.time)
    snapshot = Snapshot.load(HudiTable.open(path))
    assert find_referenced(snapshot, newest.time) == {f"p/{file.name}"}
    marker = Path(path, ".hoodie", ".temp", newest.time, "p", f"{file.name}.marker.CREATE")
    for end in (content(path, end_path(newest.time, newest.action)), b"{"):
        Path(path, end_path(newest.time, newest.action)).write_bytes(end)
        marker.parent.mkdir(parents=True, exist_ok=True)
        marker.touch()
        shutil.copytree(path, str(tmp_path / f"batch {len(end)}" / "t"))
        write(str(tmp_path / f"batch {len(end)}" / "t"), 2, OPTIONS)
        assert Path(tmp_path, f"batch {len(end)}", "t", "p", file.name).exists()
    assert find_referenced(snapshot, newest.time) is None
    report = check(path, repair=True)
    assert findings(report, Kind.BROKEN_END_RECORD) == [(Severity.ERROR, Repair.REFUSED)]
    assert file.exists()


@pytest.mark.parametrize(("version", "kind"), KINDS)
def test_damaged_end_records_of_completed_writes_are_written_again(tables, tmp_path, version, kind):
    path = shutil.copytree(tables(version, kind), str(tmp_path / "t"))
    names = {instant.time for instant in writes_of(path)}
    before = {file: file.read_bytes() for file in Path(path, ENDS_FOLDER).iterdir() if file.name[:17] in names}
    for number, file in enumerate(before):
        file.write_bytes(b"" if number % 2 else before[file][:50])
    report = check(path, repair=True)
    assert findings(report, Kind.BROKEN_END_RECORD) == [(Severity.ERROR, Repair.DONE)] * len(before)
    assert report.is_sound
    table = HudiTable.open(path)
    for file, data in before.items():
        time, _, action = file.name.partition(".")
        was, now = decode_end(time, Action(action), data), find_end(table.storage, time, Action(action))
        assert (now.end, now.metadata, now.completion_time) == (was.end, was.metadata, was.completion_time)


def test_a_lost_instant_is_put_back_beside_a_metadata_table(tmp_path):
    path = str(tmp_path / "t")
    options = {**OPTIONS, "hoodie.metadata.enable": "true"}
    for number in range(3):
        write(path, number, options, "insert")
    wanted, newest = rows_of(path), writes_of(path)[-1]
    lose(path, newest.time)
    assert check(path, repair=True, sample=None).is_sound
    assert rows_of(path) == wanted
    assert "files" in HudiTable.open(path).config.metadata_indexes
    assert not check(path, sample=None).findings


def test_a_live_writer_keeps_a_repair_out(tmp_path):
    path = str(tmp_path / "t")
    write(path, 0, OPTIONS)
    newest = writes_of(path)[-1]
    Path(path, newest.path).write_bytes(b"")
    with hold_table(HudiTable.open(path).storage, "a stream"), pytest.raises(CommitConflictError):
        check(path, repair=True)
    assert content(path, newest.path) == b""
    Path(path, PROPERTIES_FILE).unlink()
    with hold_table(LocalStorage(path), "a stream"), pytest.raises(CommitConflictError):
        check(path, repair=True)
    assert not Path(path, PROPERTIES_FILE).exists()


def test_a_completed_file_that_is_being_undone_or_is_gone_does_not_come_back(tmp_path):
    path = str(tmp_path / "t")
    for number in range(2):
        write(path, number, OPTIONS)
    newest, table = writes_of(path)[-1], HudiTable.open(path)
    Path(path, newest.path).write_bytes(b"")
    gone = Snapshot.load(table)
    gone.commits.read(newest)
    plan = encode_rollback_plan(RollbackPlan(newest.time, newest.action.value, ()))
    Path(path, ".hoodie/29990101000000000.rollback.requested").write_bytes(plan)
    undone = Snapshot.load(table)
    undone.commits.read(newest)
    assert mend_commits(undone) == ()
    Path(path, newest.path).unlink()
    assert mend_commits(gone) == ()
    assert not Path(path, newest.path).exists()


def test_an_end_record_that_names_no_file_is_a_warning(tmp_path):
    path = str(tmp_path / "t")
    write(path, 0, OPTIONS)
    record = EndRecord("29990101000000000", Action.COMMIT, "commit", "x", b"{}")
    HudiTable.open(path).storage.put(end_path(record.time, record.action), record.encode())
    assert findings(check(path), Kind.CONTRADICTED_END_RECORD) == [(Severity.WARNING, Repair.REFUSED)]


@pytest.mark.parametrize("name", ["v6_cow_data_before_after", "v9_mor_data_before_after"])
@pytest.mark.parametrize("is_off", [False, True])
def test_files_of_changes_belong_to_the_commits_that_name_them(tmp_path, name, is_off):
    path = str(tmp_path / "t")
    with zipfile.ZipFile(GOLDEN / f"{name}.zip") as archive_file:
        archive_file.extractall(path)
    properties = Path(path, PROPERTIES_FILE)
    if is_off:
        properties.write_text(properties.read_text().replace("cdc.enabled=true", "cdc.enabled=false"))
    changes = sorted(Path(path).rglob("*.cdc"))
    report = check(path, repair=is_off, sample=None)
    assert report.is_sound
    assert {found.severity for found in report.findings} <= {Severity.NOTE}
    assert sorted(Path(path).rglob("*.cdc")) == changes != []


@pytest.mark.parametrize("what", ["deleted", "emptied"])
@pytest.mark.parametrize(("version", "kind"), KINDS)
def test_lost_properties_are_told_and_made_again(tables, tmp_path, version, kind, what):
    path = shutil.copytree(tables(version, kind), str(tmp_path / "t"))
    wanted, before = rows_of(path), load_table_config(HudiTable.open(path).storage)
    count = len(writes_of(path))
    file = Path(path, PROPERTIES_FILE)
    file.unlink() if what == "deleted" else file.write_bytes(b"")
    for use in (lambda: write(path, 6, options_of(version, kind)), lambda: read_table(path), lambda: check(path)):
        with pytest.raises(CorruptFileError, match=f"this was a table with {count} commits.*check PATH --repair"):
            use()
    report = check(path, repair=True)
    assert report.is_sound
    [found] = [one for one in report.findings if one.kind is Kind.PROPERTIES]
    assert (found.repair, COPY_FILE in found.text) == (Repair.DONE, True)
    assert f"hoodie.table.version={version}" in found.text
    assert load_table_config(HudiTable.open(path).storage) == before
    assert rows_of(path) == wanted
    assert not write(path, 6, options_of(version, kind)).skipped


def test_properties_are_made_again_without_the_mark_of_a_change(tables, tmp_path):
    path = shutil.copytree(tables("8", "COPY_ON_WRITE"), str(tmp_path / "t"))
    storage, copy = HudiTable.open(path).storage, Path(path, COPY_FILE)
    assert not Path(path, BACKUP_FILE).exists()
    copy.write_text(copy.read_text().replace("hoodie.table.name=", f"{MARK}=somebody\nhoodie.table.name="))
    assert read_whole(storage, COPY_FILE)[MARK] == "somebody"
    Path(path, PROPERTIES_FILE).write_bytes(b"")
    with hold_table(storage, "repairs"):
        assert mend_properties(storage)
    assert MARK not in load_properties(storage)


@pytest.mark.parametrize("version", ["6", "8", "9"])
def test_every_cut_of_the_properties_is_seen(tmp_path, version):
    path = str(tmp_path / "t")
    write(path, 0, options_of(version, "COPY_ON_WRITE"))
    storage, whole = HudiTable.open(path).storage, content(path, PROPERTIES_FILE)
    before = load_table_config(storage)
    unseen = []
    for length in range(len(whole)):
        Path(path, PROPERTIES_FILE).write_bytes(whole[:length])
        try:
            unseen.append((length, load_table_config(storage)))
        except CorruptFileError:
            continue
    # a cut at the end of a line, behind the layout's version: what is gone has its default
    assert len(unseen) == (0 if version == "6" else 1)
    assert [replace(config, extra=before.extra) for _, config in unseen] == [before] * len(unseen)


def test_properties_that_lost_a_lasting_key_are_not_written_on(tmp_path):
    path = str(tmp_path / "t")
    write(path, 0, OPTIONS)
    properties = Path(path, PROPERTIES_FILE)
    whole, copy = properties.read_text(), content(path, COPY_FILE)
    properties.write_text("".join(line for line in whole.splitlines(True) if "recordkey.fields" not in line))
    with ArrowSink(path, OPTIONS) as sink, pytest.raises(CorruptFileError, match=r"has lost .*recordkey\.fields=id"):
        sink.write(pa.table({"id": ["k"], "p": ["p"], "ts": [1]}), operation="insert")
    assert content(path, COPY_FILE) == copy
    properties.write_text(whole)
    assert not write(path, 1, OPTIONS).skipped


def test_hudis_own_backup_comes_before_the_copy(tmp_path):
    path = str(tmp_path / "t")
    write(path, 0, OPTIONS)
    properties = Path(path, PROPERTIES_FILE)
    Path(path, BACKUP_FILE).write_text(properties.read_text() + "hoodie.of.backup=1\n")
    properties.unlink()
    report = check(path, repair=True)
    assert BACKUP_FILE in next(one.text for one in report.findings if one.kind is Kind.PROPERTIES)
    assert "hoodie.of.backup=1" in properties.read_text()


def test_without_a_source_nothing_is_made(tmp_path):
    path = str(tmp_path / "t")
    write(path, 0, OPTIONS)
    for name in (PROPERTIES_FILE, COPY_FILE):
        Path(path, name).unlink()
    before = sorted(Path(path).rglob("*"))
    with pytest.raises(CorruptFileError, match="this was a table with 1 commit,"):
        check(path, repair=True)
    assert sorted(Path(path).rglob("*")) == before


@pytest.mark.parametrize(
    ("version", "seen", "refused"),
    [
        (6, Evidence(True, False), ""),
        (6, Evidence(False, False), ""),
        (8, Evidence(False, True, "8", True), ""),
        (8, Evidence(False, True, "", None), ""),
        (6, Evidence(True, True), "conversion"),
        (6, Evidence(False, True), "from version 8 on"),
        (8, Evidence(True, False), "as in version 6"),
        (8, Evidence(False, True, "9"), "metadata table hoodie.table.version=9"),
        (6, Evidence(True, False, "6", True), "another timeline layout"),
        (9, Evidence(False, True, "", False), "another timeline layout"),
    ],
)
def test_which_properties_contradict_a_table(version, seen, refused):
    config = TableConfig("t", ("id",), version=version, layout_version=1 if version == 6 else 2)
    found = find_contradiction(config, seen)
    assert refused in found
    assert bool(found) == bool(refused)


def test_a_copy_of_another_version_is_refused(tmp_path):
    path, other = str(tmp_path / "t"), str(tmp_path / "other")
    write(path, 0, options_of("6", "COPY_ON_WRITE"))
    write(other, 0, options_of("8", "COPY_ON_WRITE"))
    Path(path, PROPERTIES_FILE).unlink()
    shutil.copy(Path(other, PROPERTIES_FILE), Path(path, COPY_FILE))
    with pytest.raises(CorruptFileError, match=r"the instants are in \.hoodie, as in version 6"):
        check(path, repair=True)
    assert not Path(path, PROPERTIES_FILE).exists()


def test_the_copy_is_renewed_when_a_batch_sees_other_properties(tmp_path):
    path = str(tmp_path / "t")
    rows = pa.table({"id": ["a"]})
    with ArrowSink(path, OPTIONS, key="id") as sink:
        sink.write(rows)
        first = content(path, COPY_FILE)
        sink.write(rows)
        assert content(path, COPY_FILE) == first
        with Path(path, PROPERTIES_FILE).open("a") as file:
            file.write("hoodie.added=1\n")
        sink.write(rows)
        assert b"hoodie.added=1" in content(path, COPY_FILE)
        renewed = os.stat(Path(path, COPY_FILE)).st_mtime_ns
    with ArrowSink(path, OPTIONS, key="id") as sink:
        sink.write(rows)
    assert os.stat(Path(path, COPY_FILE)).st_mtime_ns == renewed


OPERATIONS = ("upsert", "insert")
INDEXES = ("SIMPLE", "GLOBAL_SIMPLE", "BUCKET")
LISTING = [(index, "COPY_ON_WRITE", operation) for index in INDEXES for operation in OPERATIONS]
# merge-on-read refuses moves of a global index, and inserts into buckets
LISTING += [("SIMPLE", "MERGE_ON_READ", operation) for operation in OPERATIONS] + [
    ("BUCKET", "MERGE_ON_READ", "upsert")
]


@pytest.mark.parametrize(("index", "kind", "operation"), LISTING)
def test_a_batch_makes_a_lost_partition_metadata_file_again(tmp_path, operation, kind, index):
    path = str(tmp_path / "t")
    options = {**options_of("6", kind), "hoodie.index.type": index, "hoodie.parquet.small.file.limit": "1000000"}
    for number in range(2):
        write(path, number, options, operation)
    place, wanted = Path(path, "p", PARTITION_METAFILE), rows_of(path)
    first = place.read_text().splitlines()[2:]
    place.unlink()
    assert rows_of(path) == []
    write(path, 2, options, operation)
    assert place.read_text().splitlines()[2:] == first or kind == "MERGE_ON_READ"
    assert len(rows_of(path)) in (len(wanted), len(wanted) + 6 * (operation == "insert"))


def test_a_copy_of_a_partition_does_not_become_one(tmp_path):
    path = str(tmp_path / "t")
    options = {**OPTIONS, "hoodie.index.type": "GLOBAL_SIMPLE"}
    write(path, 0, options)
    shutil.copytree(Path(path, "p"), Path(path, "copy"))
    Path(path, "copy", PARTITION_METAFILE).unlink()
    write(path, 1, options)
    assert len(rows_of(path)) == 6
    assert not Path(path, "copy", PARTITION_METAFILE).exists()


def test_commits_are_counted_in_either_layout(tables):
    for version, kind in KINDS:
        table = HudiTable.open(tables(version, kind))
        assert count_commits(table.storage) == len(table.load_timeline().completed_writes)
        assert table.storage.list_dir(ENDS_FOLDER)

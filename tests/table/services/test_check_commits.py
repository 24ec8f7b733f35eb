"""Commits that are verified as they come: healthy ones have no findings, each damage is told, and so is each flip."""

import json
import os
import random
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tiers import examples, quick

from hudistream import ArrowSink, HudiTable
from table.hudi_table import HudiTable as Table
from table.services.check import commits
from table.services.check.commits import CommitChecks, verify_commit
from table.services.check.finding import Kind
from table.services.rollback.undo_commit import roll_back
from table.snapshot import Snapshot
from table.storage.local import LocalStorage

LISTED = {
    "hoodie.metadata.enable": "true",
    "hoodie.metadata.index.column.stats.enable": "true",
    "hoodie.metadata.record.index.enable": "true",
}
QUIET = {"hoodie.clean.automatic": "false", "hoodie.archive.automatic": "false"}
KINDS = {
    "6 cow": {},
    "6 mor": {"hoodie.datasource.write.table.type": "MERGE_ON_READ"},
    "8 cow, indexes": {"hoodie.write.table.version": "8", **LISTED},
    "9 mor, indexes": {
        "hoodie.write.table.version": "9",
        "hoodie.datasource.write.table.type": "MERGE_ON_READ",
        **LISTED,
    },
    "6 cow, no meta columns": {"hoodie.populate.meta.fields": "false"},
}


def batch(number, keys=30):
    ids = range(number * 10, number * 10 + keys)
    return pa.table(
        {
            "id": [f"k{i}" for i in ids],
            "p": [f"p{i % 2}" for i in ids],
            "ts": pa.array([number] * keys, pa.int64()),
            "v": [f"value {i} of {number}" for i in ids],
        }
    )


def fill(path, batches, **options):
    settings = {**QUIET, **options}
    with ArrowSink(path, settings, key="id", partition_by="p", order_by="ts", operation="upsert") as sink:
        for number in batches:
            sink.write(batch(number), batch_id=number)


def verify(path, sample=None):
    snapshot = Snapshot.load(Table.open(path))
    return verify_commit(snapshot, snapshot.timeline.completed_writes[-1], sample)


@pytest.fixture(scope="module", params=KINDS)
def kind(request, tmp_path_factory):
    path = str(tmp_path_factory.mktemp("commits") / "t")
    fill(path, range(3), **KINDS[request.param])
    return request.param, path


def newest_files(path):
    snapshot = Snapshot.load(Table.open(path))
    commit = snapshot.commits.read(snapshot.timeline.completed_writes[-1])
    return [os.path.join(path, stat.path) for stat in commit.stats]


def test_each_commit_of_a_healthy_table_is_sound_and_comes_once(tmp_path, kind):
    name, path = kind
    path = shutil.copytree(path, str(tmp_path / "t"))
    checks = CommitChecks(LocalStorage(path), None)
    first = checks.look()
    assert [report.is_sound for report in first.reports] == [True]
    assert checks.look().reports == ()
    fill(path, range(3, 6), **KINDS[name])
    new = checks.look()
    assert not new.may_lack
    assert [report.findings for report in new.reports] == [()] * len(new.reports)
    assert len(new.reports) == 3
    assert [report.rows for report in new.reports] == [30] * 3
    assert new.reports[-1].files == new.reports[-1].files_read > 0


def test_no_bit_is_flipped_unseen(tmp_path, kind):
    """61 flips, as the issue of wrong rows asked: each is told, or the rows are those that were written."""
    _, path = kind
    right, luck = HudiTable.open(path).scan().to_arrow().sort_by("id"), random.Random(7)
    files = newest_files(path)
    for number in range(examples(61)):
        file = Path(luck.choice(files))
        data = bytearray(file.read_bytes())
        place = luck.randrange(len(data))
        data[place] ^= 1 << luck.randrange(8)
        copy = shutil.copytree(path, str(tmp_path / str(number)))
        Path(copy, file.relative_to(path)).write_bytes(data)
        if verify(copy).is_sound:
            assert HudiTable.open(copy).scan().to_arrow().sort_by("id").equals(right), (file, place)


def test_a_file_that_is_gone_or_has_another_size_is_told(tmp_path, kind):
    _, path = kind
    for number, (damage, wanted) in enumerate(
        [(os.remove, Kind.MISSING_FILE), (lambda file: os.truncate(file, os.path.getsize(file) - 7), Kind.WRONG_SIZE)]
    ):
        copy = shutil.copytree(path, str(tmp_path / str(number)))
        damage(newest_files(copy)[0])
        found = verify(copy)
        assert not found.is_sound
        assert wanted in {one.kind for one in found.findings}


@pytest.mark.parametrize("content", [b"", b"{"])
def test_a_completed_file_that_others_cannot_read_is_told(tmp_path, content):
    """Our readers go by the end record."""
    path = str(tmp_path / "t")
    fill(path, range(2))
    instant = Snapshot.load(Table.open(path)).timeline.completed_writes[-1]
    Path(path, instant.path).write_bytes(content)
    assert [one.kind for one in verify(path).findings] == [Kind.DAMAGED_COMMIT]


def test_a_file_that_a_later_commit_superseded_may_be_gone(tmp_path):
    path = str(tmp_path / "t")
    fill(path, range(3))
    snapshot = Snapshot.load(Table.open(path))
    older = snapshot.timeline.completed_writes[1]
    os.remove(os.path.join(path, snapshot.commits.read(older).stats[0].path))
    found = verify_commit(snapshot, older, None)
    assert (found.is_sound, found.files_gone) == (True, 1)


def rewrite(path, change):
    """Writes a base file anew, with the same name and other rows, and gives the commit its new size."""
    table = pq.read_table(path)
    keep = pq.read_schema(path).metadata
    pq.write_table(change(table).replace_schema_metadata(keep), path)


def test_keys_that_an_upsert_wrote_twice_and_other_numbers_of_rows_are_told(tmp_path):
    path = str(tmp_path / "t")
    fill(path, range(3))
    rewrite(newest_files(path)[0], lambda rows: pa.concat_tables([rows, rows.slice(len(rows) - 1)]))
    kinds = {one.kind for one in verify(path).findings}
    assert {Kind.WRONG_COUNT, Kind.DOUBLED_KEYS, Kind.WRONG_SIZE} <= kinds


def test_keys_that_a_table_had_twice_before_are_no_finding(tmp_path):
    path = str(tmp_path / "t")
    with ArrowSink(path, QUIET, key="id", partition_by="p", order_by="ts", operation="insert") as sink:
        sink.write(batch(0))
        sink.write(batch(0))
        sink.write(batch(0), operation="upsert")
    assert HudiTable.open(path).scan().count() == 60
    assert verify(path).findings == ()


def test_a_commit_that_the_lists_of_the_metadata_table_lack_is_told(tmp_path):
    path = str(tmp_path / "t")
    fill(path, range(3), **KINDS["8 cow, indexes"])
    times = sorted(os.listdir(f"{path}/.hoodie/metadata/.hoodie/timeline"))
    newest_time = max(name[:17] for name in times if name[:17].isdigit())
    for folder, _, names in os.walk(f"{path}/.hoodie/metadata/files"):
        for name in names:
            if f"_{newest_time}." in name:
                os.remove(os.path.join(folder, name))
    found = verify(path)
    assert {one.kind for one in found.findings} == {Kind.METADATA_TABLE}
    assert not found.is_sound


def test_a_commit_that_is_undone_meanwhile_is_not_spoken_of(tmp_path, monkeypatch):
    path = str(tmp_path / "t")
    fill(path, range(2))
    look = commits._find_files

    def undo_first(snapshot, instant, commit):
        roll_back(snapshot.table, instant.time, force=True)
        return look(snapshot, instant, commit)

    monkeypatch.setattr(commits, "_find_files", undo_first)
    assert verify(path) is None


def test_commits_that_came_and_were_archived_between_two_looks_are_told(tmp_path):
    path = str(tmp_path / "t")
    fill(path, range(2))
    checks = CommitChecks(LocalStorage(path), 1)
    checks.look()
    often = {"hoodie.clean.commits.retained": "1", "hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3"}
    with ArrowSink(path, often, key="id", partition_by="p", order_by="ts", operation="upsert") as sink:
        for number in range(2, 12):
            sink.write(batch(number))
            sink.services.wait()
    new = checks.look()
    assert new.may_lack
    assert all(report.is_sound and report.files_read <= 1 for report in new.reports)
    json.dumps([report.to_json() for report in new.reports])


@pytest.mark.parametrize("seed", quick(1, range(6)))
def test_commits_beside_cleaning_and_archival_are_sound(tmp_path, seed):
    """A watcher that looks at any moment sees no damage where there is none."""
    path, luck = str(tmp_path / "t"), random.Random(seed)
    options = {"hoodie.clean.commits.retained": "1", "hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3"}
    options |= luck.choice(list(KINDS.values()))
    fill(path, [0], **{**options, **QUIET})
    checks, found = CommitChecks(LocalStorage(path), None), []
    with ArrowSink(path, options, key="id", partition_by="p", order_by="ts", operation="upsert") as sink:
        for number in range(1, 15):
            sink.write(batch(number))
            if luck.random() < 0.5:
                found += checks.look().reports
    assert found
    assert [report for report in found if not report.is_sound] == []

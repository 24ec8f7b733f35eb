"""The archive of layout 2 as it is written: whole at every moment, merged by levels, bounded in files."""

import re

import pyarrow.parquet as pq
import pytest
from faults import FaultyStorage, Fuse, PowerCut

from table.errors import CorruptFileError
from table.storage.local import LocalStorage
from table.timeline.archived_timeline import RetiredFile, read_archived_commits
from table.timeline.history import HistoryArchive
from table.timeline.history_file import decode_rows, distinct_rows, encode_rows, rows_of
from table.timeline.instant import Action, CompletionTimeNames, Instant, State
from table.timeline.metadata.avro_commit import encode_avro_commit
from table.timeline.metadata.commit import CommitMetadata

NAMES = CompletionTimeNames()
FOLDER = ".hoodie/timeline/history"


def at(number):
    return f"20260101{number:09d}"


def files_of(number, action=Action.COMMIT):
    """A completed instant: requested, inflight, completed."""
    pending = Instant(at(number), action, State.REQUESTED, names=NAMES)
    done = pending.to(State.INFLIGHT).to(State.COMPLETED, at(number + 1))
    content = encode_avro_commit(CommitMetadata(extra={"number": str(number)}))
    plan = b"plan" if action is Action.CLEAN else b""
    return [
        RetiredFile(pending, plan, at(number)),
        RetiredFile(pending.to(State.INFLIGHT), b"", at(number)),
        RetiredFile(done, content, at(number)),
    ]


def archive_on(path, fuse=None):
    storage = LocalStorage(str(path))
    return HistoryArchive(FaultyStorage(storage, fuse) if fuse else storage, FOLDER)


def numbers(archive):
    return sorted(int(commit.metadata.extra["number"]) for commit in read_archived_commits(archive))


def test_rows_hold_both_times_the_content_and_a_plan():
    [row] = rows_of(files_of(5, Action.CLEAN))
    assert (row.time, row.completion_time, row.action, row.plan) == (at(5), at(6), "clean", b"plan")
    assert rows_of(files_of(5))[0].plan is None
    both = rows_of([*files_of(9), *files_of(5)])
    assert [row.time for row in both] == [at(5), at(9)]
    assert decode_rows(encode_rows(both), "x") == both
    with pytest.raises(CorruptFileError, match="x is no file of a history"):
        decode_rows(b"PAR1 and no more", "x")


def test_it_grows_by_levels_and_keeps_three_manifests(tmp_path):
    archive = archive_on(tmp_path)
    for number in range(0, 460, 2):
        path = archive.append(files_of(number), 10)
        assert path == f"{FOLDER}/{at(number)}_{at(number)}_0.parquet"
        if number % 40 == 0:
            assert numbers(archive) == list(range(0, number + 1, 2))
    assert numbers(archive) == list(range(0, 460, 2))
    names = sorted(entry.name for entry in archive.storage.list_dir(FOLDER))
    manifests = [name for name in names if name.startswith("manifest_")]
    assert len(manifests) == 3
    levels = [int(re.fullmatch(r"\d+_\d+_(\d)\.parquet", path.split("/")[-1])[1]) for path in archive.list_files()]
    assert {level: levels.count(level) for level in (0, 1, 2)} == {0: 0, 1: 3, 2: 2}
    assert len(names) < 30
    [file] = [path for path in archive.list_files() if f"/{at(0)}" in path]
    stored = pq.ParquetFile(tmp_path / file)
    assert stored.metadata.metadata[b"parquet.avro.schema"].startswith(b'{"type":"record","name":"HoodieLSMTime')
    assert stored.metadata.row_group(0).column(0).compression == "GZIP"
    assert archive.find_completions([at(100), at(101)]) == {at(100): at(101)}


def test_what_an_archival_that_died_has_taken_is_taken_once(tmp_path):
    archive = archive_on(tmp_path)
    archive.append([*files_of(1), *files_of(3), *files_of(5)], 10)
    archive.append([*files_of(1), *files_of(5)], 10)
    assert numbers(archive) == [1, 3, 5]
    archive.append([*files_of(3), *files_of(5), *files_of(7)], 10)
    assert sorted(set(numbers(archive))) == [1, 3, 5, 7]


@pytest.mark.parametrize("again", [[2], [1, 2]], ids=["in a file of its own", "in the same file"])
def test_the_plan_stays_where_its_requested_file_was_deleted_before_it_was_taken_again(tmp_path, again):
    """An archival took two cleans, deleted one requested file, and failed. Files are merged later."""
    archive = archive_on(tmp_path)
    archive.append([*files_of(1, Action.CLEAN), *files_of(2, Action.CLEAN)], 10)
    archive.append([file for number in again for file in files_of(number, Action.CLEAN)[-1:]], 10)
    for number in range(3, 12):
        archive.append(files_of(number), 10)
    found = [(row.time, row.plan) for rows in archive.read_rows() for row in rows if row.action == "clean"]
    assert found == [(at(1), b"plan"), (at(2), b"plan")]


def test_of_an_instant_that_was_taken_twice_the_later_content_stays_with_the_plan_that_is_known():
    [row] = rows_of(files_of(5, Action.CLEAN))
    again = row._replace(metadata=b"written again", plan=None)
    assert distinct_rows([row, again]) == [again._replace(plan=b"plan")]
    assert distinct_rows([again, row]) == [row]


@pytest.mark.parametrize("after", [False, True], ids=["before the call", "after the call"])
def test_stopped_at_every_call_it_is_whole(tmp_path, after):
    """The tenth file of a level: it is written, named, merged with the others, and what no manifest names goes."""
    count = Fuse()
    for number in range(9):
        archive_on(tmp_path / "count").append(files_of(number), 10)
    archive_on(tmp_path / "count", count).append(files_of(9), 10)
    assert len(count.calls) > 15
    for stop in range(1, len(count.calls) + 1):
        path = tmp_path / str(stop)
        for number in range(9):
            archive_on(path).append(files_of(number), 10)
        with pytest.raises(PowerCut):
            archive_on(path, Fuse(stop, after)).append(files_of(9), 10)
        found = numbers(archive_on(path))
        assert found in ([*range(9)], [*range(10)]), count.calls[stop - 1]
        archive_on(path).append([*files_of(9), *files_of(10)], 10)
        assert sorted(set(numbers(archive_on(path)))) == [*range(11)], count.calls[stop - 1]
        assert archive_on(path).list_files()

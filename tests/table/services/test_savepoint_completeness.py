"""What a savepoint must hold, by table; and a clean that comes between a savepoint's timeline and its listing."""

import pytest
from engine import Engine, rows

from table.errors import CommitConflictError
from table.hudi_table import HudiTable
from table.options.groups import CleanSettings
from table.services.clean.clean import clean
from table.services.savepoint import savepoint as savepoint_room
from table.services.savepoint.completeness import find_lacking, find_needed
from table.services.savepoint.savepoint import create_savepoint
from table.timeline.active_timeline import delete_instant_file, load_timeline
from table.timeline.instant import Action
from table.timeline.metadata.commit import CommitMetadata, WriteStat

UPSERT = {"hoodie.datasource.write.operation": "upsert"}
T = [f"2026010100000{n}000" for n in range(10)]


def base(group, at, before=None):
    return WriteStat(group, f"p/{group}_0-0-0_{T[at]}.parquet", "p", T[before] if before is not None else "null")


def logged(group, slice_at, version=1):
    return WriteStat(group, f"p/.{group}_{T[slice_at]}.log.{version}_0-0-0", "p", T[slice_at])


def wrote(*stats, replaced=(), compacted=False):
    return CommitMetadata(stats, replaced={"p": tuple(replaced)} if replaced else {}, compacted=compacted)


CASES = {
    "the newest at the commit": ({1: wrote(base("g", 1)), 3: wrote(base("g", 3, 1))}, 3, [f"g_0-0-0_{T[3]}.parquet"]),
    "what came later is not asked for": (
        {1: wrote(base("g", 1)), 3: wrote(base("g", 3, 1))},
        1,
        [f"g_0-0-0_{T[1]}.parquet"],
    ),
    "continued later, older than the timeline": ({3: wrote(base("g", 3, 1))}, 2, [f"g_0-0-0_{T[0]}.parquet"]),
    "replaced later, older than the timeline": ({3: wrote(replaced=["g"])}, 2, [f"g_0-0-0_{T[0]}.parquet"]),
    "logs of its slice": (
        {1: wrote(base("g", 1)), 2: wrote(logged("g", 1)), 3: wrote(base("g", 3, 1), compacted=True)},
        2,
        [f"g_0-0-0_{T[1]}.parquet", f".g_{T[1]}.log.1_0-0-0"],
    ),
    "logs of a slice without base file": (
        {1: wrote(logged("g", 1)), 3: wrote(base("g", 3, 1), compacted=True)},
        2,
        [f".g_{T[1]}.log.1_0-0-0"],
    ),
    "logs that a compaction took in are not asked for": (
        {1: wrote(base("g", 1)), 2: wrote(logged("g", 1)), 3: wrote(base("g", 3, 1), compacted=True)},
        3,
        [f"g_0-0-0_{T[3]}.parquet"],
    ),
    "logs behind a compaction that is pending": (
        {1: wrote(base("g", 1)), 3: wrote(logged("g", 2))},
        3,
        [f"g_0-0-0_{T[1]}.parquet", f".g_{T[2]}.log.1_0-0-0"],
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_each_file_that_the_commit_shows_is_asked_for(case):
    commits, at, held = case
    needed = find_needed([(T[n], commit) for n, commit in commits.items()], T[at])
    assert find_lacking(needed, {"p": tuple(held)}) is None
    for missing in held:
        left = [name for name in held if name != missing]
        if needed.files or not left:
            assert "was deleted" in find_lacking(needed, {"p": tuple(left)})


STRANGE = ["../other/g_0-0-0_1.parquet", "/other/g_0-0-0_1.parquet", "q/g_0-0-0_1.parquet", "p/notes.txt", ""]


@pytest.mark.parametrize("path", STRANGE)
def test_what_no_reader_takes_for_a_file_of_the_partition_path_is_not_asked_for(path):
    """The commit's own file is there, so readers see it, although the record names another one."""
    commits = [(T[1], wrote(base("g", 1))), (T[2], wrote(WriteStat("../g", path, "p", T[1])))]
    needed = find_needed(commits, T[2])
    assert find_lacking(needed, {"p": (f"g_0-0-0_{T[2]}.parquet",)}) is None
    assert find_lacking(needed, {"p": (f"h_0-0-0_{T[2]}.parquet",)}) == f"p/g_0-0-0_{T[1]}.parquet was deleted"


def test_an_older_version_does_not_take_the_place_of_a_newer_one():
    needed = find_needed([(T[2], wrote(base("g", 2)))], T[2])
    assert "was deleted" in find_lacking(needed, {"p": (f"g_0-0-0_{T[1]}.parquet",)})


@pytest.mark.parametrize(
    ("commits", "at"),
    [
        ({1: wrote(base("g", 1)), 2: wrote(replaced=["g"])}, 2),
        ({3: wrote(base("g", 3))}, 2),
        ({3: wrote(base("g", 3)), 4: wrote(base("g", 4, 3)), 5: wrote(replaced=["g"])}, 2),
        ({3: wrote(logged("g", 3)), 4: wrote(base("g", 4, 3), compacted=True)}, 2),
    ],
    ids=["replaced before", "born after", "born, continued and replaced after", "born as a log"],
)
def test_nothing_is_asked_for_where_the_commit_shows_nothing(commits, at):
    assert find_lacking(find_needed([(T[n], commit) for n, commit in commits.items()], T[at]), {}) is None


def test_a_clean_between_the_timeline_and_the_listing_withdraws_the_savepoint(tmp_path, monkeypatch):
    """The cleans are archived, too, before the savepoint looks for them: no record names the files that went."""
    path = str(tmp_path / "t")
    for number in range(3):
        Engine(path, UPSERT).write(number, rows(range(10), ts=number))
    table = HudiTable.open(path)
    list_held = savepoint_room._held_files

    def pauses(*arguments):
        for number in range(3, 9):
            Engine(path, UPSERT).write(number, rows(range(10), ts=number))
            clean(table, CleanSettings(commits_retained=1, grace_ms=0))
        for file in [f for f in load_timeline(table.storage) if f.action is Action.CLEAN]:
            delete_instant_file(table.storage, file)
        return list_held(*arguments)

    monkeypatch.setattr(savepoint_room, "_held_files", pauses)
    with pytest.raises(CommitConflictError, match="was deleted while the savepoint of .* was made: it was withdrawn"):
        create_savepoint(table)
    assert not load_timeline(table.storage).completed_of(Action.SAVEPOINT)

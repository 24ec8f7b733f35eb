"""Files that commits name against a listing: what is gone, what has another size, and what does not matter."""

import pickle

import pytest

from table.errors import LostDataError
from table.files.names import parse_log_file
from table.storage.interface import FileInfo
from table.timeline.named_files import NamedFile, NamedFiles
from table.view.file_group import CommittedInstants, parse_data_files
from table.view.file_system_view import confirmed_groups
from table.view.known_files import find_lost


def base(time, token="0-1-2"):
    return f"f-0_{token}_{time}.parquet"


def log(time, version=1):
    return f".f-0_{time}.log.{version}_0-1-2"


def named(name, size=10, *, time=None, folded=""):
    found = parse_log_file(name)
    written = time or (found.base_instant_time if found else name.rpartition("_")[2].partition(".")[0])
    return NamedFile(name, "p", "f-0", written, size, rows=3, folded=folded)


def lost(named_files, there, *, layout=1, replaced=(), completions=None):
    """Names of the files that are lost, with the size that was found."""
    committed = CommittedInstants(
        frozenset(("2", "4", "6", "8")),
        "2",
        {"p": frozenset(replaced)},
        layout_version=layout,
        completions=completions or {},
        named=NamedFiles.collect(named_files, prunes=layout == 1),
    )
    entries = [FileInfo(name, size, 0, is_dir=False) for name, size in there.items()]
    found = list(find_lost("p", *parse_data_files("p", entries), committed))
    if found:
        with pytest.raises(LostDataError, match="which commit"):
            confirmed_groups("p", entries, committed)
    else:
        confirmed_groups("p", entries, committed)
    return {one.named.name: one.size_bytes for one in found}


@pytest.mark.parametrize(
    ("names", "there", "expected"),
    [
        ([named(base("2")), named(base("4"))], {base("4"): 10}, {}),
        ([named(base("2")), named(base("4"))], {base("2"): 10}, {base("4"): None}),
        ([named(base("4"))], {}, {base("4"): None}),
        ([named(base("4"))], {base("4"): 9}, {base("4"): 9}),
        ([named(base("4"))], {base("4"): 11}, {base("4"): 11}),
        ([named(base("4"), 0)], {base("4"): 11}, {}),  # the stat tells no size
        ([named(base("4"))], {base("2"): 10, base("6"): 7}, {}),  # a newer version, whose commit is not known here
        ([named(base("4"))], {base("2"): 10, base("9"): 7}, {base("4"): None}),  # of a write that is not completed
        # a failed attempt of the same commit does not stand in for its file
        ([named(base("4"))], {base("4", "7-1-2"): 10}, {base("4"): None}),
        ([named(base("2")), named(log("2", 1), time="4"), named(log("2", 2), time="6")],
         {base("2"): 10, log("2", 2): 10}, {log("2", 1): None}),
        ([named(base("2")), named(log("2"), time="4")], {base("2"): 10, log("2"): 9}, {log("2"): 9}),
        ([named(base("2")), named(log("2"), time="4")], {base("2"): 10, log("2"): 99}, {}),  # others append
        ([named(log("2"), time="4"), named(base("6"))], {base("6"): 10}, {}),  # folded, and cleaned
        ([named(log("2"), time="2")], {}, {log("2"): None}),  # a slice without a base file
        # a restore brought back the slice that a compaction had folded
        ([named(base("4"), folded=base("2")), named(log("4"), time="6")], {base("2"): 10, log("4"): 10}, {}),
        ([named(base("4"), folded=base("2")), named(log("4"), time="6")], {base("2"): 10}, {log("4"): None}),
    ],
)  # fmt: skip
def test_what_is_lost_in_timeline_layout_1(names, there, expected):
    assert lost(names, there) == expected
    assert lost(names, there, replaced=["f-0"]) == {}


def test_in_layout_2_the_completion_time_says_which_log_files_are_needed():
    completions = {"2": "3", "4": "9", "6": "7", "8": "9"}
    names = [named(log("4"), time="4"), named(base("6"))]  # requested before the base file, completed after it
    assert lost(names, {base("6"): 10}, layout=2, completions=completions) == {log("4"): None}
    assert lost(names, {base("6"): 10}, layout=2, completions={**completions, "4": "5"}) == {}


def test_an_accepted_loss_counts_in_the_state_that_was_accepted():
    files = NamedFiles.collect([named(base("4")), named(log("4"), time="6")])
    accepted = files.accepting({f"p/{base('4')}": ("4", None), f"p/{log('4')}": ("6", 6)})
    assert lost(accepted.of("p")["f-0"], {log("4"): 6}) == {}
    assert lost(accepted.of("p")["f-0"], {log("4"): 5}) == {log("4"): 5}
    assert files.accepting({}) is files
    grown = files.accepting({f"p/{log('4')}": ("5", 6)})  # a later commit appended
    assert [file.size_bytes for file in grown.of("p")["f-0"]] == [10, 10]


def test_names_survive_pickling_and_are_bounded_by_whole_paths():
    files = NamedFiles.collect(
        NamedFile(f"f{n}-0_0-0-0_{n}.parquet", f"p{n % 3}", f"f{n}-0", str(n), n, 5) for n in range(1, 10)
    )
    again = pickle.loads(pickle.dumps(files))
    assert {path: again.of(path) for path in again} == {path: files.of(path) for path in files}
    assert files.newest_first() == ["p0", "p2", "p1"]
    assert list(files.within(files.newest_first(), 7)) == ["p0", "p2"]
    assert len(files.since("8")) == 2


def test_a_log_file_that_several_commits_appended_to_has_the_size_that_the_newest_one_tells():
    grown = NamedFiles.collect([named(log("2"), 30, time="6"), named(log("2"), 10, time="4")])
    assert [file.size_bytes for file in grown.of("p")["f-0"]] == [30]

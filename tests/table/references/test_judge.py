"""What the records say of a data file: which are strays, which turn visible, which nothing is known of."""

import dataclasses

import pytest

from table.errors import StorageError
from table.files.log.instants import LogInstants
from table.references.judge import (
    Claim,
    Records,
    find_turning_files,
    find_turning_logs,
    is_decided,
    is_surely_stray,
    judge,
)
from table.view.file_group import BaseFile, CommittedInstants, LogFile

FILE = "p/file"


def records(**changes):
    """Instants 5 and 6 are completed on the timeline, and 5 names the file; the line of visibility is at 5."""
    known = Records(
        committed=CommittedInstants(frozenset({"5", "6"}), "5", {}),
        named={"5": frozenset({FILE}), "6": frozenset()},
        silent=frozenset(),
        pending=frozenset(),
        undone=frozenset(),
        archived=frozenset(),
        archived_paths=frozenset(),
    )
    return dataclasses.replace(known, **{name: frozenset(of) for name, of in changes.items()})


@pytest.mark.parametrize(
    ("time", "known", "claim"),
    [
        ("5", records(), Claim.WANTED),  # its commit names it
        ("5", records(silent=["5"]), Claim.WANTED),  # a commit that names some files, and this one
        ("6", records(), Claim.BESIDE_COMMIT),
        ("6", records(silent=["6"]), Claim.UNPROVEN),
        ("7", records(), Claim.BEYOND_LINE),
        ("7", records(undone=["7"]), Claim.BEYOND_LINE),
        ("7", records(pending=["7"]), Claim.WANTED),
        ("7", records(archived=["7"]), Claim.WANTED),  # archived since the timeline was listed
        ("4", records(), Claim.UNPROVEN),
        ("4", records(archived=["4"]), Claim.BELOW_LINE),
        ("4", records(archived=["4"], archived_paths=[FILE]), Claim.WANTED),
        ("4", records(archived=["4"], silent=["4"]), Claim.UNPROVEN),
        ("4", records(undone=["4"]), Claim.BELOW_LINE),
        ("4", records(undone=["4"], silent=["4"]), Claim.UNPROVEN),
        ("4", records(pending=["4"]), Claim.WANTED),
    ],
)
def test_what_the_records_say_of_a_file(time, known, claim):
    assert judge(FILE, time, known) is claim


def test_a_commit_that_cannot_be_read_makes_no_stray():
    known = dataclasses.replace(records(), named={"5": frozenset({FILE})})
    assert judge(FILE, "6", known) is Claim.WANTED


@pytest.mark.parametrize(
    ("time", "known", "decided"),
    [
        ("5", records(), True),
        ("5", records(silent=["5"]), False),
        ("7", records(), True),
        ("4", records(), False),
        ("4", records(undone=["4"]), True),
        ("4", records(archived=["4"]), True),
        ("4", records(archived=["4"], silent=["4"]), False),
    ],
)
def test_which_outcomes_are_known(time, known, decided):
    assert is_decided(time, known) is decided


def test_without_a_completed_write_every_outcome_is_known():
    none = dataclasses.replace(records(), committed=CommittedInstants(frozenset(), None, {}), named={})
    assert is_decided("4", none)


def base(time, name="file"):
    return BaseFile("p", name, "f", time, 1)


@pytest.mark.parametrize(
    ("time", "named", "turns"),
    [
        ("2", {}, False),  # it counts already
        ("3", {}, True),
        ("4", {"4": frozenset({"p/file"})}, False),
        ("4", {"4": frozenset({"p/other"})}, True),
        ("5", {}, False),  # the line does not pass it
    ],
)
def test_base_files_that_would_turn_visible(time, named, turns):
    assert [file.path for file in find_turning_files([base(time)], named, "3", "5")] == ["p/file"] * turns


def log(name, file_id="f"):
    return LogFile("p", name, file_id, "1", 1, "", "", 1)


def of(writers, targets=()):
    return LogInstants(frozenset(writers), frozenset(targets), frozenset())


@pytest.mark.parametrize(
    ("found", "strays"),
    [
        ({log("a"): of("3")}, {"p/a": frozenset("3")}),
        ({log("a"): of("2")}, {}),  # its blocks count already
        ({log("a"): of("4")}, {}),  # completed
        ({log("a"): of("5")}, {}),  # the line does not pass it
        ({log("a"): of("3"), log("b"): of("", "3")}, {}),  # taken back in another file of the group
        ({log("a"): of("3"), log("b", "g"): of("", "3")}, {"p/a": frozenset("3")}),  # of another group
    ],
)
def test_log_files_that_would_turn_visible(found, strays):
    assert find_turning_logs(found, {"4"}, "3", "5") == strays


def test_blocks_of_a_commit_beside_those_of_no_commit_stop_the_archival():
    with pytest.raises(StorageError, match="p/a holds blocks of 3"):
        find_turning_logs({log("a"): of(["3", "4"])}, {"4"}, "3", "5")


def log_of(version, base="2", file_id="f"):
    return LogFile("p", f".{file_id}_{base}.log.{version}_0-0-0", file_id, base, version, "0-0-0", "", 1)


@pytest.mark.parametrize(
    ("file", "written", "first", "stray"),
    [
        (log_of(1), [], "2", True),
        (log_of(1), [log_of(1)], "2", False),
        (log_of(1), [], "3", False),  # an archived commit may have written it
        (log_of(1), [], None, False),
        (log_of(2), [log_of(1)], "3", True),
        (log_of(2), [log_of(3)], "3", False),
        (log_of(2), [log_of(1, base="1")], "3", False),
        (log_of(2), [log_of(1, file_id="g")], "3", False),
    ],
)
def test_what_no_write_of_a_snapshot_wrote(file, written, first, stray):
    committed = CommittedInstants(frozenset({"4"}), first, {})
    assert is_surely_stray(file, {one.path for one in written}, committed) is stray

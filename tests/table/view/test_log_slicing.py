"""Which slice a log file belongs to, by the layout of the timeline."""

import pytest

from table.view.log_slicing import slices_by_completion, slices_by_name

DONE = {"1": "2", "3": "4", "5": "9", "6": "7"}

# base files, log files by their names, the slices of these
CASES = {
    "no log files": ([], [], []),
    "one base file": ("1", "3", "1"),
    "several log files": ("1", "356", "111"),
    "no base file: the oldest log file opens the slice": ("", "135", "111"),
    "a compaction that was requested later": ("14", "13", "14"),
    "a write that ran while the compaction was requested": ("18", "56", "81"),
    "a write that was completed as the compaction was requested": ("17", "6", "7"),
    "completed before every base file": ("58", "3", "3"),
    "completed before every base file, and one after the first": ("8", "135", "118"),
    "of instants that are not completed": ("1", "3x5", "1-1"),
}


@pytest.mark.parametrize("case", CASES)
def test_a_log_file_belongs_to_the_newest_slice_that_was_requested_before_it_was_completed(case):
    bases, logs, slices = CASES[case]
    expected = [None if time == "-" else time for time in slices]
    assert slices_by_completion(list(bases), list(logs), DONE.get) == expected
    assert slices_by_completion([*reversed(bases), *bases], list(logs), DONE.get) == expected


def test_in_layout_1_the_name_says_it():
    assert slices_by_name("13", ["1", "2", "x"], DONE.get) == ["1", "2", "x"]

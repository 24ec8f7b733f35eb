"""Which file of a clean's plan is missing in a reader's listing, as a table of cases.

The reader's snapshot shows the commits 1 to 3. Time 0 was archived, and commit 4 came after the reader's timeline.
"""

import pytest

from table.files.names import BaseFileName
from table.scan.cleaned_meanwhile import lost_to
from table.storage.interface import FileInfo
from table.timeline.metadata.clean import CleanPlan
from table.view.file_group import CommittedInstants, FileSlice, base_file_of, parse_data_files

T = [f"2026010100000000{number}" for number in range(6)]
COMMITTED = CommittedInstants(frozenset(T[1:4]), T[1], {"p": frozenset({"replaced-0"})})


def base(time, file_id="f-0"):
    return str(BaseFileName(file_id, "0-0-1", T[time], ".parquet"))


def log(time, version=1):
    return f".f-0_{T[time]}.log.{version}_0-0-1"


def listed(time, *logs):
    """The slice of file group f-0 that the folder showed."""
    _, found = parse_data_files("p", [FileInfo(name, 1, 0, False) for name in logs])
    return [FileSlice("p", "f-0", T[time], base_file_of("p", base(time), 1), tuple(found))]


@pytest.mark.parametrize(
    ("deleted", "slices", "is_lost"),
    [
        (base(3), [], True),  # the clean has taken the whole file group
        (base(0), [], True),  # and a file whose commit was archived
        (log(3), [], True),
        (base(4), [], False),  # no snapshot of this reader shows it
        (base(2), listed(3), False),  # superseded
        (base(3), listed(3), False),  # it is still there: the pin or the plan decides
        (base(3), listed(2), True),  # the newest slice is gone, an older one was listed
        (base(4), listed(3), False),
        (log(3), listed(3), True),  # a log file of the listed slice
        (log(3), listed(3, log(3)), False),
        (log(2), listed(3), False),
        (base(3, "replaced-0"), [], False),
        ("_SUCCESS", [], False),
    ],
)
def test_what_is_missing_in_a_listing(deleted, slices, is_lost):
    plan = CleanPlan("KEEP_LATEST_COMMITS", None, "", {"p": (f"/t/p/{deleted}",)})
    found = lost_to(plan, slices, COMMITTED, lambda path: path == "p")
    assert found == (f"/t/p/{deleted}" if is_lost else None)
    assert lost_to(plan, slices, COMMITTED, lambda path: path != "p") is None

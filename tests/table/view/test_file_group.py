"""File names and a timeline -> file groups, slices, log files in Hudi's order."""

import random

import pytest

from table.files.names import LogFileName, parse_log_file
from table.hudi_table import HudiTable
from table.snapshot import Snapshot
from table.storage.interface import FileInfo
from table.view.file_group import CommittedInstants, build_file_groups

COMMITTED = CommittedInstants(frozenset(("2", "4", "6")), "2", {"p": frozenset({"gone-0"})})


def base(time, file_id="f-0", token="0-1-2"):
    return f"{file_id}_{token}_{time}.parquet"


def log(time, version, token="0-1-2", suffix="", file_id="f-0"):
    return f".{file_id}_{time}.log.{version}_{token}{suffix}"


def groups_of(*names, committed=COMMITTED):
    entries = [FileInfo(name, 10, 0, is_dir=False) for name in names]
    random.Random(1).shuffle(entries)
    return build_file_groups("p", entries, committed)


def shown(group):
    return [
        (s.base_instant_time, s.base_file and s.base_file.name, [file.name for file in s.log_files])
        for s in group.slices
    ]


def test_a_slice_is_a_base_file_and_the_log_files_that_name_its_instant():
    [group] = groups_of(base("2"), base("4"), log("2", 1), log("2", 2), log("4", 1))
    assert shown(group) == [("4", base("4"), [log("4", 1)]), ("2", base("2"), [log("2", 1), log("2", 2)])]
    assert [file.name for file in group.base_files] == [base("4"), base("2")]
    assert [file.name for file in group.log_files] == [log("2", 1), log("2", 2), log("4", 1)]
    assert [file.path for file in group.latest_slice.files] == [f"p/{base('4')}", f"p/{log('4', 1)}"]


def test_log_files_are_in_the_order_of_hudis_comparator():
    """By base instant, version as a number, write token as text (HoodieLogFile.LogFileComparator)."""
    ordered = [
        log("2", 1, "0-1-2"),
        log("2", 2, "0-1-2"),
        log("2", 2, "1-1-2"),
        log("2", 9, "10-1-2"),
        log("2", 9, "9-1-2"),
        log("2", 10, "0-1-2"),
        log("4", 1, "0-1-2"),
    ]
    [group] = groups_of(*ordered)
    assert [file.name for file in group.log_files] == ordered


def test_log_files_without_a_base_file_form_a_slice():
    [first, second] = groups_of(log("2", 1, file_id="a-0"), base("4", "b-0"), log("6", 1, file_id="b-0"))
    assert shown(first) == [("2", None, [log("2", 1, file_id="a-0")])]
    assert (first.latest_base_file, first.base_files) == (None, ())
    assert first.latest_slice is first.slices[0]
    # behind a pending compaction delta commits write above the slice that has a base file
    assert [s.base_instant_time for s in second.slices] == ["6", "4"]
    assert second.latest_slice is second.slices[1]
    assert second.latest_base_file.name == base("4", "b-0")


def test_a_merged_slice_has_the_log_files_above_its_base_file():
    [group] = groups_of(base("2"), base("4"), log("2", 1), log("4", 1), log("6", 1))
    merged = group.merged_slice
    assert (merged.base_file.name, merged.base_instant_time) == (base("4"), "4")
    assert [file.name for file in merged.log_files] == [log("4", 1), log("6", 1)]
    [group] = groups_of(log("2", 1), log("4", 1))
    assert group.merged_slice.base_file is None
    assert [file.name for file in group.merged_slice.log_files] == [log("2", 1), log("4", 1)]


def test_change_files_belong_to_the_slice_of_their_base_file_and_no_reader_opens_them():
    change = log("4", 1, suffix=".cdc")
    [group] = groups_of(base("2"), base("4"), change, log("3", 1, suffix=".cdc"), log("9", 1, suffix=".cdc"))
    assert shown(group) == [("4", base("4"), []), ("2", base("2"), [])]
    assert [file.name for file in group.latest_slice.files] == [base("4")]
    assert [file.name for file in group.latest_slice.all_files] == [base("4"), change]
    assert [file.name for file in group.files] == [base("4"), change, base("2")]
    assert [file.name for file in group.current_files] == [base("4"), change]
    assert group.is_plain
    assert groups_of(change) == ()


def test_a_base_file_that_is_not_committed_is_not_there_and_its_log_files_are():
    [group] = groups_of(base("4"), base("5"), log("5", 1))
    assert shown(group) == [("5", None, [log("5", 1)]), ("4", base("4"), [])]
    assert [s.base_instant_time for s in groups_of(base("1"), base("3"))[0].slices] == ["1"]


def test_a_second_base_file_of_an_instant_is_a_slice_of_its_own():
    [group] = groups_of(base("4", token="0-1-2"), base("4", token="0-1-9"), log("4", 1))
    assert shown(group) == [("4", base("4", token="0-1-9"), [log("4", 1)]), ("4", base("4", token="0-1-2"), [])]


def test_replaced_groups_folders_and_strange_names_are_passed_over():
    names = [base("4", "gone-0"), log("4", 1, file_id="gone-0"), ".hoodie_partition_metadata", "x.tmp", base("2")]
    assert [group.file_id for group in groups_of(*names)] == ["f-0"]
    folder = FileInfo(base("2", "d-0"), 0, 0, is_dir=True)
    assert build_file_groups("p", [folder], COMMITTED) == ()


@pytest.mark.parametrize("suffix", ["", ".cdc"])
def test_the_name_of_a_log_file_survives_a_round_trip(suffix):
    name = LogFileName("f-0", "20260101000000000", 3, "1-2-3", suffix)
    assert parse_log_file(str(name)) == name
    assert parse_log_file(".f-0_20260101000000000.log.3").write_token == ""


def test_a_merge_on_read_table_of_hudi_has_its_log_files_in_their_slices(golden):
    path, _ = golden("mor_avro_logs")
    snapshot = Snapshot.load(HudiTable.open(path))
    counts = {}
    for partition, groups in snapshot.walk_file_groups():
        for group in groups:
            [found] = group.slices
            assert found.base_file.instant_time == found.base_instant_time
            assert [file.version for file in found.log_files] == list(range(1, len(found.log_files) + 1))
            assert all(file.size_bytes for file in found.files)
            counts.setdefault(partition, []).append(len(found.log_files))
    assert {partition: sorted(found) for partition, found in counts.items()} == {
        "asia": [0, 3],
        "eu": [0, 3],
        "us": [0, 3],
    }

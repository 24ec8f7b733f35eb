"""What stays for readers alone: versions that a pin or the grace period holds, within a share (pure)."""

import pytest

from table.services.clean.plan import FileFate, Lifetime, lifetimes
from table.services.clean.readers import HeldPartitions, ReaderNeeds, bytes_of, hold_for_readers
from table.view.file_group import BaseFile, FileGroup, FileSlice, LogFile


def at(digit):
    return str(digit) * 17


def base(digit, size=100, file_id="f-0"):
    return BaseFile("p", f"{file_id}_0-0-0_{at(digit)}.parquet", file_id, at(digit), size)


def group(*digits, size=100, file_id="f-0"):
    newest_first = sorted(digits, reverse=True)
    slices = [FileSlice("p", file_id, at(one), base(one, size, file_id)) for one in newest_first]
    return FileGroup("p", file_id, tuple(slices))


@pytest.mark.parametrize(("digits", "replaced", "expected"), [
    ((1, 3, 5), None, [None, "5", "3"]),
    ((1,), None, [None]),
    ((1, 3), "4", ["4", "3"]),
    ((3, 3, 1), None, [None, None, "3"]),  # a second file of one instant was left by a failed attempt
])  # fmt: skip
def test_when_a_version_was_superseded(digits, replaced, expected):
    seen = lifetimes(group(*digits), at(replaced) if replaced else None)
    assert [one.superseded_at for one in seen] == [at(one) if one else None for one in expected]
    assert [one.needed_until for one in seen] == [one.superseded_at for one in seen]
    assert [one.since for one in seen] == [at(one) for one in sorted(digits, reverse=True)]


def test_behind_a_pending_compaction_readers_need_the_slice_before():
    log = LogFile("p", f".f-0_{at(5)}.log.1_0-0-0", "f-0", at(5), 1, "0-0-0", "", 10)
    plain = group(1, 3)
    found = FileGroup("p", "f-0", (FileSlice("p", "f-0", at(5), None, (log,)), *plain.slices))
    seen = lifetimes(found)
    assert [one.superseded_at for one in seen] == [None, at(5), at(3)]
    assert [one.needed_until for one in seen] == [None, None, at(5)]


def fates(*digits):
    """Versions 1, 2, … of which the newest stays and the policy lets the others go."""
    ordered = sorted(digits, reverse=True)
    newer = [None, *(at(one) for one in ordered)]
    return [
        FileFate(base(one), one != ordered[0], "policy", Lifetime(at(one), newer[n], newer[n]))
        for n, one in enumerate(ordered)
    ]


@pytest.mark.parametrize(("pins", "recent", "share", "kept"), [
    ((), None, 9, [5]),
    (("3",), None, 9, [5, 3]),  # version 3 is seen from 3 until 5
    (("4",), None, 9, [5, 3]),
    (("5",), None, 9, [5]),
    (("9",), None, 9, [5]),
    (("4", "1"), None, 9, [5, 3, 1]),
    (("4", "1"), None, 1, [5, 3]),  # room for one: the newer snapshot
    (("0",), None, 9, [5]),  # before the first version
    ((), "5", 9, [5, 3]),  # 3 was superseded at 5
    ((), "3", 9, [5, 3, 1]),
    ((), "3", 1, [5, 3]),
    ((), "6", 9, [5]),
    (("1",), "5", 1, [5, 1]),  # a pin comes before the grace period
    (("4", "1"), "0", 0.5, [5]),
])  # fmt: skip
def test_what_stays_for_readers(pins, recent, share, kept):
    needs = ReaderNeeds(tuple(at(one) for one in pins), at(recent) if recent else None, share)
    judged = hold_for_readers(fates(1, 3, 5), needs, partition_bytes=100)
    assert [int(fate.file.instant_time[0]) for fate in judged if not fate.deleted] == kept
    assert all(fate.is_held == (fate.rule != "policy") for fate in judged)


def test_a_share_is_one_of_the_largest_versions_or_of_what_one_commit_replaced():
    live = [group(1, 2, size=10), group(3, size=5, file_id="g-0")]
    replaced = [(group(1, size=50, file_id=f"h{n}-0"), at(8)) for n in range(2)] + [(group(1, size=70), at(9))]
    assert bytes_of(live, []) == 15
    shrunk = FileGroup("p", "f-0", (group(2, size=90).slices[0], group(1, size=100).slices[0]))
    assert bytes_of([shrunk], []) == 100  # rows were deleted since
    assert bytes_of(live, replaced) == 100
    assert bytes_of([], []) == 0


def test_a_partition_is_passed_over_until_something_can_go():
    known = HeldPartitions()
    judged = hold_for_readers(fates(1, 3, 5), ReaderNeeds(recent=at(5)), 100)
    known.note("gone", judged, at(5), at(7))
    assert not known.may_skip("gone", at(4), at(5))  # version 1 went with that plan: it is looked at again
    known.note("held", hold_for_readers(fates(3, 5), ReaderNeeds(recent=at(5)), 100), at(5), at(7))
    assert known.may_skip("held", at(4), at(5))
    assert not known.may_skip("held", at(5), at(5))  # touched since
    assert not known.may_skip("held", at(4), at(6))  # the grace period is over
    assert not known.may_skip("held", at(4), None)
    assert not known.may_skip("never seen", "", at(5))


def test_who_pinned_the_newest_snapshot_before_a_late_write_keeps_what_that_superseded():
    """Another writer's commit of an earlier time, or a compaction, became visible after the reader began."""
    found = lifetimes(group("1", "3"), None, {at("3"): at("5")})
    older = next(life for life in found if life.since == at("1"))
    fate = FileFate(group("1").slices[0].files[0], deleted=True, rule="", seen=older)
    assert ReaderNeeds((at("5"),)).reason(fate)
    assert ReaderNeeds((at("6"),)).reason(fate) is None

"""Options that contradict each other."""

import pytest

from table.errors import InvalidConfigError
from table.options.choices import BloomType
from table.options.groups import ArchiveSettings, CleanSettings
from table.options.rules import check_clean_spellings, checked_retention, choose_bloom_type

BOUND, KIND = "base_file.bloom_max_entries", "base_file.bloom_type"


@pytest.mark.parametrize(
    ("retained", "bounds", "given", "expected"),
    [
        (10, (20, 30), False, (20, 30)),
        (20, (20, 30), False, (30, 40)),  # default bounds move up
        (100, (20, 30), False, (110, 120)),
        (19, (20, 30), True, (20, 30)),
    ],
)
def test_archival_stays_behind_cleaning(retained, bounds, given, expected):
    archive = ArchiveSettings(min_commits=bounds[0], max_commits=bounds[1])
    found = checked_retention(CleanSettings(commits_retained=retained), archive, given=given)
    assert (found.min_commits, found.max_commits) == expected


@pytest.mark.parametrize(("retained", "bounds"), [(20, (20, 30)), (25, (20, 30)), (1, (30, 30)), (1, (30, 20))])
def test_bounds_that_were_given_are_refused_where_archival_would_overtake_cleaning(retained, bounds):
    archive = ArchiveSettings(min_commits=bounds[0], max_commits=bounds[1])
    with pytest.raises(InvalidConfigError, match=f"retained={retained} < .*min.commits={bounds[0]} < .*={bounds[1]}"):
        checked_retention(CleanSettings(commits_retained=retained), archive, given=True)


def test_a_policy_that_counts_versions_bounds_no_archival():
    clean = CleanSettings(policy="KEEP_LATEST_FILE_VERSIONS", commits_retained=99)
    assert checked_retention(clean, ArchiveSettings(min_commits=2, max_commits=3), given=True).min_commits == 2


@pytest.mark.parametrize(
    ("parsed", "agrees"),
    [({}, True), ({"clean.asynchronous": False}, True),
     ({"clean.asynchronous": True, "clean.at_checkpoint": True}, True),
     ({"clean.asynchronous": False, "clean.at_checkpoint": False}, False),
     ({"clean.asynchronous": True, "clean.at_checkpoint": False}, False)],
)  # fmt: skip
def test_the_two_switches_of_cleaning_may_not_contradict_each_other(parsed, agrees):
    said = {name: f"{name}={value}" for name, value in parsed.items()}
    if agrees:
        check_clean_spellings(parsed, said)
        return
    with pytest.raises(InvalidConfigError, match=r"clean.asynchronous=.* and clean.at_checkpoint=False say different"):
        check_clean_spellings(parsed, said)


def test_a_bound_of_dynamic_filters_chooses_them():
    parsed = {BOUND: 7}
    choose_bloom_type(parsed, {BOUND: "the bound"})
    assert parsed[KIND] is BloomType.DYNAMIC_V0
    untouched = {KIND: BloomType.SIMPLE}
    choose_bloom_type(untouched, {})
    assert untouched == {KIND: BloomType.SIMPLE}
    with pytest.raises(InvalidConfigError, match="the bound bounds the filters of DYNAMIC_V0, and the type"):
        choose_bloom_type({BOUND: 7, KIND: BloomType.SIMPLE}, {BOUND: "the bound", KIND: "the type"})

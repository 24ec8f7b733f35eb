import pytest

from streaming.plan.write_profile import (
    CommitSize,
    PathProfile,
    WriteProfile,
    apply_commit,
    assign_rules,
    fresh_profile,
    record_size,
)
from table.options.choices import BloomType
from table.options.groups import BaseFileSettings
from table.options.write_groups import SizeSettings
from table.options.write_options import WriteOptions
from table.timeline.metadata.commit import WriteStat
from table.view.file_group import base_file_of

OPTIONS = WriteOptions()
LIMIT = OPTIONS.sizes.small_file_limit_bytes


def stat(path, file_id, size, inserts, rows=None):
    return WriteStat(
        file_id, f"{path}/{file_id}_0-0-0_2.parquet", path, num_writes=rows or inserts, num_inserts=inserts,
        total_write_bytes=size, file_size_bytes=size,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("sizes", "threshold", "expected"),
    [
        ([], None, None),
        ([CommitSize(1000, 10)], None, 100),
        # 28.8 bits for each key, six bits in a digit: 47 of the footer's bytes are the filter's of a full file
        ([CommitSize(1000, 10, 500)], None, 55),
        ([CommitSize(1000, 10, 40)], None, 100),  # a footer that has no such filter
        ([CommitSize(1000, 10), CommitSize(5000, 10)], None, 300),
        ([CommitSize(0, 0)], None, None),
        ([CommitSize(3, 10)], None, 1),
        # Hudi's rule: commits above threshold x small file limit count, whole
        ([CommitSize(1000, 10, 500)], 1.0, None),
        ([CommitSize(LIMIT + 10, 10, 500)], 1.0, (LIMIT + 10) // 10),
        ([CommitSize(1000, 10), CommitSize(LIMIT * 2, 1000)], 1.0, LIMIT * 2 // 1000 + 1),
        ([CommitSize(1000, 10, 500)], 0.0, 100),
    ],
)
def test_record_size(sizes, threshold, expected):
    assert record_size(sizes, WriteOptions(sizes=SizeSettings(record_size_threshold=threshold))) == expected


@pytest.mark.parametrize("fixed", [{"bloom_entries": 1000}, {"bloom_type": BloomType.DYNAMIC_V0}])
def test_a_filter_of_fixed_size_does_not_grow_with_the_rows(fixed):
    options = WriteOptions(base_file=BaseFileSettings(**fixed))
    assert record_size([CommitSize(1000, 10, 500)], options) == 50


def test_own_commit_moves_the_small_files_without_a_listing():
    profile = fresh_profile(frozenset({"1"}), [])
    listed = {"p": (base_file_of("p", "a_0-0-0_1.parquet", 10), base_file_of("p", "b_0-0-0_1.parquet", 20)), "q": ()}
    after = apply_commit(profile, "2", [stat("p", "a", 30, 5, 9), stat("q", "c", 40, 7)], 12, listed, LIMIT)
    assert {f.file_id: (f.name, f.size_bytes) for f in after.paths["p"].files} == {
        "a": ("a_0-0-0_2.parquet", 30),
        "b": ("b_0-0-0_1.parquet", 20),
    }
    assert after.paths["q"].files == (base_file_of("q", "c_0-0-0_2.parquet", 40),)
    assert (after.paths["p"].rows, after.paths["q"].rows) == (5, 7)
    assert after.sizes == (CommitSize(70, 16, 12),)
    assert after.seen == {"1", "2"}


def test_a_file_that_filled_up_is_forgotten_and_the_path_stays_known():
    after = apply_commit(WriteProfile(), "2", [stat("p", "a", 900, 5)], 0, {"p": ()}, 800)
    assert after.paths["p"] == PathProfile((), 5.0, 1.0)


def test_a_path_that_was_written_without_being_looked_at_stays_unknown():
    after = apply_commit(WriteProfile(), "2", [stat("p", "a", 9, 5)], 0, {}, 800)
    assert after.paths["p"] == PathProfile(None, 5.0, 1.0)


def test_expectation_halves_where_nothing_arrives():
    profile = apply_commit(WriteProfile(), "1", [stat("p", "a", 10, 100), stat("q", "b", 10, 100)], 0, {}, LIMIT)
    profile = apply_commit(profile, "2", [stat("p", "a", 20, 300, 400)], 0, {}, LIMIT)
    assert (profile.paths["p"].rows, profile.paths["q"].rows) == (200, 50)


@pytest.mark.parametrize(
    ("seen", "committed", "unseen"),
    [
        ("12", "12", ""),
        ("12", "1234", "34"),  # somebody else's commits
        ("123", "12", None),  # one of ours was undone
        ("123", "124", None),
        ("13", "123", None),  # one that is older came late
        ("123", "23", ""),  # the archival retired the oldest
        ("123", "345", "45"),
        ("12", "45", None),  # it retired all that we know: 3 may have been there
        ("", "1", None),
        ("", "", ""),
        ("1", "", None),
    ],
)
def test_what_happened_since_is_told_by_the_timeline_or_not_at_all(seen, committed, unseen):
    expected = None if unseen is None else frozenset(unseen)
    assert WriteProfile(frozenset(seen)).find_unseen(frozenset(committed)) == expected


def test_only_the_last_five_commits_make_the_average():
    profile = WriteProfile()
    for number in range(9):
        profile = apply_commit(profile, str(number), [stat("p", "a", 1000 * number, 10)], 0, {}, LIMIT)
    assert [size.total_bytes for size in profile.sizes] == [8000, 7000, 6000, 5000, 4000]
    assert assign_rules(profile, OPTIONS).record_size_bytes == 600


@pytest.mark.parametrize(
    ("sizes", "options", "wanted"),
    [
        ((), SizeSettings(), (1024, True)),
        ((), SizeSettings(record_bytes_estimate=200), (200, False)),
        ((), SizeSettings(record_size_threshold=1.0), (1024, False)),
        ((CommitSize(1000, 10),), SizeSettings(), (100, False)),
        ((CommitSize(1000, 10),), SizeSettings(record_bytes_estimate=200), (100, False)),
        ((CommitSize(0, 0),), SizeSettings(), (1024, True)),
    ],
)
def test_a_size_is_a_guess_only_where_nobody_said_anything_and_nothing_was_learned(sizes, options, wanted):
    rules = assign_rules(fresh_profile(frozenset(), sizes), WriteOptions(sizes=options))
    assert (rules.record_size_bytes, rules.is_guess) == wanted


def test_the_share_of_batches_that_write_a_path_is_halved_by_each_that_does_not():
    profile, shares = WriteProfile(), []
    for number, path in enumerate("ppqqp"):
        profile = apply_commit(profile, str(number), [stat(path, path, 10, 8)], 0, {}, 800)
        shares.append({known: of_path.share for known, of_path in profile.paths.items()})
    assert shares == [{"p": 1}, {"p": 1}, {"p": 0.5, "q": 1}, {"p": 0.25, "q": 1}, {"q": 0.5, "p": 0.625}]

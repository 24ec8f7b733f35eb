"""Files that are filled by many batches end at their size: the rules of planning and of filters together."""

from dataclasses import dataclass
from itertools import count

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tiers import examples

from streaming.plan.bucket_assigner import BucketAssigner, find_small_files
from streaming.plan.write_profile import WriteProfile, apply_commit, assign_rules
from table.files.bloom.bloom_filter import AnyBloomFilter, can_extend, fitted_filter
from table.options.write_groups import SizeSettings
from table.options.write_options import WriteOptions
from table.timeline.metadata.commit import WriteStat

MOST, LIMIT = 500_000, 416_000
OPTIONS = WriteOptions(sizes=SizeSettings(max_file_bytes=MOST, small_file_limit_bytes=LIMIT))
FOOTER_BYTES = 3000  # beside the filter


@dataclass
class ModelFile:
    """A file of rows of which all take the same."""

    rows: int
    bloom: AnyBloomFilter

    @property
    def footer_bytes(self):
        return FOOTER_BYTES + (13 + self.bloom.size_bytes + 2) // 3 * 4


def grown(file, added, row_bytes):
    """The next version of a file, as the writer makes it."""
    wanted, keys = OPTIONS.file_settings, (file.rows if file else 0) + added
    if file is not None and can_extend(file.bloom, wanted, keys):
        return ModelFile(keys, file.bloom)
    return ModelFile(keys, fitted_filter(wanted, keys, int(keys * row_bytes)))


def fill(row_bytes, batches):
    """Writes batches of so many rows into one partition path; returns the files, by id, and the profile."""
    profile, files, ids = WriteProfile(has_all_paths=True), {}, count()
    for number, rows in enumerate(batches):
        rules = assign_rules(profile, OPTIONS)
        known = profile.paths["p"].files if profile.paths else ()
        assigner = BucketAssigner("p", find_small_files(known, rules), rules, lambda: f"{next(ids)}-0")
        stats, footers = [], 0
        for bucket, added in assigner.assign(rows):
            file_id = bucket.file_id
            file = files[file_id] = grown(files.get(file_id), added, row_bytes)
            footers += file.footer_bytes
            size = int(file.rows * row_bytes) + file.footer_bytes
            name = f"p/{file_id}_0-0-0_{number:017}.parquet"
            stats.append(
                WriteStat(file_id, name, "p", num_writes=file.rows, num_inserts=added, total_write_bytes=size,
                          file_size_bytes=size)
            )  # fmt: skip
        profile = apply_commit(profile, f"{number:017}", stats, footers, {}, None)
    return files, profile


@given(st.floats(4, 300), st.lists(st.integers(1, 60_000), min_size=1, max_size=30))
@settings(max_examples=examples(60), deadline=None)
def test_no_file_outgrows_its_size_and_none_stops_early(row_bytes, batches):
    # the first batch is sized by a guess, 1,024 bytes per row, where no task measures rows
    _, profile = fill(row_bytes, [50, *batches])
    rules = assign_rules(profile, OPTIONS)
    for file in profile.paths["p"].files:
        assert file.size_bytes < 1.1 * MOST
        assert file.size_bytes >= LIMIT or rules.capacity(file) > 0


@pytest.mark.parametrize("row_bytes", [10, 50, 200])
def test_the_same_rows_need_no_more_files_than_with_filters_of_twice_the_keys(row_bytes, monkeypatch):
    batch = int(0.2 * MOST / (row_bytes + 10))
    batches = [batch + batch * (number % 7 - 3) // 4 for number in range(200)]
    files = fill(row_bytes, batches)[0]
    monkeypatch.setattr(WriteOptions, "file_settings", property(lambda options: options.base_file))
    roomy, roomy_profile = fill(row_bytes, batches)
    assert len(files) <= len(roomy)
    if row_bytes == 10:
        assert max(file.size_bytes for file in roomy_profile.paths["p"].files) > 1.1 * MOST

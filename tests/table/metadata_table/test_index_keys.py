"""Keys and file groups of statistics, as Hudi's own tables have them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from table.config.metadata_indexes import COLUMN_STATS, FILES, PARTITION_STATS
from table.metadata_table.index_keys import file_id_of, group_of_key, stats_key

pytestmark = pytest.mark.pure


@pytest.mark.parametrize(
    ("index", "number", "file_id"),
    [(FILES, 0, "files-0000-0"), (COLUMN_STATS, 1, "col-stats-0001-0"), (PARTITION_STATS, 0, "partition-stats-0000-0")],
)
def test_file_groups_have_hudis_names(index, number, file_id):
    assert file_id_of(index, number) == file_id


def test_a_key_is_made_of_three_hashes():
    """From a table that Hudi 1.1 wrote."""
    name = ".56833391-2025-430b-8918-497c3750d148-0_20261122115243498.log.1_2-1548-2929"
    assert stats_key("qty", "us", name) == "Ry+OM+iEz34=9W/H6LC1Tao=kAbSox2aFrVWiwtVxiiwYg=="
    assert stats_key("name", "asia") == "F5SYxeUa1U8=WL5FewjKKoc="
    assert stats_key("qty", "") == stats_key("qty", ".")  # a table without partitions


def java_hash(text):
    hashed = 0
    for unit in text.encode():
        hashed = (31 * hashed + unit + 2**31) % 2**32 - 2**31
    return hashed


@given(st.text(st.characters(min_codepoint=43, max_codepoint=122)), st.integers(1, 9))
def test_a_key_has_the_group_of_its_java_hash(key, count):
    assert group_of_key(key, count) == (abs(java_hash(key)) % count if java_hash(key) != -(2**31) else 0)

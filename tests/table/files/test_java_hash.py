"""Java's hash of strings: values that a JVM gives, and a column at a time as one by one."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from table.files.java_hash import java_hash, java_hashes


@pytest.mark.parametrize(
    ("text", "signed"),
    [("", 0), ("a", 97), ("hello", 99162322), ("polygenelubricants", -(2**31)), ("日本", 835047), ("👍", 1772464)],
)
def test_of_a_jvm(text, signed):
    assert java_hash(text) == signed % 2**32


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=12)))
def test_a_column_at_a_time(texts):
    assert java_hashes(pa.array(texts, pa.string())).tolist() == [java_hash(text) for text in texts]

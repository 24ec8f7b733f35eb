"""Which text is the name of one folder, and how a name that is too long gets an ending."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from table.errors import InvalidConfigError
from table.storage.folder_names import MOST_BYTES, check_one_name, with_ending

NAMES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=300)


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "/a", "a/", "a\0"])
def test_text_that_is_not_one_folder_is_refused(name):
    with pytest.raises(InvalidConfigError, match="is not the name of one folder"):
        check_one_name(name)


@pytest.mark.parametrize("name", ["a", "a#b", "%2e%2e%2fb", "a?b", "a\\b", "...", " a ", "ü", "file:", "a::b"])
def test_all_other_text_stands_for_itself(name):
    assert check_one_name(name) == name


@given(NAMES, st.sampled_from(["_bad_rows", "-01234567"]))
def test_a_name_with_an_ending_fits_into_a_folder_and_begins_as_the_name(name, ending):
    found = with_ending(name, ending)
    assert found.endswith(ending)
    assert len(found.encode()) <= MOST_BYTES
    assert found == name + ending or name.startswith(found[: -len(ending) - 9])


def test_long_names_that_differ_at_their_end_have_endings_of_their_own():
    assert len({with_ending("x" * 254 + each, "_bad_rows") for each in "abc"}) == 3

"""Figures in words."""

import pytest

from table.inspect.words import age_text, size_text


@pytest.mark.parametrize(
    ("size", "text"),
    [(0, "0 B"), (1023, "1023 B"), (1024, "1.0 KiB"), (1536, "1.5 KiB"), (120 * 1024**2, "120.0 MiB"),
     (3 * 1024**3, "3.0 GiB"), (5000 * 1024**3, "5000.0 GiB")],
)  # fmt: skip
def test_a_size_has_the_unit_that_fits(size, text):
    assert size_text(size) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(None, "0 s"), (0.9, "0 s"), (119, "119 s"), (120, "2 min"), (7199, "119 min"), (7200, "2 h"), (172_800, "2 d")],
)
def test_an_age_has_the_largest_unit_of_which_there_are_two(seconds, text):
    assert age_text(seconds) == text

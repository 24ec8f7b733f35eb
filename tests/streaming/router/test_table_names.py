"""Which names of tables a row may bring."""

import pyarrow as pa
import pytest

from streaming.router.table_names import find_valid


@pytest.mark.parametrize(
    "name",
    [
        None,
        "",
        "..",
        ".",
        "a/b",
        "a\\b",
        "_hidden",
        ".hoodie",
        " a",
        "a ",
        "a.",
        "x" * 256,
        "ü" * 128,
        "a\n",
        "c:",
        "a*",
    ],
)
def test_names_that_cannot_be_a_folder(name):
    assert find_valid(pa.array([name], pa.string())).to_pylist() == [False]


@pytest.mark.parametrize(
    "name", ["a", "shop.public.orders", "Ümlaut", "a b", "2024", "x-y", "a_b", "x" * 255, "ü" * 127]
)
def test_names_that_can(name):
    assert find_valid(pa.array([name], pa.string())).to_pylist() == [True]


def test_each_name_has_its_answer():
    assert find_valid(pa.array(["a", None, "b/c", "d"], pa.string())).to_pylist() == [True, False, False, True]

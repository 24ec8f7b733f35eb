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
        "a?b",
        "a\x85b",
        "a\u2028b",
        "-a",
        "\u3000a",
        "a\0b",
    ],
)
def test_names_that_cannot_be_a_folder(name):
    assert find_valid(pa.array([name], pa.string())).to_pylist() == [False]


@pytest.mark.parametrize(
    "name",
    [
        "a",
        "shop.public.orders",
        "Ümlaut",
        "a b",
        "2024",
        "x-y",
        "a_b",
        "x" * 255,
        "ü" * 127,
        "a#b",
        "%2e%2e%2fb",
        "{a}",
    ],
)
def test_names_that_can(name):
    assert find_valid(pa.array([name], pa.string())).to_pylist() == [True]


def test_each_name_has_its_answer():
    assert find_valid(pa.array(["a", None, "b/c", "d"], pa.string())).to_pylist() == [True, False, False, True]


def test_bytes_that_are_no_text_are_no_name():
    names = pa.StringArray.from_buffers(
        3, pa.py_buffer(b"\0\0\0\0\1\0\0\0\3\0\0\0\4\0\0\0"), pa.py_buffer(b"a\xff\xfeb")
    )
    assert find_valid(names).to_pylist() == [True, False, True]


def test_the_ending_of_folders_beside_tables_is_kept_free():
    names = pa.array(["a", "a_bad_rows", "_bad_rows", "bad_rows"])
    assert find_valid(names, "_bad_rows").to_pylist() == [True, False, False, True]
    assert find_valid(names).to_pylist() == [True, True, False, True]

"""Numbers of bytes are written with a unit, or as Hudi's keys count them."""

import pytest

from table import parse_options
from table.errors import InvalidConfigError
from table.options.numbers import Size

MB = 1024 * 1024


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("120MB", 120 * MB), ("120 mb", 120 * MB), ("1.5GB", 1536 * MB), ("64MiB", 64 * MB), ("10kb", 10_240),
        ("7B", 7), ("120m", 120 * MB), ("1g", 1024 * MB), ("2TB", 2 * 1024**4), ("1048576", MB), (4096, 4096),
    ],
)  # fmt: skip
def test_a_size_is_read_with_its_unit(text, expected):
    assert Size(1).read("size", text) == expected


def test_a_number_without_a_unit_counts_as_the_key_says():
    assert Size(MB, MB).read("size", "3") == 3 * MB
    assert Size(MB, MB).read("size", "3MB") == 3 * MB
    assert parse_options({"hoodie.parquet.max.file.size": "1GB"}).options.sizes.max_file_bytes == 1024 * MB
    assert parse_options({"write.parquet.max.file.size": "120"}).options.sizes.max_file_bytes == 120 * MB
    assert parse_options({"write.parquet.max.file.size": "120MB"}).options.sizes.max_file_bytes == 120 * MB
    assert parse_options({"hudistream.task.memory.bytes": "256MB"}).options.tasks.memory_bytes == 256 * MB


@pytest.mark.parametrize("text", ["MB", "12 apples", "1.5", "", "-3MB", "0MB", None, True])
def test_what_is_no_size_is_refused_with_the_way_out(text):
    with pytest.raises(InvalidConfigError, match="size="):
        Size(1).read("size", text)
    assert "120MB" in Size(1).allowed

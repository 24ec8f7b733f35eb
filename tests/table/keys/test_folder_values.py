from datetime import date

import pyarrow as pa
import pytest

from table.config.table_config import TableConfig
from table.keys.folder_values import folder_values, null_columns

SCHEMA = pa.schema([("p", pa.string()), ("n", pa.int64()), ("d", pa.date32()), ("x", pa.float64())])
NULL = "__HIVE_DEFAULT_PARTITION__"


@pytest.mark.parametrize(
    ("fields", "path", "told", "nulls"),
    [
        ("p", "a/b", {"p": "a/b"}, set()),
        ("pn", "a/7", {"p": "a", "n": 7}, set()),
        ("pn", "a/b/7", {}, set()),  # which value holds the slash?
        ("pn", f"{NULL}/7", {"n": 7}, {"p"}),
        ("n", "007", {}, set()),
        ("d", "2026-01-02", {"d": date(2026, 1, 2)}, set()),
        ("d", "20000", {}, set()),  # a number of days
        ("x", "1.5", {}, set()),
        ("p", NULL, {}, {"p"}),
    ],
)
@pytest.mark.parametrize("hive_style", [False, True])
def test_what_a_path_tells_of_its_columns(fields, path, told, nulls, hive_style):
    names = tuple(fields)
    parts = [path] if len(names) == 1 else path.split("/")
    if hive_style and len(parts) == len(names):
        path = "/".join(f"{name}={part}" for name, part in zip(names, parts, strict=True))
    config = TableConfig("t", ("id",), names, keygen_type="COMPLEX", hive_style=hive_style)
    assert folder_values(config, SCHEMA, path) == told
    assert null_columns(config, path) == nulls


def test_a_path_of_formatted_times_tells_nothing():
    config = TableConfig("t", ("id",), ("p",), keygen_type="TIMESTAMP")
    assert (folder_values(config, SCHEMA, "2026"), null_columns(config, NULL)) == ({}, set())

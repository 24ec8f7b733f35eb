"""Complex keys of one field in tables of version 9: Hudi 1.2 and hudistream find the keys of the other."""

import pyarrow as pa
import pytest
from turns import THEIRS

from hudistream import HudiTable, write_hudi
from table import read_table
from table.config.key_generator import ENCODING_KEY

pytestmark = pytest.mark.hudi

FIELDS = {"hoodie.datasource.write.partitionpath.field": "y,m", "hoodie.write.table.version": "9"}


def rows(v):
    return pa.table({"id": ["a", "b"], "y": ["26", "26"], "m": ["01", "02"], "ts": [v, v], "v": [v, v]})


def ours(path, v):
    write_hudi(path, rows(v), options=FIELDS, key="id", order_by="ts")


def found(path):
    shown = read_table(path, ["_hoodie_record_key", "v"]).to_pylist()
    return sorted((row["_hoodie_record_key"], row["v"]) for row in shown)


@pytest.mark.parametrize("first", ["ours", "theirs"])
def test_upserts_in_turns_double_no_row(first, partners, tmp_path, utc):
    path, hudi = str(tmp_path / "t"), partners[9]
    if first == "ours":
        ours(path, 1)
        assert HudiTable.open(path).config.extra[ENCODING_KEY] == "FIELD_PREFIXED"
    hudi.write(path, rows(2), {**THEIRS, **FIELDS})
    assert found(path) == [("id:a", 2), ("id:b", 2)]
    ours(path, 3)
    assert found(path) == [("id:a", 3), ("id:b", 3)]
    assert sorted(row["v"] for row in hudi.read(path)) == [3, 3]
    assert HudiTable.open(path).config.extra[ENCODING_KEY] == "FIELD_PREFIXED"

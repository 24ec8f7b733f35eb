"""Conditions of scans as values."""

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from table.scan.predicate import parse_where

pytestmark = pytest.mark.pure


def test_bytes_that_are_no_text_may_stand_in_a_condition():
    schema = pa.schema([("id", pa.string()), ("x", pa.binary())])
    found = parse_where((pc.field("x") == b"\xff\x01") & (pc.field("id") == "k"), schema, ["id"])
    assert found.columns == {"id", "x"}
    rows = pa.table({"id": ["k", "k"], "x": [b"\xff\x01", b"a"]}, schema=schema)
    assert len(rows.filter(found.expression)) == 1

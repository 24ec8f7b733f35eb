"""Which filters of a query say what need not be read."""

from dataclasses import dataclass
from datetime import date
from typing import Any

import pyarrow as pa
import pytest

from pyspark_hudistream.filters import term_of

SCHEMA = pa.schema([("id", pa.string()), ("n", pa.int64()), ("x", pa.float64()), ("d", pa.date32())])


@dataclass
class EqualTo:
    attribute: tuple
    value: Any


class In(EqualTo):
    pass


class LessThanOrEqual(EqualTo):
    pass


class StringContains(EqualTo):
    pass


@pytest.mark.parametrize(
    ("found", "term"),
    [
        (EqualTo(("id",), "a"), ("id", "=", "a")),
        (LessThanOrEqual(("n",), 3), ("n", "<=", 3)),
        (EqualTo(("d",), date(2026, 1, 2)), ("d", "=", date(2026, 1, 2))),
        (In(("n",), (1, None, 2)), ("n", "in", [1, 2])),
        (In(("n",), (None,)), ("n", "in", [])),
        (EqualTo(("x",), 1.0), None),  # NaN
        (EqualTo(("n",), 1.5), None),
        (EqualTo(("n", "inner"), 1), None),
        (EqualTo(("nope",), 1), None),
        (StringContains(("id",), "a"), None),
    ],
)
def test_a_filter_is_a_term_where_arrow_and_spark_agree(found, term):
    assert term_of(found, SCHEMA) == term

"""Arguments that people give by mistake are refused in words, before anything is read."""

import datetime
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from hudistream import ArrowSink, HudiTable, InvalidConfigError


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    path = str(tmp_path_factory.mktemp("odd") / "t")
    times = pa.array([0, 1], pa.timestamp("us", "UTC"))
    with ArrowSink(path, key="id") as sink:
        decimals = pa.array([Decimal("1.5"), None], pa.decimal128(9, 2))
        sink.write(pa.table({"id": ["a", "b"], "at": times, "n": decimals, "d": [1.0, 2.0]}), batch_id=np.int64(3))
        assert sink.write(pa.table({"id": ["c"]}), batch_id=3).skipped
    return HudiTable.open(path)


@pytest.mark.parametrize(
    ("ask", "text"),
    [
        (lambda t: t.scan(columns=[]), "name at least one column"),
        (lambda t: t.scan(columns=[1]), "no column 1"),
        (lambda t: t.scan(limit=1.5), "limit=1.5"),
        (lambda t: t.scan(limit="1"), "limit='1'"),
        (lambda t: t.scan(limit=-1), "limit=-1"),
        (lambda t: t.scan().pinned_for(-1), "pin_s=-1"),
        (lambda t: t.scan().pinned_for("x"), "pin_s='x'"),
        (lambda t: t.scan(as_of=20260101), "as_of=20260101 is no time"),
        (lambda t: t.scan(as_of=datetime.datetime.max.replace(tzinfo=datetime.timezone.max)), "in the future"),
        (lambda t: t.changes(deletes="false"), "deletes='false': give True or False"),
        (lambda t: next(iter(t.follow(most_commits=1.5))), "most_commits=1.5"),
        (lambda t: t.lookup(["\ud800"]), "record keys are text"),
        (lambda t: t.scan(where=[("n", "=", "nan")]), "is no decimal128"),
        (lambda t: t.scan(where=[("n", "=", Decimal("Infinity"))]), "is no decimal128"),
        (lambda t: t.scan(where=[("at", "=", pd.Timestamp(1, tz="UTC"))]), "between two of them"),
        (lambda t: t.scan(where=[("at", "<", np.datetime64(1, "ns"))]), "between two of them"),
    ],
)
def test_it_is_refused(table, ask, text):
    with pytest.raises(InvalidConfigError, match=text):
        ask(table).to_arrow()


@pytest.mark.parametrize("nothing", [None, pd.NaT, pd.NA])
def test_what_is_nothing_to_pandas_is_null(table, nothing):
    assert table.count([("at", "=", nothing)]) == 0
    assert table.count([("at", "not in", [nothing])]) == 0
    assert table.count([("at", "in", [nothing, datetime.datetime.fromtimestamp(0, datetime.timezone.utc)])]) == 1

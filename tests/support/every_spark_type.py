"""Rows of a DataFrame with a column of each kind of type."""

import datetime as dt
import decimal

from table import read_table

DDL = (
    "id string, p string, ts bigint, at timestamp, day date, price decimal(12,2), flag boolean, texts array<string>, "
    "counts map<string,bigint>, inner struct<a:int,b:string>, raw binary"
)
DDL_WITH_DELETIONS = f"{DDL}, _hoodie_is_deleted boolean"
NOON = dt.datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=dt.timezone.utc)


def record(key, path, ts):
    """A row of `DDL`: `ts` says what is in it."""
    return {
        "id": f"k{key}",
        "p": path,
        "ts": ts,
        "at": NOON + dt.timedelta(seconds=ts),
        "day": dt.date(2026, 1, 1) + dt.timedelta(ts),
        "price": decimal.Decimal(ts) / 4,
        "flag": ts % 2 == 0,
        "texts": ["a", None, str(ts)],
        "counts": {"n": ts},
        "inner": {"a": ts, "b": None},
        "raw": bytes([ts % 256]),
    }


def contents(path, ddl=DDL):
    """The snapshot's rows with the columns of a DDL, by key and partition path."""
    rows = read_table(path, [column.split()[0] for column in ddl.split(", ")]).to_pylist()
    return sorted(({**row, "counts": dict(row["counts"])} for row in rows), key=lambda row: (row["id"], row["p"]))

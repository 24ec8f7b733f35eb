"""Random rows of a schema that has every type."""

import datetime as dt
import decimal

import pyarrow as pa

EVERY_TYPE = pa.schema(
    [
        ("id", pa.string()),
        ("p", pa.string()),
        ("ts", pa.int64()),
        ("flag", pa.bool_()),
        ("small", pa.int32()),
        ("half", pa.float32()),
        ("real", pa.float64()),
        ("text", pa.string()),
        ("raw", pa.binary()),
        ("day", pa.date32()),
        ("at", pa.timestamp("us", "UTC")),
        ("price", pa.decimal128(5, 1)),
        ("big", pa.decimal128(38, 18)),
        ("tags", pa.list_(pa.string())),
        ("spots", pa.list_(pa.struct([("x", pa.int32()), ("ys", pa.list_(pa.float64()))]))),
        ("place", pa.struct([("city", pa.string()), ("geo", pa.struct([("lat", pa.float64())]))])),
        ("counts", pa.map_(pa.string(), pa.int64())),
    ]
)


def some(rng, make):
    return None if rng.random() < 0.25 else make()


def random_row(rng, number):
    def text():
        return rng.choice(["", "a", "sträng", "日本", "😀" * 5, "x" * rng.randint(0, 90)])

    return {
        "id": f"k{number:06d}",
        "p": "p0",
        "ts": number,
        "flag": some(rng, lambda: rng.random() < 0.5),
        "small": some(rng, lambda: rng.randint(-(2**31), 2**31 - 1)),
        "half": some(rng, lambda: rng.randint(-999, 999) / 4),
        "real": some(rng, lambda: rng.random() * 1e9),
        "text": some(rng, text),
        "raw": some(rng, lambda: rng.randbytes(rng.randint(0, 9))),
        "day": some(rng, lambda: dt.date(1970, 1, 1) + dt.timedelta(rng.randint(-20_000, 40_000))),
        "at": some(rng, lambda: dt.datetime(2000, 2, 29, 12, 0, 0, rng.randint(0, 999_999), dt.timezone.utc)),
        "price": some(rng, lambda: decimal.Decimal(rng.randint(-9999, 9999)).scaleb(-1)),
        "big": some(rng, lambda: decimal.Decimal(rng.randint(-(10**30), 10**30)).scaleb(-18)),
        "tags": some(rng, lambda: [some(rng, text) for _ in range(rng.randint(0, 3))]),
        "spots": some(rng, lambda: [{"x": 1, "ys": [0.5] * rng.randint(0, 2)} for _ in range(rng.randint(0, 3))]),
        "place": some(rng, lambda: {"city": some(rng, text), "geo": some(rng, lambda: {"lat": rng.random()})}),
        "counts": some(rng, lambda: [(f"c{n}", n) for n in range(rng.randint(0, 3))]),
    }


def random_batch(rng, first, count):
    """Rows with the keys from `first` on; a quarter of all other values is null."""
    return pa.Table.from_pylist([random_row(rng, first + n) for n in range(count)], EVERY_TYPE)


def comparable(table):
    """Rows as sorted texts."""
    return sorted(map(str, table.select(EVERY_TYPE.names).to_pylist()))

"""The same random batches through our sink and through Hudi 1.0.2's writer give the same rows.

Every pair of index and payload is met by one of the seeds. Three tables grow side by side: ours, Hudi's, and
one that both write in turns.
"""

import datetime as dt
import decimal
import random

import pyarrow as pa
import pytest
from engine import OPTIONS, Engine
from tiers import slow

from table import read_table
from table.options.choices import IndexType

pytestmark = pytest.mark.hudi

PAYLOADS = ("DefaultHoodieRecordPayload", "OverwriteWithLatestAvroPayload", "PartialUpdateAvroPayload")
PAIRS = [(index, payload) for index in IndexType for payload in PAYLOADS]
SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("p", pa.string()),
        ("ts", pa.int64()),
        ("v", pa.string()),
        ("yes", pa.bool_()),
        ("small", pa.int32()),
        ("real", pa.float64()),
        ("single", pa.float32()),
        ("price", pa.decimal128(12, 2)),
        ("day", pa.date32()),
        ("time", pa.timestamp("us", "UTC")),
        ("raw", pa.binary()),
        ("texts", pa.list_(pa.string())),
        ("counts", pa.map_(pa.string(), pa.int64())),
        ("inner", pa.struct([("a", pa.int64()), ("b", pa.string())])),
        ("_hoodie_is_deleted", pa.bool_()),
    ]
)
EPOCH = dt.datetime(2026, 1, 1, tzinfo=dt.timezone.utc)
# values of each column but the key, its path and the ordering value
MAKERS = {
    "v": lambda r: f"text {r.randrange(1000)} ü",
    "yes": lambda r: r.random() < 0.5,
    "small": lambda r: r.randrange(-(2**31), 2**31),
    "real": lambda r: r.choice([0.0, -1.5, 1e300, r.random()]),
    "single": lambda r: float(r.randrange(1000)) / 8,
    "price": lambda r: decimal.Decimal(r.randrange(-(10**9), 10**9)) / 100,
    "day": lambda r: dt.date(2000, 1, 1) + dt.timedelta(r.randrange(20_000)),
    "time": lambda r: EPOCH + dt.timedelta(microseconds=r.randrange(10**12)),
    "raw": lambda r: r.randbytes(r.randrange(6)),
    "texts": lambda r: [r.choice(["a", "", None]) for _ in range(r.randrange(4))],
    "counts": lambda r: [(f"k{n}", r.choice([None, n])) for n in range(r.randrange(3))],
    "inner": lambda r: {"a": r.choice([None, 5]), "b": r.choice([None, "b"])},
}


class Stream:
    """Random batches: inserts, updates, late and repeated records, deletes, keys that change their path."""

    def __init__(self, seed, rows, moves):
        self._random, self._rows, self._moves = random.Random(seed), rows, moves
        self._paths, self._now = {}, 0

    def next_batch(self):
        self._now += 10
        records = [self._record() for _ in range(self._rows)]
        return pa.Table.from_pylist(records, schema=SCHEMA)

    def _record(self):
        r = self._random
        if self._paths and r.random() < 0.6:
            key = r.choice(list(self._paths)) if r.random() < 0.02 else f"k{r.randrange(len(self._paths))}"
        else:
            key = f"k{len(self._paths)}"
        path = self._paths.setdefault(key, f"p{r.randrange(4)}")
        if r.random() < self._moves:
            path = self._paths[key] = f"p{r.randrange(4)}"
        values = {name: None if r.random() < 0.25 else make(r) for name, make in MAKERS.items()}
        late = r.random() < 0.2
        when = self._now - r.randrange(1, 30) if late else self._now + r.randrange(3)
        return {"id": key, "p": path, "ts": when, **values, "_hoodie_is_deleted": r.random() < 0.05}


def contents(path):
    columns = ["_hoodie_record_key", "_hoodie_partition_path", *SCHEMA.names]
    # an empty map and an empty list look alike to Arrow's to_pylist
    return sorted(repr(row).replace("{}", "[]") for row in read_table(path, columns).to_pylist())


def differences(ours, theirs):
    return sorted(set(ours) - set(theirs))[:3], sorted(set(theirs) - set(ours))[:3]


def run(hudi, tmp_path, seed, batches, rows, pair):
    index, payload = pair
    options = {
        **OPTIONS,
        "hoodie.datasource.write.operation": "upsert",
        "hoodie.index.type": index,
        "hoodie.bucket.index.num.buckets": "3",
        "hoodie.datasource.write.payload.class": f"org.apache.hudi.common.model.{payload}",
        # small row groups are patched, one large one is merged whole
        "hoodie.parquet.block.size": "40000" if seed % 2 else str(32 << 20),
    }
    del options["hoodie.clean.automatic"], options["hoodie.archive.automatic"]
    ours, theirs, both = (str(tmp_path / name) for name in ("ours", "theirs", "both"))
    stream = Stream(seed, rows, moves=0.1)
    first, second = Engine(ours, options, batch_rows=1000), Engine(both, options, batch_rows=1000)
    for number in range(batches):
        batch = stream.next_batch()
        where = f"seed {seed}, {index}, {payload}, batch {number}"
        first.write(number, batch)
        hudi.write(theirs, batch, options)
        if number % 2:
            hudi.write(both, batch, options)
        else:
            second.write(number, batch)
        wanted = contents(theirs)
        found = contents(ours)
        assert found == wanted, (where, *differences(found, wanted))
        found = contents(both)
        assert found == wanted, (where, "in turns", *differences(found, wanted))
    assert len(hudi.read(ours)) == len(wanted)


@pytest.mark.slow  # test_hudi_agrees.py has a quick one
@pytest.mark.parametrize("pair", [PAIRS[8], PAIRS[9]], ids="-".join)
def test_a_few_batches_agree(hudi, tmp_path, pair):
    run(hudi, tmp_path, PAIRS.index(pair), batches=4, rows=300, pair=pair)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 120))
def test_random_batches_agree(hudi, tmp_path, seed):
    print("seed", seed)
    run(hudi, tmp_path, seed, batches=15, rows=2000, pair=PAIRS[seed % len(PAIRS)])


@pytest.mark.parametrize("operation", ["insert", "insert_overwrite_table", slow("insert_overwrite")])
@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", slow("MERGE_ON_READ")])
def test_a_record_that_deletes_its_key_is_no_row_of_other_operations(hudi, tmp_path, table_type, operation):
    kinds = pa.schema([("id", pa.string()), ("p", pa.string()), ("ts", pa.int64()), ("_hoodie_is_deleted", pa.bool_())])
    batches = [[("a", "x", 1, False)], [("c", "x", 2, True), ("d", "x", 2, None)]]
    options = {**OPTIONS, "hoodie.datasource.write.table.type": table_type, "hoodie.metadata.enable": "false"}
    ours, theirs = str(tmp_path / "ours"), str(tmp_path / "theirs")
    for number, (rows, done) in enumerate(zip(batches, ["upsert", operation], strict=True)):
        batch = pa.Table.from_pylist([dict(zip(kinds.names, row, strict=True)) for row in rows], kinds)
        told = {**options, "hoodie.datasource.write.operation": done}
        Engine(ours, told).write(number, batch)
        hudi.write(theirs, batch, told)
    shown = [sorted(row["id"] for row in hudi.read(path)) for path in (ours, theirs)]
    assert shown[0] == shown[1] == sorted(read_table(ours)["id"].to_pylist()) != []

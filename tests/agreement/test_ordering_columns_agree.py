"""Ordering columns of every type: late and timely deletes and records in logs, for every reader."""

import shutil
from datetime import date, datetime, timezone
from decimal import Decimal

import pyarrow as pa
import pytest
from oracles import hudi_rs
from oracles.hudi import HudiError
from tiers import quick, slow

from hudistream import ArrowSink, HudiTable
from table.timeline.instant import Action

pytestmark = pytest.mark.hudi

MERGE_ON_READ = {
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.bucket.index.num.buckets": "1",
    "hoodie.datasource.compaction.async.enable": "false",
}
DELETED = "_hoodie_is_deleted"


def utc(day):
    return datetime(2026, 1, day, tzinfo=timezone.utc)


# type -> two earlier values, the value of the rows, two later ones
VALUES = {
    "int": (pa.int32(), [-5, 0, 7, 9, 12]),
    "date": (pa.date32(), [date(1969, 12, 1), date(1970, 1, 1), date(2026, 1, 2), date(2026, 1, 3), date(2026, 1, 4)]),
    "decimal": (pa.decimal128(20, 2), [Decimal(n) for n in ("-5.25", "0.00", "10.50", "20.75", "99.99")]),
    # UTF-8 orders U+FFEE before U+10000; UTF-16, and with it String.compareTo, the other way
    "text": (pa.string(), ["a", "\ue000", "\uffee", "\U00010000", "\U0001f600"]),
    "timestamp": (pa.timestamp("us", "UTC"), [datetime(1969, 12, 1, tzinfo=timezone.utc), *map(utc, (1, 2, 3, 4))]),
    "boolean": (pa.bool_(), [False, False, True, True, True]),
    "long": (pa.int64(), [-5, 0, 7, 9, 12]),
    "float": (pa.float32(), [-0.5, 0.0, 1.5, 2.5, 3.5]),
    "double": (pa.float64(), [-0.5, 0.0, 1.5, 2.5, float("nan")]),
}
# the types of two columns, and five pairs of their values
SEVERAL = {
    "date, int": (
        (pa.date32(), pa.int32()),
        [(date(2026, 1, day), seq) for day, seq in ((1, 9), (2, 4), (2, 5), (2, 6), (3, 0))],
    ),
    "day 0, int 0": ((pa.date32(), pa.int32()), [(date(1970, 1, 1), seq) for seq in (-1, 0, 1, 2, 3)]),
    "text, long": (
        (pa.string(), pa.int64()),
        [("\ue000", 7), ("\uffee", 1), ("\uffee", 2), ("\uffee", 3), ("\U00010000", 0)],
    ),
    "decimal, timestamp": (
        (pa.decimal128(20, 2), pa.timestamp("us", "UTC")),
        [(Decimal(n), utc(day)) for n, day in (("1.00", 1), ("1.50", 1), ("1.50", 2), ("1.50", 3), ("2.00", 1))],
    ),
    "boolean, float": (
        (pa.bool_(), pa.float32()),
        [(False, 9.0), (True, 1.0), (True, 2.0), (True, 3.0), (True, float("nan"))],
    ),
}  # fmt: skip
WANTED = {"a": "row", "c": "row", "d": "new", "e": "row", "g": "row", "h": "new"}
CANNOT_CAST = "java.math.BigDecimal cannot be cast to class org.apache.spark.sql.types.Decimal"


def batch(keys, orders, kinds, *, deleted=False, v="row"):
    columns = {f"o{number}": pa.array([one[number] for one in orders], kind) for number, kind in enumerate(kinds)}
    return pa.table({"id": list(keys), **columns, "v": [v] * len(keys), DELETED: [deleted] * len(keys)})


def write(path, kinds, values, version, index):
    """Rows; late deletes; deletes in time; late records; records in time."""
    early, low, middle, high, latest = values
    options = {**MERGE_ON_READ, "hoodie.write.table.version": str(version), "hoodie.index.type": index}
    names = [f"o{number}" for number in range(len(kinds))]
    with ArrowSink(path, options, key="id", order_by=names, operation="upsert") as sink:
        sink.write(batch("abcdefgh", [middle] * 8, kinds))
        sink.write(batch("ae", [low, early], kinds, deleted=True))
        sink.write(batch("bf", [high, latest], kinds, deleted=True))
        sink.write(batch("cg", [low, early], kinds, v="late"))
        sink.write(batch("dh", [high, latest], kinds, v="new"))
    return options


def by_us(path):
    return {row["id"]: row["v"] for row in HudiTable.open(path).scan().to_arrow().to_pylist()}


def by_hudi(hudi, path):
    return {row["id"]: row["v"] for row in hudi.read(path, columns=["id", "v"])}


def by_hudi_rs(path):
    return {row["id"]: row["v"] for row in hudi_rs.read(path).to_pylist()}


def compacted_by_hudi(hudi, path, options, row):
    """What we read of a copy that Hudi has compacted with a batch of its own."""
    copy, names = path + "-theirs", ",".join(name for name in row.column_names if name.startswith("o"))
    shutil.copytree(path, copy, copy_function=shutil.copy2)
    theirs = {
        "hoodie.table.name": "t",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.precombine.field": names,
        "hoodie.table.ordering.fields": names,
        "hoodie.datasource.write.operation": "upsert",
        "hoodie.compact.inline": "true",
        "hoodie.compact.inline.max.delta.commits": "1",
    }
    hudi.write(copy, row, {**options, **theirs, "hoodie.datasource.compaction.async.enable": "true"})
    assert HudiTable.open(copy).load_timeline().completed_of(Action.COMMIT)
    return {key: v for key, v in by_us(copy).items() if key != "z"}


def check_readers(path, partners, version, cannot=None):
    assert by_us(path) == by_hudi_rs(path) == by_hudi(partners[9], path) == WANTED
    if version == 9:
        return
    if cannot is None:
        assert by_hudi(partners[6], path) == WANTED
        return
    with pytest.raises(HudiError, match=cannot):
        by_hudi(partners[6], path)


# one reader of 1.0.2 and one of 1.2.0 for each type, and version 9 for the type that has a wrapper of its own
CASES = [*((name, 6) for name in VALUES), ("date", 9)]
OTHERS = [(name, version) for name in VALUES for version in (8, 9) if (name, version) not in CASES]


@pytest.mark.parametrize("index", ["BUCKET", slow("BLOOM")])
@pytest.mark.parametrize(("name", "version"), [*CASES, *map(slow, OTHERS)])
def test_late_stays_late_for_every_reader(partners, tmp_path, name, version, index):
    kind, values = VALUES[name]
    path = str(tmp_path / "t")
    write(path, [kind], [(value,) for value in values], version, index)
    # the reader of 1.0.2 fails on deletes that are ordered by decimals, until they are compacted
    check_readers(path, partners, version, CANNOT_CAST if name == "decimal" else None)
    HudiTable.open(path).compact()
    assert by_us(path) == WANTED
    if name == "decimal":
        check_readers(path, partners, version)


@pytest.mark.slow
@pytest.mark.parametrize("version", [6, 8, 9])
@pytest.mark.parametrize("name", VALUES)
def test_late_stays_late_where_hudi_compacts(partners, tmp_path, name, version):
    kind, values = VALUES[name]
    path = str(tmp_path / "t")
    options = write(path, [kind], [(value,) for value in values], version, "BUCKET")
    row = batch("z", [(values[2],)], [kind])
    for hudi in [partners[9]] if version == 9 or name == "decimal" else [partners[9], partners[6]]:
        assert compacted_by_hudi(hudi, path, options, row) == WANTED
        shutil.rmtree(path + "-theirs")


@pytest.mark.slow
@pytest.mark.parametrize("index", ["BUCKET", slow("BLOOM")])
@pytest.mark.parametrize("names", quick(1, SEVERAL))
def test_several_fields_are_compared_one_after_another(partners, tmp_path, names, index):
    """hudi-rs refuses such tables."""
    kinds, values = SEVERAL[names]
    path = str(tmp_path / "t")
    options = write(path, kinds, values, 9, index)
    assert by_us(path) == by_hudi(partners[9], path) == WANTED
    with pytest.raises(Exception, match="Multiple ordering fields 'o0,o1' are not yet supported"):
        by_hudi_rs(path)
    assert compacted_by_hudi(partners[9], path, options, batch("z", [values[2]], kinds)) == WANTED
    HudiTable.open(path).compact()
    assert by_us(path) == WANTED


@pytest.mark.slow
@pytest.mark.parametrize("version", [6, 8, 9])
@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_hudi_orders_text_by_its_utf_8_bytes(partners, tmp_path, version, table_type):
    """Against stored rows and within a batch."""
    low, high = "\uffee", "\U00010000"
    assert low.encode("utf-16-be") > high.encode("utf-16-be")
    path, hudi = str(tmp_path / "t"), partners[version]
    options = {
        "hoodie.table.name": "t",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.precombine.field": "ts",
        "hoodie.datasource.write.operation": "upsert",
        "hoodie.write.table.version": str(version),
        "hoodie.datasource.write.table.type": table_type,
        "hoodie.datasource.write.payload.class": "org.apache.hudi.common.model.DefaultHoodieRecordPayload",
    }
    for rows in (
        [("a", low), ("b", high)],
        [("a", high), ("b", low)],
        [("c", low), ("c", high), ("d", high), ("d", low)],
    ):
        hudi.write(path, pa.table({"id": [key for key, _ in rows], "ts": [ts for _, ts in rows]}), options)
    assert {row["id"]: row["ts"] for row in hudi.read(path, columns=["id", "ts"])} == dict.fromkeys("abcd", high)
    assert {row["id"]: row["ts"] for row in HudiTable.open(path).scan().to_arrow().to_pylist()} == dict.fromkeys(
        "abcd", high
    )


WIDENINGS = {
    "int to long": (pa.int32(), pa.int64(), 10, 5, 20),
    "long to double": (pa.int64(), pa.float64(), 10, 5, 20.5),
    "float to double": (pa.float32(), pa.float64(), 1.5, 0.5, 2.5),
}


@pytest.mark.parametrize("version", quick(1, [6, 8, 9]))
@pytest.mark.parametrize("widening", quick(1, WIDENINGS))
def test_hudi_reads_a_table_whose_ordering_column_was_widened(partners, tmp_path, version, widening):
    old, new, high, low, later = WIDENINGS[widening]
    path = str(tmp_path / "t")
    options = {
        **MERGE_ON_READ,
        "hoodie.datasource.compaction.async.enable": "true",
        "hoodie.write.table.version": str(version),
        "hudistream.schema.integers.to.floats": "true",
    }
    with ArrowSink(
        path, {**options, "hoodie.index.type": "BUCKET"}, key="id", order_by="o0", operation="upsert"
    ) as sink:
        sink.write(batch("ab", [(high,)] * 2, [old]))
        sink.write(batch("a", [(low,)], [old], deleted=True))
        sink.write(batch("c", [(later,)], [new]))
        sink.write(batch("b", [(later,)], [new], deleted=True))
    for hudi in [partners[9]] if version == 9 else [partners[9], partners[6]]:
        assert by_hudi(hudi, path) == by_us(path) == {"a": "row", "c": "row"}

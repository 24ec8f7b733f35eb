"""For random rows, partitions and conditions a scan keeps what filtering the whole table keeps; golden tables too."""

import tempfile
from datetime import date

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from engine import Engine
from hypothesis import given, settings
from hypothesis import strategies as st
from tiers import examples

from hudistream import HudiTable
from table import read_table
from table.scan.partition_guarantee import partition_guarantee

WIDE = st.sampled_from(["a", "b", "x=y", "50%", "a b", "é", "z:1"])
PARTITIONS = {
    pa.string(): WIDE,
    pa.int64(): st.integers(-3, 3),
    pa.date32(): st.dates(date(2023, 12, 30), date(2024, 1, 2)),
    pa.bool_(): st.booleans(),
}
COMPARED = [pc.equal, pc.not_equal, pc.less, pc.greater_equal]


@st.composite
def tables(draw):
    kind = draw(st.sampled_from(list(PARTITIONS)))
    parts = draw(st.lists(PARTITIONS[kind] | st.none(), min_size=1, max_size=12))
    count = len(parts)
    columns = {
        "id": pa.array([f"k{n}" for n in range(count)]),
        "part": pa.array(parts, kind),
        "ts": pa.array(draw(st.lists(st.integers(0, 9), min_size=count, max_size=count)), pa.int64()),
        "f": pa.array(draw(st.lists(st.floats(width=32) | st.none(), min_size=count, max_size=count)), pa.float64()),
        "s": pa.array(draw(st.lists(WIDE | st.none(), min_size=count, max_size=count)), pa.string()),
    }
    return pa.table(columns), PARTITIONS[kind]


def conditions(values):
    leaves = st.one_of(
        st.builds(lambda op, v: op(pc.field("part"), pc.scalar(v)), st.sampled_from(COMPARED[:2]), values),
        st.builds(lambda vs: pc.field("part").isin(vs), st.lists(values, min_size=1, max_size=3)),
        st.builds(lambda n: pc.field("id") == f"k{n}", st.integers(0, 12)),
        st.builds(lambda op, n: op(pc.field("ts"), pc.scalar(n)), st.sampled_from(COMPARED), st.integers(0, 9)),
        st.builds(lambda op, n: op(pc.field("f"), pc.scalar(n)), st.sampled_from(COMPARED), st.floats(-9, 9)),
        st.builds(lambda v: pc.field("s") == v, WIDE),
        st.sampled_from([pc.field("part").is_null(), pc.field("f").is_valid(), pc.field("s").is_null()]),
    )
    return st.recursive(
        leaves,
        lambda inner: st.one_of(
            st.builds(lambda a, b: a & b, inner, inner), st.builds(lambda a, b: a | b, inner, inner),
            st.builds(lambda a: ~a, inner),
        ),
        max_leaves=5,
    )  # fmt: skip


def path_of(value, hive):
    """The partition path that Hudi's simple key generator makes of a value, URL-encoded."""
    from table.keys.keygen import DEFAULT_PARTITION, url_encode_text

    text = str(value).lower() if isinstance(value, bool) else str(value)
    path = DEFAULT_PARTITION if value is None else url_encode_text(text)
    return f"part={path}" if hive else path


@given(st.data(), st.booleans())
@settings(max_examples=examples(15), deadline=None)
def test_a_scan_keeps_what_filtering_the_whole_table_keeps(data, hive):
    rows, values = data.draw(tables())
    options = {
        "hoodie.datasource.write.partitionpath.field": "part",
        "hoodie.datasource.write.partitionpath.urlencode": "true",
        "hoodie.datasource.write.hive_style_partitioning": str(hive).lower(),
    }
    with tempfile.TemporaryDirectory() as folder:
        engine = EngineByColumn(folder + "/t", options, hive)
        half = len(rows) // 2
        engine.write(None, rows.slice(0, half))
        engine.write(None, rows.slice(half))
        table, whole = HudiTable.open(folder + "/t"), read_table(folder + "/t")
        assert len(whole) == len(rows)
        for _ in range(5):
            where = data.draw(conditions(values))
            expected = sorted(whole.filter(where)["id"].to_pylist())
            assert sorted(table.scan(["id"], where).to_arrow()["id"].to_pylist()) == expected, str(where)
            assert sorted(table.scan(["id"], where).to_batches().read_all()["id"].to_pylist()) == expected


class EngineByColumn(Engine):
    """An engine whose partition paths are made of the column `part`."""

    def __init__(self, path, options, hive):
        super().__init__(path, options)
        self._hive = hive

    def workers(self, table, parallelism=2, schema=None):
        made = super().workers(table, parallelism, schema)
        paths = [path_of(value, self._hive) for value in table["part"].to_pylist()]
        made._paths = pa.chunked_array([paths], pa.string())
        return made


GOLDEN = ["cow_insert_partitioned", "cow_hive_style_partitions", "cow_timestamp_keygen", "cow_schema_evolved",
          "cow_insert_overwrite", "types_all", "types_all_3level_lists", "cow_upsert_delete", "cow_nonpartitioned",
          "streaming_sink", "cow_metadata_table"]  # fmt: skip


@pytest.mark.parametrize("name", GOLDEN)
def test_what_a_partition_path_says_is_true_of_its_rows(golden, name):
    table = HudiTable.open(golden(name)[0])
    whole = table.scan(meta_columns=True).to_arrow()
    assert len(whole)
    for path in set(whole["_hoodie_partition_path"].to_pylist()):
        here = whole.filter(pc.field("_hoodie_partition_path") == path)
        assert len(here.filter(partition_guarantee(table.config, table.schema, path))) == len(here)


@pytest.mark.parametrize("name", GOLDEN)
def test_every_row_of_a_golden_table_is_found_by_each_of_its_values(golden, name):
    table = HudiTable.open(golden(name)[0])
    whole = table.scan(meta_columns=True).to_arrow()
    plain = [f.name for f in table.schema if not pa.types.is_nested(f.type) and not pa.types.is_floating(f.type)]
    for column in plain:
        value = next((v for v in whole[column] if v.is_valid), None)
        if value is None:
            continue
        where = pc.field(column) == value
        expected = whole.filter(where)
        assert len(expected)
        found = table.scan(where=where, meta_columns=True).to_arrow()
        assert found.num_rows == expected.num_rows, column
        assert sorted(found["_hoodie_record_key"].to_pylist()) == sorted(expected["_hoodie_record_key"].to_pylist())

"""Tables of ours, read by Trino through its Hudi connector."""

import base64
import datetime as dt
import json
import random
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from every_type import EVERY_TYPE, random_batch
from oracles.trino import serve_trino
from snapshots import live_files

from hudistream import ArrowSink, HudiTable
from table.schema.avro_schema import META_COLUMNS, RECORD_KEY

pytestmark = pytest.mark.slow

KEYS = {
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.datasource.write.partitionpath.field": "p",
}
SHARED = "hudistream.parquet.shared.key.chunk"
FORMS = {
    "default": {},
    "shared": {SHARED: "true"},
    "shared_snappy": {SHARED: "true", "hoodie.parquet.compression.codec": "snappy"},
    "dynamic_filter": {"hoodie.bloom.index.filter.type": "DYNAMIC_V0"},
    "hive_style": {"hoodie.datasource.write.hive_style_partitioning": "true"},
    "merge_on_read": {"hoodie.datasource.write.table.type": "MERGE_ON_READ"},
}


@pytest.fixture(scope="module")
def trino(tmp_path_factory):
    with serve_trino(tmp_path_factory.mktemp("trino")) as server:
        yield server


def make_known(trino, name, path):
    """Registers a table as it is now, with its partitions."""
    schema = HudiTable.open(path).schema
    columns = pa.schema([field for field in schema if field.name != "p"])
    folders = {file.removeprefix(f"{path}/").rpartition("/")[0] for file in live_files(path)}
    trino.add(name, path, columns, [(folder.rpartition("=")[2], folder) for folder in sorted(folders)])


def in_json(value, kind):
    """A value of Arrow as Trino's protocol has it in JSON."""
    if value is None:
        return None
    if pa.types.is_struct(kind):
        return [in_json(value[field.name], field.type) for field in kind]
    if pa.types.is_list(kind):
        return [in_json(one, kind.value_type) for one in value]
    if pa.types.is_map(kind):
        return {key: in_json(one, kind.item_type) for key, one in value}
    if pa.types.is_binary(kind):
        return base64.b64encode(value).decode()
    if isinstance(value, dt.datetime):
        return f"{value:%Y-%m-%d %H:%M:%S.%f}000"  # Trino holds Hudi's times as nanoseconds
    return f"{value}" if isinstance(value, dt.date) or pa.types.is_decimal(kind) else value


def rows_of(table):
    """What Trino is to answer for these rows, in any order."""
    columns = [[in_json(value, field.type) for value in table.column(field.name).to_pylist()] for field in table.schema]
    return in_order(zip(*columns, strict=True))


def in_order(rows):
    return sorted(json.dumps(list(row), sort_keys=True) for row in rows)


def is_shared(file):
    """Whether record keys and the column id are the same pages."""
    group = pq.read_metadata(file).row_group(0)
    chunks = {chunk.path_in_schema: chunk for chunk in map(group.column, range(group.num_columns))}
    return chunks[RECORD_KEY].data_page_offset == chunks["id"].data_page_offset


def batch_of(rng, first, count):
    """Rows of every type and of three partitions, with keys that are long enough to be stored once."""
    batch = random_batch(rng, first, count)
    keys = [f"{number * 7919 % 100_003:08}-key-{number:012}" for number in range(first, first + count)]
    partitions = pa.array([f"p{number % 3}" for number in range(count)])
    return batch.set_column(0, "id", pa.array(keys)).set_column(1, "p", partitions)


def write(path, form):
    """Makes a table of updates, deletions and cleaning; the rows that it holds."""
    rng, held = random.Random(7), {}
    options = {**KEYS, **FORMS[form], "hoodie.clean.commits.retained": "2", "hoodie.parquet.block.size": "1000000"}
    with ArrowSink(path, {"hoodie.table.name": form, **options}) as sink:
        for number in range(6):
            # partitions of one key are the same: 2,100 is a multiple of three
            batch = batch_of(rng, 2_100 * number, 3_000)
            sink.write(batch)
            held |= {row["id"]: row for row in batch.to_pylist()}
            gone = batch.slice(900, 20)
            sink.delete(gone)
            for key in gone.column("id").to_pylist():
                del held[key]
    if form == "merge_on_read":
        HudiTable.open(path).compact()  # Trino reads base files alone
    return pa.Table.from_pylist(list(held.values()), EVERY_TYPE)


@pytest.mark.parametrize("form", FORMS)
def test_tables_of_every_form_are_read_with_filters(tmp_path, trino, form):
    path = str(tmp_path / "t")
    held = write(path, form)
    make_known(trino, form, path)
    assert all(is_shared(file) == (SHARED in FORMS[form]) for file in live_files(path))

    def ask(columns, where="true"):
        return in_order(trino.ask(f'SELECT {", ".join(columns)} FROM "{form}" WHERE {where}'))

    assert ask(EVERY_TYPE.names) == rows_of(held)
    metas = HudiTable.open(path).scan(columns=[*META_COLUMNS, "id"]).to_arrow()
    assert ask(metas.schema.names) == rows_of(metas)
    key, ids = held.column("id")[777].as_py(), held.select(["id"])
    for where, kept in {
        f"id = '{key}'": pc.field("id") == key,
        f"_hoodie_record_key = '{key}' AND id = '{key}'": pc.field("id") == key,
        "id <> _hoodie_record_key": pc.scalar(False),
        f"id > '{key}'": pc.field("id") > key,
    }.items():
        assert ask(["id"], where) == rows_of(ids.filter(kept)), where
    assert ask(["id"], "p = 'p1'") == rows_of(held.filter(pc.field("p") == "p1").select(["id"]))
    assert ask(["id"], "ts BETWEEN 500 AND 800") == rows_of(
        held.filter((pc.field("ts") >= 500) & (pc.field("ts") <= 800)).select(["id"])
    )


def test_a_commit_that_a_crash_left_pending_is_seen_when_the_next_sink_has_ended_it(tmp_path, trino):
    path = str(tmp_path / "t")
    rng = random.Random(3)
    batches = [batch_of(rng, 0, 900), batch_of(rng, 300, 900)]
    with ArrowSink(path, {"hoodie.table.name": "crashed", **KEYS}) as sink:
        for number, batch in enumerate(batches):
            sink.write(batch, batch_id=number)
    last = max(Path(path, ".hoodie").glob("*.commit"))
    last.unlink()  # all but the file that makes it visible, as a crash leaves it
    make_known(trino, "crashed", path)
    assert in_order(trino.ask("SELECT id, ts, half FROM crashed")) == rows_of(batches[0].select(["id", "ts", "half"]))
    with ArrowSink(path, {"hoodie.table.name": "crashed", **KEYS}) as sink:
        assert sink.write(batches[1], batch_id=1).skipped  # its end was recorded before the crash
    both = {row["id"]: row for batch in batches for row in batch.to_pylist()}
    held = pa.Table.from_pylist(list(both.values()), EVERY_TYPE).select(["id", "ts", "half"])
    assert in_order(trino.ask("SELECT id, ts, half FROM crashed")) == rows_of(held)

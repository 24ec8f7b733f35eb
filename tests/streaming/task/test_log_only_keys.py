"""Keys that log files alone hold are not doubled by an index that looks into base files."""

import pytest
from engine import Engine, key_set, rows

from hudistream import HudiTable
from table import UnsupportedTableError, read_table
from table.config.table_config import update_properties
from table.storage.local import LocalStorage

BUCKETS = {
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.datasource.write.operation": "upsert",
    "hoodie.index.type": "BUCKET",
    "hoodie.bucket.index.num.buckets": "1",
    "hoodie.compact.inline.max.delta.commits": "50",
}


def here(numbers, **values):
    return rows(numbers, partition=lambda _: "p0", **values)


def forget_buckets(path):
    """The properties are those of Hudi, which does not keep the number of buckets."""
    update_properties(LocalStorage(path), {}, {"hoodie.bucket.index.num.buckets", "hoodie.bucket.index.hash.field"})


@pytest.mark.parametrize("version", ["6", "9"])
@pytest.mark.parametrize("index", ["BLOOM", "SIMPLE", "GLOBAL_BLOOM"])
@pytest.mark.parametrize("operation", ["upsert", "delete"])
def test_a_key_of_a_log_file_alone_is_refused_until_it_is_compacted(tmp_path, index, operation, version):
    path, options = str(tmp_path / "t"), {**BUCKETS, "hoodie.write.table.version": version}
    Engine(path, options).write(0, here([0]))
    Engine(path, options).write(1, here([1]))
    forget_buckets(path)
    other = {**options, "hoodie.index.type": index, "hoodie.datasource.write.operation": operation}
    other["hoodie.bloom.index.update.partition.path"] = "false"
    with pytest.raises(UnsupportedTableError, match="has the key 'k1' in a log file and not in its base file"):
        Engine(path, other).write(2, here([1], ts=1, v="new"))
    assert read_table(path).column("v").to_pylist() == ["v", "v"]
    HudiTable.open(path).compact()
    Engine(path, other).write(2, here([1], ts=1, v="new"))
    wanted = {"k0": "v", "k1": "new"} if operation == "upsert" else {"k0": "v"}
    assert {row["id"]: row["v"] for row in read_table(path).to_pylist()} == wanted


def test_a_log_file_with_keys_of_its_base_file_is_as_good_with_any_index(tmp_path):
    path = str(tmp_path / "t")
    for number in range(2):
        Engine(path, BUCKETS).write(number, here(range(3), ts=number))
    forget_buckets(path)
    Engine(path, {**BUCKETS, "hoodie.index.type": "BLOOM"}).write(2, here([1, 7], ts=2))
    assert key_set(read_table(path)) == ["k0", "k1", "k2", "k7"]

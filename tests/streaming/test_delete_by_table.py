"""`HudiTable.delete`: the one method of a table that writes rows."""

import pytest
from engine import rows
from s3_server import s3_options

from hudistream import ArrowSink, HudiTable, InvalidConfigError, TableHeldError, read_table, write_hudi

GIVEN = {"key": "id", "partition_by": "p", "order_by": "ts"}


@pytest.mark.parametrize("index", ["bloom", "bucket"])
@pytest.mark.parametrize("table_type", ["cow", "mor"])
def test_rows_of_a_condition_go_in_one_commit(tmp_path, table_type, index):
    path = str(tmp_path / "t")
    write_hudi(path, rows(range(10)), **GIVEN, table_type=table_type, index=index)
    table = HudiTable.open(path)
    summary = table.delete([("id", "in", ["k1", "k7", "k8"])])
    assert summary.rows_deleted == 3
    assert sorted(read_table(path).column("id").to_pylist()) == ["k0", "k2", "k3", "k4", "k5", "k6", "k9"]
    assert table.newest_instant == summary.instant_time


def test_on_an_object_store_the_table_brings_its_keys_along():
    with s3_options() as options:
        path = "s3://lake/deleted"
        write_hudi(path, rows(range(4)), **GIVEN, storage_options=options)
        HudiTable.open(path, options).delete([("id", "=", "k2")])
        assert sorted(read_table(path, storage_options=options).column("id").to_pylist()) == ["k0", "k1", "k3"]


def test_what_is_wrong_is_said_and_nothing_goes(tmp_path):
    path = str(tmp_path / "t")
    write_hudi(path, rows(range(4)), **GIVEN)
    table = HudiTable.open(path)
    with pytest.raises(InvalidConfigError, match="nowhere"):
        table.delete([("nowhere", "=", 1)])
    with ArrowSink(path) as writer:
        writer.write(rows([4]))
        with pytest.raises(TableHeldError):
            table.delete([("id", "=", "k2")])
    assert len(read_table(path)) == 5

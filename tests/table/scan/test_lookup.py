"""Rows by record key: all of them, from the files and row groups that hold them."""

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from engine import Engine, rows
from faults import FaultyStorage, Fuse

from hudistream import HudiTable
from table import InvalidConfigError, read_table
from table.files.base.stored_file import StoredBaseFile
from table.storage.local import LocalStorage

SMALL_GROUPS = {"hoodie.parquet.block.size": "20000", "hoodie.parquet.small.file.limit": "0"}


@pytest.fixture
def lake(tmp_path):
    path = str(tmp_path / "t")
    for first in (0, 3000):
        Engine(path, SMALL_GROUPS, batch_rows=500).write(None, rows(range(first, first + 3000), lambda n: "p"))
    return HudiTable.open(path)


@pytest.mark.parametrize("numbers", [[], [0], [2999, 3000], [17, 17, 5999, 99999], list(range(0, 6000, 7))])
def test_the_rows_of_the_keys_are_found_and_no_others(lake, numbers):
    keys = [f"k{number}" for number in numbers]
    whole = read_table(lake.storage.base_uri, meta_columns=True)
    expected = whole.filter(pc.is_in(whole["_hoodie_record_key"], pa.array(keys, pa.string())))
    assert lake.lookup(keys, meta_columns=True).equals(expected)
    assert lake.lookup(pa.array(keys, pa.string()), ["v", "id"]).equals(expected.select(["v", "id"]))


def test_files_and_row_groups_without_a_hit_are_not_read(lake, monkeypatch):
    groups = []
    read = StoredBaseFile.read_stored

    def noted(self, names, wanted=None, *args, **how):
        groups.append((self.path, names, wanted))
        return read(self, names, wanted, *args, **how)

    monkeypatch.setattr(StoredBaseFile, "read_stored", noted)
    fuse = Fuse()
    table = HudiTable(FaultyStorage(LocalStorage(lake.storage.base_uri), fuse), lake.config)
    assert table.lookup(["k12"])["id"].to_pylist() == ["k12"]
    assert len({path for path, _, _ in groups}) == 1
    rows_read = [wanted for _, names, wanted in groups if "v" in names]
    assert len(rows_read) == 1
    assert len(rows_read[0]) == 1


def test_the_same_key_in_two_partitions_has_two_rows(tmp_path):
    path = str(tmp_path / "t")
    Engine(path).write(None, rows(range(3), lambda n: "a"))
    Engine(path).write(None, rows(range(3), lambda n: "b"))
    assert HudiTable.open(path).lookup(["k1"], ["p"])["p"].to_pylist() == ["a", "b"]


def test_as_of_an_earlier_commit(tmp_path):
    path = str(tmp_path / "t")
    upsert = {"hoodie.datasource.write.operation": "upsert"}
    first = Engine(path, upsert).write(None, rows(range(3), v="old")).instant_time
    Engine(path, upsert).write(None, rows(range(3), ts=1, v="new"))
    table = HudiTable.open(path)
    assert table.lookup(["k1"], ["v"])["v"].to_pylist() == ["new"]
    assert table.lookup(["k1"], ["v"], as_of=first)["v"].to_pylist() == ["old"]


def test_what_cannot_be_looked_up_is_refused(lake):
    with pytest.raises(InvalidConfigError, match=r"\['k1'\]"):
        lake.lookup("k1")
    with pytest.raises(InvalidConfigError, match="text"):
        lake.lookup([1])
    with pytest.raises(InvalidConfigError, match="'nope'"):
        lake.lookup(["k1"], ["nope"])


@pytest.mark.parametrize(
    "name", ["cow_upsert_delete", "cow_nonpartitioned", "types_all", "cow_schema_evolved", "mor_avro_logs"]
)
def test_every_row_of_a_golden_table_is_found_by_its_key(golden, name):
    table = HudiTable.open(golden(name)[0])
    whole = table.scan(meta_columns=True).to_arrow()
    found = table.lookup(whole["_hoodie_record_key"], meta_columns=True)
    assert found.to_pylist() == whole.to_pylist()


def test_rows_of_many_pieces_are_found_and_what_lies_behind_them_is_not_decoded(lake, monkeypatch):
    monkeypatch.setattr("table.files.base.stored_file._TAKEN_ROWS", 100)
    pieces = []
    read = StoredBaseFile.read_stored

    def noted(self, names, *args, **how):
        for piece in read(self, names, *args, **how):
            pieces.append(len(piece))
            yield piece

    whole = lake.scan(meta_columns=True).to_arrow()
    keys = whole["_hoodie_record_key"].take(pa.array([0, 99, 100, 101, 350, 2999, 3000]))
    expected = whole.filter(pc.is_in(whole["_hoodie_record_key"], keys.combine_chunks()))
    assert lake.lookup(keys, meta_columns=True).equals(expected)
    assert (
        lake.lookup(keys, ["v", "_hoodie_record_key", "id"]).to_pylist()
        == expected.select(["v", "_hoodie_record_key", "id"]).to_pylist()
    )
    monkeypatch.setattr(StoredBaseFile, "read_stored", noted)
    assert len(lake.lookup(keys.slice(0, 1))) == 1
    assert pieces.count(100) == 1

"""Hudi's metadata table: Hudi reads HFiles that were written here, and we read the lists that Hudi keeps up."""

import pytest
from hfiles import rewrite_lists

from table.config.table_config import load_table_config
from table.hudi_table import HudiTable
from table.scan.read_table import read_table
from table.services.check.check import check
from table.snapshot import Snapshot
from table.storage.local import LocalStorage

pytestmark = pytest.mark.hudi
BY_LISTS = {"hoodie.metadata.enable": "true"}
OPTIONS = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "k",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.datasource.write.partitionpath.field": "p",
    "hoodie.metadata.enable": "true",
    "hoodie.metadata.compact.max.delta.commits": "3",
    "hoodie.clean.commits.retained": "1",
    "hoodie.write.lock.provider": "org.apache.hudi.client.transaction.lock.InProcessLockProvider",
}


def keys(rows):
    return sorted(row["_hoodie_record_key"] for row in rows)


@pytest.mark.usefixtures("utc")
def test_hudi_reads_by_hfiles_that_were_written_here(hudi, golden):
    path, _ = golden("v8_cow_partitions")
    wanted = keys(hudi.read(path, {"hoodie.metadata.enable": "false"}))
    assert rewrite_lists(path) > 2
    assert keys(hudi.read(path, BY_LISTS)) == wanted
    assert sorted(read_table(path, meta_columns=True)["_hoodie_record_key"].to_pylist()) == wanted

    # Hudi did read them: what they leave out is not seen
    left_out = Snapshot.load(HudiTable.open(path)).list_partition_paths()[0]
    rewrite_lists(path, lambda key, entries: {} if key == left_out else entries)
    seen = keys(hudi.read(path, BY_LISTS))
    assert set(seen) < set(wanted)
    assert sorted(read_table(path, meta_columns=True)["_hoodie_record_key"].to_pylist()) == seen


@pytest.mark.slow  # test_lists_kept_agree.py has the quick one
@pytest.mark.parametrize(("version", "table_type"), [(6, "COPY_ON_WRITE"), (8, "MERGE_ON_READ")])
def test_we_read_by_the_lists_that_hudi_keeps_up(hudi, tmp_path, version, table_type, monkeypatch):
    """Commits, cleans, compactions and rollbacks of Hudi, and compactions of its metadata table."""
    path = str(tmp_path / "t")
    options = {
        **OPTIONS,
        "hoodie.datasource.write.table.type": table_type,
        "hoodie.write.table.version": str(version),
        "hoodie.compact.inline": str(table_type == "MERGE_ON_READ").lower(),
        "hoodie.compact.inline.max.delta.commits": "2",
    }
    listed, real = [], LocalStorage.list_dir
    monkeypatch.setattr(LocalStorage, "list_dir", lambda self, folder: listed.append(folder) or real(self, folder))
    for batch in range(4):
        rows = [{"k": f"k{n}", "ts": batch, "p": f"p{n % 3}"} for n in range(batch, batch + 6)]
        hudi.write(path, rows, options, mode="append" if batch else "overwrite")
        listed.clear()
        ours = read_table(path, meta_columns=True)
        assert not [folder for folder in listed if folder.startswith("p")]
        assert sorted(ours["_hoodie_record_key"].to_pylist()) == keys(hudi.read(path, BY_LISTS))
        assert check(HudiTable.open(path)).is_sound
    config = load_table_config(LocalStorage(path))
    assert (config.version, "files" in config.metadata_partitions) == (version, True)

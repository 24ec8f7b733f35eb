"""Who asks which data files there are does not know who answers."""

from dataclasses import dataclass

import pytest
from counting import data_folders
from engine import Engine, rows
from faults import FaultyStorage, Fuse
from snapshots import list_snapshot_files

from table import create_savepoint
from table.hudi_table import HudiTable
from table.inspect.explain import explain_files
from table.options.groups import CleanSettings
from table.options.write_options import WriteOptions
from table.services.clean.clean import clean
from table.services.clean.judgement import judge_files
from table.storage.local import LocalStorage
from table.view.store_listing import StorageListing

SETTINGS = CleanSettings(commits_retained=1, incremental=False, grace_ms=0)


@dataclass(frozen=True)
class Remembering:
    """A listing that answers from memory: the store is not asked."""

    known: dict

    def list_partition_paths(self):
        return sorted(self.known)

    def list_files(self, partition_path):
        return self.known.get(partition_path, [])

    def walk(self, narrow=None):
        kept = self.known if narrow is None else narrow(list(self.known))
        return ((path, self.known[path]) for path in kept)


@pytest.mark.parametrize(
    "ask",
    [
        list_snapshot_files,
        lambda table: list(judge_files(table, SETTINGS)),
        lambda table: list(explain_files(table, WriteOptions())),
        create_savepoint,
        lambda table: clean(table, SETTINGS),
    ],
    ids=["read", "judge", "explain", "savepoint", "clean"],
)
def test_another_listing_can_stand_behind_readers_and_services(tmp_path, monkeypatch, ask):
    path = str(tmp_path / "t")
    for number in range(4):
        Engine(path, {"hoodie.datasource.write.operation": "upsert"}).write(None, rows(range(30), ts=number))
    fuse = Fuse()
    table = HudiTable(FaultyStorage(LocalStorage(path), fuse), HudiTable.open(path).config)
    remembered = Remembering(dict(StorageListing(LocalStorage(path)).walk()))
    monkeypatch.setattr(HudiTable, "listing", property(lambda _: remembered))
    assert ask(table)
    assert data_folders(fuse.calls) == []

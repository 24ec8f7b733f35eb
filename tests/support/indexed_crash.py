"""A table with every index of the metadata table, and processes that stop at a storage call as they write it."""

import shutil

import pytest
from engine import STATISTICS, Engine, form_of, rows
from faults import FaultyStorage, Fuse, PowerCut

from table.config.table_config import load_table_config
from table.hudi_table import HudiTable
from table.options.groups import CleanSettings
from table.services.clean.clean import clean
from table.services.metadata_table_service import keep_metadata_table_small
from table.storage.local import LocalStorage

FIRST, SECOND = rows(range(12)), rows(range(6, 18), ts=1, v="second")
INDEXED = {
    **STATISTICS,
    "hoodie.metadata.record.index.enable": "true",
    "hoodie.bloom.index.update.partition.path": "false",
    "hoodie.index.type": "GLOBAL_BLOOM",
}


def build(path, version, table_type, fuse=None, **more):
    """An engine that makes the indexes and keeps them.

    Args:
        fuse: through which each storage call goes.
        more: options.
    """
    storage = LocalStorage(path)
    options = {**form_of(version, table_type), **INDEXED, **more}
    return Engine(storage if fuse is None else FaultyStorage(storage, fuse), options)


def written(engine, batch_id, batch=SECOND):
    """The engine, behind a batch and its services."""
    engine.write(batch_id, batch)
    engine.writer.services.wait()  # a compaction beside `copytree` would tear the copy
    return engine


def clean_and_compact(path, fuse=None):
    """Cleans the table, and compacts its metadata table."""
    storage = LocalStorage(path)
    table = HudiTable(storage if fuse is None else FaultyStorage(storage, fuse), load_table_config(storage))
    clean(table, CleanSettings(commits_retained=1, grace_ms=0))
    keep_metadata_table_small(table, 4)


def stopped_copies(path, folder, step, act, *, sides=(False, True)):
    """A copy on which an action ended, and an iterator of copies on which it stopped at a call.

    Args:
        act: gets a path and a fuse. What it returns is held until all its calls are counted.
        step: 1 stops at every call, 2 at every second one.
        sides: whether the call at which it stops has its effect.
    """
    fuse = Fuse()
    whole = shutil.copytree(path, str(folder / "whole"))
    held = act(whole, fuse)
    calls = len(fuse.calls)  # without those by which an engine ends
    del held

    def stopped():
        for number in range(1, calls + 1, step):
            for after in sides:
                copy = shutil.copytree(path, str(folder / f"{number}-{after}"))
                with pytest.raises(PowerCut):
                    act(copy, Fuse(number, after))
                yield copy
                shutil.rmtree(copy)

    return whole, stopped()

"""Stopped at every storage call: what readers see by the lists of files is what they see by the store."""

import pytest
from engine import key_set, rows
from indexed_crash import FIRST, SECOND, build, clean_and_compact, stopped_copies, written
from record_index import assert_record_index_is_right
from tiers import quick

from table import read_table
from table.config.metadata_indexes import COLUMN_STATS, FILES, RECORD_INDEX
from table.config.table_config import load_table_config
from table.hudi_table import HudiTable
from table.metadata_table.file_lists import load_file_lists
from table.metadata_table.read_statistics import StatisticsIndex
from table.schema.avro_schema import with_meta_columns
from table.services.check.statistics import check_statistics
from table.snapshot import Snapshot
from table.storage.interface import FileInfo
from table.storage.local import LocalStorage
from table.view.file_group import BaseFile
from table.view.store_listing import StorageListing

FORMS = [(6, "COPY_ON_WRITE"), (8, "MERGE_ON_READ")]
STEP = pytest.mark.parametrize("step", [41, pytest.param(1, marks=pytest.mark.slow)], ids=["some calls", "every call"])


def current(snapshot, folders):
    found = {}
    for path, entries in folders:
        for group in snapshot.group_files(path, entries):
            found[path, group.file_id] = sorted((file.name, file.size_bytes) for file in group.current_files)
    return found


def assert_equal_by_lists(path):
    """A reader that trusts the lists, whatever they say, sees the files that the store has."""
    storage = LocalStorage(path)
    config = load_table_config(storage)
    snapshot = Snapshot.load(HudiTable(storage, config))
    by_store = current(snapshot, StorageListing(storage).walk())
    if FILES in config.metadata_indexes:
        lists = load_file_lists(storage, ())
        folders = [
            (one, [FileInfo(name, size, 0, False) for name, size in lists.files(one).items()])
            for one in lists.partition_paths()
        ]
        assert current(snapshot, folders) == by_store
    if COLUMN_STATS in config.metadata_indexes:
        assert_bounded(storage, config, snapshot)
    if RECORD_INDEX in config.metadata_indexes:
        assert_record_index_is_right(path)
    return config.metadata_indexes


def assert_bounded(storage, config, snapshot):
    """A reader that trusts the statistics skips no file with a row that is wanted: each visible file has its own."""
    files = [file for _, groups in snapshot.walk_file_groups() for group in groups for file in group.current_files]
    index = StatisticsIndex(storage, config)
    told = index.ranges({field.name: field.type for field in with_meta_columns(snapshot.load_schema())}, files)
    assert told.keys() == {(file.path, column) for file in files for column in index.columns}
    bases = [file for file in files if isinstance(file, BaseFile)]
    assert check_statistics(HudiTable(storage, config), snapshot.load_schema(), bases) == []


def stop_at_each(path, tmp_path, step, act, goes_on):
    """Does `act` on copies of a table, each time stopped at another call, and then `goes_on`: the lists are there."""
    whole, stopped = stopped_copies(path, tmp_path, step, act)
    assert COLUMN_STATS in assert_equal_by_lists(whole)
    for copy in stopped:
        assert_equal_by_lists(copy)
        goes_on(copy)
        indexes = assert_equal_by_lists(copy)
        assert indexes >= {FILES, COLUMN_STATS}


@STEP
@pytest.mark.parametrize(("version", "table_type"), FORMS)
def test_a_batch(tmp_path, version, table_type, step):
    path = str(tmp_path / "t")
    for number in range(2):  # the second makes the lists
        written(build(path, version, table_type), number, FIRST)
    assert RECORD_INDEX in assert_equal_by_lists(path)
    both = sorted({*key_set(FIRST), *key_set(SECOND)})

    def goes_on(copy):
        written(build(copy, version, table_type), 2)
        assert key_set(read_table(copy)) == both

    stop_at_each(path, tmp_path, step, lambda copy, fuse: written(build(copy, version, table_type, fuse), 2), goes_on)


@STEP
@pytest.mark.parametrize(("version", "table_type"), quick(1, FORMS))
def test_the_batch_that_makes_the_lists(tmp_path, version, table_type, step):
    path = str(tmp_path / "t")
    off = {"hoodie.metadata.enable": "false"}
    for number in range(2):
        written(build(path, version, table_type, **off), number, FIRST)

    def goes_on(copy):
        for number in (2, 3):  # a pending batch is ended first: the next one makes the lists
            written(build(copy, version, table_type), number)

    def act(copy, fuse):
        return written(build(copy, version, table_type, fuse), 2)

    stop_at_each(path, tmp_path, step, act, goes_on)


@STEP
@pytest.mark.parametrize(("version", "table_type"), quick(0, FORMS[::-1]))
def test_a_clean_and_a_compaction_of_the_lists(tmp_path, version, table_type, step):
    path = str(tmp_path / "t")
    for number in range(5):
        written(build(path, version, table_type), number, rows(range(number, number + 6), ts=number))

    def goes_on(copy):
        written(build(copy, version, table_type), 5)
        clean_and_compact(copy)

    stop_at_each(path, tmp_path, step, clean_and_compact, goes_on)

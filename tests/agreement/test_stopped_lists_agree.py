"""Stopped at storage calls: what Hudi reads by the metadata table is what it reads without it, at every point."""

import re
from contextlib import contextmanager
from pathlib import Path

import pytest
from engine import rows
from indexed_crash import FIRST, SECOND, build, clean_and_compact, stopped_copies, written
from oracles.hudi import HudiError
from turns import COLUMNS, write_theirs

from table import read_table
from table.hudi_table import HudiTable
from table.metadata_table.drop import drop_metadata_table

pytestmark = pytest.mark.hudi

BY_STORE = {"hoodie.metadata.enable": "false", "hoodie.enable.data.skipping": "false"}
BY_METADATA = {"hoodie.metadata.enable": "true", "hoodie.enable.data.skipping": "true"}
# a statistic, a key of the second batch alone, and one of both
FILTERS = ("v = 'second'", "id = 'k15'", "id = 'k7'")
VARIES = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|\d{5,}")
SIZED = ("hoodie.properties",)  # replaced in place
THEIRS = {"hoodie.metadata.enable": "true", "hoodie.metadata.record.index.enable": "true"}
# version, table type, and at which calls: all of them, or one of some
FORMS = [(8, "MERGE_ON_READ", 55), (8, "MERGE_ON_READ", 1), (6, "COPY_ON_WRITE", 1), (9, "COPY_ON_WRITE", 1)]


def read(hudi, path, where=None):
    """Rows of Hudi, sorted: by the store, and the same by the metadata table."""
    by_store, by_metadata = (
        sorted(tuple(row[column] for column in COLUMNS) for row in hudi.read(path, options, COLUMNS, where))
        for options in (BY_STORE, BY_METADATA)
    )
    assert by_metadata == by_store
    return by_store


def read_all(hudi, path):
    """As `read`, and through filters."""
    whole = read(hudi, path)
    for where in FILTERS:
        read(hudi, path, where)
    ids = [row[0] for row in whole]
    assert len(ids) == len(set(ids))
    return whole


def shape(path):
    """Which files there are, without what differs from run to run."""
    files = (file for file in path.rglob("*") if file.is_file())
    return sorted((VARIES.sub("", str(file.relative_to(path))), file.name in SIZED and file.stat().st_size)
                  for file in files)  # fmt: skip


def see_each(hudi, tmp_path, path, step, act, goes_on):
    """Hudi reads each stopped copy, and again behind what comes next. A call that changes nothing is not a stop."""
    before = read_all(hudi, path)
    whole, stopped = stopped_copies(path, tmp_path, step, act, sides=(False,))
    behind = read_all(hudi, whole)
    seen, last, number = set(), None, 0
    for copy in stopped:
        now = shape(Path(copy))
        if now == last:
            continue
        last, number = now, number + 1
        found = read_all(hudi, copy)
        assert found in (before, behind)
        seen.add(found == behind)
        goes_on(copy, number)
        ours = read_table(copy, COLUMNS).to_pylist()
        assert sorted(tuple(row[column] for column in COLUMNS) for row in ours) == read_all(hudi, copy)
    return seen


@pytest.mark.slow
@pytest.mark.parametrize(("version", "table_type", "step"), FORMS)
def test_a_batch(version, table_type, step, partners, tmp_path, utc):
    path, hudi = str(tmp_path / "t"), partners[version]
    for number in range(2):  # the second makes the lists
        written(build(path, version, table_type), number, FIRST)
    theirs = rows(range(10, 22), ts=2, v="theirs")

    def goes_on(copy, number):
        if number % 3 == 0:
            write_theirs(hudi, copy, version, theirs, **THEIRS, **{"hoodie.datasource.write.table.type": table_type})
            read_all(hudi, copy)
        written(build(copy, version, table_type), 2)
        ids = sorted(row[0] for row in read_all(hudi, copy))
        assert ids == sorted(f"k{number}" for number in range(18 if number % 3 else 22))

    def act(copy, fuse):
        return written(build(copy, version, table_type, fuse), 2, SECOND)

    assert False in see_each(hudi, tmp_path, path, step, act, goes_on)


@pytest.mark.slow
@pytest.mark.parametrize(("version", "table_type", "step"), FORMS[1:])
def test_a_clean_and_a_compaction_of_the_lists(version, table_type, step, partners, tmp_path, utc):
    path, hudi = str(tmp_path / "t"), partners[version]
    for number in range(5):
        written(build(path, version, table_type), number, rows(range(number, number + 6), ts=number))

    def goes_on(copy, number):
        written(build(copy, version, table_type), 5)
        clean_and_compact(copy)

    seen = see_each(hudi, tmp_path, path, step, clean_and_compact, goes_on)
    assert seen == {True}  # neither changes a row


@contextmanager
def or_unsupported():
    """What Hudi does without a metadata table that the properties name."""
    try:
        yield
    except HudiError as error:
        if "Unsupported operation: getRecords" not in str(error):
            raise


@pytest.mark.slow
@pytest.mark.parametrize("version", [6, 8, 9])
def test_without_its_properties_it_hides_no_row(version, partners, tmp_path, utc):
    """A process that goes on with the deletion of an earlier metadata table may delete those of a new one, and no more.

    Hudi lists the store then. Where statistics would choose files, and in writes, it raises an error until our next
    batch.
    """
    path, hudi = str(tmp_path / "t"), partners[version]
    for number in range(2):
        written(build(path, version, "COPY_ON_WRITE"), number, FIRST)
    (tmp_path / "t/.hoodie/metadata/.hoodie/hoodie.properties").unlink()
    assert [row[0] for row in read(hudi, path)] == sorted(f"k{number}" for number in range(12))
    for where in FILTERS:
        with or_unsupported():
            read(hudi, path, where)
    theirs = rows(range(10, 22), ts=2, v="theirs")
    with pytest.raises(HudiError, match=r"[Mm]etadata"):
        write_theirs(hudi, path, version, theirs, **THEIRS)
    written(build(path, version, "COPY_ON_WRITE"), 2, SECOND)
    assert len(read_all(hudi, path)) == 18
    write_theirs(hudi, path, version, theirs, **THEIRS)
    assert len(read_all(hudi, path)) == read_table(path).num_rows == 22


@pytest.mark.slow
@pytest.mark.parametrize("version", [6, 8, 9])
def test_one_that_was_made_anew_is_read_and_continued(version, partners, tmp_path, utc):
    """The times of its first instants tell which metadata table of the table it is."""
    path, hudi = str(tmp_path / "t"), partners[version]
    for number in range(2):
        written(build(path, version, "COPY_ON_WRITE"), number, FIRST)
    for number in range(2, 4):
        table = HudiTable.open(path)
        drop_metadata_table(table.storage, table.config)
        written(build(path, version, "COPY_ON_WRITE"), number, SECOND)
    config = HudiTable.open(path).config
    assert config.extra["hudistream.metadata.made"] == "3"
    assert len(read_all(hudi, path)) == 18
    for number, v in ((4, "theirs"), (5, "again")):
        write_theirs(hudi, path, version, rows(range(10, 16 + number), ts=number, v=v), **THEIRS)
        assert len(read_all(hudi, path)) == 16 + number
        written(build(path, version, "COPY_ON_WRITE"), number, rows(range(8), ts=number, v=f"ours {v}"))
        assert read_all(hudi, path)[0][0] == "k0"
    assert HudiTable.open(path).config.metadata_indexes == config.metadata_indexes
    assert read_table(path).num_rows == 21

"""Tables of versions 8 and 9 that our writer and Hudi's write in turns: rows are equal after every batch.

Hudi 1.0.2 makes version 8, Hudi 1.2.0 version 9.
"""

import os
from unittest import mock

import pyarrow as pa
import pytest
from engine import Engine, leave_a_dead_batch
from turns import COMPACTS, LOGS, OURS, SERVICES, Model, compacts, write_theirs

import hudistream
from hudistream import ArrowSink
from streaming.batch import opening
from table.hudi_table import HudiTable
from table.options.groups import ArchiveSettings, CleanSettings
from table.services.archival.archival import archive
from table.services.clean.clean import clean
from table.services.conversion.convert import convert_table
from table.services.savepoint.restore import restore_to_savepoint
from table.services.savepoint.savepoint import create_savepoint, delete_savepoint
from table.timeline.archived_timeline import read_archived_commits
from table.timeline.instant import Action

pytestmark = pytest.mark.hudi

SLOW = pytest.mark.slow
BUCKETS = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2"}


@pytest.mark.parametrize(
    ("version", "first"),
    [(8, "ours"), *(pytest.param(*case, marks=SLOW) for case in ((9, "theirs"), (8, "theirs"), (9, "ours")))],
)
def test_batches_in_turns(version, first, partners, tmp_path, utc):
    path, hudi, model = str(tmp_path / "t"), partners[version], Model(version)
    ours_next = first == "ours"
    for number in range(6):
        if ours_next:
            Engine(path, {**OURS, "hoodie.write.table.version": str(version)}).write(number, model.draw())
        else:
            write_theirs(hudi, path, version, model.draw())
        model.check(path, hudi)
        ours_next = not ours_next
    gone = model.delete()
    Engine(path, {"hoodie.datasource.write.operation": "delete"}).write(10, gone)
    model.check(path, hudi)
    write_theirs(hudi, path, version, model.delete(), **{"hoodie.datasource.write.operation": "delete"})
    model.check(path, hudi)
    assert HudiTable.open(path).config.version == version


@pytest.mark.parametrize(
    ("version", "index"),
    [(8, {}), (9, {}), (9, BUCKETS)],
    ids=["8", "9", "9-bucket"],
)
@pytest.mark.slow
def test_log_files_in_turns(version, index, partners, tmp_path, utc):
    """Merge-on-read: log files, compactions, deletes and late records of either."""
    # Hudi 1.0.2 cannot read a log that holds a delete and a later record of one key, its own neither: it compares the
    # ordering value of the record (a long) with the 0 of a delete without one (an int)
    path, hudi, model = str(tmp_path / "t"), partners[version], Model(100 + version, revives=version != 8)
    options = {**LOGS, **index, "hoodie.write.table.version": str(version)}
    for number in range(8):
        if number % 2 == version % 2:
            Engine(path, {**OURS, **options, **COMPACTS}).write(2 * number, model.draw())
        else:
            more = COMPACTS if number > 4 else {}
            write_theirs(hudi, path, version, model.draw(), **options, **more)
        model.check(path, hudi)
        if number > 2:
            gone = model.delete()
            deletes = {"hoodie.datasource.write.operation": "delete"}
            if number % 2:
                Engine(path, {**options, **deletes}).write(2 * number + 1, gone)
            else:
                write_theirs(hudi, path, version, gone, **options, **deletes)
            model.check(path, hudi)
    table = HudiTable.open(path)
    assert (table.config.version, table.config.table_type) == (version, "MERGE_ON_READ")
    assert len(table.load_timeline().completed_of(Action.COMMIT)) > 1


@pytest.mark.parametrize(
    ("version", "table_type"),
    [
        (8, "COPY_ON_WRITE"),
        (9, "COPY_ON_WRITE"),
        (8, "MERGE_ON_READ"),
        (9, "MERGE_ON_READ"),
    ],
)
@pytest.mark.slow
def test_services_in_turns(version, table_type, partners, tmp_path, utc):
    """Cleans, failed batches, archivals, savepoints and restores of either, on a table that both write."""
    path, hudi, model = str(tmp_path / "t"), partners[version], Model(version + 1)
    settings = CleanSettings(commits_retained=1, grace_ms=0)
    options = {**OURS, "hoodie.write.table.version": str(version), "hoodie.datasource.write.table.type": table_type}
    theirs = {"hoodie.datasource.write.table.type": table_type, **compacts(table_type)}
    for number in range(4):
        Engine(path, options).write(number, model.draw())
    leave_a_dead_batch(Engine(path, options), 4, model.draw_apart())
    assert clean(HudiTable.open(path), settings)
    model.check(path, hudi)
    # Hudi ends our dead batch, cleans and archives after its own
    write_theirs(hudi, path, version, model.draw(), **theirs, **SERVICES)
    model.check(path, hudi)
    assert not HudiTable.open(path).load_timeline().pending
    for number in range(4, 9):
        Engine(path, options).write(number, model.draw())
        clean(HudiTable.open(path), settings)
    outcome = archive(HudiTable.open(path), ArchiveSettings(min_commits=3, max_commits=4), settings)
    assert len(outcome.instants) > 3
    model.check(path, hudi)
    write_theirs(hudi, path, version, model.draw(), **theirs, **SERVICES)
    model.check(path, hudi)
    table = HudiTable.open(path)
    held = create_savepoint(table)
    before = dict(model.rows)
    Engine(path, options).write(9, model.draw())
    write_theirs(hudi, path, version, model.draw(), **theirs)
    restore_to_savepoint(table, held, force=True)
    model.rows = before
    model.check(path, hudi)
    delete_savepoint(table, held)
    write_theirs(hudi, path, version, model.draw(), **theirs)
    model.check(path, hudi)
    Engine(path, options).write(9, model.draw())
    model.check(path, hudi)
    archived = {commit.time for commit in read_archived_commits(table.archived_timeline)}
    known = hudi.client(path, "archived_commits", options={"hoodie.write.table.version": str(version)})
    assert archived == {time for time in archived if any(time in line for line in known)} != set()


@pytest.mark.slow  # test_partial_updates_agree.py has the quick one
@pytest.mark.parametrize(("before", "after"), [(6, 8), (6, 9), (8, 9)])
@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("keeps", [True, False], ids=["by default", "dropping"])
def test_a_table_that_hudi_upgrades_under_a_running_stream(
    before, after, table_type, keeps, partners, tmp_path, utc, monkeypatch
):
    """A job of Hudi with default options: it upgrades the table and gives it a metadata table; our stream goes on."""
    path, hudi, model = str(tmp_path / "t"), partners[after], Model(10 * before + after)
    options = {**OURS, "hoodie.write.table.version": str(before)}
    options |= {
        "hoodie.datasource.write.table.type": table_type,
        **({} if keeps else {"hoodie.metadata.enable": "false"}),
    }
    options |= {"hoodie.clean.automatic": "true", "hoodie.clean.commits.retained": "1"}
    stream = Engine(path, options)
    for number in range(3):
        stream.write(number, model.draw())
    defaults = {"hoodie.write.auto.upgrade": "true", "hoodie.metadata.enable": "true"}
    defaults |= {"hoodie.datasource.write.table.type": table_type}
    write_theirs(hudi, path, after, model.draw(), **defaults)
    config = HudiTable.open(path).config
    indexes = config.metadata_partitions
    assert (config.version, bool(indexes)) == (after, True)
    warn = mock.Mock()
    monkeypatch.setattr(opening.log, "warning", warn)
    for number in range(3, 6):
        stream.write(number, model.draw())
        stream.writer.services.wait()
        model.check(path, hudi)
    config = HudiTable.open(path).config
    assert (config.version, config.metadata_partitions) == (after, indexes if keeps else "")
    told = [call for call in warn.call_args_list if call.args == ("table_version_changed",)]
    assert [(call.kwargs["before"], call.kwargs["now"]) for call in told] == [(before, after)]
    write_theirs(hudi, path, after, model.draw(), **defaults)
    stream.write(6, model.draw())
    model.check(path, hudi)
    stream.writer.stop()


@pytest.mark.slow
@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_versions_that_hudistream_gives_a_table(table_type, partners, tmp_path, utc):
    """Hudi reads and writes on in each; its archive is read after each conversion."""
    # Hudi 1.0.2 fails on a delete and a later record of one key in one log
    path, model = str(tmp_path / "t"), Model(77, revives=False)
    options = {"hoodie.datasource.write.table.type": table_type, "hoodie.metadata.enable": "false"}
    options |= compacts(table_type)
    number, archived = 0, set()
    for version in (6, 8, 9, 8, 6):
        if version != 6 or number:
            convert_table(HudiTable.open(path), version)
            model.check(path, partners[version])
        for _ in range(4):
            Engine(path, {**OURS, **options}).write(number, model.draw())
            number += 1
        Engine(path, {**options, "hoodie.datasource.write.operation": "delete"}).write(number, model.delete())
        number += 1
        model.check(path, partners[version])
        for _ in range(2):
            write_theirs(partners[version], path, version, model.draw(), **options, **SERVICES)
            model.check(path, partners[version])
        table = HudiTable.open(path)
        assert table.config.version == version
        now = {commit.time for commit in read_archived_commits(table.archived_timeline)}
        assert now > archived
        archived = now


@pytest.mark.parametrize(("version", "way"), [(8, "copied"), pytest.param(9, "copied", marks=SLOW),
                                               pytest.param(8, "converted twice", marks=SLOW)])  # fmt: skip
def test_hudi_reads_an_upgraded_table_whose_files_are_younger_than_later_requests(
    version, way, partners, tmp_path, utc
):
    """Log files that a compaction folded lie below it, as in version 6: their deletes take no rows."""
    path, hudi, rows = str(tmp_path / "t"), partners[version], {}
    options = {**LOGS, "hoodie.clean.automatic": "false", "hoodie.compact.inline": "false"}

    def write(value, *keys, operation="upsert"):
        table = pa.table({"id": keys, "v": [value] * len(keys)})
        with ArrowSink(path, options, key="id") as sink:
            sink.write(table, operation=operation)
        rows.update(dict.fromkeys(keys, value))

    write("first", "a", "b")
    write("gone", "a", operation="delete")
    hudistream.HudiTable.open(path).compact()
    write("third", "a")
    write("fourth", "c")
    if way == "copied":
        for folder, _, names in os.walk(path):
            for name in names:
                os.utime(os.path.join(folder, name))
    else:
        convert_table(HudiTable.open(path), 8)
        convert_table(HudiTable.open(path), 6)
    convert_table(HudiTable.open(path), version)
    for _ in range(2):
        assert {row["id"]: row["v"] for row in hudi.read(path, columns=["id", "v"])} == rows
        write("fifth", "b")

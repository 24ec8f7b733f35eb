"""Whatever is wrong is named with its value and the way out; nothing is committed, and the next good batch is fine."""

import errno
import io
import os
import shutil

import fastavro
import pyarrow as pa
import pytest
from engine import Engine, key_set, rows

from streaming.batch import opening
from table import (
    CommitConflictError,
    CorruptFileError,
    InvalidConfigError,
    InvalidRecordError,
    SchemaMismatchError,
    StorageError,
    TableExistsError,
    TableNotFoundError,
    UnsupportedTableError,
    read_table,
)
from table.config.table_config import BACKUP_FILE, PROPERTIES_FILE, update_properties
from table.storage.local import LocalStorage
from table.timeline.active_timeline import load_timeline
from table.timeline.instant import Action

GOOD = rows(range(10))
WIDE = GOOD.append_column("n", pa.array(range(10)))
STRICT = {"hudistream.schema.mode": "strict"}


class NoSpace(LocalStorage):
    """The disk is full: nothing can be flushed."""

    def sync(self, path):
        raise StorageError(f"could not flush {path!r}: {OSError(errno.ENOSPC, 'No space left on device')}")


class NoPermission(LocalStorage):
    """Files can be read and not made."""

    def open_output(self, path, stage=None):
        raise StorageError(f"could not create {path!r}: {OSError(errno.EACCES, 'Permission denied')}")

    def open_copy(self, source, ranges, path, stage=None):
        return self.open_output(path)


def properties(content):
    return lambda path: LocalStorage(path).put(PROPERTIES_FILE, content)


def setting(**changes):
    return lambda path: update_properties(
        LocalStorage(path), {f"hoodie.{key.replace('_', '.')}": value for key, value in changes.items()}
    )


def instant_file(name, content=""):
    def arrange(path):
        with open(f"{path}/.hoodie/{name}", "w", encoding="latin-1") as file:
            file.write(content)

    return arrange


def a_damaged_plan():
    fields = [{"name": "clusteringPlan", "type": ["null", "string"]}]
    content = io.BytesIO()
    fastavro.writer(content, {"type": "record", "name": "r", "fields": fields}, [{"clusteringPlan": "merge all"}])
    return content.getvalue().decode("latin-1")


def nothing(_path):
    pass


def without(column):
    return GOOD.drop_columns([column])


def changed(column, values):
    return GOOD.set_column(GOOD.column_names.index(column), column, values)


# (what is done to the table, the batch, more options, the tasks' storage, error, what it says)
CASES = {
    "null record key": (
        nothing, changed("id", pa.nulls(10, pa.string())), {}, None, InvalidRecordError, "10 rows cannot",
    ),
    "empty record key": (nothing, changed("id", pa.array([""] * 10)), {}, None, InvalidRecordError, "null or empty"),
    "path outside the table": (nothing, changed("p", pa.array([".."] * 10)), {}, None, InvalidRecordError, "'..'"),
    "path in the metadata": (
        nothing, changed("p", pa.array([".hoodie"] * 10)), {}, None, InvalidRecordError, "metadata",
    ),
    "path with a scheme": (nothing, changed("p", pa.array(["a:b"] * 10)), {}, None, InvalidRecordError, "colon"),
    "key column absent": (nothing, without("id"), {}, None, SchemaMismatchError, "'id' is missing and is of"),
    "partition column absent": (nothing, without("p"), {}, None, SchemaMismatchError, "column 'p' is missing"),
    "ordering column absent": (nothing, without("ts"), {}, None, SchemaMismatchError, "column 'ts' is missing"),
    "column new": (nothing, WIDE, STRICT, None, SchemaMismatchError, "'n' is new"),
    "type narrowed": (
        nothing, changed("ts", pa.array(range(10), pa.int32())), STRICT, None, SchemaMismatchError,
        "'ts' is int32, the table has int64",
    ),
    "type not supported": (
        nothing, GOOD.append_column("n", pa.array([b"12345678"] * 10, pa.binary(8))), {}, None, SchemaMismatchError,
        "fixed_size_binary",
    ),
    "column twice": (
        nothing, GOOD.append_column("V", pa.array(["x"] * 10)), {}, None, SchemaMismatchError, "'V' twice",
    ),
    "meta column": (
        nothing, GOOD.append_column("_hoodie_file_name", pa.array(["x"] * 10)), {}, None, SchemaMismatchError,
        "_hoodie_file_name",
    ),
    "properties truncated": (properties(b"hoodie.table.na"), GOOD, {}, None, CorruptFileError, "damaged"),
    "properties empty": (properties(b""), GOOD, {}, None, CorruptFileError, "damaged"),
    "properties of another table": (
        properties(b"hoodie.table.name=x\nhoodie.table.checksum=1\n"), GOOD, {}, None, CorruptFileError, "checksum",
    ),
    "commit file is garbage": (
        instant_file("20260101000000000.commit", "{broken"), GOOD, {}, None, CorruptFileError,
        "20260101000000000.commit is not the JSON of a commit",
    ),
    "instant from the future": (
        instant_file("29990101000000000.commit", "{}"), GOOD, {}, None, InvalidConfigError, "zone UTC",
    ),
    "damaged plan of a clustering": (
        instant_file("20260101000000000.replacecommit.requested", a_damaged_plan()), GOOD, {}, None,
        CorruptFileError, "20260101000000000.replacecommit.requested is damaged",
    ),
    "pending restore": (
        instant_file("20260101000000000.restore.inflight"), GOOD, {}, None, CommitConflictError, "restore",
    ),
    "newer table version": (
        setting(table_version="8"), GOOD, {}, None, UnsupportedTableError, "hoodie.table.version=8",
    ),
    "another table type": (setting(table_type="HAND_MADE"), GOOD, {}, None, UnsupportedTableError, "HAND_MADE"),
    "no space": (nothing, GOOD, {}, NoSpace, StorageError, "No space left"),
    "no permission": (nothing, GOOD, {}, NoPermission, StorageError, "Permission denied"),
    "another key than the table's": (
        nothing, GOOD, {"hoodie.datasource.write.recordkey.field": "v"}, None, InvalidConfigError, "which has id",
    ),
    "another path than the table's": (
        nothing, GOOD, {"hoodie.datasource.write.partitionpath.field": "v"}, None, InvalidConfigError, "which has p",
    ),
    "another name than the table's": (
        nothing, GOOD, {"hoodie.table.name": "u"}, None, InvalidConfigError, "hoodie.table.name=u contradicts",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_what_is_wrong_is_named_and_leaves_nothing(tmp_path, name):
    arrange, batch, options, tasks, error, message = CASES[name]
    path = str(tmp_path / "t")
    Engine(path).write(0, rows(range(100, 110)))
    untouched = str(tmp_path / "untouched")
    shutil.copytree(path, untouched)
    arrange(path)
    with pytest.raises(error) as raised:
        Engine(path, options, worker_storage=tasks(path) if tasks else None).write(1, batch)
    assert message in str(raised.value)
    assert [file for file in data_files(path) if file not in data_files(untouched)] == []
    # the damage mended, the same batch made good goes through
    shutil.rmtree(path)
    shutil.copytree(untouched, path)
    Engine(path).write(1, GOOD)
    assert key_set(read_table(path)) == key_set(rows([*range(10), *range(100, 110)]))


@pytest.mark.parametrize("name", [name for name in CASES if CASES[name][0] is nothing])
def test_the_next_good_batch_is_fine_without_any_mending(tmp_path, name):
    _, batch, options, tasks, error, _ = CASES[name]
    path = str(tmp_path / "t")
    Engine(path).write(0, rows(range(100, 110)))
    with pytest.raises(error):
        Engine(path, options, worker_storage=tasks(path) if tasks else None).write(1, batch)
    timeline = load_timeline(LocalStorage(path))
    assert timeline.pending == ()
    assert len(timeline.completed_of(Action.COMMIT)) == 1
    Engine(path).write(1, GOOD)
    assert key_set(read_table(path)) == key_set(rows([*range(10), *range(100, 110)]))


def data_files(path):
    return sorted(
        os.path.relpath(os.path.join(folder, name), path)
        for folder, _, names in os.walk(path)
        for name in names
        if name.endswith(".parquet")
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"hoodie.datasource.write.recordkey.field": "gone"}, "recordkey.field=gone"),
        ({"hoodie.datasource.write.partitionpath.field": "gone"}, "partitionpath.field=gone"),
        ({"hoodie.datasource.write.precombine.field": "gone"}, "precombine.field=gone"),
        ({"hoodie.datasource.write.recordkey.field": "ID"}, r"^key=.ID. .*=ID\): .*; did you mean id\?"),
        ({"hoodie.datasource.write.partitionpath.field": "P"}, r"^partition_by=.P. .*=P\): .*; did you mean p\?"),
        ({"hoodie.datasource.write.precombine.field": "tss"}, r"^order_by=.tss. .*=tss\): .*; did you mean ts\?"),
        (
            {"hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.NonpartitionedKeyGenerator"},
            "contradict each other",
        ),
    ],
)
def test_contradictions_make_no_table(tmp_path, options, message):
    with pytest.raises(InvalidConfigError, match=message):
        Engine(str(tmp_path / "t"), options).write(0, GOOD)
    assert not (tmp_path / "t").exists()


def test_no_place_for_a_table(tmp_path):
    (tmp_path / "file").write_text("x")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "x.csv").write_text("x")
    for name in ("file", "full"):
        with pytest.raises(TableExistsError, match=name):
            Engine(str(tmp_path / name)).write(0, GOOD)


def test_damaged_properties_are_read_from_their_backup_and_the_stream_goes_on(tmp_path):
    path = str(tmp_path / "t")
    Engine(path).write(0, rows(range(100, 110)))
    storage = LocalStorage(path)
    storage.put(BACKUP_FILE, storage.read(PROPERTIES_FILE))
    storage.put(PROPERTIES_FILE, storage.read(PROPERTIES_FILE)[:50])
    Engine(path).write(1, GOOD)
    assert key_set(read_table(path)) == key_set(rows([*range(10), *range(100, 110)]))


def test_two_streams_into_two_tables_do_not_disturb_each_other(tmp_path):
    import threading

    failures = []

    def stream(name):
        try:
            engine = Engine(str(tmp_path / name))
            for batch_id in range(12):
                engine.write(batch_id, rows(range(batch_id * 10, batch_id * 10 + 10), v=name))
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=stream, args=(name,)) for name in ("a", "b")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    for name in ("a", "b"):
        table = read_table(tmp_path / name)
        assert key_set(table) == key_set(rows(range(120)))
        assert set(table.column("v").to_pylist()) == {name}


@pytest.mark.slow
def test_a_hundred_tables_leak_neither_threads_nor_files_nor_memory(tmp_path):
    import gc
    import threading

    import psutil

    process = psutil.Process()

    def write(numbers):
        for number in numbers:
            path = str(tmp_path / str(number))
            engine = Engine(path)
            engine.write(0, rows(range(20)))
            engine.write(1, rows(range(20, 40)))
            shutil.rmtree(path)

    write(range(20))  # what is allocated once
    gc.collect()
    pa.default_memory_pool().release_unused()
    before = (threading.active_count(), process.num_fds(), pa.total_allocated_bytes(), process.memory_info().rss)
    write(range(100))
    gc.collect()
    pa.default_memory_pool().release_unused()
    after = (threading.active_count(), process.num_fds(), pa.total_allocated_bytes(), process.memory_info().rss)
    assert after[0] <= before[0]
    assert after[1] <= before[1]
    assert after[2] <= before[2] + 1_000_000
    assert after[3] <= before[3] + 60_000_000


def test_a_table_that_vanished_is_not_made_anew(tmp_path):
    path = tmp_path / "t"
    engine = Engine(str(path))
    engine.write(0, rows(range(3)))
    gone = tmp_path / "gone"
    path.rename(gone)
    with pytest.raises(TableNotFoundError, match="is gone .* empty checkpoint"):
        engine.write(1, rows(range(3, 6)))
    assert not path.exists()
    gone.rename(path)
    engine.write(1, rows(range(3, 6)))
    engine.writer.stop()
    assert read_table(str(path)).num_rows == 6


@pytest.mark.parametrize("batch_id", [None, 0, 7])
def test_no_table_is_created_where_none_may_be(tmp_path, batch_id):
    path = tmp_path / "t"
    engine = Engine(str(path), {"hudistream.table.create": "never"})
    with pytest.raises(TableNotFoundError, match="hudistream.table.create=never"):
        engine.write(batch_id, rows(range(3)))
    assert not path.exists()
    Engine(str(path)).write(0, rows(range(3)))
    engine.write(1, rows(range(3, 6)))
    engine.writer.stop()
    assert read_table(str(path)).num_rows == 6


@pytest.mark.parametrize("batch_id", [None, 0, 7])
def test_a_table_that_a_later_batch_creates_is_told(tmp_path, monkeypatch, batch_id):
    told = []
    monkeypatch.setattr(opening.log, "warning", lambda event, **fields: told.append((event, fields["lacking"])))
    engine = Engine(str(tmp_path / "t"))
    engine.write(batch_id, rows(range(3)))
    engine.writer.stop()
    assert told == ([("table_created_in_the_middle", "batches 0 to 6")] if batch_id else [])

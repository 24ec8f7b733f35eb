"""What somebody found who tried to break it, each by the shortest way there."""

import json
import os
import shutil

import pytest
from engine import OPTIONS, Engine, key_set, rows
from stream import expected, frame, keys, run, source
from tiers import quick

from streaming import HudiSink, read_hudi
from table import CommitConflictError, InvalidConfigError, SchemaMismatchError, StorageError, read_table
from table.cli.main import main
from table.hudi_table import HudiTable
from table.options.write_options import parse_options
from table.services.rollback.rollback import end_pending
from table.snapshot import Snapshot
from table.storage.local import LocalStorage
from table.timeline.active_timeline import load_timeline
from table.timeline.instant import Action
from table.write.context import Attempt

spark_test = pytest.mark.spark
THREE = {key: value for key, value in OPTIONS.items() if key != "hoodie.table.name"}


@spark_test
def test_one_sink_given_to_a_second_query_does_not_take_it_for_the_first(spark, tmp_path):
    sink = HudiSink(str(tmp_path / "t"), THREE)
    run(source(spark, str(tmp_path / "in"), 2), sink, str(tmp_path / "c1"))
    with pytest.raises(Exception, match="came from another query"):
        run(source(spark, str(tmp_path / "in"), 2), sink, str(tmp_path / "c2"))
    assert keys(tmp_path / "t") == expected(0, 100)
    # and what it writes is written down under its own query's id
    shutil.rmtree(tmp_path / "c2")
    run(source(spark, str(tmp_path / "in"), 2), HudiSink(str(tmp_path / "u"), THREE), str(tmp_path / "c2"))
    assert keys(tmp_path / "u") == expected(0, 100)


@spark_test
def test_a_stream_after_a_write_on_the_same_sink_is_exactly_once(spark, tmp_path, logs):
    path, checkpoint = str(tmp_path / "t"), str(tmp_path / "c")
    sink = HudiSink(path, THREE)
    sink.write(frame(spark, 1000, 1010))
    run(source(spark, str(tmp_path / "in"), 1), sink, checkpoint)
    newest = HudiTable.open(path).load_timeline().completed_writes[-1]
    with open(f"{path}/.hoodie/{newest.file_name}") as file:
        recorded = json.loads(json.load(file)["extraMetadata"]["hudistream.checkpoint"])
    with open(os.path.join(checkpoint, "metadata")) as file:
        entry = {"batch_id": 0, "query_id": json.load(file)["id"], "operation": "INSERT"}
    assert recorded == {"default_single_writer": entry}
    shutil.rmtree(os.path.join(checkpoint, "commits"))
    run(source(spark, str(tmp_path / "in"), 1), HudiSink(path, THREE), checkpoint)
    assert [entry["batch_id"] for entry in logs if entry["event"] == "batch_skipped"] == [0]
    sink = HudiSink(path, THREE)
    sink.write(frame(spark, 2000, 2010))
    with pytest.raises(Exception, match="came from another query"):
        run(source(spark, str(tmp_path / "in2"), 1), sink, str(tmp_path / "new"))
    assert len(keys(path)) == 70


@pytest.mark.parametrize("moment", ["before the file is opened", "after it is closed"])
def test_a_rollback_while_a_task_writes_leaves_no_file_that_turns_visible(tmp_path, moment):
    path = str(tmp_path / "t")

    def roll_back():
        timeline = load_timeline(LocalStorage(path))
        for instant in timeline.pending_of(Action.COMMIT):
            end_pending(Snapshot(HudiTable.open(path), timeline), instant, "test")

    class Late(LocalStorage):
        def open_output(self, path, stage=None):
            if moment.startswith("before"):
                roll_back()
            return super().open_output(path, stage)

        def sync(self, path):
            super().sync(path)
            if moment.startswith("after"):
                roll_back()

    with pytest.raises((StorageError, CommitConflictError), match="No such file|was rolled back"):
        Engine(LocalStorage(path), worker_storage=Late(path)).write(0, rows(range(3), lambda n: "a"), parallelism=1)
    engine = Engine(path)
    engine.write(0, rows(range(3), lambda n: "a"))
    engine.write(1, rows(range(3, 5), lambda n: "a"))
    assert key_set(read_table(path, meta_columns=True)) == key_set(rows(range(5)))


def test_a_task_that_is_done_while_its_batch_is_rolled_back_publishes_nothing(tmp_path, monkeypatch):
    """It looked before the end was decided, and closes its file when everybody has looked: the fence keeps it out."""
    from table.services.rollback import rollback
    from table.write.context import Bucket, BucketType
    from table.write.write_bucket import BucketWriter

    path = str(tmp_path / "t")
    engine = Engine(path)
    engine.write(0, rows(range(3), lambda n: "a"))
    late = []

    def close_late(storage, instant_time):
        inner(storage, instant_time)
        with pytest.raises(StorageError, match="was ended"):
            late[0].close()

    inner = rollback.forget_rolled_back
    monkeypatch.setattr(rollback, "forget_rolled_back", close_late)

    def distribute(plan, table):
        writer = BucketWriter(plan.context, Bucket(BucketType.INSERT, "a", "late-0"), Attempt("9-0-9"))
        writer.write(table.append_column("_hoodie_record_key", table.column("id")))
        writer._writer._flush()  # announced and opened, and past its look
        late.append(writer)
        raise StorageError("another task of the job fails")

    engine.distribute = distribute
    with pytest.raises(StorageError):
        engine.write(1, rows(range(3, 6), lambda n: "a"), parallelism=1)
    assert late
    assert not [name for name in os.listdir(os.path.join(path, "a")) if name.startswith("late")]
    Engine(path).write(1, rows(range(3, 6), lambda n: "a"))
    assert key_set(read_table(path, meta_columns=True)) == key_set(rows(range(6)))


@pytest.mark.parametrize(
    "column", ["_hudistream_task", "_hudistream_arrival", "_hudistream_slot", "_hudistream_reason"]
)
def test_columns_of_the_sinks_own_are_refused(tmp_path, column):
    batch = rows(range(3)).append_column(column, [[1, 2, 3]])
    with pytest.raises(SchemaMismatchError, match=column):
        Engine(str(tmp_path / "t")).write(0, batch)


@spark_test
def test_an_ordering_field_within_a_struct_is_refused_by_name(spark, tmp_path):
    batch = spark.sql("SELECT 'a' id, 'p' p, named_struct('ts', 1L) m")
    with pytest.raises(InvalidConfigError, match=r"precombine\.field=m\.ts"):
        HudiSink(str(tmp_path / "t"), {**THREE, "hoodie.datasource.write.precombine.field": "m.ts"}).write(batch)
    assert not (tmp_path / "t").exists()


@spark_test
def test_bad_rows_with_dates_that_python_has_no_form_for_are_put_aside(spark, tmp_path):
    batch = spark.sql(
        "SELECT CAST(NULL AS STRING) id, 'a' p, 1L ts, date_from_unix_date(4000000) d "
        "UNION ALL SELECT 'k', 'a', 1L, date_from_unix_date(4000000)"
    )
    sink = HudiSink(str(tmp_path / "t"), {**THREE, "hudistream.bad.rows": "quarantine"})
    assert (sink.write(batch).rows, sink.last_batch.bad_rows) == (1, 1)


@spark_test
@pytest.mark.parametrize("ansi", quick(1, ["true", "false"]))
def test_impossible_dates_are_bad_rows_in_every_sql_mode(spark, tmp_path, ansi):
    options = {
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.operation": "insert",
        "hoodie.datasource.write.partitionpath.field": "p",
        "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.TimestampBasedKeyGenerator",
        "hoodie.keygen.timebased.timestamp.type": "DATE_STRING",
        "hoodie.keygen.timebased.input.dateformat": "yyyy-MM-dd",
        "hoodie.keygen.timebased.output.dateformat": "yyyy/MM/dd",
        "hudistream.bad.rows": "quarantine",
    }
    values = ["2024-02-29", "2024-13-01", "2024-02-30", "2023-02-29", "x", "2024-04-31", "2024-12-31", "2024-00-10"]
    before = spark.conf.get("spark.sql.ansi.enabled")
    spark.conf.set("spark.sql.ansi.enabled", ansi)
    try:
        batch = spark.createDataFrame(list(enumerate(values)), "id int, p string")
        sink = HudiSink(str(tmp_path / "t"), options)
        sink.write(batch)
    finally:
        spark.conf.set("spark.sql.ansi.enabled", before)
    table = read_table(tmp_path / "t", meta_columns=True)
    assert sorted(table.column("_hoodie_partition_path").to_pylist()) == ["2024/02/29", "2024/12/31"]
    assert sink.last_batch.bad_rows == 6


@pytest.mark.parametrize("value", ["n" * 300, "a" * 250 + "ééé", "a\0b"])
def test_values_that_cannot_be_a_folders_name_are_bad_rows(tmp_path, value):
    aside = LocalStorage(str(tmp_path / "aside"))
    engine = Engine(str(tmp_path / "t"), {"hudistream.bad.rows": "quarantine"}, aside=aside)
    assert engine.write(0, rows(range(3), lambda n: value if n else "p")).bad_rows == 2
    assert key_set(read_table(tmp_path / "t", meta_columns=True)) == ["k0"]


@spark_test
def test_folders_with_pattern_characters_are_read(spark, tmp_path):
    path = str(tmp_path / "gl[ob]")
    values = ["a[1]", "{c,d}", "back\\slash", "q?", "s*", "plain"]
    batch = spark.createDataFrame(
        [(str(n), value, n) for n, value in enumerate(values)], "id string, p string, ts long"
    )
    HudiSink(path, THREE).write(batch)
    assert sorted(row.p for row in read_hudi(spark, path).collect()) == sorted(values)


def test_show_does_not_take_folders_for_markup(tmp_path, capsys):
    path = str(tmp_path / "t")
    Engine(path).write(0, rows(range(2), lambda n: ["[red]", "a[/bold]"][n]))
    with pytest.raises(SystemExit, match="2"):
        main(["show", path, "--limit", "-1"])
    assert main(["show", path]) == 0
    said = capsys.readouterr().out
    assert "[red]" in said
    assert "a[/bold]" in said


def test_the_command_names_what_a_store_says(capsys, monkeypatch):
    from table.cli import show

    class NoCredentialsError(Exception):
        pass

    def no_credentials(*_args):
        raise NoCredentialsError("Unable to locate credentials")

    monkeypatch.setattr(show, "examine", no_credentials)
    assert main(["doctor", "s3://b/t"]) == 1
    assert "NoCredentialsError: Unable to locate credentials" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"hoodie.parquet.compression.codec": "snappy", "hudistream.parquet.compression.level": "3"},
            "levels of snappy",
        ),
        ({"hudistream.parquet.compression.level": "99"}, "level=99"),
        ({"hoodie.parquet.compression.codec": "gzip", "hudistream.parquet.compression.level": "0"}, "1 to 9"),
        ({"hoodie.archivelog.folder": "../x"}, "plain name"),
    ],
)
def test_values_that_cannot_be_are_refused_at_once(options, message):
    with pytest.raises(InvalidConfigError, match=message):
        parse_options(options)


def test_a_field_named_twice_and_a_zone_that_does_not_exist_make_no_table(tmp_path):
    with pytest.raises(InvalidConfigError, match="names a column twice"):
        Engine(str(tmp_path / "t"), {"hoodie.datasource.write.recordkey.field": "id,id"}).write(0, rows(range(3)))
    timed = {
        "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.TimestampBasedKeyGenerator",
        "hoodie.datasource.write.partitionpath.field": "ts",
        "hoodie.keygen.timebased.timestamp.type": "EPOCHMILLISECONDS",
        "hoodie.keygen.timebased.output.dateformat": "yyyy/MM/dd",
    }
    with pytest.raises(InvalidConfigError, match="Nowhere/City"):
        Engine(str(tmp_path / "t"), {**timed, "hoodie.keygen.timebased.timezone": "Nowhere/City"}).write(
            0, rows(range(3))
        )
    assert not (tmp_path / "t").exists()


@spark_test
def test_time_settings_that_contradict_the_table_are_refused(spark, tmp_path):
    path = str(tmp_path / "t")
    options = {
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.operation": "insert",
        "hoodie.datasource.write.partitionpath.field": "ts",
        "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.TimestampBasedKeyGenerator",
        "hoodie.keygen.timebased.timestamp.type": "EPOCHMILLISECONDS",
        "hoodie.keygen.timebased.output.dateformat": "yyyy/MM/dd",
    }
    HudiSink(path, options).write(frame(spark, 0, 3))
    with pytest.raises(InvalidConfigError, match="yyyyMM contradicts the table"):
        HudiSink(path, {**options, "hoodie.keygen.timebased.output.dateformat": "yyyyMM"}).write(frame(spark, 3, 6))


@spark_test
def test_a_session_that_reads_string_literals_otherwise_is_refused(spark, tmp_path):
    spark.conf.set("spark.sql.parser.escapedStringLiterals", "true")
    try:
        with pytest.raises(InvalidConfigError, match="escapedStringLiterals"):
            HudiSink(str(tmp_path / "t"), THREE).write(spark.range(1).selectExpr("'a' id"))
    finally:
        spark.conf.unset("spark.sql.parser.escapedStringLiterals")

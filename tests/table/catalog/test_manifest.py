"""Lists of a snapshot's files for engines that read no Hudi table themselves."""

import json
import os

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from engine import Engine, key_set, rows

from hudistream import HudiTable, InvalidConfigError, read_table
from table.catalog import manifest
from table.catalog.manifest import encode_manifest, engine_address
from table.cli.main import main
from table.options.catalog_settings import ManifestFor

PLACE = ".hoodie/absolute-path-manifest/latest-snapshot.csv"
UPSERT = {"hoodie.datasource.write.operation": "upsert"}


def read_files(files):
    """What an engine reads that knows Parquet alone."""
    return pa.concat_tables([pq.ParquetFile(file).read() for file in files])


def test_the_files_of_a_manifest_are_the_rows_of_the_table(tmp_path):
    path = str(tmp_path / "t")
    engine = Engine(path, UPSERT)
    for batch in range(4):
        engine.write(batch, rows(range(batch * 5, batch * 5 + 20), ts=batch))
    done = HudiTable.open(path).write_manifest("bigquery")
    files = (tmp_path / "t" / PLACE).read_text().splitlines()
    assert (done.address, done.files, done.files_with_logs) == (f"{path}/{PLACE}", len(files), 0)
    assert key_set(read_files(files)) == key_set(read_table(path))
    told = HudiTable.open(path).write_manifest("redshift")
    entries = json.loads(open(told.address).read())["entries"]
    assert [entry["url"] for entry in entries] == files
    assert [entry["meta"]["content_length"] for entry in entries] == [os.path.getsize(file) for file in files]
    assert HudiTable.open(path).check().is_sound


def test_a_sink_keeps_it_up_after_each_commit(tmp_path):
    path = str(tmp_path / "t")
    engine = Engine(path, {**UPSERT, "hudistream.manifest.for": "bigquery"})
    for batch in range(3):
        engine.write(batch, rows(range(batch * 5, batch * 5 + 20), ts=batch))
        engine.writer.services.wait()
        files = (tmp_path / "t" / PLACE).read_text().splitlines()
        assert key_set(read_files(files)) == key_set(read_table(path))
    assert engine.writer.services.failures == 0


def test_rows_in_log_files_are_counted_and_a_table_without_rows_has_an_empty_one(tmp_path, capsys):
    path = str(tmp_path / "t")
    engine = Engine(path, {**UPSERT, "hoodie.datasource.write.table.type": "MERGE_ON_READ"})
    engine.write(0, rows(range(3)))
    engine.write(1, rows(range(1), ts=1))
    assert HudiTable.open(path).write_manifest("bigquery").files_with_logs == 1
    assert main(["manifest", path, "--for", "redshift"]) == 0
    assert "1 file with newer rows in log files" in capsys.readouterr().out
    assert main(["manifest", path, "--for", "bigquery", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["files"] == 3


def test_a_commit_that_comes_meanwhile_is_named(tmp_path, monkeypatch):
    path = str(tmp_path / "t")
    engine = Engine(path, UPSERT)
    engine.write(0, rows(range(3)))
    encode, batches = manifest.encode_manifest, iter((1, 2))

    def slow(reader, files):
        batch = next(batches, None)
        if batch is not None:
            engine.write(batch, rows(range(3), ts=batch, v=f"v{batch}"))
        return encode(reader, files)

    monkeypatch.setattr(manifest, "encode_manifest", slow)
    done = HudiTable.open(path).write_manifest("bigquery")
    files = (tmp_path / "t" / PLACE).read_text().splitlines()
    assert set(read_files(files).column("v").to_pylist()) == {"v2"}
    assert done.files == 3


@pytest.mark.parametrize(
    ("address", "spelled"),
    [
        ("s3a://b/t/x.parquet", "s3://b/t/x.parquet"),
        ("s3n://b/x", "s3://b/x"),
        ("s3://b/x", "s3://b/x"),
        ("gs://b/x", "gs://b/x"),
        ("/data/t/s3a/x", "/data/t/s3a/x"),
    ],
)
def test_addresses_are_spelled_as_engines_outside_of_hadoop_do(address, spelled):
    assert engine_address(address) == spelled


def test_the_forms():
    files = [("s3://b/a", 7), ("s3://b/c", 9)]
    assert encode_manifest(ManifestFor.BIGQUERY, files) == b"s3://b/a\ns3://b/c\n"
    assert json.loads(encode_manifest(ManifestFor.REDSHIFT, files)) == {
        "entries": [
            {"url": "s3://b/a", "mandatory": True, "meta": {"content_length": 7}},
            {"url": "s3://b/c", "mandatory": True, "meta": {"content_length": 9}},
        ]
    }


def test_another_reader_is_refused_by_name(tmp_path):
    Engine(str(tmp_path / "t")).write(0, rows(range(3)))
    with pytest.raises(InvalidConfigError, match="bigquery, redshift"):
        HudiTable.open(tmp_path / "t").write_manifest("snowflake")

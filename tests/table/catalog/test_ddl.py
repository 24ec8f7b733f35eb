"""A registration as statements for Hive and Athena, and as the input of Glue's API."""

import json

from engine import Engine, rows
from fake_catalog import FakeCatalog

from table.cli import catalogs
from table.cli.main import main


def ddl(path, capsys, reader, *more):
    assert main(["ddl", path, "--for", reader, "--database", "lake", *more]) == 0
    return capsys.readouterr().out


def test_statements_define_the_table_and_its_partitions(tmp_path, capsys):
    path = str(tmp_path / "t")
    Engine(path).write(0, rows(range(2), partition=lambda n: f"it's {n}"))
    hive = ddl(path, capsys, "hive")
    assert hive.startswith("CREATE EXTERNAL TABLE IF NOT EXISTS `lake`.`t` (\n  `_hoodie_commit_time` string,")
    assert "PARTITIONED BY (`p` string)" in hive
    assert f"LOCATION 'file:{path}'" in hive
    assert "'spark.sql.sources.provider'='hudi'" in hive
    assert (
        f"ALTER TABLE `lake`.`t` ADD IF NOT EXISTS\n  PARTITION (`p`='it\\'s 0') LOCATION 'file:{path}/it\\'s 0'"
        in hive
    )
    athena = ddl(path, capsys, "athena")
    assert "TBLPROPERTIES" not in athena
    assert athena.count(";\n") == 2


def test_glue_gets_what_its_api_takes(tmp_path, capsys):
    path = str(tmp_path / "t")
    Engine(path, {"hoodie.datasource.write.table.type": "MERGE_ON_READ"}).write(0, rows(range(2)))
    text = ddl(path, capsys, "glue", "--table", "orders")
    names = [json.loads(one)["TableInput"]["Name"] for one in split(text)]
    assert names == ["orders", "orders_ro", "orders_rt"]


def split(text):
    """The JSON documents of a text, one after another."""
    decoder, start = json.JSONDecoder(), 0
    while start < len(text.rstrip()):
        _, end = decoder.raw_decode(text, start)
        yield text[start:end]
        start = end + 1


def test_a_catalog_that_is_not_named_is_asked_for(tmp_path, capsys):
    path = str(tmp_path / "t")
    Engine(path).write(0, rows([1]))
    assert main(["sync", path]) == 2
    assert "--to glue, --to thrift://host:9083" in capsys.readouterr().err
    assert main(["sync", path, "--to", "unity"]) == 2
    assert "--to unity: is no catalog; give glue, or a metastore" in capsys.readouterr().err
    assert main(["sync", path, "--to", "thrift://127.0.0.1:9"]) == 1
    assert "the Hive metastore at thrift://127.0.0.1:9 did not answer" in capsys.readouterr().err


def test_a_table_without_a_commit_has_nothing_to_register(tmp_path, capsys):
    path = str(tmp_path / "t")
    Engine(path).write(0, rows([1]).slice(0, 0))
    assert main(["ddl", path, "--for", "hive"]) == 1
    assert "has no commit yet" in capsys.readouterr().err


def test_a_sync_says_what_it_changed(tmp_path, capsys, monkeypatch):
    path, catalog = str(tmp_path / "t"), FakeCatalog()
    monkeypatch.setattr(catalogs, "connect", lambda _: catalog)
    Engine(path).write(0, rows(range(3)))
    assert main(["sync", path, "--to", "glue", "--database", "lake"]) == 0
    first, second = capsys.readouterr().out.splitlines()
    assert first.startswith("lake.t: registered up to 20")
    assert second == "1 table created, 3 partitions added"
    assert main(["sync", path, "--to", "glue", "--database", "lake"]) == 0
    assert capsys.readouterr().out.splitlines()[1] == "the catalog was as the table is"
    assert main(["sync", path, "--to", "glue", "--database", "lake", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["tables"] == ["lake.t"]
    assert catalog.calls[-1] == "close"


def test_trino_is_told_where_it_looks_tables_up(tmp_path, capsys):
    path = str(tmp_path / "t")
    Engine(path).write(0, rows(range(2)))
    assert main(["ddl", path, "--for", "trino"]) == 2
    assert "Trino's Hudi connector creates no tables" in capsys.readouterr().err

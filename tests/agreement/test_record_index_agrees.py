"""Hudi finds its keys by the record index that we maintain, and we maintain the one that Hudi maintains."""

import pyarrow as pa
import pytest
from engine import Engine
from record_index import assert_record_index_is_right
from tiers import quick
from turns import COLUMNS, COMPACTS, LOGS, OURS, SERVICES, Model, write_theirs

from table.hudi_table import HudiTable
from table.metadata_table import compact as compact_module
from table.metadata_table.compact import Compaction, compact_lists
from table.options.groups import ArchiveSettings, CleanSettings
from table.schema.avro_schema import DELETE_MARKER
from table.services import metadata_table_service
from table.services.archival.archival import archive
from table.services.check.check import check
from table.services.clean.clean import clean
from table.services.compaction.compaction import compact

pytestmark = pytest.mark.hudi

INDEXED = {
    "hoodie.metadata.enable": "true",
    "hoodie.index.type": "RECORD_INDEX",
    "hoodie.metadata.record.index.enable": "true",
    "hoodie.metadata.global.record.level.index.enable": "true",
}
MAKES = {"hoodie.metadata.enable": "true", "hoodie.metadata.record.index.enable": "true"}
BY_INDEX = {"hoodie.metadata.enable": "true"}


def indexes(path):
    return HudiTable.open(path).config.metadata_indexes


def check_all(model, path, hudi):
    model.check(path, hudi)
    wanted = sorted(model.rows.values())
    for row in wanted[:: max(1, len(wanted) // 4)]:
        found = hudi.read(path, BY_INDEX, COLUMNS, f"id = '{row[0]}'")
        assert [tuple(one[column] for column in COLUMNS) for one in found] == [row]
    report = check(HudiTable.open(path))
    assert report.is_sound, "\n".join(f"{one.severity} {one.kind} {one.where}: {one.text}" for one in report.findings)


@pytest.mark.slow
@pytest.mark.parametrize(("version", "partner"), [(8, 8), (9, 9), (9, "1.1.1"), (6, 6)])
def test_hudi_goes_on_with_an_index_that_we_made(version, partner, partners, tmp_path, utc):
    """Also with keys of any text, a key that moves, and rows that came before the index."""
    path, hudi = str(tmp_path / "t"), partners[partner]
    model = Model(version)
    options = {**OURS, "hoodie.write.table.version": str(version), "hoodie.index.type": "GLOBAL_BLOOM"}
    Engine(path, options).write(0, model.draw())
    Engine(path, {**options, **MAKES}).write(1, model.draw())
    assert "record_index" in indexes(path)
    odd = ["ключ", "日本", "👍 up", "a,b:c", "z" * 200]
    made = pa.table({"id": odd, "p": ["p0"] * 5, "ts": [1] * 5, "v": ["odd"] * 5})
    Engine(path, options).write(2, made)
    put(model, made)
    check_all(model, path, hudi)
    for turn in range(2):
        moved = pa.table({"id": odd[:3], "p": ["p1"] * 3, "ts": [2 + turn] * 3, "v": ["moved"] * 3})
        Engine(path, options).write(None, moved)
        put(model, moved)
        assert_record_index_is_right(path)
        write_theirs(hudi, path, version, model.draw(), **INDEXED)
        theirs = pa.table({"id": odd, "p": ["p1"] * 3 + ["p0"] * 2, "ts": [3 + turn] * 5, "v": ["theirs"] * 5})
        write_theirs(hudi, path, version, theirs, **INDEXED)
        put(model, theirs)
        assert_record_index_is_right(path)
        check_all(model, path, hudi)
        Engine(path, options).write(None, model.draw())
        assert "record_index" in indexes(path)


def put(model, rows):
    model.rows.update({row["id"]: tuple(row[column] for column in COLUMNS) for row in rows.to_pylist()})


@pytest.mark.parametrize(("version", "partner"), quick(1, [(8, 8), (9, 9), (9, "1.1.1"), (6, 6)]))
def test_turns_with_the_record_index(version, partner, partners, tmp_path, utc):
    path, hudi = str(tmp_path / "t"), partners[partner]
    model = Model(version)
    options = {**OURS, "hoodie.index.type": "RECORD_INDEX"}  # so we, too, find keys by what Hudi wrote
    write_theirs(hudi, path, version, model.draw(), **INDEXED)
    assert "record_index" in indexes(path)
    assert_record_index_is_right(path)
    number = 0
    for turn in range(1 if version == 8 else 3):  # this one runs with every change, and Hudi is slow
        for _ in range(2):
            assert Engine(path, options).write(number, model.draw()).lookup.indexed == 12
            number += 1
            assert "record_index" in indexes(path)
            assert_record_index_is_right(path)
        gone = {**options, "hoodie.datasource.write.operation": "delete"}
        Engine(path, gone).write(number, model.delete())
        number += 1
        assert_record_index_is_right(path)
        check_all(model, path, hudi)
        if turn == (0 if version == 8 else 1):
            assert clean(HudiTable.open(path), CleanSettings(commits_retained=1, grace_ms=0))
            table = HudiTable.open(path)
            assert compact_lists(table.storage, table.load_timeline(), delta_commits=3) is Compaction.DONE
            assert_record_index_is_right(path)
        # by the index alone Hudi tells keys that it updates from those that it inserts
        write_theirs(hudi, path, version, model.draw(), **INDEXED, **(SERVICES if turn or version == 8 else {}))
        assert_record_index_is_right(path)
        check_all(model, path, hudi)


@pytest.mark.slow
@pytest.mark.parametrize(("version", "partner"), [(8, 8), (9, 9), (9, "1.1.1"), (6, 6)])
def test_hudi_finds_keys_whose_commits_are_archived(version, partner, partners, tmp_path, utc, monkeypatch):
    """It skips blocks whose commits have left both timelines: a compaction has to merge them before, however large."""
    path, hudi = str(tmp_path / "t"), partners[partner]
    bounds = ArchiveSettings(min_commits=2, max_commits=3)
    monkeypatch.setattr(metadata_table_service, "ArchiveSettings", lambda: bounds)
    monkeypatch.setattr(compact_module, "_GROWTH", 0)  # the index is large, so that it waits
    model = Model(version)
    options = {**OURS, **MAKES, "hoodie.write.table.version": str(version), "hoodie.index.type": "RECORD_INDEX"}
    outcomes = []
    for number in range(16):
        Engine(path, options).write(number, model.draw(5))
        table = HudiTable.open(path)
        outcomes.append(metadata_table_service.keep_metadata_table_small(table, delta_commits=2))
        archive(table, bounds)
        assert_record_index_is_right(path)
    assert outcomes.count(Compaction.DONE) == 2
    assert len(HudiTable.open(path).load_timeline().completed_writes) < 12
    write_theirs(hudi, path, version, model.draw(40), **INDEXED)  # every key
    check_all(model, path, hudi)


def marked(rows, gone=()):
    """Rows with the column that marks deletes."""
    return rows.append_column(DELETE_MARKER, pa.array([key in gone for key in rows["id"].to_pylist()]))


def draw_deletes(model, late=2):
    """Ordered deletes of known keys, of which the first ones are late and delete nothing; and one of an unknown key."""
    known = model.update(5)
    rows = [(key, p, ts - 5 if at < late else ts + 1, "gone") for at, (key, p, ts, _) in enumerate(known)]
    for key, *_ in known[late:]:
        del model.rows[key]
    return known, [*rows, ("unknown", "p0", 1, "gone")]


def as_table(rows):
    return pa.Table.from_pylist([dict(zip(COLUMNS, row, strict=True)) for row in rows])


@pytest.mark.slow  # the turns of a copy-on-write table are the quick ones
@pytest.mark.parametrize("joins", ["false", "true"])
@pytest.mark.parametrize(("version", "partner"), [(8, 8), (9, 9), (9, "1.1.1"), (6, 6)])
def test_turns_with_the_record_index_of_a_merge_on_read_table(version, partner, partners, tmp_path, utc, joins):
    """Updates and deletes, ordered and late ones, of each in log files; compactions of each; keys that come back.

    Where new rows join log files, Hudi changes rows that lie in log files alone.
    """
    path, hudi = str(tmp_path / "t"), partners[partner]
    model = Model(version)
    options = {**OURS, "hoodie.index.type": "RECORD_INDEX", "hoodie.datasource.compaction.async.enable": "false"}
    options["hudistream.new.rows.join.logs"] = joins
    theirs = {**INDEXED, **LOGS}

    def ours(rows, gone=(), **more):
        Engine(path, {**options, **more}).write(None, marked(rows, gone))
        assert "record_index" in indexes(path)
        assert_record_index_is_right(path)

    write_theirs(hudi, path, version, marked(model.draw()), **theirs)
    assert "record_index" in indexes(path)
    for turn in range(1 if version == 8 else 3):  # this one runs with every change, and Hudi is slow
        ours(model.draw())
        known, gone = draw_deletes(model)
        ours(as_table(known))
        ours(as_table(gone), [row[0] for row in gone])
        ours(model.delete(), **{"hoodie.datasource.write.operation": "delete"})
        check_all(model, path, hudi)
        write_theirs(hudi, path, version, marked(model.draw()), **theirs)
        assert_record_index_is_right(path)
        if turn != 1:
            compact(path)
            assert_record_index_is_right(path)
        # Hudi 1.0.2 takes the key of a late delete out of the index, and writes the key twice later; 1.1.1 does not
        known, gone = draw_deletes(model, late=2 if version == 9 else 0)
        write_theirs(hudi, path, version, marked(as_table(known)), **theirs)
        write_theirs(hudi, path, version, marked(as_table(gone), [row[0] for row in gone]), **theirs)
        assert_record_index_is_right(path)
        ours(model.draw())
        write_theirs(hudi, path, version, marked(model.draw()), **theirs, **COMPACTS, **SERVICES)
        assert_record_index_is_right(path)
        check_all(model, path, hudi)

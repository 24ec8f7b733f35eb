"""Hudi finds its keys by the record index that we maintain, and we maintain the one that Hudi maintains."""

import pytest
from engine import Engine
from record_index import assert_record_index_is_right
from tiers import quick
from turns import COLUMNS, OURS, SERVICES, Model, write_theirs

from table.hudi_table import HudiTable
from table.metadata_table.compact import compact_lists
from table.options.groups import CleanSettings
from table.services.check.check import check
from table.services.clean.clean import clean

pytestmark = pytest.mark.hudi

INDEXED = {
    "hoodie.metadata.enable": "true",
    "hoodie.index.type": "RECORD_INDEX",
    "hoodie.metadata.record.index.enable": "true",
    "hoodie.metadata.global.record.level.index.enable": "true",
}
BY_INDEX = {"hoodie.metadata.enable": "true"}


def indexes(path):
    return HudiTable.open(path).config.metadata_indexes


def check_all(model, path, hudi):
    model.check(path, hudi)
    wanted = sorted(model.rows.values())
    for row in wanted[:: max(1, len(wanted) // 4)]:
        found = hudi.read(path, BY_INDEX, COLUMNS, f"id = '{row[0]}'")
        assert [tuple(one[column] for column in COLUMNS) for one in found] == [row]
    assert check(HudiTable.open(path)).is_sound


@pytest.mark.parametrize(("version", "partner"), quick(1, [(8, 8), (9, 9), (9, "1.1.1"), (6, 6)]))
def test_turns_with_the_record_index(version, partner, partners, tmp_path, utc):
    path, hudi = str(tmp_path / "t"), partners[partner]
    model = Model(version)
    options = {**OURS, "hoodie.index.type": "GLOBAL_BLOOM"}
    write_theirs(hudi, path, version, model.draw(), **INDEXED)
    assert "record_index" in indexes(path)
    assert_record_index_is_right(path)
    number = 0
    for turn in range(3):
        for _ in range(2):
            Engine(path, options).write(number, model.draw())
            number += 1
            assert "record_index" in indexes(path)
            assert_record_index_is_right(path)
        gone = {**options, "hoodie.datasource.write.operation": "delete"}
        Engine(path, gone).write(number, model.delete())
        number += 1
        assert_record_index_is_right(path)
        check_all(model, path, hudi)
        if turn == 1:
            assert clean(HudiTable.open(path), CleanSettings(commits_retained=1, grace_ms=0))
            table = HudiTable.open(path)
            assert compact_lists(table.storage, table.load_timeline(), delta_commits=3)
            assert_record_index_is_right(path)
        # by the index alone Hudi tells keys that it updates from those that it inserts
        write_theirs(hudi, path, version, model.draw(), **INDEXED, **(SERVICES if turn else {}))
        assert_record_index_is_right(path)
        check_all(model, path, hudi)

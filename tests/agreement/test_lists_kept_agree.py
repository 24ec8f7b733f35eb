"""Hudi reads and writes by the lists of files that we maintain, and we go on in those that Hudi maintains."""

import pyarrow as pa
import pytest
from engine import Engine, leave_a_dead_batch
from tiers import quick
from turns import COLUMNS, OURS, SERVICES, Model, compacts, write_theirs

from table import read_table
from table.hudi_table import HudiTable
from table.metadata_table.compact import Compaction, compact_lists
from table.metadata_table.metadata_table import MetadataTable
from table.options.groups import CleanSettings
from table.services.check.check import check
from table.services.clean.clean import clean
from table.storage.local import LocalStorage

pytestmark = pytest.mark.hudi

BY_LISTS = {"hoodie.metadata.enable": "true"}
# version of the table, its type, and who takes turns with us
FORMS = [
    (6, "COPY_ON_WRITE", 6),
    (6, "MERGE_ON_READ", 6),
    (8, "COPY_ON_WRITE", 8),
    (8, "MERGE_ON_READ", 8),
    (9, "COPY_ON_WRITE", "1.1.1"),
    (9, "MERGE_ON_READ", "1.1.1"),
    (9, "COPY_ON_WRITE", 9),
    (9, "MERGE_ON_READ", 9),
]


def rows_of(rows):
    return sorted(tuple(row[column] for column in COLUMNS) for row in rows)


def check_all(model, path, hudi, monkeypatch, *, has_filters=True):
    """Rows are equal by the lists and by the store, for Hudi and for us, and for a filter on each column."""
    model.check(path, hudi)
    assert hudi.unequal_lists(path) == []
    wanted = sorted(model.rows.values())
    assert rows_of(hudi.read(path, BY_LISTS, columns=COLUMNS)) == wanted
    key, _, ts, v = wanted[len(wanted) // 2]
    for where in (f"id = '{key}'", "p = 'p1'", f"ts >= {ts}", f"v = '{v}'") if has_filters else ():
        assert rows_of(hudi.read(path, BY_LISTS, COLUMNS, where)) == rows_of(hudi.read(path, None, COLUMNS, where))
    listed, real = [], LocalStorage.list_dir
    with monkeypatch.context() as patch:
        patch.setattr(LocalStorage, "list_dir", lambda self, folder: listed.append(folder) or real(self, folder))
        assert rows_of(read_table(path, COLUMNS).to_pylist()) == wanted
    assert not [folder for folder in listed if folder.startswith("p")]
    assert check(HudiTable.open(path)).is_sound


@pytest.mark.slow
@pytest.mark.parametrize(("version", "table_type", "partner"), FORMS)
def test_turns_with_the_lists_of_files_of_either(version, table_type, partner, partners, tmp_path, utc, monkeypatch):
    """Ours makes the metadata table. Hudi has its defaults, and makes statistics, which our next batches keep."""
    path, hudi = str(tmp_path / "t"), partners[partner]
    # Hudi 1.0.2 cannot read a log with a delete and a later record of its key
    model = Model(version, revives=table_type == "COPY_ON_WRITE" or version == 9)
    options = {**OURS, "hoodie.write.table.version": str(version), "hoodie.datasource.write.table.type": table_type}
    theirs = {"hoodie.datasource.write.table.type": table_type, **compacts(table_type), **BY_LISTS}
    settings = CleanSettings(commits_retained=1, grace_ms=0)
    number, indexes = 0, "files"
    for turn in range(3):
        for _ in range(2):
            Engine(path, {**options, **BY_LISTS}).write(number, model.draw())
            number += 1
            check_all(model, path, hudi, monkeypatch)
            assert HudiTable.open(path).config.metadata_partitions == indexes
        gone = {**options, "hoodie.datasource.write.operation": "delete"}
        Engine(path, gone).write(number, model.delete())
        number += 1
        assert clean(HudiTable.open(path), settings)
        check_all(model, path, hudi, monkeypatch)
        table = HudiTable.open(path)
        compact_lists(table.storage, table.load_timeline(), delta_commits=4)
        check_all(model, path, hudi, monkeypatch)
        if turn == 2:
            leave_a_dead_batch(Engine(path, options), number, model.draw_apart())
        write_theirs(hudi, path, version, model.draw(), **theirs, **(SERVICES if turn else {}))
        indexes = HudiTable.open(path).config.metadata_partitions
        assert "column_stats" in indexes
        check_all(model, path, hudi, monkeypatch)
        write_theirs(hudi, path, version, model.draw(), **theirs)
        check_all(model, path, hudi, monkeypatch)
    own = MetadataTable.open(table.storage)
    assert any(entry.name.endswith(".hfile") and "_0-0-0_" in entry.name for entry in own.list_files())


@pytest.mark.parametrize(
    ("version", "table_type"),
    quick(0, [(8, "MERGE_ON_READ"), (9, "COPY_ON_WRITE"), (6, "COPY_ON_WRITE"), (8, "COPY_ON_WRITE")]),
)
def test_hudi_skips_files_by_statistics_that_we_made(version, table_type, partners, tmp_path, utc, monkeypatch):
    """Also behind a clean, a compaction of the statistics, a new column, and writes of Hudi."""
    path, hudi = str(tmp_path / "t"), partners[version]
    model = Model(version, revives=table_type == "COPY_ON_WRITE" or version == 9)
    options = {
        **OURS,
        **BY_LISTS,
        "hoodie.metadata.index.column.stats.enable": "true",
        "hoodie.write.table.version": str(version),
        "hoodie.datasource.write.table.type": table_type,
    }
    theirs = {"hoodie.datasource.write.table.type": table_type, **BY_LISTS}
    for number in range(4):
        Engine(path, options).write(number, model.draw())
    clean(HudiTable.open(path), CleanSettings(commits_retained=1, grace_ms=0))
    indexes = HudiTable.open(path).config.metadata_partitions
    assert "column_stats" in indexes
    check_all(model, path, hudi, monkeypatch, has_filters=False)
    table = HudiTable.open(path)
    assert compact_lists(table.storage, table.load_timeline(), delta_commits=2) is Compaction.DONE
    check_all(model, path, hudi, monkeypatch)
    write_theirs(hudi, path, version, model.draw(), **theirs)
    assert HudiTable.open(path).config.metadata_partitions == indexes
    wider = model.draw()
    Engine(path, options).write(4, wider.append_column("new", pa.array([None, *range(1, len(wider))], pa.int64())))
    assert HudiTable.open(path).config.metadata_partitions == indexes
    check_all(model, path, hudi, monkeypatch)
    for where in ("new is null", "new is not null", "new > 5", "v is not null", "v is null"):
        assert rows_of(hudi.read(path, BY_LISTS, COLUMNS, where)) == rows_of(hudi.read(path, None, COLUMNS, where)), (
            where
        )

"""What a process knows of a metadata table is asked of the store again when another process has changed it."""

import pyarrow as pa
import pytest
from engine import STATISTICS, Engine, form_of, rows

from hudistream import HudiTable as UserTable
from table.config.metadata_indexes import COLUMN_STATS
from table.hudi_table import HudiTable
from table.metadata_table import keep, known_lists
from table.metadata_table.compact import Compaction
from table.metadata_table.drop import drop_metadata_table
from table.metadata_table.known_lists import SeenLists
from table.services.check.check import check
from table.services.metadata_table_service import keep_metadata_table_small
from table.timeline.instant import Action, Instant, State
from table.timeline.timeline import build_timeline


@pytest.fixture
def asked(monkeypatch):
    """What the store is asked: properties of the metadata table, the index definition, file groups of an index."""
    found = []

    def spied(module, name):
        real = getattr(module, name)
        monkeypatch.setattr(module, name, lambda *given: found.append(name) or real(*given))

    spied(keep, "load_statistics")
    spied(keep, "count_groups")
    real = known_lists.MetadataTable.open
    monkeypatch.setattr(known_lists.MetadataTable, "open", staticmethod(lambda s: found.append("open") or real(s)))
    return found


EVERYTHING = ["count_groups", "count_groups", "load_statistics", "open"]


def sink(path, version=8, table_type="COPY_ON_WRITE"):
    return Engine(path, {**form_of(version, table_type), **STATISTICS})


def write(engine, number, table=None):
    engine.write(number, rows(range(number, number + 4), ts=number) if table is None else table)
    engine.writer.stop()


def assert_sound(path):
    """The files' ranges are compared with the footers."""
    table = HudiTable.open(path)
    assert COLUMN_STATS in table.config.metadata_indexes
    assert check(table, sample=None).is_sound


@pytest.mark.parametrize(("version", "table_type"), [(8, "COPY_ON_WRITE"), (9, "MERGE_ON_READ")])
def test_batches_of_one_writer_ask_once(tmp_path, asked, version, table_type):
    path = str(tmp_path / "t")
    engine = sink(path, version, table_type)
    for number in range(2):
        asked.clear()
        write(engine, number)  # the second one makes the statistics
    assert sorted(asked) == EVERYTHING
    asked.clear()
    for number in range(2, 5):
        write(engine, number)
        assert asked == []
    assert_sound(path)


def test_another_writer_adds_a_column(tmp_path, asked):
    path = str(tmp_path / "t")
    first, second = sink(path), sink(path)
    for number in range(3):
        write(first, number)
    wider = rows([1, 2], ts=5)
    write(second, 3, wider.append_column("new", pa.array([7, None], pa.int64())))
    asked.clear()
    plain = rows([2, 3, 9], ts=6)
    write(first, 4, plain.append_column("new", pa.array([None, 1, 99], pa.int64())))
    assert sorted(asked) == EVERYTHING
    assert_sound(path)
    found = UserTable.open(path).scan(["id"], where=[("new", ">", 50)]).to_arrow()
    assert found.column("id").to_pylist() == ["k9"]


def test_another_process_makes_the_metadata_table_anew(tmp_path, asked):
    path = str(tmp_path / "t")
    first = sink(path)
    for number in range(3):
        write(first, number)
    table = HudiTable.open(path)
    drop_metadata_table(table.storage, table.config)
    write(sink(path), 3)
    asked.clear()
    write(first, 4)
    assert sorted(asked) == EVERYTHING
    assert_sound(path)


def test_a_compaction_of_the_metadata_table_came_between(tmp_path, asked):
    path = str(tmp_path / "t")
    engine = sink(path)
    for number in range(4):
        write(engine, number)
    assert keep_metadata_table_small(HudiTable.open(path), delta_commits=2) is Compaction.DONE
    asked.clear()
    write(engine, 4)
    assert sorted(asked) == EVERYTHING
    asked.clear()
    write(engine, 5)
    assert asked == []
    assert_sound(path)


def instants(*names):
    return frozenset(Instant(time, Action.DELTA_COMMIT, state) for time, state in names)


BEFORE = (("1", State.COMPLETED), ("2", State.COMPLETED))
OWN = (("3", State.REQUESTED), ("3", State.INFLIGHT), ("3", State.COMPLETED))


@pytest.mark.parametrize(
    ("now", "holds"),
    [
        ((*BEFORE, *OWN), True),
        ((*BEFORE[1:], *OWN), True),  # archival took one
        (OWN, True),
        (BEFORE, False),
        ((), False),
        ((*BEFORE, *OWN[:2]), False),
        ((*BEFORE, *OWN, ("4", State.REQUESTED)), False),
        ((*BEFORE, *OWN, ("0", State.COMPLETED)), False),
    ],
)
def test_it_holds_while_no_other_instant_comes(now, holds):
    seen = SeenLists(None, None, "3", instants(*BEFORE), None)
    assert seen.holds(build_timeline(instants(*now))) == holds

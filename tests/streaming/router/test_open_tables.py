"""Which writers of a router are kept."""

import pytest

from streaming.router.open_tables import OpenTables
from table import clock


class Table:
    """Notes that it was stopped."""

    def __init__(self, name):
        self.name, self.is_stopped, self.is_busy = name, False, False

    def stop(self):
        self.is_stopped = True


@pytest.fixture
def made():
    return []


def tables_of(made, most, idle_s=60.0):
    def make(name):
        made.append(Table(name))
        return made[-1]

    return OpenTables(make, most, idle_s)


def test_a_table_in_use_is_not_stopped_where_too_many_are_open(made):
    tables = tables_of(made, most=1)
    with tables.use("a") as first, tables.use("b") as second, tables.use("c"):
        assert not first.is_stopped
        assert not second.is_stopped
        with tables.use("d"):
            assert not any(table.is_stopped for table in made)
    assert len(made) == 4


def test_a_table_in_use_is_not_stopped_for_being_idle_or_at_the_end(made):
    tables = tables_of(made, most=9, idle_s=-1.0)
    with tables.use("a"):
        pass
    with tables.use("a") as table:
        tables.close_idle()
        tables.close()
        assert not table.is_stopped
    tables.close_idle()
    assert table.is_stopped
    assert len(made) == 1


def test_of_tables_that_are_not_in_use_the_one_that_wrote_first_is_stopped(made):
    tables = tables_of(made, most=2)
    for name in "aba":
        with tables.use(name):
            pass
    with tables.use("c"):
        pass
    assert {table.name: table.is_stopped for table in made} == {"a": False, "b": True, "c": False}
    assert len(tables) == 2


def test_a_table_whose_services_run_is_not_idle(made, monkeypatch):
    tables = tables_of(made, most=9, idle_s=10.0)
    with tables.use("a") as table:
        table.is_busy = True
    now_s = clock.monotonic_s()
    monkeypatch.setattr(clock, "monotonic_s", lambda: now_s + 11)
    tables.close_idle()
    assert not table.is_stopped
    table.is_busy = False
    tables.close_idle()
    assert table.is_stopped

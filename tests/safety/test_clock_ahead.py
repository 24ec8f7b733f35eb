"""A machine whose clock is ahead of the store's: its instants would lie in the future of a table."""

import pytest
from engine import Engine, form_of, key_set, rows

from table import InvalidConfigError, clock, read_table
from table.hudi_table import HudiTable


@pytest.fixture
def an_hour_ahead(monkeypatch):
    """The writer's clock; the store's modification times are right."""
    now_ms = clock.now_ms

    def set_ahead(is_ahead):
        monkeypatch.setattr(clock, "now_ms", (lambda: now_ms() + 3_600_000) if is_ahead else now_ms)

    return set_ahead


def test_a_batch_whose_instant_the_store_has_not_reached_is_refused_before_its_request(tmp_path, an_hour_ahead):
    path, form = str(tmp_path / "t"), form_of(6, "MERGE_ON_READ")
    Engine(path, form).write(0, rows(range(4)))
    before = [one.file_name for one in HudiTable.open(path).load_timeline()]
    an_hour_ahead(True)
    with pytest.raises(InvalidConfigError, match=r"clock is 3[56]\d\d s ahead of the clock of"):
        Engine(path, form).write(1, rows(range(2, 6)))
    assert [one.file_name for one in HudiTable.open(path).load_timeline()] == before
    an_hour_ahead(False)
    Engine(path, form).write(1, rows(range(2, 6)))
    assert key_set(read_table(path)) == [f"k{number}" for number in range(6)]


def test_the_first_batch_of_a_table_is_refused_too_and_comes_again(tmp_path, an_hour_ahead):
    path, form = str(tmp_path / "t"), form_of(6, "MERGE_ON_READ")
    an_hour_ahead(True)
    with pytest.raises(InvalidConfigError, match="ahead of the clock"):
        Engine(path, form).write(0, rows(range(2)))
    an_hour_ahead(False)
    Engine(path, form).write(0, rows(range(2)))
    assert key_set(read_table(path)) == ["k0", "k1"]

"""Positions of readers that were kept while their table was upgraded: request times meet times of completion."""

import pytest
from engine import Engine, rows

from hudistream import HudiTable
from table import InvalidConfigError
from table.config.table_config import UPGRADED_UNTIL, update_properties
from table.scan.kept_times import judge_time
from table.storage.local import LocalStorage

UPSERT = {"hoodie.datasource.write.operation": "upsert"}
WRITES = {"1": "3", "2": "4", "5": "6", "8": "9"}  # request time -> time of completion; the last one came afterwards


@pytest.mark.pure
@pytest.mark.parametrize(
    ("time", "until", "found"),
    [
        ("1", "6", True),
        ("5", "6", True),
        ("4", "6", False),  # a time of completion
        ("0", "6", False),  # no write was under way
        ("7", "6", False),
        ("8", "6", False),  # requested after the upgrade
        ("4", None, False),
        ("7", None, False),
    ],
)
def test_a_request_time_from_before_the_upgrade_is_known(time, until, found):
    assert judge_time(time, WRITES, until, "since") is found


@pytest.mark.pure
@pytest.mark.parametrize(
    ("time", "until", "said"),
    [
        ("55", "6", "commit 5 was requested before 55 and completed after it.* Give 6 to leave out"),
        ("2", None, "2 is when a commit was requested.* give 4 if"),
    ],
)
def test_a_time_that_could_mean_two_ranges_is_refused(time, until, said):
    with pytest.raises(InvalidConfigError, match=said):
        judge_time(time, WRITES, until, "since")


def test_a_reader_goes_on_where_it_was_after_an_upgrade(tmp_path):
    path = str(tmp_path / "t")
    engine, seen = Engine(path, UPSERT), []
    for number in range(3):
        engine.write(number, rows([number]))
        seen.append(HudiTable.open(path).newest_instant)
    engine.writer.stop()
    before = [keys(path, since) for since in ("earliest", *seen)]
    HudiTable.open(path).convert(8)
    HudiTable.open(path).convert(9)
    assert [keys(path, since) for since in ("earliest", *seen)] == before
    assert keys(path, seen[0], seen[1]) == ["k1"]
    assert keys(path, "earliest", seen[0]) == ["k0"]
    Engine(path, UPSERT).write(3, rows([3]))
    assert keys(path, seen[2]) == ["k3"]
    newest = HudiTable.open(path).newest_instant
    assert (keys(path, newest), keys(path, seen[1], newest)) == ([], ["k2", "k3"])
    update_properties(LocalStorage(path), {}, {UPGRADED_UNTIL})  # as after an upgrade by Hudi
    with pytest.raises(InvalidConfigError, match="is when a commit was requested"):
        keys(path, seen[1])
    assert keys(path, newest) == []


def keys(path, since, until=None):
    return sorted(HudiTable.open(path).changes(since, until).to_arrow().column("id").to_pylist())

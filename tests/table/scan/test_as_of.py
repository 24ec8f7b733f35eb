"""Which snapshot a time means, and the bounds of what can be asked."""

from datetime import date, datetime, timedelta, timezone

import pytest
from engine import Engine, rows

from hudistream import HudiTable
from table import CleanSettings, InvalidConfigError, clock
from table.scan.as_of import instant_time_of


@pytest.mark.parametrize(("as_of", "expected"), [
    ("20240229125959123", "20240229125959123"),
    ("20240229125959", "20240229125959999"),
    ("2024-02-29T12:59:59.123", "20240229125959123"),
    ("2024-02-29 12:59:59", "20240229125959000"),
    ("2024-02-29T12:59:59.5Z", "20240229125959500"),
    ("2024-02-29T12:59:59+02:00", "20240229105959000"),
    ("2024-02-29", "20240229000000000"),
    (date(2024, 2, 29), "20240229000000000"),
    (datetime(2024, 2, 29, 12, 59, 59, 123000), "20240229125959123"),  # noqa: DTZ001 bare on purpose
    (datetime(2024, 2, 29, 12, 59, 59, tzinfo=timezone(timedelta(hours=2))), "20240229105959000"),
])  # fmt: skip
def test_a_time_is_an_instant_in_the_zone_of_the_table(as_of, expected):
    assert instant_time_of(as_of, "UTC") == expected


def test_a_table_in_local_time_reads_bare_times_in_that_zone():
    # the tests run in New York
    assert instant_time_of("2024-02-29T12:00:00", "LOCAL") == "20240229120000000"
    assert instant_time_of("2024-02-29T12:00:00Z", "LOCAL") == "20240229070000000"


@pytest.mark.parametrize("as_of", ["yesterday", "2024", "2024-13-01", "20241301000000"])
def test_what_is_no_time_is_refused(tmp_path, as_of):
    Engine(str(tmp_path / "t")).write(None, rows(range(3)))
    with pytest.raises(InvalidConfigError, match="as_of="):
        HudiTable.open(str(tmp_path / "t")).scan(as_of=as_of).to_arrow()


@pytest.fixture
def history(tmp_path):
    path = str(tmp_path / "t")
    upsert = {"hoodie.datasource.write.operation": "upsert"}
    times = [Engine(path, upsert).write(None, rows(range(9), ts=n, v=f"v{n}")).instant_time for n in range(4)]
    return HudiTable.open(path), times


def seen(table, as_of):
    return set(table.scan(["v"], as_of=as_of).to_arrow()["v"].to_pylist())


def test_every_commit_can_be_seen_again(history):
    table, times = history
    for number, time in enumerate(times):
        assert seen(table, time) == {f"v{number}"}
        moment = datetime.fromtimestamp(clock.parse_instant_time(time) / 1000, tz=timezone.utc)
        assert seen(table, moment) == {f"v{number}"}
        assert seen(table, moment.isoformat()) == {f"v{number}"}
        assert table.scan(as_of=time).explain().as_of == time
        assert set(table.files(as_of=time)["base_instant"].to_pylist()) == {time}
    assert seen(table, None) == {"v3"}


def test_before_the_first_commit_and_in_the_future_there_is_nothing(history):
    table, times = history
    with pytest.raises(InvalidConfigError, match=f"from {times[0]} to {times[-1]}"):
        table.scan(as_of="2020-01-01").to_arrow()
    with pytest.raises(InvalidConfigError, match=f"future: the newest commit is {times[-1]}"):
        table.scan(as_of="2999-01-01").to_arrow()


def test_what_cleaning_took_is_refused_and_never_fewer_rows(history):
    table, times = history
    table.create_savepoint(times[0])
    assert table.clean(CleanSettings(commits_retained=1, grace_ms=0))
    assert seen(table, times[0]) == {"v0"}
    with pytest.raises(InvalidConfigError, match=f"{times[1]} may have been cleaned; ask for a time from {times[3]}"):
        table.scan(as_of=times[1]).to_arrow()
    assert seen(table, times[3]) == {"v3"}

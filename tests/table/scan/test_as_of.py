"""Which snapshot a time means, and the bounds of what can be asked."""

from datetime import date, datetime, timedelta, timezone

import pyarrow as pa
import pytest
from engine import Engine, rows

from hudistream import ArrowSink, HudiTable, erase
from table import CleanSettings, InvalidConfigError, clock
from table.options.choices import CleanPolicy
from table.scan.as_of import instant_time_of
from table.timeline.kept_from import find_kept_from
from table.timeline.metadata.clean import CleanPlan


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


def states(path, steps):
    """Writes each step, a list of keys, and returns the time of each commit and what the table held then."""
    held, found = {}, []
    with ArrowSink(path, QUIET, key="id", partition_by="p") as sink:
        for number, keys in steps:
            rows_of = pa.table({"id": keys, "p": [key[0] for key in keys], "v": [number] * len(keys)})
            held = held | dict.fromkeys(keys, number)
            found.append((sink.write(rows_of).instant_time, held))
    return found


def check_times(path, told):
    """Each commit is shown as it was, or refused; the newest is always shown. Returns how many were shown."""
    shown = 0
    for time, held in told:
        table = HudiTable.open(path)
        kept = find_kept_from(table.storage, table.load_timeline())
        if time != told[-1][0] and kept is not None and time < kept:
            with pytest.raises(InvalidConfigError, match="may have been cleaned"):
                table.scan(as_of=time).to_arrow()
            continue
        assert {row["id"]: row["v"] for row in table.scan(as_of=time).to_arrow().to_pylist()} == held
        shown += 1
    return shown


BOTH, ONE = ["a1", "b1"], ["a1"]
QUIET = {"hoodie.clean.automatic": "false", "hoodie.archive.automatic": "false"}


@pytest.mark.parametrize("carries", [True, False], ids=["ours", "an engine that tells no bound"])
def test_a_clean_that_reaches_less_far_back_gives_nothing_back(tmp_path, monkeypatch, carries):
    path = str(tmp_path / "t")
    told = states(path, [(1, BOTH), (2, BOTH), (3, ONE), (4, ONE), (5, BOTH), (6, ONE)])
    if not carries:
        monkeypatch.setattr(CleanPlan, "kept_from", property(lambda _: "", lambda *_: None))
    versions = CleanSettings(policy=CleanPolicy.KEEP_LATEST_FILE_VERSIONS, versions_retained=3, grace_ms=0)
    assert HudiTable.open(path).clean(versions)
    told += [(time, told[-1][1] | held) for time, held in states(path, [(7, ONE)])]
    assert HudiTable.open(path).clean(CleanSettings(commits_retained=5, grace_ms=0))
    assert check_times(path, told) == 2
    with pytest.raises(InvalidConfigError, match="may have been cleaned"):
        HudiTable.open(path).create_savepoint(told[2][0])


def test_a_restore_that_shortens_the_timeline_gives_nothing_back(tmp_path):
    path, settings = str(tmp_path / "t"), CleanSettings(commits_retained=3, grace_ms=0)
    told = states(path, [(1, BOTH), (2, ["b1"])])
    first = HudiTable.open(path).create_savepoint()
    told += [(time, told[-1][1] | held) for time, held in states(path, [(3, BOTH), (4, BOTH), (5, ONE), (6, ONE)])]
    second = HudiTable.open(path).create_savepoint()
    states(path, [(7, ONE), (8, ONE), (9, ONE)])
    assert HudiTable.open(path).clean(settings)
    HudiTable.open(path).restore_to_savepoint(second)
    for savepoint in (first, second):
        HudiTable.open(path).delete_savepoint(savepoint)
    assert check_times(path, told) >= 1
    told += [(time, told[-1][1] | held) for time, held in states(path, [(20, ONE)])]
    HudiTable.open(path).clean(settings)
    assert check_times(path, told) >= 1


def test_an_erasure_leaves_no_earlier_snapshot_to_later_cleans(tmp_path):
    path = str(tmp_path / "t")
    told = states(path, [(1, [*BOTH, "a9"]), *((number, BOTH if number == 2 else ONE) for number in range(2, 13))])
    erase(path, ["a9"], options={"hudistream.clean.grace.ms": "0"})
    told = [(time, {key: held[key] for key in held if key != "a9"}) for time, held in told]
    told += [(time, told[-1][1] | held) for time, held in states(path, [(20, ONE)])]
    HudiTable.open(path).clean(CleanSettings(grace_ms=0))
    assert check_times(path, told[11:]) >= 1
    with pytest.raises(InvalidConfigError, match="may have been cleaned"):
        HudiTable.open(path).scan(as_of=told[5][0]).to_arrow()

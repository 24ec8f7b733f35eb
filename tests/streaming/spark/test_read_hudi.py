"""read_hudi: some columns, as of a time."""

from datetime import datetime, timezone

import pytest
from engine import Engine, rows

from streaming import read_hudi
from table import InvalidConfigError, clock

pytestmark = pytest.mark.spark


@pytest.fixture
def lake(tmp_path):
    path = str(tmp_path / "t")
    upsert = {"hoodie.datasource.write.operation": "upsert"}
    return path, [Engine(path, upsert).write(None, rows(range(6), ts=n, v=f"v{n}")).instant_time for n in range(3)]


def test_every_commit_can_be_seen_again(spark, lake):
    path, times = lake
    for number, time in enumerate(times):
        moment = datetime.fromtimestamp(clock.parse_instant_time(time) / 1000, tz=timezone.utc)
        for as_of in (time, moment):
            assert {row.v for row in read_hudi(spark, path, as_of=as_of).collect()} == {f"v{number}"}
    assert {row.v for row in read_hudi(spark, path).collect()} == {"v2"}
    with pytest.raises(InvalidConfigError, match=times[0]):
        read_hudi(spark, path, as_of="2020-01-01")


def test_columns_come_in_the_order_asked_for(spark, lake):
    path, _ = lake
    frame = read_hudi(spark, path, columns=["v", "p", "_hoodie_record_key"])
    assert frame.columns == ["v", "p", "_hoodie_record_key"]
    assert sorted(row.p for row in frame.collect()) == ["p0", "p0", "p1", "p1", "p2", "p2"]
    with pytest.raises(InvalidConfigError, match="'nope'"):
        read_hudi(spark, path, columns=["nope"])

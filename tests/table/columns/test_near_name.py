import pytest

from table.columns.near_name import did_you_mean, find_near_name

KNOWN = ["id", "ts", "event_time", "Id2"]


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("ID", "id"),
        (" Ts ", "ts"),
        ("event_tme", "event_time"),
        ("id2", "Id2"),
        ("zzz", None),
    ],
)
def test_the_near_name_is_found_whatever_its_case(name, near):
    assert find_near_name(name, KNOWN) == near
    assert did_you_mean(name, KNOWN) == ("" if near is None else f"; did you mean {near}?")

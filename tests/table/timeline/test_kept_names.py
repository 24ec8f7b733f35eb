"""What is kept of a timeline's names: those that are asked for, and no others for long."""

from collections import Counter

from table.timeline import kept_names
from table.timeline.kept_names import KeptNames


def counting():
    parsed = Counter()

    def parse(name):
        parsed[name] += 1
        return name.upper()

    return KeptNames(parse), parsed


def test_a_name_that_each_listing_has_is_parsed_once():
    kept, parsed = counting()
    for newest in range(5_000):
        assert [kept(f"n{number}") for number in range(newest - 30, newest)] == [
            f"N{number}" for number in range(newest - 30, newest)
        ]
    assert max(parsed.values()) == 1


def test_names_that_left_the_timeline_are_forgotten():
    kept, _ = counting()
    for newest in range(5_000):
        for number in range(newest - 30, newest):
            kept(f"n{number}")
    assert len(kept) < 600


def test_a_long_timeline_is_kept_as_a_whole():
    kept, parsed = counting()
    for newest in range(100):
        for number in range(30_000 + newest):
            kept(f"n{number}")
    assert max(parsed.values()) == 1


def test_names_that_are_asked_for_once_do_not_pile_up(monkeypatch):
    monkeypatch.setattr(kept_names, "MOST", 100)
    kept, _ = counting()
    for number in range(1_000):
        kept(f"n{number}")
    assert len(kept) <= 200

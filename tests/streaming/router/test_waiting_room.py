"""When a table that failed is tried again."""

import pytest

from streaming.router.waiting_room import Attempts
from table import clock


@pytest.mark.parametrize(("failed", "pause_s"), [(1, 2.0), (2, 4.0), (8, 256.0), (9, 300.0), (5000, 300.0)])
def test_the_pause_doubles_up_to_the_longest(monkeypatch, failed, pause_s):
    monkeypatch.setattr(clock, "monotonic_s", lambda: 1000.0)
    attempts = Attempts()
    for number in range(failed):
        attempts.note(f"error {number}", 300.0)
    assert (attempts.failed, attempts.next_s, attempts.error) == (failed, 1000.0 + pause_s, f"error {failed - 1}")

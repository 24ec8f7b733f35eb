"""Who wrote a pending instant: this writer, another live one, or a dead one."""

import pytest

from table.transaction.heartbeat import WriterIdentity
from table.transaction.liveness import Standing, judge_writer
from table.transaction.signs import still_counts

ME = WriterIdentity("s", "q", "me")


@pytest.mark.parametrize(
    ("live", "shared", "expected"),
    [
        (None, False, Standing.DEAD),
        (None, True, Standing.DEAD),
        (ME, False, Standing.MINE),
        (WriterIdentity("s", "q", "earlier"), False, Standing.MINE),  # an earlier run of the same stream
        (WriterIdentity("s", "other", "other"), False, Standing.DEAD),  # it does not hold the lease any more
        (WriterIdentity("s", "other", "other"), True, Standing.ALIVE),
        (WriterIdentity("", None, ""), False, Standing.ALIVE),  # another engine knows no lease
        (WriterIdentity("", None, ""), True, Standing.ALIVE),
    ],
)
def test_a_writer_is_judged_by_its_heartbeat_and_by_who_holds_the_lease(live, shared, expected):
    assert judge_writer(live, ME, shared=shared) is expected


@pytest.mark.parametrize(
    ("age_ms", "granularity_ms", "counts"),
    [(None, 0, False), (0, 0, True), (1000, 0, True), (1001, 0, False), (2000, 1000, True), (2001, 1000, False)],
)
def test_a_sign_of_life_counts_until_it_expires_by_the_times_of_the_store(age_ms, granularity_ms, counts):
    assert still_counts(age_ms, 1000, granularity_ms) is counts

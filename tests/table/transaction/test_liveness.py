"""Who wrote a pending instant: this writer, another live one, or a dead one."""

import pytest

from table.transaction.heartbeat import WriterIdentity
from table.transaction.liveness import Standing, judge_writer

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

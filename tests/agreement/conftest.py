"""What the tests of agreement share: a Hudi for each version of tables."""

import pytest
from oracles.hudi import Hudi


@pytest.fixture(scope="session")
def partners(hudi):
    """The Hudi that writes tables of a version by default: 1.0.2 makes version 8, 1.2.0 version 9. 6 is told to it."""
    later, between = Hudi("1.2.0"), Hudi("1.1.1")
    yield {6: hudi, 8: hudi, 9: later, "1.1.1": between}
    later.stop()
    between.stop()

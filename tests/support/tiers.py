"""Which cases of a test run in `make test`; the others run in `make test-all` only."""

import pytest


def quick(count, cases):
    """The first cases of a test are quick, the others are slow.

    Args:
        count: how many are quick.
        cases: values of one parameter, or a tuple of values for several.
    """
    cases = list(cases)
    return [*cases[:count], *(slow(case) for case in cases[count:])]


def slow(case):
    """A case that `make test-all` runs."""
    values = case if isinstance(case, tuple) else (case,)
    return pytest.param(*values, marks=pytest.mark.slow)

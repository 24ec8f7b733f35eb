"""The options that tests and pages know are those that Hudi's own classes declare."""

import pytest
from hudi_options import OPTIONS_OF_HUDI

pytestmark = pytest.mark.hudi


@pytest.mark.slow  # a bundle changes with its version alone, which constraints of the tests fix
def test_the_options_are_those_of_the_bundle(partners):
    """A release with other options needs `python .ci/read_hudi_options.py`, and a class for each new one."""
    told = [(one.key, one.default, " ".join(one.others), one.declared_in) for one in OPTIONS_OF_HUDI]
    found = partners[9].options(sorted({one.declared_in for one in OPTIONS_OF_HUDI}))
    assert [tuple(row) for row in found] == told

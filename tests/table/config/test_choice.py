"""A choice is its string, wherever it is written."""

import json

from table.config.choice import Choice


class Kind(Choice):
    ONE = "one"


def test_a_member_equals_prints_and_travels_as_its_string():
    assert Kind.ONE == "one"
    assert str(Kind.ONE) == f"{Kind.ONE}" == "%s" % Kind.ONE == "one"  # noqa: UP031 logs format in this way
    assert f"{Kind.ONE:>5}" == "  one"
    assert json.dumps({Kind.ONE: Kind.ONE}) == '{"one": "one"}'
    assert Kind("one") is Kind.ONE

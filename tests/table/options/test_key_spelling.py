from dataclasses import replace

import pytest

from table.config.key_generator import KeyEncoding
from table.config.table_config import TableConfig
from table.options.key_spelling import encoding_pair, new_encoding

PREFIXED, VALUE = KeyEncoding.FIELD_PREFIXED, KeyEncoding.VALUE_ONLY


@pytest.mark.parametrize(
    ("version", "value_only", "encoding"),
    [
        (6, None, VALUE),
        (8, None, VALUE),
        (9, None, PREFIXED),
        (6, False, PREFIXED),
        (8, True, VALUE),
        (9, True, PREFIXED),
    ],
)
def test_a_new_table_follows_its_version_and_before_9_the_option(version, value_only, encoding):
    assert new_encoding("COMPLEX", ("id",), version, value_only=value_only) is encoding
    assert new_encoding("SIMPLE", ("id",), version, value_only=value_only) is None
    assert new_encoding("COMPLEX", ("id", "n"), version, value_only=value_only) is None


def test_an_option_is_compared_where_it_means_something():
    config = TableConfig("t", ("id",), ("p",), keygen_type="COMPLEX", key_encoding=VALUE)
    assert encoding_pair(config, value_only=False)[1:] == (False, True)
    assert encoding_pair(replace(config, key_encoding=PREFIXED), value_only=False)[1:] == (False, False)
    for other in ({"version": 9}, {"key_encoding": None}, {"keygen_type": "SIMPLE"}):
        assert encoding_pair(replace(config, **other), value_only=False)[1:] == (None, None)

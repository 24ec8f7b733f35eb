"""Refused keys: what would change rows or what is kept is refused, and what Hudi does anyway is not."""

import pytest
from hudi_options import OPTIONS_OF_HUDI

from table import InvalidConfigError, parse_options
from table.options.keys import ALIASES
from table.options.refused import REFUSED

# Hudi's defaults that mean other keys, or rows that are lost in silence
DIFFERING = {"hoodie.write.ignore.failed"}


def test_harmless_values_of_refused_keys_pass():
    for key, (harmless, _) in REFUSED.items():
        for value in harmless:
            parse_options({key: value})


def test_a_default_of_hudi_is_refused_only_where_hudi_then_does_another_thing():
    refused = set()
    for option in OPTIONS_OF_HUDI:
        key = ALIASES.get(option.key, option.key)
        if key in REFUSED and option.default not in ("", '""'):
            harmless = {value.lower() for value in REFUSED[key][0]}
            refused |= {key} if option.default.lower() not in harmless else set()
    assert refused == DIFFERING


@pytest.mark.parametrize(
    "given",
    [
        {"hoodie.archive.beyond.savepoint": "true"},
        {"hoodie.datasource.write.record.merger.impls": "com.example.Merger"},
        {"write.utc-timezone": "false"},
        {"hoodie.payload.delete.field": "op"},
        {"hoodie.metadata.index.column.stats.column.list": "v"},
        {"hoodie.parquet.write.config.injector.class": "com.example.Encryption"},
        {"hoodie.write.rolling.metadata.keys": "checkpoint"},
        {"hoodie.aws.role.arn": "arn:aws:iam::1:role/x"},
    ],
)
def test_keys_that_would_change_rows_or_what_is_kept_are_refused(given):
    with pytest.raises(InvalidConfigError, match="is refused"):
        parse_options(given)

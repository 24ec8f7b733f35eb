import pytest

from table.options.keys import ALIASES, HONOURED
from table.options.list_options import OptionClass, list_options
from table.options.refused import REFUSED
from table.options.without_effect import WITHOUT_EFFECT
from table.options.write_options import WriteOptions, parse_options

ROWS = {row.key: row for row in list_options()}


def test_every_key_stands_in_the_list_once():
    assert len(ROWS) == len(list_options())
    assert ROWS.keys() == {*HONOURED, *REFUSED, *WITHOUT_EFFECT}
    assert {alias: row.key for row in ROWS.values() for alias in row.aliases} == ALIASES
    assert [row.key for row in ROWS.values() if not row.description] == []


@pytest.mark.parametrize("row", [row for row in ROWS.values() if row.option_class is OptionClass.HONOURED])
def test_a_default_that_is_given_changes_nothing(row):
    assert row.choices
    if row.default:
        given = parse_options({row.key: row.default}).options
        assert given in (WriteOptions(), WriteOptions(operation="upsert"))


def test_a_row_says_what_the_documentation_needs():
    row = ROWS["hoodie.clean.policy"]
    assert row.aliases == ("clean.policy", "hoodie.cleaner.policy")
    assert (row.field, row.default) == ("clean.policy", "KEEP_LATEST_COMMITS")
    assert row.choices == "KEEP_LATEST_COMMITS, KEEP_LATEST_FILE_VERSIONS, KEEP_LATEST_BY_HOURS"
    assert row.description == "Which versions of files stay."
    assert ROWS["write.parquet.max.file.size"].default == "120"
    assert ROWS["hoodie.datasource.write.operation"].default == "upsert"
    refused = ROWS["hoodie.auto.commit"]
    assert (refused.option_class, refused.choices) == (OptionClass.REFUSED, "true")

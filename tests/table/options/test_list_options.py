import re
from pathlib import Path

from table.options.keys import ALIASES, HONOURED
from table.options.list_options import OptionClass, list_options
from table.options.refused import REFUSED
from table.options.without_effect import WITHOUT_EFFECT
from table.options.write_options import WriteOptions, parse_options

TESTS = Path(__file__).parents[2]
ROWS = {row.key: row for row in list_options()}


def test_every_key_stands_in_the_list_once():
    assert len(ROWS) == len(list_options())
    assert ROWS.keys() == {*HONOURED, *REFUSED, *WITHOUT_EFFECT}
    assert {alias: row.key for row in ROWS.values() for alias in row.aliases} == ALIASES
    assert [row.key for row in ROWS.values() if not row.description] == []


def test_a_default_that_is_given_changes_nothing():
    honoured = [row for row in ROWS.values() if row.option_class is OptionClass.HONOURED]
    assert [row.key for row in honoured if not row.choices] == []
    given = {row.key: parse_options({row.key: row.default}).options for row in honoured if row.default}
    assert len(given) > 100
    unchanged = (WriteOptions(), WriteOptions(operation="upsert"))
    assert {key: options for key, options in given.items() if options not in unchanged} == {}


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


def test_each_honoured_key_is_used_in_a_test_of_its_effect():
    """By the key, another spelling, its last words behind a prefix, or the field: not in tests of reading alone."""
    of_reading = {"test_options", "test_list_options", "test_without_effect", "test_refused", "test_typed_options"}
    text = "\n".join(path.read_text() for path in TESTS.rglob("*.py") if path.stem not in of_reading)
    quoted = re.findall(r"([\w.}-]+)[\"']", text)
    ends = {one[at.end() :] for one in quoted for at in re.finditer(r"[}.]", one)}
    fields = set(re.findall(r"\b(\w+)=", text)) | set(re.findall(r"[\"'](\w+)[\"']:", text))
    unused = []
    for key, honoured in HONOURED.items():
        spelled = [key, *(alias for alias, name in ALIASES.items() if name == key and "." in alias)]
        tails = {tail for one in spelled for tail in (one.split("_sync.")[-1], *_ends(one))}
        if not (tails & ends or honoured.path.rpartition(".")[2] in fields or any(one in text for one in spelled)):
            unused.append(key)
    assert unused == []


def _ends(key):
    words = key.split(".")
    return [".".join(words[-count:]) for count in (2, 3)]

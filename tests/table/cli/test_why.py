"""`hudistream why`: each class of errors is explained, and each command that an explanation names exists."""

import re

import pytest

from table import errors
from table.cli.main import build_parser, main
from table.cli.why import load_page, sections_of
from table.options.list_options import list_options

SECTIONS = sections_of(load_page())
CLASSES = {
    name for name, value in vars(errors).items() if isinstance(value, type) and issubclass(value, errors.HudiError)
}


def test_each_class_of_errors_is_explained_and_nothing_else():
    assert set(SECTIONS) == CLASSES - {"HudiError"}
    assert sum(text.count("\n- ") + text.startswith("- ") for text in SECTIONS.values()) >= 40


def test_commands_and_options_that_it_names_exist():
    page = load_page()
    from streaming.cli.main import build_parser as whole

    known = {name for action in whole()._actions for name in getattr(action, "choices", None) or ()}
    commands = set(re.findall(r"`hudistream ([a-z-]+)", page))
    assert commands
    assert commands <= known | set(build_parser()._actions[-1].choices)
    rows = list_options()
    keys = {key for row in rows for key in (row.key, *row.aliases)}
    named = set(re.findall(r"`((?:hoodie|hudistream)\.[a-z._]+)", page)) - {"hoodie.properties"}
    assert {key for key in named if not key.startswith("hoodie.table.")} <= keys


@pytest.mark.parametrize("name", ["TableHeldError", "table.errors.TableHeldError:", None])
def test_a_section_or_all_are_printed_in_eighty_columns(capsys, name):
    assert main(["why", *([name] if name else [])]) == 0
    out = capsys.readouterr().out
    assert "A second stream, or a backfill" in out
    assert ("StorageError" in out) is (name is None)
    assert max(map(len, out.splitlines())) <= 80
    assert not set("*`") & set(out)


def test_a_class_that_is_none_is_named(capsys):
    assert main(["why", "TableHoldError"]) == 2
    assert "no error is called 'TableHoldError'; did you mean TableHeldError?" in capsys.readouterr().err


def test_an_error_of_a_command_names_what_explains_it(tmp_path, capsys):
    assert main(["show", str(tmp_path / "nothing")]) == 1
    assert capsys.readouterr().err.strip().endswith("[hudistream why TableNotFoundError]")

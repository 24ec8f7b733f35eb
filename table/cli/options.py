"""The command `options`: what a key means, found by a word of it."""

import argparse
import textwrap
from collections.abc import Iterator
from dataclasses import asdict

from table.cli.arguments import add_example, add_format, add_verbose
from table.cli.output import say, say_json
from table.options.list_options import OptionClass, OptionRow, list_options

_WIDTH = 80
_SHOWN = 40  # rows; a word that is in more of them is too short


def add_commands(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Declares the command."""
    finder = add_example(
        commands,
        "options",
        "explain the options whose key, other spelling or meaning holds a word",
        ["hudistream options small.file", "hudistream options ordering --format json"],
    )
    finder.add_argument("word", metavar="WORD", nargs="+", help="part of a key or of its meaning; all words must occur")
    add_format(finder)
    add_verbose(finder, default=argparse.SUPPRESS)
    finder.set_defaults(run=_show)


def find_options(words: list[str]) -> list[OptionRow]:
    """The options that hold all words; those whose key or other spelling does so first (pure)."""
    wanted = [word.lower() for word in words]

    def rank(row: OptionRow) -> int | None:
        spelled = " ".join((row.key, *row.aliases)).lower()
        if all(word in spelled for word in wanted):
            return 0
        return 1 if all(word in f"{spelled} {row.description.lower()}" for word in wanted) else None

    ranked = [(place, row) for row in list_options() if (place := rank(row)) is not None]
    return [row for _, row in sorted(ranked, key=lambda found: found[0])]


def _show(given: argparse.Namespace) -> int:
    found = find_options(given.word)
    if given.format == "json":
        say_json({"options": [{**asdict(row), "option_class": row.option_class.value} for row in found]})
        return 0 if found else 1
    lines = [line for row in found[:_SHOWN] for line in _lines(row)]
    if not found:
        lines = [f"no option holds {' and '.join(given.word)}"]
    elif len(found) > _SHOWN:
        lines.append(f"and {len(found) - _SHOWN} more: give another word")
    say(lines)
    return 0 if found else 1


def _lines(row: OptionRow) -> Iterator[str]:
    yield row.key
    facts = [
        ("also", ", ".join(row.aliases)),
        ("class", row.option_class.value),
        ("values", row.choices if row.option_class is OptionClass.HONOURED else ""),
        ("accepted", row.choices if row.option_class is OptionClass.REFUSED else ""),
        ("default", row.default),
        ("", row.description),
    ]
    for name, text in facts:
        if text:
            head = f"  {name + ':':<10}" if name else "  "
            yield from textwrap.wrap(text, _WIDTH, initial_indent=head, subsequent_indent=" " * len(head),
                                     break_long_words=False, break_on_hyphens=False)  # fmt: skip
    yield ""

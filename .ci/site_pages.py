"""Pages of the site that are made from the code: options, command line, benchmarks, changelog, list of decisions.

A hook of MkDocs (`mkdocs.yml`). Each function that ends in ``_page`` returns Markdown; tests call them, too.
"""

import argparse
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

DECISIONS = "decisions"


class _Caught(Exception):  # noqa: N818 it is no error
    """The parser, on its way out of `main`."""


def command_parser() -> argparse.ArgumentParser:
    """The parser of the `hudistream` command, as `table.cli.main.main` builds it."""
    from table.cli.main import main

    def catch(parser: argparse.ArgumentParser, *_: Any, **__: Any) -> None:
        raise _Caught(parser)

    try:
        with mock.patch.object(argparse.ArgumentParser, "parse_args", catch):
            main([])
    except _Caught as caught:
        return caught.args[0]
    raise RuntimeError("main() parses no arguments")


def _commands(parser: argparse.ArgumentParser, name: str) -> Iterator[tuple[str, str, argparse.ArgumentParser]]:
    """Name, summary and parser of each command, commands of commands included."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            summaries = {choice.dest: choice.help or "" for choice in action._choices_actions}
            for choice, inner in action.choices.items():
                yield f"{name} {choice}", summaries.get(choice, ""), inner
                yield from _commands(inner, f"{name} {choice}")


def cli_page() -> str:
    """The command's reference, from its parser."""
    parser = command_parser()
    lines = ["# Command line", "", parser.description or "", ""]
    lines += ["The command needs the extra `cli`: `pip install '.[cli]'` in a checkout. It does not need Spark.", ""]
    lines += ["Exit codes: 0, or 1 with the reason on standard error; 2 for arguments that it does not know.", ""]
    general = [action for action in parser._actions if action.option_strings]
    lines += ["## Options of every command", "", *_arguments(general), ""]
    for name, summary, command in _commands(parser, "hudistream"):
        usage = " ".join(command.format_usage().removeprefix("usage: ").split())
        lines += [f"## `{name}`", "", f"{summary[:1].upper()}{summary[1:]}.", "", "```text", usage, "```", ""]
        lines += [*_arguments([a for a in command._actions if not isinstance(a, argparse._SubParsersAction)]), ""]
    return "\n".join(lines)


def _arguments(actions: list[argparse.Action]) -> list[str]:
    lines = ["| argument | meaning |", "|---|---|"]
    for action in actions:
        name = ", ".join(action.option_strings) or action.metavar or action.dest
        if action.option_strings and action.nargs != 0:
            choices = "{" + ",".join(map(str, action.choices)) + "}" if action.choices else None
            name += f" {action.metavar or choices or action.dest.upper()}"
        elif action.choices:
            name = "{" + ",".join(map(str, action.choices)) + "}"
        text = (action.help or "") % {**vars(action), "prog": "hudistream"}
        lines.append(f"| `{_cell(str(name))}` | {_cell(text)} |")
    return lines


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def options_page() -> str:
    """Every option key, in one of three classes."""
    from table.options.keys import ALIASES, HONOURED, REFUSED
    from table.options.without_effect import WITHOUT_EFFECT, WITHOUT_EFFECT_PREFIXES
    from table.options.write_options import WriteOptions

    spellings = defaultdict(list)
    for other, key in ALIASES.items():
        spellings[key].append(other)
    lines = [
        "# Options",
        "",
        "Keys are those of Hudi and of its Flink connector. Keys of this project begin with `hudistream.`.",
        "Each key is in one of three classes: [honoured](#honoured), [refused](#refused) or",
        "[without effect](#without-effect). A key in none of them is an error that names the nearest key.",
        "",
        "This page is generated from the code.",
        "",
        "## Honoured",
        "",
        "| key | default | other spellings |",
        "|---|---|---|",
    ]
    for key, (field, _) in HONOURED.items():
        value: Any = WriteOptions()
        for part in field.split("."):
            value = getattr(value, part, None)
        others = ", ".join(f"`{_cell(name)}`" for name in spellings[key])
        lines.append(f"| `{key}` | {_default(value)} | {others} |")
    lines += [
        "",
        "## Refused",
        "",
        "A refused key would change results here. Values that change nothing are accepted.",
        "",
    ]
    lines += ["| key | accepted values | reason | other spellings |", "|---|---|---|---|"]
    for key, (harmless, reason) in REFUSED.items():
        accepted = ", ".join(f"`{value}`" for value in harmless if value)
        others = ", ".join(f"`{_cell(name)}`" for name in spellings[key])
        lines.append(f"| `{key}` | {accepted} | {_cell(reason)} | {others} |")
    lines += ["", "## Without effect", "", "These keys are accepted. The log names each one once, with the reason.", ""]
    by_reason = defaultdict(list)
    for key, reason in WITHOUT_EFFECT.items():
        by_reason[reason] += [key, *spellings[key]]
    for prefix, reason in WITHOUT_EFFECT_PREFIXES.items():
        by_reason[reason].append(f"{prefix}*")
    for reason, keys in by_reason.items():
        lines += [f"**{reason[:1].upper()}{reason[1:]}**", "", ", ".join(f"`{key}`" for key in sorted(keys)), ""]
    return "\n".join(lines)


def _default(value: Any) -> str:
    if value is None or value == ():
        return ""
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    return f"`{value:g}`" if isinstance(value, float) else f"`{value}`"


def benchmarks_page() -> str:
    """The page that `make bench` writes, with its pictures beside it."""
    return (ROOT / "benchmarks" / "README.md").read_text().replace("](results/", "](benchmarks/")


def changelog_page() -> str:
    """CHANGELOG.md; its links lead from the root of the repository into docs/."""
    return (ROOT / "CHANGELOG.md").read_text().replace("](docs/", "](../")


def decision_titles() -> dict[str, str]:
    """File name -> title of each decision record, in order."""
    titles = {}
    for path in sorted((ROOT / "docs" / DECISIONS).glob("[0-9]*.md")):
        titles[path.name] = path.read_text().splitlines()[0].removeprefix("# ")
    return titles


def decisions_page() -> str:
    """All decision records."""
    lines = [
        "# Decisions",
        "",
        "Each record gives the context, the decision, what was refused, and the consequences.",
        "",
    ]
    return "\n".join([*lines, *(f"- [{title}]({name})" for name, title in decision_titles().items()), ""])


PAGES: dict[str, Callable[[], str]] = {
    "reference/options.md": options_page,
    "reference/cli.md": cli_page,
    "reference/benchmarks.md": benchmarks_page,
    "reference/changelog.md": changelog_page,
    f"{DECISIONS}/index.md": decisions_page,
}


def on_files(files: Any, config: Any) -> Any:
    """Adds the generated pages and the pictures of the benchmarks."""
    from mkdocs.structure.files import File

    for uri, make in PAGES.items():
        files.append(File.generated(config, uri, content=make()))
    for picture in sorted((ROOT / "benchmarks" / "results").glob("*.svg")):
        uri = f"reference/benchmarks/{picture.name}"
        files.append(File.generated(config, uri, abs_src_path=str(picture)))
    return files

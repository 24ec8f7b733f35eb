"""Pages of the site that are made from the code: options, command line, benchmarks, changelog.

A hook of MkDocs (`mkdocs.yml`). Each function that ends in ``_page`` returns Markdown; tests call them, too.
"""

import argparse
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

SCRIPTS = ROOT / "build" / "site-scripts"  # `make docs` puts them there


NONE_HERE = '""'  # of `read_hudi_options.py`: an empty text


@dataclass(frozen=True)
class Told:
    """A row of `hudi_defaults.tsv`.

    Attributes:
        here: our default, where the code finds it out.
        hudi: that of Hudi's Spark writer, where its code finds it out.
        flink: that of Flink's connector; "" where it is the same.
        why: a sentence.
    """

    here: str
    hudi: str
    flink: str
    why: str


@dataclass(frozen=True)
class DifferingDefault:
    """A line of the page of defaults: as `Told`, with the option."""

    row: Any
    here: str
    hudi: str
    flink: str
    why: str


class _Caught(Exception):  # noqa: N818 it is no error
    """The parser, on its way out of `main`."""


def command_parser() -> argparse.ArgumentParser:
    """The parser of the `hudistream` command, as `streaming.cli.main.main` builds it."""
    from streaming.cli.main import main

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
    commands = list(_commands(parser, "hudistream"))
    leaves = [command for _, _, command in commands if not _has_commands(command)]
    shared = set.intersection(*({_name(action) for action in command._actions} for command in leaves))
    lines = ["# Command line", "", parser.description or "", ""]
    lines += ["The command needs the extra `cli`: `pip install '.[cli]'` in a checkout. It does not need Spark.", ""]
    lines += ["Exit codes: 0; 1 with the reason on standard error; 2 for arguments that it does not know.", ""]
    lines += ["## Arguments of every command", ""]
    lines += _arguments([action for action in leaves[0]._actions if _name(action) in shared])
    own = [action for action in parser._actions if action.option_strings and _name(action) not in shared]
    lines += ["", "Without a command:", "", *_arguments(own)] if own else []
    lines.append("")
    for name, summary, command in commands:
        usage = " ".join(command.format_usage().removeprefix("usage: ").split())
        title = summary[:1].upper() + summary[1:]
        lines += [f"## `{name}`", "", title if title.endswith("?") else f"{title}.", "", "```text", usage, "```", ""]
        own = [action for action in command._actions if _name(action) not in shared and not _is_commands(action)]
        lines += [*_arguments(own), ""] if own else []
        lines += ["```text", command.epilog.strip(), "```", ""] if command.epilog else []
    return "\n".join(lines)


def _is_commands(action: argparse.Action) -> bool:
    return isinstance(action, argparse._SubParsersAction)


def _has_commands(parser: argparse.ArgumentParser) -> bool:
    return any(_is_commands(action) for action in parser._actions)


def _name(action: argparse.Action) -> str:
    return ", ".join(action.option_strings) or action.dest


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


def troubleshooting_page() -> str:
    """The errors and what to do, as `hudistream why` prints them."""
    from table.cli.why import load_page

    return load_page()


def options_page() -> str:
    """Every option key, in one of three classes; honoured ones by the group of `WriteOptions` that they fill."""
    from table.options.list_options import OptionClass, list_options

    rows: dict[Any, list[Any]] = defaultdict(list)
    for row in list_options():
        rows[row.option_class].append(row)
    lines = [
        "# Options",
        "",
        "Keys are those of Hudi and of its Flink connector. Keys of this project begin with `hudistream.`.",
        "Each key is in one of three classes: [honoured](#honoured), [refused](#refused) or",
        "[without effect](#without-effect). A key in none of them is an error that names the nearest key.",
        "",
        "The same options have fields in [`WriteOptions`](api.md#hudistream.WriteOptions), which the tables name.",
        "",
        "This page is generated from the code.",
        "",
        "## Honoured",
        "",
        *_honoured(rows[OptionClass.HONOURED]),
        "## Refused",
        "",
        "A refused key would change results here. The accepted values change nothing.",
        "",
        "| key | accepted values | reason | other spellings |",
        "|---|---|---|---|",
        *_refused(rows[OptionClass.REFUSED]),
        "",
        "## Without effect",
        "",
        "These keys are accepted. The log names each one once, with the reason: as a WARNING where its user may wait",
        "for an effect.",
        "",
        *_without_effect(rows[OptionClass.WITHOUT_EFFECT]),
    ]
    return "\n".join(lines)


def _honoured(rows: list[Any]) -> Iterator[str]:
    from table.options.write_groups import GROUPS

    titles = {name: (group.__doc__ or "").partition("\n")[0] for name, group in GROUPS.items()}
    sections = {"operation": "What a batch does, and where."}
    for name, title in titles.items():
        sections[name] = title
        if name == "keys":
            sections["keys.timebased"] = "Settings of the timestamp-based key generator."
    by_section = defaultdict(list)
    for row in rows:
        group = row.field.partition(".")[0] if "." in row.field else "operation"
        by_section[row.field if row.field in sections else group].append(row)
    for name, title in sections.items():
        yield from (f"### {name}", "", title, "", "| key | default | meaning |", "|---|---|---|")
        for row in by_section[name]:
            default = f"`{_cell(row.default)}`" if row.default else ""
            yield f"| `{row.key}` | {default} | {_meaning(row)} |"
        yield ""


def _refused(rows: list[Any]) -> Iterator[str]:
    for row in rows:
        accepted = ", ".join(f"`{value}`" for value in row.choices.split(", ") if value)
        yield f"| `{row.key}` | {accepted} | {_cell(row.description)} | {_spellings(row)} |"


def _without_effect(rows: list[Any]) -> Iterator[str]:
    from table.options.without_effect import WITHOUT_EFFECT_PREFIXES

    by_reason = defaultdict(list)
    for row in rows:
        by_reason[row.description] += [row.key, *row.aliases]
    for prefix, reason in WITHOUT_EFFECT_PREFIXES.items():
        by_reason[reason].append(f"{prefix}*")
    for reason, keys in by_reason.items():
        yield from (f"**{reason[:1].upper()}{reason[1:]}**", "", ", ".join(f"`{key}`" for key in sorted(keys)), "")


def _meaning(row: Any) -> str:
    parts = [_cell(row.description)]
    if row.choices not in ("", "text"):
        parts.append(f"Values: {_cell(row.choices)}.")
    if "." in row.field:
        parts.append(f"Field: `{row.field}`.")
    if row.aliases:
        parts.append(f"Other spellings: {_spellings(row)}.")
    return " ".join(parts)


def _spellings(row: Any) -> str:
    return ", ".join(f"`{_cell(name)}`" for name in row.aliases)


def defaults_page() -> str:
    """Defaults that are not those of Hudi 1.2 or of Flink's connector, and why; ours come from the code."""
    lines = [
        "# Defaults that differ from Hudi's and Flink's",
        "",
        "A job that sets no option gets these values here, and others from Hudi 1.2. Each key can be set to Hudi's",
        "value, unless the page of [options](options.md) says otherwise. Keys that are not here have the default that",
        "Hudi's own classes declare, or mean the same where they are not set.",
        "",
        "| key | here | Hudi's Spark writer | Flink's connector | why |",
        "|---|---|---|---|---|",
    ]
    for one in differing_defaults():
        named = ", ".join(f"`{name}`" for name in (one.row.key, *one.row.aliases))
        here, hudi = (f"`{value}`" if value != "not set" else value for value in (one.here, one.hudi or "not set"))
        lines.append(f"| {named} | {here} | {hudi} | {f'`{one.flink}`' if one.flink else 'the same'} | {one.why} |")
    return "\n".join(lines)


def differing_defaults() -> list[DifferingDefault]:
    """The honoured keys whose default is not Hudi's, in the order of the options, and why."""
    from table.options.list_options import list_options

    hudis, told = _defaults_of_hudi(), _reasons_of_defaults()
    rows = {row.key: row for row in list_options()}
    differing = [key for key, row in rows.items() if key in told or _differs(row, hudis.get(key, ""))]
    return [
        DifferingDefault(
            rows[key],
            told[key].here or rows[key].default or "not set",
            told[key].hudi or hudis.get(key, ""),
            told[key].flink,
            told[key].why,
        )
        for key in differing
        if key in told
    ]


def untold_defaults() -> list[str]:
    """The keys whose default is not Hudi's, and of which the page does not say why."""
    from table.options.list_options import list_options

    hudis, told = _defaults_of_hudi(), _reasons_of_defaults()
    return [row.key for row in list_options() if row.key not in told and _differs(row, hudis.get(row.key, ""))]


def _differs(row: Any, hudi: str) -> bool:
    """Whether Hudi's default, given as an option, is another option than none."""
    from table.errors import InvalidConfigError
    from table.options.list_options import OptionClass
    from table.options.write_options import WriteOptions, parse_options

    if row.option_class is not OptionClass.HONOURED or hudi in ("", NONE_HERE):
        return False
    try:
        given = parse_options({row.key: hudi}).options
    except InvalidConfigError:
        return True
    return given not in (WriteOptions(), WriteOptions(operation="upsert"))


def _defaults_of_hudi() -> dict[str, str]:
    """Our key -> default of Hudi, as its classes declare it."""
    from table.options.keys import ALIASES

    found: dict[str, str] = {}
    for key, default, others, _ in options_of_hudi():
        for name in (key, *others.split()):
            found.setdefault(ALIASES.get(name, name), default)
    return found


def options_of_hudi() -> list[list[str]]:
    """The rows that `read_hudi_options.py` wrote: key, default, other spellings, class."""
    [newest] = Path(__file__).parent.glob("hudi-options-*.tsv")
    return [line.split("\t") for line in newest.read_text().splitlines()[1:]]


def _reasons_of_defaults() -> dict[str, Told]:
    """The rows of `hudi_defaults.tsv`."""
    text = (Path(__file__).parent / "hudi_defaults.tsv").read_text()
    rows = [line.split("\t") for line in text.splitlines()[1:]]
    return {key: Told(here, hudi, flink, why) for key, here, hudi, flink, why in rows}


def benchmarks_page() -> str:
    """The page that `make bench` writes, with its pictures beside it."""
    return (ROOT / "benchmarks" / "README.md").read_text().replace("](results/", "](benchmarks/")


def changelog_page() -> str:
    """CHANGELOG.md; its links lead from the root of the repository into docs/."""
    return (ROOT / "CHANGELOG.md").read_text().replace("](docs/", "](../")


PAGES: dict[str, Callable[[], str]] = {
    "reference/options.md": options_page,
    "reference/defaults.md": defaults_page,
    "reference/cli.md": cli_page,
    "guides/troubleshooting.md": troubleshooting_page,
    "reference/benchmarks.md": benchmarks_page,
    "reference/changelog.md": changelog_page,
}


def on_config(config: Any) -> Any:
    """Takes the scripts that pages need from `SCRIPTS`, so that the site asks no other host."""
    if (SCRIPTS / "mermaid.js").exists():
        config.extra_javascript.append("assets/mermaid.js")
    if (SCRIPTS / "iframe-worker.js").exists():
        config.extra["polyfills"] = ["assets/iframe-worker.js"]
    return config


def on_files(files: Any, config: Any) -> Any:
    """Adds the generated pages in place of those that point to their sources, the pictures and the scripts."""
    from mkdocs.structure.files import File

    for script in sorted(SCRIPTS.glob("*.js")):
        files.append(File.generated(config, f"assets/{script.name}", abs_src_path=str(script)))

    for uri, make in PAGES.items():
        if (pointer := files.get_file_from_path(uri)) is not None:  # for those who read docs/ in the repository
            files.remove(pointer)
        files.append(File.generated(config, uri, content=make()))
    for picture in sorted((ROOT / "benchmarks" / "results").glob("*.svg")):
        uri = f"reference/benchmarks/{picture.name}"
        files.append(File.generated(config, uri, abs_src_path=str(picture)))
    return files

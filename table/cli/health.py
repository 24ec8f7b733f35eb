"""The command that reports the health of a table, or of all below a folder."""

import argparse
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any

from table.cli.arguments import (
    add_command,
    add_format,
    add_options,
    load_given_settings,
    load_storage_options,
    open_table,
)
from table.cli.grid import grid_lines
from table.cli.output import plural, say, say_json
from table.errors import CorruptFileError, StorageError, TableNotFoundError, UnsupportedTableError
from table.inspect.glance_rows import COLUMNS, NUMBERS, Glance, row_of
from table.inspect.health import load_health
from table.inspect.health_facts import Code, Health, HealthFinding, Verdict
from table.inspect.tables_below import load_glances
from table.inspect.words import WORDS, age_text, size_text
from table.storage.opening import open_storage


def add_commands(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Declares the command."""
    health = add_command(
        commands,
        "health",
        "say in one screen how well a table is, or all tables below a folder; exit code 0: well, 1: an operator should "
        "look, 2: broken",
        [
            "hudistream health /data/lake/events",
            "hudistream health s3://lake/events --format json",
            "hudistream health s3://lake",
            "hudistream health s3://lake --stale-after 30",
        ],
        _health,
    )
    add_options(health)
    add_format(health)
    health.add_argument(
        "--stale-after",
        metavar="MINUTES",
        type=minutes,
        help="a table that has had no commit with rows for so long is worth a look (exit code 1)",
    )


def minutes(text: str) -> float:
    """A number of minutes, 0 or more.

    Raises:
        ValueError: it is no such number.
    """
    found = float(text)
    if not 0 <= found < float("inf"):
        raise ValueError(text)
    return found


def _health(given: argparse.Namespace) -> int:
    stale_after_s = None if given.stale_after is None else 60 * given.stale_after
    try:
        found = load_health(open_table(given), load_given_settings(given), stale_after_s)
    except TableNotFoundError:
        folder = open_storage(given.path, load_storage_options(given))
        glances = load_glances(folder, load_given_settings(given), stale_after_s)
        if not glances:
            raise
        return _say_all(folder.base_uri, glances, as_json=given.format == "json")
    except (CorruptFileError, StorageError, UnsupportedTableError) as error:  # readers fail, too
        if given.format == "json":
            findings = _findings_as_json([HealthFinding(Verdict.BROKEN, Code.UNREADABLE, str(error))])
            say_json({"verdict": Verdict.BROKEN.name.lower(), "path": given.path, "findings": findings})
        else:
            say([f"{WORDS[Verdict.BROKEN].upper()}: {given.path}", f"  {error}"])
        return int(Verdict.BROKEN)
    if given.format == "json":
        say_json(as_json(found))
    else:
        say(lines(found))
    return int(found.verdict)


def _say_all(below: str, glances: Sequence[Glance], *, as_json: bool) -> int:
    worst = max(one.verdict for one in glances)
    if as_json:
        tables = [_glance_as_json(one) for one in glances]
        say_json({"verdict": worst.name.lower(), "path": below, "tables": tables})
        return int(worst)
    counts = Counter(WORDS[one.verdict] for one in glances)
    summed = ", ".join(f"{count} {words}" for words, count in counts.items())
    rows = [row_of(one, below) for one in glances]
    say(grid_lines(f"{plural(len(glances), 'table')}: {summed}", COLUMNS, rows, numbers=NUMBERS))
    say(f"  {WORDS[finding.level]}: {one.path}: {finding.text} [{finding.code.value}]"
        for one in glances for finding in one.findings)  # fmt: skip
    return int(worst)


def _glance_as_json(one: Glance) -> dict[str, Any]:
    if one.health is not None:
        return as_json(one.health)
    return {"verdict": one.verdict.name.lower(), "path": one.path, "findings": _findings_as_json(one.findings)}


def _findings_as_json(findings: Iterable[HealthFinding]) -> list[dict[str, str]]:
    return [{"level": one.level.name.lower(), "code": one.code.value, "text": one.text} for one in findings]


def as_json(found: Health) -> dict[str, Any]:
    """The facts for a program; the verdict first."""
    document = {"verdict": found.verdict.name.lower(), **asdict(found)}
    document["pending"] = [one._asdict() for one in found.pending]
    document["findings"] = _findings_as_json(found.findings)
    return document


def lines(found: Health) -> list[str]:
    """The facts for people, the verdict in the first line."""
    backlog = found.backlog
    first = f"{WORDS[found.verdict].upper()}: {found.path} (version {found.version}, {found.table_type})"
    writer = "no writer holds the table" if found.writer is None else found.writer
    if found.writer is not None:
        writer += ", alive" if found.writer_lives else ", dead"
    rate = f"{found.rows_per_minute:,.0f} rows a minute" if found.rows_per_minute is not None else "too few commits"
    age = age_text(found.last_commit_age_s)
    facts = {
        "last commit": f"{age} ago ({found.last_commit})" if found.last_commit else "none",
        "pace": rate,
        "writer": writer,
        "live files": f"{found.live_files:,} ({size_text(found.live_bytes)}), {found.small_files:,} of them small",
        "log files": f"{found.log_files:,} ({size_text(found.log_bytes)})" if found.log_files else "",
        "old versions": f"{backlog.superseded_files:,} ({size_text(backlog.superseded_bytes)})",
        "last clean": "never" if backlog.commits_since_clean is None else f"{backlog.commits_since_clean} commits ago",
        "compaction": _compaction(found),
        "active commits": f"{backlog.active_instants}",
        "pending": ", ".join(f"{one.action} {one.instant} ({age_text(one.age_s)})" for one in found.pending),
        "savepoints": ", ".join(found.savepoints),
        "pinned": plural(found.pinned_snapshots, "snapshot") if found.pinned_snapshots else "",
        "judged by": f"the settings of sink {found.judged_as!r}" if found.judged_as else "",
        "missing files": ", ".join(found.missing_files[:3]),
    }
    shown = [f"  {name:<15}{text}" for name, text in facts.items() if text]
    return [first, *(f"  {WORDS[one.level]}: {one.text} [{one.code.value}]" for one in found.findings), *shown]


def _compaction(found: Health) -> str:
    waiting, pending = found.backlog.commits_since_compaction, found.backlog.pending_compactions
    if waiting is None:
        return ""
    return f"{plural(waiting, 'delta commit')} since the last, {pending} pending"

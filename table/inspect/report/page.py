"""Facts -> one HTML page that stands alone (pure): no script, no font, no external picture."""

from collections.abc import Iterable, Sequence
from datetime import timedelta
from html import escape
from typing import Any

from table.inspect.glance_rows import COLUMNS, Glance, row_of
from table.inspect.health_facts import Health, Verdict
from table.inspect.report.charts import HALF, Bar, bar_chart, share_bar, size_bins, treemap
from table.inspect.report.facts import LARGEST_PARTITIONS, MOST_LISTED, ReportFacts
from table.inspect.words import WORDS, age_text, size_text
from table.services.check.finding import Severity

_LONGEST = 300  # most letters of a text from a table
_STYLE = """
:root{--ink:#1b2430;--dim:#5c6b7d;--back:#f6f8fa;--card:#fff;--line:#d9e0e7;--a:#2f6fde;--b:#e08a1e;--c:#c2453d;
--d:#3d9a6a}
@media(prefers-color-scheme:dark){:root{--ink:#e6ebf1;--dim:#9aa8b8;--back:#12171d;--card:#1a2129;--line:#2d3742;
--a:#6b9df0;--b:#eaa650;--c:#e2746c;--d:#62bd8c}}
*{box-sizing:border-box}body{margin:0;background:var(--back);color:var(--ink);font:15px/1.5 system-ui,sans-serif}
main{max-width:1120px;margin:0 auto;padding:20px 16px 60px}h1{font-size:24px;margin:0;overflow-wrap:anywhere}
h2{font-size:16px;margin:0 0 10px}.path{color:var(--dim);overflow-wrap:anywhere;margin:2px 0 14px}
.verdict{display:inline-block;padding:3px 12px;border-radius:14px;color:#fff;font-weight:600}
.v0{background:var(--d)}.v1{background:var(--b)}.v2{background:var(--c)}
.grid{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,480px),1fr));gap:14px;margin-top:14px}
.tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(150px,1fr));gap:10px;margin-top:14px}
section,.tile-box{background:var(--card);border:1px solid var(--line);border-radius:10px;padding:14px;min-width:0}
.tile-box b{display:block;font-size:20px}.tile-box span{color:var(--dim);font-size:13px}.wide{grid-column:1/-1}
svg{width:100%;height:auto;display:block}text.axis{fill:var(--dim);font-size:11px}line.axis{stroke:var(--line)}
text.tile{fill:#fff;font-size:11px}.added,.live{fill:var(--a)}.updated,.old{fill:var(--b)}
.deleted,.clean{fill:var(--c)}.pinned{fill:var(--d)}
.t0,.t1,.t2,.t3{fill:var(--a)}.t1{fill-opacity:.88}.t2{fill-opacity:.76}.t3{fill-opacity:.64}
.key{display:inline-block;margin-right:14px;color:var(--dim);font-size:13px}
.key i{display:inline-block;width:10px;height:10px;border-radius:2px;margin-right:5px}
.scroll{overflow-x:auto}table{border-collapse:collapse;font-size:13px;width:100%}
td,th{text-align:left;padding:4px 10px 4px 0;border-bottom:1px solid var(--line);vertical-align:top;
overflow-wrap:anywhere}
@media(max-width:600px){svg:not(.half) text{font-size:20px!important}}ul{margin:8px 0 0;padding-left:20px}
.none,.note{color:var(--dim);font-size:13px;margin:6px 0 0}
"""


def report_page(facts: ReportFacts, made_at: str) -> str:
    """The page.

    Args:
        facts: facts about a table.
        made_at: when the facts were gathered, as text.

    Returns:
        HTML, as text; a few hundred kilobytes at most, for a table of any size.
    """
    health, has_logs = facts.health, facts.next_compaction is not None
    parts = [
        _head(facts, made_at),
        _tiles(facts) if health is not None else "",
        '<div class="grid">',
        _card("Commits: rows", _commit_rows(facts), wide=True),
        _card("Commits: bytes written", _commit_bytes(facts), wide=True),
        _card("Commits and services: seconds", _seconds(facts), wide=True),
        _card("Sizes of live base files", _file_sizes(facts)),
        _card("What the bytes are", _bytes(facts)),
        _card("Partitions by bytes", _partitions(facts), wide=True),
        _card("File slices by number of log files", _log_counts(facts)),
        _card("What the next clean deletes", _next_clean(facts), wide=True),
        *([_card("What the next compaction takes", _next_compaction(facts), wide=True)] if has_logs else []),
        _card("Columns", _schema(facts)),
        _card("Check", _check(facts)),
        "</div>",
    ]
    return _whole(facts.name, parts)


def tables_page(below: str, glances: Sequence[Glance], made_at: str) -> str:
    """The page about all tables below a folder.

    Args:
        below: the folder.
        glances: its tables, the worst first.
        made_at: when they were looked at, as text.

    Returns:
        HTML, as text.
    """
    heads = "".join(f"<th>{escape(name)}</th>" for name in COLUMNS)
    rows = "".join(_glance_row(row_of(one, below), one) for one in glances)
    problems = "".join(
        f"<li><b>{_said(row_of(one, below)[0])}</b>: {_said(finding.text)} [{finding.code.value}]</li>"
        for one in glances
        for finding in one.findings
    )
    level = max((one.verdict for one in glances), default=Verdict.WELL)
    parts = [
        f'<h1>{len(glances):,} tables</h1><p class="path">{_said(below)} · looked at {escape(made_at)}</p>',
        f'<span class="verdict v{int(level)}">{WORDS[level]}</span>',
        '<div class="grid">',
        _card("The worst first", f'<div class="scroll"><table><tr>{heads}</tr>{rows}</table></div>', wide=True),
        _card("What is not well", f"<ul>{problems}</ul>" if problems else '<p class="none">nothing</p>', wide=True),
        "</div>",
    ]
    return _whole(below, parts)


def _glance_row(texts: Sequence[str], one: Glance) -> str:
    name, words, *figures = map(_said, texts)
    cells = "".join(f"<td>{text}</td>" for text in figures)
    return f'<tr><td>{name}</td><td><span class="verdict v{int(one.verdict)}">{words}</span></td>{cells}</tr>'


def _whole(title: str, parts: Iterable[str]) -> str:
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>{_said(title)}</title><style>{_STYLE}</style></head>"
        f"<body><main>{''.join(parts)}</main></body></html>\n"
    )


def _said(text: object) -> str:
    """A text from a table, shortened, with markup escaped."""
    shown = str(text)
    return escape(shown if len(shown) <= _LONGEST else shown[: _LONGEST - 1] + "…")


def _card(title: str, content: str, *, wide: bool = False) -> str:
    style = ' class="wide"' if wide else ""
    return f"<section{style}><h2>{escape(title)}</h2>{content}</section>"


def _head(facts: ReportFacts, made_at: str) -> str:
    health = facts.health
    level = health.verdict if health is not None else Verdict.BROKEN
    words = WORDS[level] if health is not None else "could not be read"
    found = [one.text for one in health.findings] if health is not None else []
    items = "".join(f"<li>{_said(text)}</li>" for text in (*found, *facts.problems))
    return (
        f'<h1>{_said(facts.name)}</h1><p class="path">{_said(facts.path)} · looked at {escape(made_at)}</p>'
        f'<span class="verdict v{int(level)}">{words}</span>' + (f"<ul>{items}</ul>" if items else "")
    )


def _tiles(facts: ReportFacts) -> str:
    health = facts.health
    assert health is not None
    age = age_text(health.last_commit_age_s) + " ago" if health.last_commit_age_s is not None else "none"
    pace = f"{health.rows_per_minute:,.0f}" if health.rows_per_minute is not None else "-"
    tiles = (
        (age, "last commit"),
        (pace, "rows a minute"),
        (_writer(health), "writer"),
        (f"{health.live_files:,}", f"live files, {health.small_files:,} small"),
        (size_text(health.live_bytes), "live bytes"),
        (f"{facts.partition_count:,}", "partitions"),
        (f"{health.log_files:,}", "log files"),
        (f"{health.version}", f"table version, {health.table_type.replace('_', '-').lower()}"),
    )
    return (
        '<div class="tiles">'
        + "".join(
            f'<div class="tile-box"><b>{_said(value)}</b><span>{_said(name)}</span></div>' for value, name in tiles
        )
        + "</div>"
    )


def _writer(health: Health) -> str:
    if health.writer is None:
        return "none"
    return "alive" if health.writer_lives else "dead"


def _commit_rows(facts: ReportFacts) -> str:
    bars, form = [], _form(facts)
    for row in reversed(facts.commits):
        figures = [row.get(f"rows_{kind}") or 0 for kind in ("added", "updated", "deleted")]
        if row.get("rows_added") is None:
            continue
        counts = f"{figures[0]:,} added, {figures[1]:,} updated, {figures[2]:,} deleted"
        title = f"{_moment(row)} {row['operation'] or row['action']}: {counts}"
        styled = zip(("added", "updated", "deleted"), figures, strict=True)
        bars.append(Bar(tuple((style, float(value)) for style, value in styled), _moment(row, form), title))
    most = max((bar.value for bar in bars), default=0)
    keys = _keys((("a", "added"), ("b", "updated"), ("c", "deleted")))
    return bar_chart(bars, f"{most:,.0f} rows", "rows of each commit") + keys + _services(facts)


def _services(facts: ReportFacts) -> str:
    """How often each service ran, in words, because a bar without height would be invisible."""
    counts: dict[str, int] = {}
    for row in facts.commits:
        if row.get("rows_added") is None:
            name = f"{row['action']}" + ("" if row["state"] == "COMPLETED" else ", pending")
            counts[name] = counts.get(name, 0) + 1
    listed = ", ".join(f"{_said(name)} {count:,}" for name, count in sorted(counts.items()))
    omitted = f" {facts.commits_left_out:,} older instants are not shown." if facts.commits_left_out else ""
    return f'<p class="note">{"Services: " + listed + "." if listed else "No service has run."}{omitted}</p>'


def _commit_bytes(facts: ReportFacts) -> str:
    form = _form(facts)
    bars = [
        Bar(
            (("live", float(row["bytes_written"] or 0)),),
            _moment(row, form),
            f"{_moment(row)} {row['operation'] or row['action']}: {size_text(row['bytes_written'] or 0)} in "
            f"{row['files_written']:,} files",
        )
        for row in reversed(facts.commits)
        if row.get("bytes_written") is not None
    ]
    most = max((bar.value for bar in bars), default=0)
    return bar_chart(bars, size_text(int(most)), "bytes of each commit")


def _seconds(facts: ReportFacts) -> str:
    bars, form = [], _form(facts)
    for row in reversed(facts.commits):
        if row.get("seconds") is None:
            continue
        is_commit = row.get("rows_added") is not None
        title = f"{_moment(row)} {row['operation'] or row['action']}: {row['seconds']:.2f} s"
        bars.append(Bar((("live" if is_commit else "old", row["seconds"]),), _moment(row, form), title))
    most = max((bar.value for bar in bars), default=0)
    keys = _keys((("a", "commits"), ("b", "services: clean, compaction, rollback …")))
    return bar_chart(bars, f"{most:.2f} s", "seconds from request to completion") + keys


def _file_sizes(facts: ReportFacts) -> str:
    bars = [
        Bar(
            ((("updated" if low < facts.small_bytes else "live"), float(count)),),
            size_text(low),
            f"{count:,} files of {size_text(low)} to {size_text(2 * low)}",
        )
        for low, count in size_bins(facts.file_sizes)
    ]
    most = max((bar.value for bar in bars), default=0)
    keys = _keys((("a", "large enough"), ("b", f"below the limit of small files, {size_text(facts.small_bytes)}")))
    return bar_chart(bars, f"{most:,.0f} files", "sizes of live base files", width=HALF) + keys


def _bytes(facts: ReportFacts) -> str:
    found = facts.bytes
    if found is None:
        return '<p class="none">Not known.</p>'
    kept = found.superseded - found.cleanable
    parts = (
        ("live", found.live, "live"),
        ("old", kept, "old versions that stay"),
        ("clean", found.cleanable, "old versions that the next clean deletes"),
        ("pinned", found.pinned, "old versions that readers or savepoints hold"),
    )
    styled = [(style, float(size), f"{name}: {size_text(size)}") for style, size, name in parts]
    names = zip("abcd", parts, strict=True)
    return share_bar(styled, "bytes by what keeps them") + _keys((k, f"{p[2]}: {size_text(p[1])}") for k, p in names)


def _partitions(facts: ReportFacts) -> str:
    items = [(path or "(no partition)", float(size), f"{path}: {size_text(size)}") for path, size in facts.partitions]
    others, rest = facts.partition_count - len(facts.partitions), size_text(facts.other_bytes)
    if others > 0:
        items.append((f"{others:,} others", float(facts.other_bytes), f"{others:,} others: {rest}"))
        note = f'<p class="note">The largest {LARGEST_PARTITIONS} of {facts.partition_count:,}.</p>'
    else:
        note = ""
    short = [(label[:_LONGEST], value, title[:_LONGEST]) for label, value, title in items]
    return treemap(short, "partitions by bytes") + note


def _log_counts(facts: ReportFacts) -> str:
    bars = [
        Bar((("live", float(count)),), f"{logs}", f"{count:,} file slices with {logs} log files")
        for logs, count in facts.log_counts[:40]
    ]
    most = max((bar.value for bar in bars), default=0)
    return bar_chart(bars, f"{most:,.0f} slices", "file slices by number of log files", width=HALF, labels=12)


def _next_clean(facts: ReportFacts) -> str:
    if not facts.next_clean:
        return '<p class="none">Nothing.</p>'
    rows = ((path, size_text(size), rule) for path, size, rule in facts.next_clean)
    more = facts.next_clean_count - len(facts.next_clean)
    note = f'<p class="note">The first {MOST_LISTED}; {more:,} more go.</p>' if more > 0 else ""
    return _table(("file", "size", "why"), rows) + note


def _next_compaction(facts: ReportFacts) -> str:
    if not facts.next_compaction:
        return '<p class="none">Nothing: no file group has log files that it would take.</p>'
    rows = ((group, f"{logs:,}", size_text(size), why) for group, logs, size, why in facts.next_compaction)
    more = facts.next_compaction_count - len(facts.next_compaction)
    note = f'<p class="note">The first {MOST_LISTED}; it takes {more:,} more.</p>' if more > 0 else ""
    return _table(("file group", "log files", "their size", "when"), rows) + note


def _schema(facts: ReportFacts) -> str:
    shown = [(name, kind, "" if nullable else "never null") for name, kind, nullable in facts.schema[:MOST_LISTED]]
    omitted = len(facts.schema) - len(shown)
    note = f'<p class="note">{omitted:,} more columns.</p>' if omitted > 0 else ""
    changes = "".join(f"<li>{_said(instant)}: {_said(change)}</li>" for instant, change in facts.schema_changes)
    return _table(("column", "type", ""), shown) + note + (f"<ul>{changes}</ul>" if changes else "")


def _check(facts: ReportFacts) -> str:
    checked = facts.checked
    if checked is None:
        return '<p class="none">The table was not checked.</p>'
    rows = [
        (finding.severity.value, finding.where, finding.text, finding.advice or finding.repair.value)
        for severity in Severity
        for finding in checked.of(severity)
    ]
    note = f'<p class="note">{len(rows) - MOST_LISTED:,} more findings.</p>' if len(rows) > MOST_LISTED else ""
    return f"<p>{_said(checked.verdict)}</p>" + (
        _table(("", "where", "what", "way out"), rows[:MOST_LISTED]) + note if rows else ""
    )


def _table(names: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    head = "".join(f"<th>{escape(name)}</th>" for name in names)
    body = "".join(f"<tr>{''.join(f'<td>{_said(cell)}</td>' for cell in row)}</tr>" for row in rows)
    return f'<div class="scroll"><table><tr>{head}</tr>{body}</table></div>'


def _keys(keys: Iterable[tuple[str, str]]) -> str:
    items = (
        f'<span class="key"><i style="background:var(--{color})"></i>{escape(name)}</span>' for color, name in keys
    )
    return f"<p>{''.join(items)}</p>"


def _form(facts: ReportFacts) -> str:
    """How the labels of a chart spell times: so that they differ."""
    times = [at for row in facts.commits if (at := row.get("requested_at")) is not None]
    is_short = bool(times) and max(times) - min(times) < timedelta(hours=1)
    return "%H:%M:%S" if is_short else "%m-%d %H:%M"


def _moment(row: dict[str, Any], form: str = "%m-%d %H:%M:%S") -> str:
    """When a commit was requested, for people."""
    at = row.get("requested_at")
    return at.strftime(form) if at is not None else str(row["instant"])

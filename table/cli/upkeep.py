"""Commands that maintain a table: clean, archive, rollback, savepoint, explain, check. No Spark: cron can run them."""

import argparse
from collections.abc import Iterable, Sequence
from dataclasses import replace

from table import clock
from table.cli.arguments import (
    add_command,
    add_format,
    add_options,
    load_options,
    load_storage_options,
    load_table_options,
    open_table,
)
from table.cli.file_lists import explanation_json, explanation_lines, fates_json, fates_lines
from table.cli.output import UsageError, plural, say, say_json
from table.inspect.explain import explain_batch, explain_files
from table.inspect.words import age_text, size_text
from table.options.clustering_settings import LAYOUT
from table.services.archival.archival import archive
from table.services.check.check import DEFAULT_SAMPLE, check
from table.services.check.finding import CheckReport, Finding, Repair
from table.services.clean.clean import clean, schedule_clean
from table.services.clean.judgement import judge_files
from table.services.clustering.clustering import ClusteringOutcome
from table.services.clustering.command import cluster, execute_planned, schedule
from table.services.compaction.compaction import compact, request_compaction
from table.services.rollback.dead_writes import roll_back_dead_writes
from table.services.rollback.undo_commit import roll_back
from table.services.savepoint.restore import restore_to_savepoint
from table.services.savepoint.savepoint import create_savepoint, delete_savepoint, load_savepoints
from table.storage.reserve import with_reserve
from table.timeline.instant import Action
from table.timeline.metadata.savepoint import SavepointMetadata

FORCE = "also undo batches of streams, although the streams' checkpoints count them as done"


def add_commands(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Declares the commands."""
    _add_clean(commands)
    _add_compact(commands)
    _add_cluster(commands)
    archiver = add_command(
        commands,
        "archive",
        "move old instants from the timeline to the archive",
        ["hudistream archive /data/lake/events --set hoodie.keep.max.commits=50"],
        _archive,
    )
    add_options(archiver)
    undo = add_command(
        commands,
        "rollback",
        "undo a commit: one that failed, or the newest; withdraw a pending compaction",
        ["hudistream rollback /data/lake/events 20260102030405678"],
        _roll_back,
    )
    undo.add_argument("instant", metavar="INSTANT", help="its instant time")
    undo.add_argument("--force", action="store_true", help=FORCE)
    _add_savepoint(commands)
    _add_explain(commands)
    _add_check(commands)


def _add_clean(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    cleaner = add_command(
        commands,
        "clean",
        "delete file versions that no reader needs any more, and finish cleans that were begun",
        [
            "hudistream clean /data/lake/events --dry-run",
            "hudistream clean /data/lake/events --set hoodie.clean.commits.retained=20",
        ],
        _clean,
    )
    add_options(cleaner)
    which = cleaner.add_mutually_exclusive_group()
    which.add_argument("--dry-run", action="store_true", help="say what would be deleted and why; delete nothing")
    which.add_argument("--schedule-only", action="store_true", help="request a clean if one is due; delete nothing")
    which.add_argument("--execute", action="store_true", help="carry out what was requested; request nothing")
    cleaner.add_argument("--all", action="store_true", help="with --dry-run: the files that stay, too, and why")
    add_format(cleaner)


def _add_compact(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    compacter = add_command(
        commands,
        "compact",
        "fold the log files of a merge-on-read table into base files, and finish compactions that were begun",
        ["hudistream compact /data/lake/events", "hudistream compact /data/lake/events --execute"],
        _compact,
    )
    add_options(compacter)
    which = compacter.add_mutually_exclusive_group()
    which.add_argument("--schedule-only", action="store_true", help="request one; another job carries it out")
    which.add_argument("--execute", action="store_true", help="carry out what was requested; request nothing")


def _add_cluster(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    clusterer = add_command(
        commands,
        "cluster",
        "rewrite small files and unsorted rows, so that rows lie where queries look",
        [
            "hudistream cluster /data/lake/events --sort customer,day",
            "hudistream cluster /data/lake/events --sort lat,lon --layout hilbert --partition p=2026-01-31",
            "hudistream cluster /data/lake/events --sort customer,day --schedule-only",
            "hudistream cluster /data/lake/events --execute",
        ],
        _cluster,
    )
    add_options(clusterer)
    which = clusterer.add_mutually_exclusive_group()
    which.add_argument("--schedule-only", action="store_true", help="request one; another job carries it out")
    which.add_argument("--execute", action="store_true", help="carry out what was requested, here or elsewhere")
    clusterer.add_argument("--sort", metavar="COLUMNS", help="separated by commas; without them small files are joined")
    clusterer.add_argument("--layout", choices=["linear", "z-order", "hilbert"], help="the order of several columns")
    clusterer.add_argument("--partition", metavar="PATH", action="append", help="this one alone; can be repeated")


def _add_savepoint(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    summary = "keep the files of a commit, release them, restore them"
    savepoint = commands.add_parser("savepoint", help=summary, description=f"{summary.capitalize()}.")
    whats = savepoint.add_subparsers(dest="what", metavar="create|delete|restore|list", required=True)
    for what, does, run in (
        ("create", "keep the files of a commit, so that no clean deletes them", _create_savepoint),
        ("delete", "release the files of a savepoint", _delete_savepoint),
        ("restore", "restore a savepoint: undo all that was written after it", _restore_savepoint),
        ("list", "list the savepoints", _list_savepoints),
    ):
        example = f"hudistream savepoint {what} /data/lake/events"
        command = add_command(
            whats, what, does, [example if what in ("create", "list") else f"{example} 20260102030405678"], run
        )
        if what == "create":
            command.add_argument("instant", metavar="INSTANT", nargs="?", help="a commit's; without it the newest")
            command.add_argument("--comment", default="", help="why")
        elif what != "list":  # argparse does not require it: the command's own error names the way to find it
            command.add_argument("instant", metavar="INSTANT", nargs="?", help="the savepoint's")
        if what == "restore":
            command.add_argument("--force", action="store_true", help=FORCE)


def _add_explain(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    explainer = add_command(
        commands,
        "explain",
        "say of each file whether a clean would delete it, whether a batch would add rows to it, and why",
        ["hudistream explain /data/lake/events", "hudistream explain /data/lake/events --batch 17"],
        _explain,
    )
    add_options(explainer)
    explainer.add_argument(
        "--batch", type=int, metavar="ID", help="instead: would this batch be written, skipped or refused?"
    )
    explainer.add_argument("--query", metavar="ID", help="of its streaming query; without it, the one that wrote last")
    add_format(explainer)


def _add_check(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    checker = add_command(
        commands,
        "check",
        "examine the whole table, report what does not fit together, and repair it",
        ["hudistream check /data/lake/events", "hudistream check /data/lake/events --repair --sample all"],
        _check,
    )
    checker.add_argument("--repair", action="store_true", help="repair what is safe to repair; holds the table")
    checker.add_argument(
        "--sample",
        type=_sample,
        default=DEFAULT_SAMPLE,
        metavar="N|all",
        help="how many files are read whole (default %(default)s)",
    )
    add_format(checker)


def _sample(text: str) -> int | None:
    return None if text == "all" else max(0, int(text))


def _clean(given: argparse.Namespace) -> int:
    if given.all and not given.dry_run:
        raise UsageError("--all says more of a --dry-run: give both, or neither")
    table = open_table(given)
    options = load_table_options(given, table)
    settings = options.clean
    if given.dry_run:
        partitions = list(judge_files(table, settings))
        if given.format == "json":
            say_json({"table": table.storage.base_uri, **fates_json(partitions, every=given.all)})
        else:
            say(fates_lines(partitions, every=given.all))
        return 0
    if options.concurrency.is_shared:
        with_reserve(table.storage, lambda: roll_back_dead_writes(table, options.heartbeat))
    if given.schedule_only:
        requested = [one.time for one in schedule_clean(table, settings).timeline.pending_of(Action.CLEAN)]
        if given.format == "json":
            say_json({"table": table.storage.base_uri, "requested": requested})
        else:
            say([f"requested clean {time}" for time in requested] or ["nothing to clean"])
        return 0
    # whoever types the command wants it now, as --dry-run says it
    done = clean(table, replace(settings, trigger_commits=0), due=not given.execute)
    if given.format == "json":
        cleans = [{"instant": one.start_time, "deleted": one.deleted, "failed": one.failed} for one in done]
        say_json({"table": table.storage.base_uri, "cleans": cleans})
        return 0
    lines = [
        f"clean {one.start_time}: {plural(_count(one.deleted.values()), 'file')} deleted, "
        f"{_count(one.failed.values())} could not be"
        for one in done
    ]
    say(lines or ["nothing to clean"])
    return 0


def _compact(given: argparse.Namespace) -> int:
    table = open_table(given)
    options = load_table_options(given, table)
    if given.schedule_only:
        requested = request_compaction(table, options.compaction)
        say([f"requested compaction {instant.time}" for instant in requested] or ["nothing to compact"])
        return 0
    done = compact(table, options.compaction, options.file_settings, schedules=not given.execute)
    say([f"compaction {instant.time} completed" for instant in done] or ["nothing to compact"])
    return 0


_NOTHING = "nothing to cluster: no partition path has small file groups to put together, or rows to sort"


def _cluster(given: argparse.Namespace) -> int:
    table, options = open_table(given), load_options(given)
    base_file, life, lock = options.file_settings, options.heartbeat, options.lock
    shared = options.concurrency.is_shared
    if given.execute:
        layout = None if given.layout is None else LAYOUT.read("--layout", given.layout)
        found = execute_planned(table, base_file, layout, life, shared=shared, lock=lock)
    else:
        chosen = {"sort_columns": given.sort, "layout": given.layout, "partitions": given.partition}
        settings = replace(options.clustering, **{name: value for name, value in chosen.items() if value is not None})
        if given.schedule_only:
            requested = schedule(table, settings, life, shared=shared, lock=lock)
            say([_NOTHING if requested is None else f"requested clustering {requested.time}"])
            return 0
        done = cluster(table, settings, base_file, life, shared=shared, lock=lock)
        found = [] if done is None else [done]
    say([_clustered(one) for one in found] or [_NOTHING])
    return 0


def _clustered(done: ClusteringOutcome) -> str:
    before, rows = plural(done.files_before, "file group"), plural(done.rows, "row")
    after = f"{before} became {done.files_after}, {rows}, {size_text(done.bytes_written)}"
    return f"clustering {done.instant_time}: {after}"


def _count(groups: Iterable[Sequence[str]]) -> int:
    return sum(map(len, groups))


def _archive(given: argparse.Namespace) -> int:
    table = open_table(given)
    options = load_table_options(given, table)
    outcome = archive(table, options.archive, options.clean, options.compaction)
    say([f"archived {plural(len(outcome.instants), 'instant')}" + (f" to {outcome.path}" if outcome.path else "")])
    return 0


def _roll_back(given: argparse.Namespace) -> int:
    roll_back(open_table(given), given.instant, force=given.force)
    say([f"rolled back {given.instant}"])
    return 0


def _list_savepoints(given: argparse.Namespace) -> int:
    found = load_savepoints(open_table(given))
    say([f"{time}  {_savepoint_text(metadata)}" for time, metadata in found] or ["no savepoints"])
    return 0


def _savepoint_text(metadata: SavepointMetadata | None) -> str:
    """Age, author and comment of a savepoint."""
    if metadata is None:
        return "its file is damaged: `hudistream check` says more"
    age = age_text((clock.now_ms() - metadata.made_ms) / 1000)
    by = f" by {metadata.user}" if metadata.user else ""
    return f"made {age} ago{by}: {metadata.comment or 'no comment'}"


def _create_savepoint(given: argparse.Namespace) -> int:
    say([f"savepoint {create_savepoint(open_table(given), given.instant, comment=given.comment)}"])
    return 0


def _delete_savepoint(given: argparse.Namespace) -> int:
    time = _named_savepoint(given)
    delete_savepoint(open_table(given), time)
    say([f"deleted savepoint {time}"])
    return 0


def _restore_savepoint(given: argparse.Namespace) -> int:
    time = _named_savepoint(given)
    plan = restore_to_savepoint(open_table(given), time, force=given.force)
    say([f"restored {time}: {plural(len(plan.instants), 'commit')} undone"])
    return 0


def _named_savepoint(given: argparse.Namespace) -> str:
    if given.instant is None:
        raise UsageError(
            f"savepoint {given.what}: the INSTANT of the savepoint is missing; "
            f"`hudistream savepoint list {given.path}` shows which there are"
        )
    time: str = given.instant
    return time


def _explain(given: argparse.Namespace) -> int:
    table = open_table(given)
    options = load_table_options(given, table)
    if given.batch is not None:
        explained = explain_batch(table, options.sink.id, given.batch, given.query)
        if given.format == "json":
            say_json(
                {
                    "table": table.storage.base_uri,
                    "verdict": explained.verdict,
                    "reason": explained.reason,
                    "before": explained.before,
                }
            )
        else:
            say([f"{explained.verdict}: {explained.reason}", *(f"before it: {text}" for text in explained.before)])
        return 0
    files = list(explain_files(table, options))
    if given.format == "json":
        say_json({"table": table.storage.base_uri, **explanation_json(files)})
    else:
        say(explanation_lines(files))
    return 0


def _check(given: argparse.Namespace) -> int:
    if given.repair:
        report = check(given.path, repair=True, sample=given.sample, storage_options=load_storage_options(given))
    else:
        report = check(open_table(given), sample=given.sample)
    if given.format == "json":
        say_json(report.to_json())
    else:
        say(_told(report))
    return 0 if report.is_sound else 1


def _told(report: CheckReport) -> list[str]:
    return [*(line for finding in report.findings for line in _told_of(finding)), report.verdict]


def _told_of(finding: Finding) -> list[str]:
    head = f"{finding.severity.value:8}{finding.kind.value}  {finding.where or '(the table)'}"
    lines = [head, f"        {finding.text}"]
    if finding.repair is Repair.DONE:
        return [*lines, "        repaired"]
    if finding.why:
        lines.append(f"        not repaired by --repair: {finding.why}")
    return [*lines, f"        what to do: {finding.advice}"] if finding.advice else lines

"""What one look says of files that are gone, and of rows that went with them (pure).

`table.view.known_files` has the rule for the files of the newest snapshot. What was lost before is proven by the write
stats of the commits that came after (`chains`), and by the plans of compactions and clusterings.
"""

from collections.abc import Iterator
from dataclasses import replace

from table.services.check.finding import Finding, Kind, Repair, Severity
from table.services.check.look import Look
from table.view.known_files import LostFile, find_lost

_NOWHERE = "its rows are in no other file"
_WAYS = "restore a savepoint, bring the file back from a backup, or write its rows again"
_PROOF = "no record tells whether they were written again since"


def find_missing(look: Look) -> list[LostFile]:
    """The files that commits name, that readers of the newest snapshot need, and that are gone or differ."""
    committed = replace(look.committed, named=look.files.named)
    found: list[LostFile] = []
    for path in look.files.named:
        folder = look.folders.get(path)
        bases, logs = (folder.files, folder.log_files) if folder is not None else ((), ())
        found += find_lost(path, bases, logs, committed)
    return found


def judge_losses(look: Look, missing: list[LostFile]) -> Iterator[Finding]:
    """Files that are gone or differ, files of savepoints, losses of the past, and those that were accepted.

    Args:
        look: the table.
        missing: as `find_missing` returns it.
    """
    for lost in missing:
        kind = Kind.MISSING_FILE if lost.size_bytes is None else Kind.WRONG_SIZE
        text = f"{lost}: its rows are lost"
        advice = f"{_WAYS}; or `hudistream accept-loss PATH`"
        yield Finding(kind, Severity.ERROR, lost.named.path, text, Repair.REFUSED, _NOWHERE, advice)
    there = {path for folder in look.folders.values() for path in folder.paths}
    for time, paths in look.held.items():
        for path in sorted(paths - there - look.files.losses.keys()):
            yield Finding(
                Kind.MISSING_FROM_SAVEPOINT,
                Severity.ERROR,
                path,
                f"the savepoint {time} holds it, and it is not there",
                Repair.REFUSED,
                _NOWHERE,
                f"bring it back from a backup, or `hudistream savepoint delete PATH {time}`",
            )
    yield from _judge_past(look)
    for path, loss in look.files.losses.items():
        text = f"{loss.reason}; its loss was accepted at {loss.accepted_at}"
        yield Finding(Kind.ACCEPTED_LOSS, Severity.NOTE, path, text, Repair.REFUSED, "a person accepted it", "nothing")


def _judge_past(look: Look) -> Iterator[Finding]:
    """Versions that no later write continued, and log files that a compaction or clustering did not read."""
    for broken in look.files.broken:
        lost, by = broken.lost, broken.by
        if lost.path in look.files.losses or any(lost.time < time < by.time for time in look.files.restores):
            continue
        yield Finding(
            Kind.NOT_CONTINUED,
            Severity.ERROR,
            lost.path,
            f"commit {by.time} continued the version of {by.continued}, and not that of commit {lost.time}, which was "
            f"newer: the {lost.rows:,} rows that {lost.time} inserted or updated there are gone",
            Repair.REFUSED,
            _PROOF,
            "write them again, or restore a savepoint that is older",
        )
    for time, inputs in look.files.rewritten.items():
        for one in inputs:
            for file in look.files.logs_of(one.partition_path, one.file_id):
                completed = look.committed.completed_at(file.time)
                since = completed if look.committed.logs_name_writers else file.slice_time
                is_input = completed is not None and completed < time and (since or "") >= one.base_instant_time
                if is_input and file.name not in one.names and file.path not in look.files.losses:
                    yield Finding(
                        Kind.NOT_CONTINUED,
                        Severity.ERROR,
                        file.path,
                        f"the {one.action.value} {time} did not read this log file, which commit {file.time} had "
                        f"written into its slice: its {file.rows:,} changes are gone",
                        Repair.REFUSED,
                        _PROOF,
                        "write them again, or restore a savepoint that is older",
                    )

"""What one look says of the data files and their folders (pure).

On version 6 a base file is visible when its instant is completed, or older than the first completed write of the
active timeline: the line. Only a commit's write stats say which files it wrote.
"""

from collections.abc import Container, Iterator

from table.files.names import parse_base_file
from table.services.check.finding import Finding, Kind, Repair, Severity
from table.services.check.judge_logs import judge_missing_logs, judge_stray_logs
from table.services.check.look import Folder, Group, Look, tells_all
from table.storage.interface import join
from table.timeline.metadata.commit import WriteStat
from table.view.file_group import BaseFile

_KEPT = "a savepoint holds it"
_ADVICE_STRAY = "stop all writers, then `hudistream check --repair`"


def judge_files(look: Look) -> Iterator[Finding]:
    """Files that belong to nothing, files that are missing, replaced files, folders."""
    strays, missing = [*judge_strays(look), *judge_stray_logs(look)], list(judge_missing(look))
    yield from strays
    yield from missing
    yield from judge_order(look)
    yield from judge_replaced(look)
    yield from judge_folders(
        look,
        frozenset(finding.where for finding in strays if finding.kind is not Kind.UNPROVEN_FILES),
        frozenset(finding.where.rpartition("/")[0] for finding in missing),
    )


def judge_strays(look: Look) -> Iterator[Finding]:
    """Files that no commit names."""
    held = frozenset[str]().union(*look.held.values())
    inputs = frozenset(stat.prev_commit for commit in look.commits.values() for stat in commit.stats)
    named = {time: frozenset(stat.path for stat in commit.stats) for time, commit in look.commits.items()}
    unproven = []
    for folder in look.folders.values():
        for file in folder.files:
            if file.path in named.get(file.instant_time, ()):
                continue
            found = _judge_unnamed(look, folder, file, held, inputs)
            if isinstance(found, Finding):
                yield found
            elif not found:
                unproven.append(file)
    if unproven:
        yield Finding(
            Kind.UNPROVEN_FILES,
            Severity.NOTE,
            unproven[0].path,
            f"{len(unproven)} files are visible, and neither timeline nor archive tells whether a commit wrote them",
            Repair.REFUSED,
            "nothing is proven about them",
            "nothing, unless rows are there twice",
        )


def _judge_unnamed(
    look: Look, folder: Folder, file: BaseFile, held: frozenset[str], inputs: frozenset[str]
) -> Finding | bool:
    """The finding for a file that no active commit names; True where it is fine, False where no record tells."""
    time = file.instant_time
    if time in look.committed.times:
        commit = look.commits.get(time)
        if commit is None:
            return True  # unreadable, which is another finding, or archived since
        return _beside_commit(look, folder, file, held) if tells_all(commit) else False
    if time in look.pending:
        return True
    if look.committed.includes(time):
        return _below_line(look, file, held)
    return time in look.archive.times or _beyond_line(look, file, held, is_input=time in inputs)


def _beside_commit(look: Look, folder: Folder, file: BaseFile, held: frozenset[str]) -> Finding:
    stats = look.commits[file.instant_time].stats
    own = {stat.path for stat in stats if (stat.partition_path, stat.file_id) == (folder.path, file.file_id)}
    there = {other.path for other in folder.files}
    why = _KEPT if file.path in held else ""
    if own - there:
        why = f"{min(own)}, which the commit names, is not there: this file may hold its rows"
    return Finding(
        Kind.STRAY_BESIDE_COMMIT,
        Severity.ERROR,
        file.path,
        f"the commit {file.instant_time} does not name it, and readers see its rows",
        Repair.REFUSED if why else Repair.POSSIBLE,
        why,
        "compare the two files" if own - there else _ADVICE_STRAY,
    )


def _below_line(look: Look, file: BaseFile, held: frozenset[str]) -> Finding | bool:
    """The finding for a file older than the line; True where its commit names it, False where no record tells."""
    archive, time = look.archive, file.instant_time
    if file.path in archive.named:
        return True
    if time in archive.silent:
        return False
    if time in archive.times:
        said = f"the archived commit {time} does not name it"
    elif time in archive.undone or time in look.undone:
        said = f"instant {time} was rolled back"
    else:
        return False
    why = _KEPT if file.path in held else ""
    repair = Repair.REFUSED if why else Repair.POSSIBLE
    text = f"{said}, and readers see its rows since archival moved past it"
    return Finding(Kind.VISIBLE_STRAY, Severity.ERROR, file.path, text, repair, why, _ADVICE_STRAY)


def _beyond_line(look: Look, file: BaseFile, held: frozenset[str], *, is_input: bool) -> Finding:
    time = file.instant_time
    is_next = look.committed.first_time is not None and time < look.last_write
    why, advice = (_KEPT if file.path in held else ""), _ADVICE_STRAY
    said = f"instant {time} " + ("was rolled back" if time in look.undone else "is not on the timeline")
    if is_input and not why:
        why = "a later commit was made from a file of this instant: its commit file was lost"
        advice = "put the commit file back, or restore a savepoint"
    return Finding(
        Kind.WOULD_TURN_VISIBLE if is_next else Kind.DANGLING_FILE,
        Severity.ERROR if is_next or is_input else Severity.WARNING,
        file.path,
        f"{said}: the file is not visible, and turns visible when archival passes its instant",
        Repair.REFUSED if why else Repair.POSSIBLE,
        why,
        advice,
    )


def judge_order(look: Look) -> Iterator[Finding]:
    """Commits that continued a file newer than they are: readers show the newer file, without their rows.

    Writers of Hudi 1.0.2 do not choose an instant time and request it within one hold of the lock
    (BaseHoodieWriteClient.startCommit). A commit of another writer fits in between.
    """
    for time, commit in sorted(look.commits.items()):
        for stat in commit.stats:
            if stat.prev_commit.isdigit() and stat.prev_commit > time:
                yield Finding(
                    Kind.CONTINUED_NEWER_FILE,
                    Severity.ERROR,
                    stat.path,
                    f"commit {time} continued the version of {stat.prev_commit}, which is newer: readers show that "
                    f"one, or those that follow it, without the {stat.num_inserts + stat.num_update_writes} rows that "
                    "the commit wrote there",
                    Repair.REFUSED,
                    "no record tells whether they were written again since",
                    "write them again while the file exists: its rows with that commit time are those",
                )


def judge_missing(look: Look) -> Iterator[Finding]:
    """Newest versions that commits name and that do not exist; files of savepoints that do not exist."""
    there = {path for folder in look.folders.values() for path in folder.paths}
    newest: dict[Group, tuple[str, str]] = dict(look.archive.newest)
    for time, commit in sorted(look.commits.items()):
        for stat in commit.stats:
            is_base = parse_base_file(stat.path.rpartition("/")[2]) is not None
            if is_base and not (commit.compacted and _is_unfolded(stat, there)):
                newest[stat.partition_path, stat.file_id] = (time, stat.path)
    seen: dict[Group, str] = {}
    for folder in look.folders.values():
        for file in look.visible_files(folder):
            group = folder.path, file.file_id
            seen[group] = max(seen.get(group, ""), file.instant_time)
    yield from judge_missing_logs(
        look, {group: max(seen.get(group, ""), newest.get(group, ("", ""))[0]) for group in {*seen, *newest}}
    )
    for group, (time, path) in newest.items():
        is_replaced = look.committed.is_replaced(*group) or look.archive.replaced.get(group, "") > time
        if path in there or is_replaced or seen.get(group, "") > time:
            continue
        yield Finding(
            Kind.MISSING_FILE,
            Severity.ERROR,
            path,
            f"the commit {time} wrote it as the newest version of its file group, and it is not there: its rows are "
            "lost",
            Repair.REFUSED,
            "its rows are in no other file",
            "restore a savepoint, bring the file back from a backup, or write its rows again",
        )
    for time, paths in look.held.items():
        for path in sorted(paths - there):
            yield Finding(
                Kind.MISSING_FROM_SAVEPOINT,
                Severity.ERROR,
                path,
                f"the savepoint {time} holds it, and it is not there",
                Repair.REFUSED,
                "its rows are in no other file",
                f"bring it back from a backup, or `hudistream savepoint delete PATH {time}`",
            )


def _is_unfolded(stat: WriteStat, there: Container[str]) -> bool:
    """Whether a compaction's file was cleaned, and readers see the slice that it folded: a savepoint was restored."""
    before = join(stat.partition_path, stat.prev_base_file or "")
    return stat.path not in there and stat.prev_base_file is not None and before in there


def judge_replaced(look: Look) -> Iterator[Finding]:
    """Files of file groups that a replace commit replaced."""
    still: dict[str, int] = {}
    replaced_by = {
        (path, file_id): time
        for time, commit in sorted(look.commits.items())
        for path, file_ids in commit.replaced.items()
        for file_id in file_ids
    }
    for folder in look.folders.values():
        for log in folder.log_files:
            by = replaced_by.get((folder.path, log.file_id))
            if by is not None:
                still[by] = still.get(by, 0) + 1
        for file in folder.files:
            group = folder.path, file.file_id
            by = replaced_by.get(group)
            if by is not None:
                still[by] = still.get(by, 0) + 1
                continue
            archived = look.archive.replaced.get(group, "")
            if archived > file.instant_time and look.committed.includes(file.instant_time):
                yield Finding(
                    Kind.REPLACED_AND_VISIBLE,
                    Severity.ERROR,
                    file.path,
                    f"{archived} replaced its file group and was archived: readers see these rows again",
                    Repair.REFUSED,
                    "a commit names the file",
                    "make sure that the rows are not wanted, then delete the file by its name",
                )
    for time, count in still.items():
        text = f"{count} files that it replaced still exist; readers do not see them"
        advice = "nothing: cleaning deletes them, archival waits for it"
        yield Finding(
            Kind.REPLACED_STILL_THERE, Severity.NOTE, time, text, Repair.REFUSED, "older readers may need them", advice
        )


def judge_folders(look: Look, strays: frozenset[str], lossy: frozenset[str]) -> Iterator[Finding]:
    """Partition metadata files that are missing, or stand alone.

    Args:
        look: the table.
        strays: paths of files that belong to nothing: no partition is made visible for them.
        lossy: partition paths that lost a file, which may be brought back: they are not empty.
    """
    for folder in look.folders.values():
        if not folder.has_metafile and any(file.path not in strays for file in look.current_files(folder)):
            yield Finding(
                Kind.PARTITION_WITHOUT_METADATA,
                Severity.ERROR,
                folder.path,
                "it holds files and no partition metadata file: readers that look for one do not see its rows",
                Repair.POSSIBLE,
                advice="`hudistream check --repair` makes the file again",
            )
        elif folder.path and folder.is_bare and folder.path not in lossy:
            yield Finding(
                Kind.EMPTY_PARTITION,
                Severity.NOTE,
                folder.path,
                "it holds a partition metadata file and no rows",
                Repair.POSSIBLE,
                advice="nothing: it does no harm",
            )

"""What one look says of the data files and their folders (pure).

On version 6 a base file is visible when its instant is completed, or older than the first completed write of the
active timeline: the line. Only a commit's write stats say which files it wrote.
"""

from collections.abc import Iterator

from table.references.judge import Claim, judge
from table.services.check.finding import Finding, Kind, Repair, Severity
from table.services.check.judge_logs import judge_stray_logs
from table.services.check.judge_losses import find_missing, judge_losses
from table.services.check.look import Look
from table.services.check.strays import ADVICE, KEPT, describe_stray
from table.view.file_group import BaseFile


def judge_files(look: Look) -> Iterator[Finding]:
    """Files that belong to nothing, files that are missing, replaced files, folders."""
    strays, missing = [*judge_strays(look), *judge_stray_logs(look)], find_missing(look)
    yield from strays
    yield from judge_losses(look, missing)
    yield from judge_order(look)
    yield from judge_replaced(look)
    yield from judge_folders(
        look,
        frozenset(finding.where for finding in strays if finding.kind is not Kind.UNPROVEN_FILES),
        frozenset(lost.named.partition_path for lost in missing),
    )


def judge_strays(look: Look) -> Iterator[Finding]:
    """Base files that no commit names."""
    inputs = frozenset(stat.prev_commit for commit in look.commits.values() for stat in commit.stats)
    unproven = []
    for folder in look.folders.values():
        for file in folder.files:
            claim = judge(file.path, file.instant_time, look.records)
            if claim is Claim.UNPROVEN:
                unproven.append(file)
            elif claim is not Claim.WANTED:
                yield _find_stray(look, file, claim, is_input=file.instant_time in inputs)
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


def _find_stray(look: Look, file: BaseFile, claim: Claim, *, is_input: bool) -> Finding:
    """The finding for a base file.

    Args:
        look: the table.
        file: the base file.
        claim: what the records say of it.
        is_input: whether a commit continues a file of the same instant.
    """
    fate = "the file is not visible, and turns visible when archival passes its instant"
    kind, severity, text = describe_stray(look, claim, file.instant_time, fate)
    why, advice = (KEPT if file.path in look.held_paths else ""), ADVICE
    if claim is Claim.BESIDE_COMMIT:
        lost = look.lost_files(file, file.instant_time)
        if lost:
            why = f"{min(lost)}, which the commit names, is not there: this file may hold its rows"
            advice = "compare the two files"
    elif claim is Claim.BEYOND_LINE and is_input:
        severity = Severity.ERROR
        if not why:
            why = "a later commit was made from a file of this instant: its commit file was lost"
            advice = "put the commit file back, or restore a savepoint"
    repair = Repair.REFUSED if why else Repair.POSSIBLE
    return Finding(kind, severity, file.path, text, repair, why, advice)


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

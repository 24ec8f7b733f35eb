"""What operators do, and what it means for the truth."""

from table.errors import CommitConflictError, HudiError, InvalidConfigError
from table.options.groups import ArchiveSettings, CleanSettings
from table.services.archival.archival import archive
from table.services.clean.clean import clean
from table.services.rollback.undo_commit import roll_back
from table.services.savepoint.restore import restore_to_savepoint
from table.services.savepoint.savepoint import create_savepoint, delete_savepoint

from .reader import visible_files


def do_clean(operator, table):
    """`hudistream clean`."""
    clean(table, CleanSettings(commits_retained=2, grace_ms=0))


def do_archive(operator, table):
    """`hudistream archive`."""
    archive(table, ArchiveSettings(min_commits=4, max_commits=6), CleanSettings(grace_ms=0))


def do_savepoint(operator, table):
    """`hudistream savepoint create`."""
    commits = [instant.time for instant in table.load_timeline().completed_writes][-3:]
    if commits:
        time = create_savepoint(table, operator.world.random.choice(commits))
        operator.truth.hold(time, visible_files(operator.disk.files, time))


def do_delete_savepoint(operator, table):
    """`hudistream savepoint delete`."""
    held = [i for i in table.load_timeline() if i.action.value == "savepoint"]
    if held:
        operator.truth.savepoints.pop(held[0].time, None)
        delete_savepoint(table, held[0].time)


def do_roll_back(operator, table):
    """`hudistream rollback --force` of the newest commit; the streams' checkpoints are set back accordingly."""
    writes = table.load_timeline().completed_writes
    if writes:
        _undo(operator, lambda: roll_back(table, writes[-1].time, force=True))


def do_restore(operator, table):
    """`hudistream savepoint restore --force`."""
    if operator.truth.savepoints:
        time = max(operator.truth.savepoints)
        _undo(operator, lambda: restore_to_savepoint(table, time, force=True))


def finish_restore(operator, table):
    """The same command again, after its process died."""
    _undo(operator, lambda: restore_to_savepoint(table, "0", force=True))


def _undo(operator, act):
    """Commits go one by one, newest first, so that readers see states in between; then everybody starts from there."""
    truth = operator.truth
    truth.changing += 1
    undecided = True  # until it is known to be done, or refused before anything was
    try:
        act()
        truth.take_over_what_is_there()
        undecided = False
    except (CommitConflictError, InvalidConfigError) as error:
        operator.world.tell(f"undoing refused: {type(error).__name__} {error}"[:200])
        undecided = "under way" in str(error)
    except HudiError as error:
        operator.world.tell(f"undoing fails: {type(error).__name__} {error}"[:200])
    finally:
        truth.changing -= 1
        truth.undecided |= undecided
        truth.note_undoing()


JOBS = [do_clean, do_archive, do_savepoint, do_delete_savepoint]
UNDOING = [do_roll_back, do_restore]


def random_jobs(world):
    """A few of them; in some worlds also those that undo."""
    jobs = JOBS + UNDOING if world.random.random() < 0.3 else JOBS
    return [world.random.choice(jobs) for _ in range(world.random.randrange(1, 16))]

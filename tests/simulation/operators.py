"""What operators do."""

from table.services.archival import archive
from table.services.clean import clean
from table.services.savepoint import create_savepoint, delete_savepoint
from table.settings import ArchiveSettings, CleanSettings


def do_clean(operator, table):
    """`hudistream clean`."""
    clean(table, CleanSettings(commits_retained=2))


def do_archive(operator, table):
    """`hudistream archive`."""
    archive(table, ArchiveSettings(min_commits=4, max_commits=6), CleanSettings())


def do_savepoint(operator, table):
    """`hudistream savepoint create`."""
    create_savepoint(table)


def do_delete_savepoint(operator, table):
    """`hudistream savepoint delete`."""
    held = [i for i in table.load_timeline() if i.action.value == "savepoint"]
    if held:
        delete_savepoint(table, held[0].time)


JOBS = [do_clean, do_archive, do_savepoint, do_delete_savepoint]


def random_jobs(world):
    """A few of them."""
    return [world.random.choice(JOBS) for _ in range(world.random.randrange(1, 8))]

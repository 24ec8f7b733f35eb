"""An operator: what people and their schedules do beside streams."""

import random
import time

from chaos.draw import options
from chaos.journal import Journal
from chaos.process import begin, is_over, open_table, tell_error
from hudistream import ArchiveSettings, CleanSettings, CompactionSettings, check
from table.options.write_options import parse_options
from table.services.clustering.command import execute_planned
from table.services.compaction.compaction import request_compaction


def settings(drawn):
    """(cleaning, archival, compaction) as the streams have them."""
    return (
        CleanSettings(commits_retained=drawn.retained, grace_ms=0),
        ArchiveSettings(min_commits=drawn.keep_least, max_commits=drawn.keep_most),
        CompactionSettings(delta_commits=drawn.compaction_after),
    )


def clean(drawn):
    open_table(drawn).clean(settings(drawn)[0], due=False)


def archive(drawn):
    cleaning, archival, compaction = settings(drawn)
    open_table(drawn).archive(archival, cleaning, compaction)


def compact(drawn):
    if drawn.mor:
        open_table(drawn).compact(settings(drawn)[2])


def plan_compaction(drawn):
    if drawn.mor:
        request_compaction(open_table(drawn), settings(drawn)[2])


def cluster(drawn):
    if drawn.clusters != "none":
        open_table(drawn).cluster(shared=drawn.several, lock=parse_options(options(drawn, "A")).options.lock)


def execute_clusterings(drawn):
    if drawn.clusters != "none":
        given = parse_options(options(drawn, "A")).options
        execute_planned(open_table(drawn), given.file_settings, shared=drawn.several, lock=given.lock)


def examine(drawn):
    check(open_table(drawn), sample=2)


def drop_savepoints(drawn):
    table = open_table(drawn)
    for row in table.history().to_pylist():
        if row["action"] == "savepoint":
            table.delete_savepoint(row["instant"])


def savepoint(drawn):
    table = open_table(drawn)
    made = table.create_savepoint()
    time.sleep(random.uniform(0, 0.5))
    table.delete_savepoint(made)


WORK = (
    *(archive, archive, archive, clean, clean, compact, plan_compaction, examine, savepoint),
    *(cluster, execute_clusterings),
)


def main():
    drawn, name = begin()
    journal, luck = Journal(drawn.journals, name), random.Random()
    todo = [drop_savepoints]  # of an operator that was killed: they hold cleaning and archival back
    while not is_over(drawn):
        work = todo.pop() if todo else luck.choice(WORK)
        try:
            work(drawn)
            journal.tell("done", work=work.__name__)
        except Exception as error:
            tell_error(journal, work.__name__, error)
            if work in (savepoint, drop_savepoints):
                todo = [] if work is drop_savepoints else [drop_savepoints]
        time.sleep(luck.uniform(0.05, 0.4))


if __name__ == "__main__":
    main()

"""Readers: each snapshot against the model. With `last` as third argument: the whole truth, once."""

import sys
import time

from chaos.draw import WRITERS
from chaos.journal import Journal, Progress
from chaos.model import Model
from chaos.process import begin, is_over, open_table, tell_error
from chaos.upkeep import archive, clean, drop_savepoints
from hudistream import check


def read_rows(drawn):
    """(key, ts, value, partition path) of the newest snapshot."""
    rows = open_table(drawn).scan(columns=["id", "ts", "v", "p"]).to_arrow().to_pylist()
    return [(row["id"], row["ts"], row["v"], row["p"]) for row in rows]


def look(drawn, journal, model, seen):
    """(violation, what is visible) of one snapshot, which the journal gets. `seen`: what an earlier one showed."""
    least = {writer: Progress(drawn.journals, writer).acknowledged for writer in WRITERS}
    began = time.time()
    rows = read_rows(drawn)
    journal.tell("snapshot", began=began, rows=[(row[0], row[2]) for row in rows])
    most = {}
    for writer in WRITERS:
        after = Progress(drawn.journals, writer)
        model.extend(writer, after.ordering)
        most[writer] = after.begun
    return model.judge(rows, {w: max(least[w], seen[w]) for w in WRITERS}, most)


def follow(drawn, name):
    """Reads until the world ends or a snapshot is wrong."""
    journal, model, seen = Journal(drawn.journals, name), Model(drawn), dict.fromkeys(WRITERS, 0)
    while not is_over(drawn):
        began = time.time()
        try:
            violation, visible = look(drawn, journal, model, seen)
        except Exception as error:
            tell_error(journal, "read", error, began=began)
        else:
            if violation and drawn.vandal:
                journal.tell("suspect", text=violation, began=began)
            elif violation:
                journal.tell("violation", text=violation, began=began)
                return
            else:
                seen = visible
                journal.tell("read", **visible)
        time.sleep(0.2)


def judge_last(drawn, name):
    """Rows equal the model, before and after a last clean and archival; the check is sound."""
    journal, model = Journal(drawn.journals, name), Model(drawn)
    for stage, works in (("at the end", ()), ("after the last services", (drop_savepoints, clean, archive))):
        for work in works:
            try:
                work(drawn)
            except Exception as error:
                tell_error(journal, work.__name__, error)
        violation, visible = look(drawn, journal, model, dict.fromkeys(WRITERS, 0))
        if violation:
            journal.tell("violation", text=f"{stage}: {violation}")
            return
        report = check(open_table(drawn), sample=None)
        bad = [f"{f.kind.value} {f.where}: {f.text}" for f in report.findings if f.severity.value == "error"]
        if bad:
            journal.tell("violation", text=f"{stage}, check: {'; '.join(bad)[:1500]}")
            return
        journal.tell("sound", stage=stage, **visible)


def main():
    drawn, name = begin()
    if len(sys.argv) > 3:
        judge_last(drawn, name)
    else:
        follow(drawn, name)


if __name__ == "__main__":
    main()

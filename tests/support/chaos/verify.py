"""A watcher: verifies each commit as it comes, as `hudistream watch --verify` does, until the world ends."""

import time

from chaos.journal import Journal
from chaos.process import begin, is_over, open_table, tell_error
from table.services.check.commits import CommitChecks
from table.storage.opening import open_storage


def told(report):
    """What is wrong with a commit, in one line."""
    return "; ".join(f"{one.kind.value} {one.where}: {one.text}" for one in report.findings)[:1500]


def main():
    drawn, name = begin()
    journal = Journal(drawn.journals, name)
    open_table(drawn)  # an error of the harness shows here
    checks = CommitChecks(open_storage(drawn.path, drawn.storage), None)
    while not is_over(drawn):
        began = time.time()
        try:
            new = checks.look()
        except Exception as error:
            tell_error(journal, "verify", error, began=began)
        else:
            for report in new.reports:
                if report.is_sound:
                    journal.tell("verified", commit=report.time, files=report.files_read)
                else:
                    kind = "suspect" if drawn.vandal else "violation"
                    journal.tell(kind, text=f"commit {report.time}: {told(report)}", began=began)
        time.sleep(0.2)


if __name__ == "__main__":
    main()

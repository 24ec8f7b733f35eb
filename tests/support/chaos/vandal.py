"""Somebody who deletes, cuts, empties and overwrites files of the table, and brings them back after a while.

What was acknowledged must be there once all files are back. A writer that built on what was left in between has lost
rows, and the last look finds it. Some records are not brought back: the table has their content twice.
"""

import random
import time

from chaos.journal import Journal
from chaos.process import begin, is_over, open_table, tell_error
from hudistream import check
from table.services.check.finding import Kind
from table.snapshot import Snapshot
from table.storage.interface import METAFOLDER, join
from table.timeline.end_record import ENDS_FOLDER

PROPERTIES = join(METAFOLDER, "hoodie.properties")
LOST = {Kind.MISSING_FILE, Kind.WRONG_SIZE}


def data_files(table):
    """Files that the newest snapshot reads."""
    groups = (group for _, found in Snapshot.load(table).walk_file_groups() for group in found)
    return [file.path for group in groups for file in group.current_files]


def properties(_table):
    return [PROPERTIES]


def newest_commit(table):
    """The completed file of the newest commit, where its end record has the same content."""
    return commits(table)[-1:]


def commits(table):
    """The completed files of commits whose end records have the same content."""
    ends = {entry.name.partition(".")[0] for entry in table.storage.list_dir(ENDS_FOLDER)}
    return [write.path for write in table.load_timeline().writes_by_time if write.time in ends]


def newest_end(table):
    return [join(ENDS_FOLDER, entry.name) for entry in table.storage.list_dir(ENDS_FOLDER)][-1:]


def damage(storage, path, data, luck):
    """Does something to a file. Returns the word for it."""
    what = luck.choice(["delete", "delete", "cut", "cut", "empty", "garbage"])
    if what == "delete":
        storage.delete(path) if not path.startswith(METAFOLDER) else storage.delete_metafile(path)
    elif what == "garbage":
        storage.put(path, luck.randbytes(len(data)))
    else:
        storage.put(path, b"" if what == "empty" else data[: luck.randrange(len(data))])
    return what


def is_needed(drawn, path, what):
    """Whether a file is to be brought back: it was not superseded, replaced or cleaned meanwhile."""
    table = open_table(drawn)
    if what != "delete":
        return table.storage.exists(path)
    return any(found.where == path and found.kind in LOST for found in check(table, sample=0).findings)


def bring_back(drawn, journal, path, data, what):
    """Puts a file back as it was, whatever it takes."""
    while True:
        try:
            if path.startswith(METAFOLDER) or is_needed(drawn, path, what):
                storage_of(drawn).put(path, data)
            return journal.tell("restored", path=path)
        except Exception as error:
            tell_error(journal, "restore", error)
            time.sleep(0.1)


def storage_of(drawn):
    from table.storage.opening import open_storage

    return open_storage(drawn.path, drawn.storage)


def main():
    drawn, name = begin()
    journal, luck = Journal(drawn.journals, name), random.Random(f"vandal {drawn.seed}")
    while not is_over(drawn):
        time.sleep(luck.uniform(0.5, 1.5))
        targets = luck.choice([data_files, data_files, data_files, properties, newest_commit, commits, newest_end])
        try:
            table = open_table(drawn)
            chosen = targets(table)
            if not chosen:
                continue
            path = luck.choice(sorted(chosen))
            data = table.storage.read(path)
        except Exception as error:  # it was cleaned or archived meanwhile
            journal.tell("missed", text=str(error)[:200])
            continue
        if not data:
            continue
        journal.tell("damages", path=path)
        what = damage(table.storage, path, data, luck)
        journal.tell("damaged", path=path, how=what)
        time.sleep(luck.uniform(0.2, 2.5))
        bring_back(drawn, journal, path, data, what)


if __name__ == "__main__":
    main()

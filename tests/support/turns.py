"""A table that hudistream and Hudi write in turns, and a model of its rows."""

import random

import pyarrow as pa
from engine import OPTIONS

from table import read_table

COLUMNS = ["id", "p", "ts", "v"]
THEIRS = {
    **{key: value for key, value in OPTIONS.items() if "automatic" not in key},
    "hoodie.table.name": "t",
    "hoodie.datasource.write.operation": "upsert",
    "hoodie.datasource.write.payload.class": "org.apache.hudi.common.model.DefaultHoodieRecordPayload",
    "hoodie.metadata.enable": "false",
}
SERVICES = {
    "hoodie.clean.automatic": "true",
    "hoodie.clean.commits.retained": "1",
    "hoodie.archive.automatic": "true",
    "hoodie.keep.min.commits": "3",
    "hoodie.keep.max.commits": "4",
}
OURS = {"hoodie.datasource.write.operation": "upsert"}
LOGS = {"hoodie.datasource.write.table.type": "MERGE_ON_READ"}
# a compaction of ours every third delta commit, and one of theirs
COMPACTS = {"hoodie.compact.inline": "true", "hoodie.compact.inline.max.delta.commits": "3"}


class Model:
    """What an upserted table holds: of each key the record with the greater ordering value, the later one of equals.

    Args:
        seed: of what is drawn.
        revives: whether deleted keys are written again.
    """

    def __init__(self, seed, *, revives=True):
        self.rows, self._random, self._time = {}, random.Random(seed), 0
        self._numbers, self._revives = list(range(40)), revives

    def draw(self, count=12):
        """Records of as many keys, some of them known, some late."""
        self._time += 10
        numbers = self._random.sample(self._numbers, count)
        made = [(f"k{n}", f"p{n % 3}", self._time - self._random.choice((0, 0, 25)), f"v{self._time}") for n in numbers]
        for row in made:
            if row[0] not in self.rows or row[2] >= self.rows[row[0]][2]:
                self.rows[row[0]] = row
        return pa.Table.from_pylist([dict(zip(COLUMNS, row, strict=True)) for row in made])

    def draw_apart(self):
        """Records that never become visible."""
        return pa.Table.from_pylist([dict(zip(COLUMNS, ("lost", "p0", 1, "lost"), strict=True))])

    def delete(self, count=3):
        """Rows of as many keys, which are deleted."""
        gone = self._random.sample(sorted(self.rows), min(count, len(self.rows)))
        rows = [self.rows.pop(key) for key in gone]
        if not self._revives:
            self._numbers = [number for number in self._numbers if f"k{number}" not in gone]
        return pa.Table.from_pylist([dict(zip(COLUMNS, row, strict=True)) for row in rows])

    def replace(self, path, rows):
        """What an overwrite of a partition path leaves: these rows of it."""
        self.rows = {key: row for key, row in self.rows.items() if row[1] != path}
        self.rows.update((row["id"], tuple(row[name] for name in COLUMNS)) for row in rows.to_pylist())

    def draw_of(self, path, count=4):
        """Rows of one partition path, each key once, later than all before."""
        self._time += 10
        numbers = self._random.sample([n for n in self._numbers if f"p{n % 3}" == path], count)
        made = [(f"k{n}", path, self._time, f"w{self._time}") for n in numbers]
        return pa.Table.from_pylist([dict(zip(COLUMNS, row, strict=True)) for row in made])

    def restored(self):
        """Keys that were deleted after a savepoint may be written again: no log holds their deletes any more."""
        self._numbers = sorted({*self._numbers, *(int(key[1:]) for key in self.rows)})

    def update(self, count=5):
        """Rows of known keys, later than all before."""
        self._time += 10
        known = self._random.sample(sorted(self.rows), min(count, len(self.rows)))
        for key in known:
            self.rows[key] = (key, self.rows[key][1], self._time, f"m{self._time}")
        return [self.rows[key] for key in known]

    def check(self, path, hudi):
        wanted = sorted(self.rows.values())
        assert sorted(tuple(row[c] for c in COLUMNS) for row in read_table(path, COLUMNS).to_pylist()) == wanted
        assert sorted(tuple(row[c] for c in COLUMNS) for row in hudi.read(path, columns=COLUMNS)) == wanted


def write_theirs(hudi, path, version, rows, **more):
    hudi.write(path, rows, {**THEIRS, "hoodie.write.table.version": str(version), **more})


def compacts(table_type):
    """Options for compactions, where there are any."""
    return COMPACTS if table_type == "MERGE_ON_READ" else {}

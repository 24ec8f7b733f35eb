"""Records of a key ordered by two fields, one after the other (version 9): our writer and Hudi's in turns."""

import random

import pyarrow as pa
import pytest
from engine import Engine
from turns import COMPACTS, OURS, write_theirs

from table import read_table
from table.hudi_table import HudiTable
from table.options.groups import CleanSettings
from table.services.clean.clean import clean

pytestmark = pytest.mark.hudi

COLUMNS = ["id", "p", "ts", "seq", "v"]
DELETED = "_hoodie_is_deleted"
ORDERED = {"hoodie.datasource.write.precombine.field": "ts,seq", "hoodie.write.table.version": "9"}
THEIRS = {"hoodie.datasource.write.precombine.field": "ts,seq", "hoodie.table.ordering.fields": "ts,seq"}


class Model:
    """Of each key the record with the greater (ts, seq), the later one of equals; a greater delete removes the row.

    A deleted key is not written again: of a log that holds a delete and a later record of one key, the versions of Hudi
    do not all read the same.
    """

    def __init__(self, seed):
        self.rows, self._random, self._gone, self._time = {}, random.Random(seed), set(), 0

    def draw(self, count=14):
        """Records of as many keys, and late and timely deletes of known keys."""
        self._time += 1
        alive = [key for key in (f"k{number}" for number in range(40)) if key not in self._gone]
        rows = []
        for key in self._random.sample(alive, count):
            day, seq = 100 + self._time // 3, self._random.randrange(-5, 5)
            row = (key, f"p{int(key[1:]) % 3}", day, seq, f"v{self._time}")
            known = self.rows.get(key)
            deletes = known is not None and self._random.random() < 0.3
            if known is None or (day, seq) >= known[2:4]:
                self.rows[key] = row
                if deletes:
                    del self.rows[key]
                    self._gone.add(key)
            rows.append({**dict(zip(COLUMNS, row, strict=True)), DELETED: deletes})
        return pa.Table.from_pylist(rows)

    def check(self, path, hudi):
        wanted = sorted(self.rows.values())
        assert sorted(tuple(row[name] for name in COLUMNS) for row in read_table(path, COLUMNS).to_pylist()) == wanted
        assert sorted(tuple(row[name] for name in COLUMNS) for row in hudi.read(path, columns=COLUMNS)) == wanted


@pytest.mark.slow
@pytest.mark.parametrize("first", ["ours", "theirs"])
@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_batches_in_turns(table_type, first, partners, tmp_path, utc):
    path, hudi, model = str(tmp_path / "t"), partners[9], Model(len(first))
    options = {"hoodie.datasource.write.table.type": table_type}
    for number in range(9):
        compacts = COMPACTS if table_type == "MERGE_ON_READ" and number > 4 else {}
        if (number % 2 == 0) == (first == "ours"):
            Engine(path, {**OURS, **ORDERED, **options, **compacts}).write(number, model.draw())
        else:
            write_theirs(hudi, path, 9, model.draw(), **THEIRS, **options, **compacts)
        model.check(path, hudi)
    table = HudiTable.open(path)
    assert table.config.ordering_fields == ("ts", "seq")
    clean(table, CleanSettings(commits_retained=1, grace_ms=0))
    model.check(path, hudi)

"""Partial updates in tables of version 9 (``hoodie.table.partial.update.mode``): our writer and Hudi's in turns."""

import random

import pyarrow as pa
import pytest
from engine import OPTIONS, Engine
from tiers import quick
from turns import COMPACTS, OURS, write_theirs

from hudistream import ArrowSink, HudiTable
from table import read_table
from table.config.merge_mode import MergeMode, mode_in_force

pytestmark = pytest.mark.hudi

COLUMNS = ["id", "p", "ts", "v", "w"]
SCHEMA = pa.schema(
    [("id", pa.string()), ("p", pa.string()), ("ts", pa.int64()), ("v", pa.string()), ("w", pa.string())]
)
DELETED = "_hoodie_is_deleted"
BUCKETS = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "1"}
PARTIAL = {"hoodie.datasource.write.payload.class": "org.apache.hudi.common.model.PartialUpdateAvroPayload"}


class Model:
    """Of two records of a key the greater in time stays, the later one of equals, and its nulls come from the other.

    A delete that stays removes the row; its key is not written again. A delete that is late is forgotten.

    Where log files are, a reader merges their records first and the stored row last. Then a null may be filled from a
    late record that is older than the stored row. With late records the model holds for copy-on-write alone; ours and
    Hudi's readers have to agree on both.
    """

    def __init__(self, seed, *, has_late=True):
        self.rows, self._random, self._gone, self._time = {}, random.Random(seed), set(), 100
        self._lateness = (0, 0, 1, 5) if has_late else (0,)

    def draw(self, count=14, deletes=0.2):
        """Records of as many keys, some late, many with nulls; deletes of known keys."""
        self._time += 2
        alive = [key for key in (f"k{number}" for number in range(40)) if key not in self._gone]
        drawn = []
        for key in self._random.sample(alive, count):
            time = self._time - self._random.choice(self._lateness)
            values = [self._random.choice((None, f"{name}{self._time}")) for name in "vw"]
            row, known = (key, f"p{int(key[1:]) % 3}", time, *values), self.rows.get(key)
            is_delete = known is not None and self._random.random() < deletes
            drawn.append({**dict(zip(COLUMNS, row, strict=True)), DELETED: is_delete})
            newer = known is None or time >= known[2]
            if is_delete:
                if newer:
                    del self.rows[key]
                    self._gone.add(key)
                continue
            high, low = (row, known or row) if newer else (known, row)
            self.rows[key] = (*high[:3], *(a if a is not None else b for a, b in zip(high[3:], low[3:], strict=True)))
        return pa.Table.from_pylist(drawn, schema=SCHEMA.append(pa.field(DELETED, pa.bool_())))

    def check(self, path, hudi, *, is_exact=True):
        ours, theirs = (
            sorted((tuple(row[name] for name in COLUMNS) for row in rows), key=repr)
            for rows in (read_table(path, COLUMNS).to_pylist(), hudi.read(path, columns=COLUMNS))
        )
        assert ours == theirs
        if is_exact:
            assert ours == sorted(self.rows.values(), key=repr)


def is_partial(path):
    config = HudiTable.open(path).config
    return mode_in_force(config.version, config.payload_class, config.extra) is MergeMode.PARTIAL_UPDATE


@pytest.mark.slow
@pytest.mark.parametrize("first", ["ours", "theirs"])
@pytest.mark.parametrize(
    ("table_type", "has_late"),
    [
        pytest.param("COPY_ON_WRITE", True, marks=pytest.mark.slow),
        ("MERGE_ON_READ", True),
        pytest.param("MERGE_ON_READ", False, marks=pytest.mark.slow),
    ],
)
def test_batches_in_turns(table_type, has_late, first, partners, tmp_path, utc):
    path, hudi, model = str(tmp_path / "t"), partners[9], Model(len(first), has_late=has_late)
    is_exact = not has_late or table_type == "COPY_ON_WRITE"
    options = {**PARTIAL, "hoodie.datasource.write.table.type": table_type}
    for number in range(9):
        compacts = COMPACTS if table_type == "MERGE_ON_READ" and number > 4 else {}
        if (number % 2 == 0) == (first == "ours"):
            ours = {**OURS, **options, **compacts, "hoodie.write.table.version": "9"}
            Engine(path, ours).write(number, model.draw())
        else:
            write_theirs(hudi, path, 9, model.draw(), **options, **compacts)
        model.check(path, hudi, is_exact=is_exact)
    assert is_partial(path)


@pytest.mark.slow
@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_a_job_of_hudi_by_default_upgrades_the_table_under_a_running_stream(table_type, partners, tmp_path, utc):
    path, hudi, model = str(tmp_path / "t"), partners[9], Model(3, has_late=table_type == "COPY_ON_WRITE")
    options = {**PARTIAL, "hoodie.datasource.write.table.type": table_type}
    stream = Engine(path, {**OURS, **options})
    for number in range(3):  # in version 6 a late delete removes the row
        stream.write(number, model.draw(deletes=0))
    assert HudiTable.open(path).config.version == 6
    write_theirs(hudi, path, 9, model.draw(deletes=0), **options, **{"hoodie.write.auto.upgrade": "true"})
    assert (HudiTable.open(path).config.version, is_partial(path)) == (9, True)
    for number in range(3, 6):
        stream.write(number, model.draw())
        model.check(path, hudi)
    stream.writer.stop()


def records(*rows):
    names = [*COLUMNS, DELETED]
    drawn = [dict(zip(names, row, strict=True)) for row in rows]
    return pa.Table.from_pylist(drawn, schema=SCHEMA.append(pa.field(DELETED, pa.bool_())))


def write_both(partner, version, batches, tmp_path, **options):
    """Rows and their paths of a table that we wrote, by our reader and by Hudi's, and those of one that Hudi wrote."""
    ours, theirs, columns = str(tmp_path / "ours"), str(tmp_path / "theirs"), [*COLUMNS, "_hoodie_partition_path"]
    options = {**PARTIAL, **options}
    with ArrowSink(ours, {**OPTIONS, **OURS, **options, "hoodie.write.table.version": str(version)}) as sink:
        for batch in batches:
            sink.write(batch)
            write_theirs(partner, theirs, version, batch, **options)
    read = [read_table(ours, columns).to_pylist(), *(partner.read(path, columns=columns) for path in (ours, theirs))]
    return [sorted((tuple(row[name] for name in columns) for row in found), key=repr) for found in read]


@pytest.mark.slow
@pytest.mark.parametrize("table_type", quick(1, ["MERGE_ON_READ", "COPY_ON_WRITE"]))
def test_a_late_delete_in_buckets_of_version_6(table_type, partners, tmp_path, utc):
    """It removes the row where it meets it in a base file. Readers of logs pass over it."""
    batches = (
        records(*((key, "p0", 5, "v1", None, False) for key in "abcd")),
        records(("a", "p0", 7, None, "w2", False)),
        records(("a", "p0", 3, None, None, True), ("b", "p0", 4, None, None, True), ("c", "p0", 5, None, None, True)),
    )
    ours, ours_by_hudi, theirs = write_both(
        partners[6], 6, batches, tmp_path, **{**BUCKETS, "hoodie.datasource.write.table.type": table_type}
    )
    late = [("a", "p0", 7, "v1", "w2", "p0"), ("b", "p0", 5, "v1", None, "p0")]
    left = [*(late if table_type == "MERGE_ON_READ" else []), ("d", "p0", 5, "v1", None, "p0")]
    assert ours == ours_by_hudi == theirs == left


@pytest.mark.slow
@pytest.mark.parametrize("version", [6, 9])
def test_the_partition_path_with_a_global_index(version, partners, tmp_path, utc):
    """In version 9 the path of the merged record counts; before, that of the incoming one, late or not."""
    batches = (
        records(*((key, "p0", 5, "v1", None, False) for key in "abc")),
        records(("a", "p1", 7, None, "w", False), ("b", "p1", 3, "late", "w", False), ("c", "p0", 7, None, "w", False)),
        *([records(("a", None, 8, "v2", None, False), ("c", "p2", 6, "late", None, False))] if version == 9 else []),
    )
    ours, ours_by_hudi, theirs = write_both(
        partners[version], version, batches, tmp_path, **{"hoodie.index.type": "GLOBAL_SIMPLE"}
    )
    assert ours == ours_by_hudi == theirs
    path_of_late = "p0" if version == 9 else "p1"
    a = ("a", "p1", *((8, "v2", "w") if version == 9 else (7, "v1", "w")), "p1")
    assert ours == [a, ("b", path_of_late, 5, "v1", "w", path_of_late), ("c", "p0", 7, "v1", "w", "p0")]


@pytest.mark.slow
@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_versions_that_hudistream_gives_a_table(table_type, partners, tmp_path, utc):
    path, model = str(tmp_path / "t"), Model(5, has_late=table_type == "COPY_ON_WRITE")
    options = {**PARTIAL, "hoodie.datasource.write.table.type": table_type}
    for number, version in enumerate((6, 9, 8, 9, 6)):
        if number:
            HudiTable.open(path).convert(version)
            model.check(path, partners[version])
        Engine(path, {**OURS, **options}).write(number, model.draw(deletes=0))
        model.check(path, partners[version])
        write_theirs(partners[version], path, version, model.draw(deletes=0), **options)
        model.check(path, partners[version])
        assert is_partial(path)

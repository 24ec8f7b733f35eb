"""Tables of versions 8 and 9, read here to the rows that Hudi's own snapshot query and time travel give."""

import random
from itertools import combinations

import pytest
from by_hand import TableByHand, at
from oracles.hudi import Hudi, HudiError
from random_tables import by_key, log_options, random_batch

from hudistream import HudiTable
from table.config.merge_mode import MergeMode
from table.scan.plan import plan_scan
from table.schema.avro_schema import COMMIT_TIME, FILE_NAME

pytestmark = pytest.mark.hudi

AS_OF = "as.of.instant"
PARTIAL = "PartialUpdateAvroPayload"
PAYLOADS = ("DefaultHoodieRecordPayload", "OverwriteWithLatestAvroPayload")
NAMES = ["id", "p", "ts", "v", "w"]  # without the column that says that a row is deleted
UNORDERED = {"OverwriteWithLatestAvroPayload"}


def options_of(version, payload, blocks, rng):
    fixed = {"hoodie.write.table.version": version, "hoodie.metadata.enable": "false"}
    return {**log_options(rng, payload, blocks), **fixed}


SERVICES = {
    "compact": {"hoodie.compact.inline": "true", "hoodie.compact.inline.max.delta.commits": "1"},
    "plan a compaction": {"hoodie.compact.schedule.inline": "true", "hoodie.compact.inline.max.delta.commits": "1"},
    "cluster": {"hoodie.clustering.inline": "true", "hoodie.clustering.inline.max.commits": "1"},
}
STEPS = ["upsert", "upsert", "upsert", "delete", "rollback", *SERVICES]


def check_agrees(hudi, path, as_of=None):
    options = {} if as_of is None else {AS_OF: as_of}
    ours = by_key(HudiTable.open(path).scan(as_of=as_of, meta_columns=True).to_arrow().to_pylist())
    theirs = by_key(hudi.read(path, options))
    differing = [row for row in ours if row not in theirs], [row for row in theirs if row not in ours]
    assert (len(ours), differing) == (len(theirs), ([], []))


def check_changes_agree(hudi, path, payload, since, until, last):
    """Hudi's range begins with the time that is given, ours behind it.

    Hudi merges the records of the range alone, and so shows rows that came late, which its own snapshots do not have.
    Ours are the rows of its snapshot that the range wrote.
    """
    table = HudiTable.open(path)
    ours = table.changes(since, until).to_arrow().to_pylist()
    seen = table.load_timeline().visible_times
    snapshot = hudi.read(path, {} if last is None else {AS_OF: last})
    written = [row for row in snapshot if since < seen[row[COMMIT_TIME]] <= until]
    told = hudi.read_incremental(path, str(int(since) + 1), until)
    changed, shown = {row["id"] for row in ours}, {row["id"]: row for row in snapshot}
    assert changed <= {row["id"] for row in told}
    if payload != PARTIAL:  # Hudi shows what the records of the range make, ours the whole row
        assert sorted(map(str, ours)) == sorted(str(row) for row in told if row["id"] in changed)
    late = [row for row in told if row["id"] not in changed]
    assert payload not in UNORDERED or not late
    # behind a row of the snapshot, or behind a deletion
    assert all(row["id"] not in shown or row["ts"] < shown[row["id"]]["ts"] for row in late)
    for row in [*ours, *written]:
        del row[FILE_NAME]  # a compaction after the range may have written it again
    # Hudi may write a key twice while a clustering is pending, so the keys alone do not say the order
    assert sorted(map(str, ours)) == sorted(map(str, written))


def check_history(hudi, path, version, payload, blocks):
    """A random history; the snapshot after each step, and at last as of each write, and some ranges of changes.

    1.0.2 cannot compare the order of a record with that of a delete without one, and fails: it deletes by a column.
    """
    steps = [step for step in STEPS if version == "9" or payload in UNORDERED or step != "delete"]
    rng = random.Random(f"{version} {payload} {blocks}")
    options = options_of(version, payload, blocks, rng)
    hudi.write(path, random_batch(rng, 30, 12), options, "overwrite")
    done, with_logs = [], 0
    for what in ["upsert", *rng.sample(steps, len(steps))]:
        rows = random_batch(rng, 30, 12)
        writes = HudiTable.open(path).load_timeline().completed_writes
        try:
            if what == "rollback":
                if len(writes) > 1 and not HudiTable.open(path).load_timeline().pending:
                    hudi.client(path, "rollback", max(write.time for write in writes), options=options)
            elif what in SERVICES:
                hudi.write(path, rows, {**options, **SERVICES[what]})
            else:
                hudi.write(path, rows, {**options, "hoodie.datasource.write.operation": what})
        except HudiError as error:
            pytest.fail(f"{what} after {done}: {error}")
        done.append(what)
        check_agrees(hudi, path)
        with_logs += any(found.log_files for found in plan_scan(HudiTable.open(path)).slices)
    assert with_logs
    line = HudiTable.open(path).load_timeline()
    for write in line.completed_writes:
        if not line.pending or write.time < line.pending[0].time:  # Hudi answers no later question
            check_agrees(hudi, path, write.time)
    ends = sorted(line.visible_times.values())
    # the last write of a range, as of which Hudi is asked; it answers no question behind what is pending but the newest
    last = {seen: max(time for time, other in line.visible_times.items() if other <= seen) for seen in ends}
    asked = {seen: time for seen, time in last.items() if not line.pending or time < line.pending[0].time}
    ranges = list(combinations(sorted(asked), 2))
    for since, until in rng.sample(ranges, min(5, len(ranges))):
        check_changes_agree(hudi, path, payload, since, until, asked[until])
    check_changes_agree(hudi, path, payload, ends[0], ends[-1], None)


@pytest.mark.slow
@pytest.mark.parametrize(("payload", "blocks"), [
    ("DefaultHoodieRecordPayload", "avro"), ("OverwriteWithLatestAvroPayload", "parquet"), (PARTIAL, "avro"),
])  # fmt: skip
def test_random_histories_of_version_8(hudi, tmp_path, payload, blocks):
    check_history(hudi, tmp_path / "t", "8", payload, blocks)


@pytest.mark.slow
@pytest.mark.parametrize(("payload", "blocks"), [
    ("DefaultHoodieRecordPayload", "parquet"), ("OverwriteWithLatestAvroPayload", "avro"),
])  # fmt: skip
def test_random_histories_of_version_9(later_hudi, tmp_path, payload, blocks):
    check_history(later_hudi, tmp_path / "t", "9", payload, blocks)


@pytest.fixture(scope="module")
def later_hudi():
    later = Hudi("1.2.0")
    yield later
    later.stop()


def overlapping(path, mode):
    """Writes that began before a compaction was requested and ended after it, and one that is pending."""
    payload = {  # Hudi compares them with the mode
        "hoodie.compaction.payload.class": mode.payload_class,
        "hoodie.record.merge.strategy.id": mode.strategy_id,
        "hoodie.record.merge.mode": f"{mode}_ORDERING",
    }
    made = TableByHand(path, payload)
    made.completed(10, 12)
    made.log(10, a="10", b="10", c="10")
    made.completed(20, 42)  # ends after the one that begins later
    made.log(20, ts=9, a="20")
    made.completed(21, 23)
    made.log(21, ts=2, a="21", b="21")
    made.completed(25, 45)
    made.log(25, ts=3, b="25")
    made.completed(30, 50, "commit")
    made.base(30, a="21", b="21", c="10")  # the compaction knows what was completed before it was requested
    made.completed(60, 61)
    made.log(60, ts=1, c="60")
    made.pending(70)
    made.log(70, ts=99, a="70", b="70", c="70")
    return made


@pytest.mark.parametrize("mode", [MergeMode.EVENT_TIME, MergeMode.COMMIT_TIME])
def test_writes_that_overlap_are_seen_as_hudi_sees_them(hudi, tmp_path, mode):
    made = overlapping(tmp_path / "t", mode)

    def seen(as_of=None):
        theirs = hudi.read(made.path, {} if as_of is None else {AS_OF: at(as_of)}, ["id", "v"])
        return {row["id"]: row["v"] for row in theirs}

    assert made.rows() == seen() == {"a": "20", "b": "25", "c": "60"}
    for as_of in (10, 30, 60):
        assert made.rows(as_of) == seen(as_of)


def test_a_write_that_lies_on_a_later_compaction_is_part_of_earlier_snapshots_here_and_not_in_hudi(hudi, tmp_path):
    """Hudi puts its log file into the slice of the compaction, which is later than the time that is asked for."""
    made = overlapping(tmp_path / "t", MergeMode.COMMIT_TIME)
    theirs = {row["id"]: row["v"] for row in hudi.read(made.path, {AS_OF: at(25)}, ["id", "v"])}
    assert theirs == {"a": "21", "b": "21", "c": "10"}
    assert made.rows(25) == {"a": "21", "b": "25", "c": "10"}


def merge_into(rng, number, keys, names):
    """Partial updates of some keys: each row of the source has all columns, and the statement sets some of them."""
    texts = ["cast(null as string)", f"'m{number}'"]
    rows = [f"('k{key:02}', 'p{key % 2}', {rng.randint(1, 9)}L, {rng.choice(texts)}, {number}.5D)" for key in keys]
    sets = ", ".join(f"t.{name} = s.{name}" for name in names)
    source = f"select * from values {', '.join(rows)} as s(id, p, ts, v, w)"
    return f"merge into merged t using ({source}) s on t.id = s.id and t.p = s.p when matched then update set {sets}"


def check_partial_updates(hudi, path, options, steps, needed):
    """Random partial updates between whole ones and deletes; the snapshot after each step.

    1.0.2 takes another column of a partial record for `_hoodie_is_deleted`: the table has none.
    """
    rng = random.Random(f"{steps} {needed}")
    hudi.write(path, random_batch(rng, 30, 30).select(NAMES), options, "overwrite")
    version = "set hoodie.write.table.version=8"
    hudi.sql(version, "drop table if exists merged", f"create table merged using hudi location '{path}'")
    done = []
    for number, what in enumerate(["partial", *rng.choices(steps, k=9)]):
        if what == "upsert":
            hudi.write(path, random_batch(rng, 30, 12).select(NAMES), options)
        elif what == "delete":
            keys = ", ".join(repr(f"k{key:02}") for key in rng.sample(range(30), 6))
            hudi.sql(version, f"delete from merged where id in ({keys})")
        else:
            # unknown keys would count as inserts, and have Hudi rewrite a small base file without the others'
            # columns
            held = sorted(HudiTable.open(path).scan(["id"]).to_arrow()["id"].to_pylist())
            keys = [int(key[1:]) for key in rng.sample(held, min(12, len(held)))]
            optional = {"v", "w", "ts"} - set(needed)
            names = [*needed, *rng.sample(sorted(optional), rng.randint(1, len(optional)))]
            hudi.sql(version, merge_into(rng, number, keys, names))
        done.append(what)
        check_agrees(hudi, path)
    logs = b"".join(file.read_bytes() for file in path.glob("*/.*.log.*"))
    assert b"\x00\x00\x00\x07\x00\x00\x00\x04true" in logs, f"no block has IS_PARTIAL: {done}"
    hudi.sql("drop table merged")


@pytest.mark.slow
def test_partial_updates_of_merge_into_are_merged_as_by_hudi(hudi, tmp_path):
    """1.0.2 needs the ordering field in each, cannot compare it with that of its deletes, and merges by it alone."""
    options = {**options_of("8", PAYLOADS[0], "avro", random.Random(1)), "hoodie.index.type": "BLOOM"}
    check_partial_updates(hudi, tmp_path / "t", options, ["partial", "partial", "upsert"], ["ts"])


@pytest.mark.slow
@pytest.mark.parametrize(("payload", "blocks", "needed"), [(0, "parquet", ["ts"]), (1, "avro", [])])
def test_partial_updates_are_merged_as_by_later_versions(later_hudi, tmp_path, payload, blocks, needed):
    # with what an earlier table left in its JVM, Hudi 1.2.0 reads partial records as rows that fill the heap
    later_hudi.stop()
    options = {**options_of("8", PAYLOADS[payload], blocks, random.Random(1)), "hoodie.index.type": "BLOOM"}
    steps = ["partial", "partial", "partial", "upsert", "delete"]
    check_partial_updates(later_hudi, tmp_path / "t", options, steps, needed)

"""Merge-on-read tables: ours, Hudi 1.0.2's, and one that both write in turns and Hudi compacts, give the same rows."""

import os
import random
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from engine import OPTIONS, Engine

from table import read_table
from table.hudi_table import HudiTable
from table.options.groups import BaseFileSettings, CompactionSettings
from table.scan.plan import plan_scan
from table.services.compaction.compaction import compact, request_compaction
from table.storage.local import LocalStorage
from table.timeline.instant import Action

pytestmark = pytest.mark.hudi

PAYLOADS = ("DefaultHoodieRecordPayload", "OverwriteWithLatestAvroPayload", "PartialUpdateAvroPayload")
FORMS = ("avro", "parquet")
# every pair of index, payload and form is met by one of the seeds
CASES = [("BLOOM", 0, 0), ("SIMPLE", 1, 1), ("BUCKET", 2, 0), ("BUCKET", 0, 1), ("BLOOM", 2, 1), ("SIMPLE", 0, 0),
         ("BUCKET", 1, 0), ("BLOOM", 1, 0), ("SIMPLE", 2, 1)]  # fmt: skip
SCHEMA = pa.schema(
    [("id", pa.string()), ("p", pa.string()), ("ts", pa.int64()), ("v", pa.string()), ("w", pa.float64()),
     ("tags", pa.list_(pa.string())), ("_hoodie_is_deleted", pa.bool_())]
)  # fmt: skip


def batch(rng, number, keys):
    """Random inserts, updates, late records and deletes; the first batch has a row for each bucket."""
    chosen = range(60) if not number else rng.sample(range(keys), rng.randint(1, keys // 3))
    return pa.Table.from_pylist(
        [
            {
                "id": f"k{key:04}",
                "p": f"p{key % 3}",
                "ts": number * 10 + rng.randint(-15, 5),
                "v": rng.choice([None, "a", "b"]),
                "w": rng.choice([None, 0.5]),
                "tags": [rng.choice(["x", "y"])] * rng.randint(0, 2),
                "_hoodie_is_deleted": bool(number) and rng.random() < 0.1,
            }
            for key in chosen
        ],
        SCHEMA,
    )  # fmt: skip


def options_of(case):
    index, payload, form = case
    payload = f"org.apache.hudi.common.model.{PAYLOADS[payload]}"
    return {
        **OPTIONS,
        "hoodie.datasource.write.table.type": "MERGE_ON_READ",
        "hoodie.datasource.write.operation": "upsert",
        "hoodie.datasource.write.payload.class": payload,
        "hoodie.compaction.payload.class": payload,
        "hoodie.index.type": index,
        "hoodie.bucket.index.num.buckets": "2",
        "hoodie.logfile.data.block.format": FORMS[form],
        "hoodie.compact.inline": "false",
        # what partial records become depends on when they are compacted, with Hudi, too
        "hoodie.datasource.compaction.async.enable": "false" if "Partial" in payload else "true",
        "hoodie.parquet.small.file.limit": "0",
    }


def contents(path):
    return sorted(repr(row) for row in read_table(path, SCHEMA.names).to_pylist())


def by_hudi(hudi, path, **options):
    rows = hudi.read(path, options, columns=SCHEMA.names)
    return sorted(repr({name: row[name] for name in SCHEMA.names}) for row in rows)


def base_rows(path):
    """The rows of the base files alone: what a read-optimised query shows."""
    slices = plan_scan(HudiTable.open(path)).slices
    tables = [read_base(path, found.base_file.path) for found in slices if found.base_file is not None]
    return sorted(repr(row) for table in tables for row in table.to_pylist())


def read_base(path, name):
    import pyarrow.parquet as pq

    return pq.read_table(f"{path}/{name}", columns=SCHEMA.names, partitioning=None).select(SCHEMA.names)


def write_ours(path, options, number, rows):
    engine = Engine(path, options, batch_rows=1000)
    try:
        engine.write(number, rows)
    finally:
        engine.writer.stop()


def run(hudi, tmp_path, seed, case, batches, keys):
    rng, options = random.Random(seed), options_of(case)
    is_partial = PAYLOADS[case[1]].startswith("Partial")
    ours, theirs, both = (str(tmp_path / name) for name in ("ours", "theirs", "both"))
    engine = Engine(ours, options, batch_rows=1000)
    for number in range(batches):
        rows = batch(rng, number, keys)
        where = f"seed {seed}, {case}, batch {number}"
        engine.write(number, rows)
        hudi.write(theirs, rows, options)
        if number % 2:
            compacts = {"hoodie.compact.inline": "true", "hoodie.compact.inline.max.delta.commits": "2"}
            hudi.write(both, rows, {**options, **compacts})
        else:
            write_ours(both, options, number, rows)
        wanted = {ours: contents(theirs)}
        wanted[both] = by_hudi(hudi, both) if is_partial else wanted[ours]
        for path in (ours, both):
            found = contents(path)
            assert found == wanted[path], (where, path, sorted(set(found) ^ set(wanted[path]))[:6])
    engine.writer.stop()
    for path in (ours, both):
        assert by_hudi(hudi, path) == wanted[path]
        optimised = {"hoodie.datasource.query.type": "read_optimized"}
        assert by_hudi(hudi, path, **optimised) == base_rows(path)
    assert list(Path(ours).glob("*/.*.log.*"))
    goes_on(hudi, ours, options, wanted[ours], is_partial=is_partial)


def goes_on(hudi, path, options, wanted, *, is_partial):
    """Hudi compacts what we wrote, whole, and we write on."""
    new = {"id": "new", "p": "p0", "ts": 1, "v": "new", "w": None, "tags": [], "_hoodie_is_deleted": False}
    compacts = {"hoodie.compact.inline": "true", "hoodie.compact.inline.max.delta.commits": "1"}
    hudi.write(path, pa.Table.from_pylist([new], SCHEMA), {**options, **compacts})
    assert not any(found.log_files for found in plan_scan(HudiTable.open(path)).slices)
    assert contents(path) == base_rows(path)
    assert is_partial or contents(path) == sorted([*wanted, repr(new)])
    wanted = [text for text in contents(path) if text != repr(new)]
    newer = {**new, "ts": 2, "v": "newer"}
    write_ours(path, options, 99, pa.Table.from_pylist([newer], SCHEMA))
    assert contents(path) == sorted([*wanted, repr(newer)]) == by_hudi(hudi, path)


@pytest.mark.parametrize("case", [
    CASES[0], pytest.param(CASES[1], marks=pytest.mark.slow), CASES[2], pytest.param(CASES[3], marks=pytest.mark.slow),
], ids=str)  # fmt: skip
def test_a_few_delta_commits_agree(hudi, tmp_path, case):
    run(hudi, tmp_path, CASES.index(case), case, batches=5, keys=90)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 118))
def test_random_delta_commits_agree(hudi, tmp_path, seed):
    run(hudi, tmp_path, seed, CASES[seed % len(CASES)], batches=12, keys=600)


def test_a_failed_delta_commit_is_rolled_back_by_hudi_as_by_us(hudi, tmp_path):
    """What we left is undone by Hudi, and what Hudi left by us."""
    options = options_of(CASES[0])
    rng, path = random.Random(7), str(tmp_path / "t")
    write_ours(path, options, 0, batch(rng, 0, 60))
    before = contents(path)
    engine = Engine(path, options)
    inner = engine.distribute

    def dies(plan, table):
        inner(plan, table)
        raise KeyboardInterrupt

    engine.distribute = dies
    engine.writer._undo = lambda job: None
    with pytest.raises(KeyboardInterrupt):
        engine.write(1, batch(rng, 1, 60))
    engine.writer.stop()
    assert HudiTable.open(path).load_timeline().pending
    assert contents(path) == by_hudi(hudi, path) == before
    new = {"id": "k0001", "p": "p1", "ts": 999, "v": "hudi", "w": None, "tags": [], "_hoodie_is_deleted": False}
    rows = pa.Table.from_pylist([new], SCHEMA)
    hudi.write(path, rows, options)
    assert not HudiTable.open(path).load_timeline().pending
    found = contents(path)
    assert found == by_hudi(hudi, path)
    assert len(set(found) - set(before)) == 1
    write_ours(path, options, 2, pa.Table.from_pylist([{**new, "ts": 1000, "v": "ours"}], SCHEMA))
    assert contents(path) == by_hudi(hudi, path)


def test_compactions_are_exchanged(hudi, tmp_path):
    """What we plan Hudi carries out, what Hudi plans we carry out, and each reads what the other compacted."""
    options = {**options_of(CASES[0]), "hoodie.datasource.compaction.async.enable": "false"}
    rng, path = random.Random(3), str(tmp_path / "t")
    files = BaseFileSettings()
    for number in range(3):
        write_ours(path, options, number, batch(rng, number, 60))
    table = HudiTable.open(path)
    [ours] = request_compaction(table, CompactionSettings())
    write_ours(path, options, 3, batch(rng, 3, 60))
    assert contents(path) == by_hudi(hudi, path)
    compacts = {"hoodie.compact.inline": "true", "hoodie.compact.inline.max.delta.commits": "100"}
    hudi.write(path, batch(rng, 4, 60), {**options, **compacts})
    assert table.load_timeline().find(ours.time, Action.COMMIT).is_completed
    assert contents(path) == by_hudi(hudi, path)
    plans = {"hoodie.compact.schedule.inline": "true", "hoodie.compact.inline.max.delta.commits": "1"}
    hudi.write(path, batch(rng, 5, 60), {**options, **plans})
    [theirs] = table.load_timeline().pending_of(Action.COMPACTION)
    write_ours(path, options, 6, batch(rng, 6, 60))
    before = contents(path)
    assert before == by_hudi(hudi, path)
    [done] = compact(table, CompactionSettings(), files, schedules=False)
    assert done.time == theirs.time
    assert contents(path) == before == by_hudi(hudi, path)
    hudi.write(path, batch(rng, 7, 60), options)
    [done] = compact(table, CompactionSettings(), files)
    assert contents(path) == by_hudi(hudi, path) == base_rows(path)
    cleans = {"hoodie.clean.automatic": "true", "hoodie.clean.commits.retained": "1"}
    hudi.write(path, batch(rng, 8, 60), {**options, **cleans})
    assert contents(path) == by_hudi(hudi, path)


class WholeSeconds(LocalStorage):
    """A store that counts whole seconds, as object stores do."""

    def list_dir(self, path):
        return [replace(entry, modified_ms=entry.modified_ms // 1000 * 1000) for entry in super().list_dir(path)]

    @property
    def time_granularity_ms(self):
        return 1000


def test_times_of_whole_seconds_lead_no_log_file_to_another_slice(hudi, tmp_path):
    options = {**options_of(CASES[0]), "hoodie.compact.inline": "true", "hoodie.compact.inline.max.delta.commits": "2"}
    rng, path = random.Random(11), str(tmp_path / "t")
    engine = Engine(WholeSeconds(path), options, batch_rows=1000)
    for number in range(7):
        engine.write(number, batch(rng, number, 60))
    engine.writer.stop()
    for file in Path(path, ".hoodie").iterdir():
        seconds = file.stat().st_mtime_ns // 10**9
        os.utime(file, (seconds, seconds))
    assert len(list(Path(path, ".hoodie").glob("*.commit"))) == 3
    assert contents(path) == by_hudi(hudi, path)
    hudi.write(path, batch(rng, 7, 60), {**options, "hoodie.compact.inline.max.delta.commits": "1"})
    assert contents(path) == by_hudi(hudi, path) == base_rows(path)

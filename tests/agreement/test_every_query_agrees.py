"""Random histories that we write: a scan, `read_hudi` on Spark and Hudi 1.0.2 give the same rows, whatever is asked."""

import random

import pyarrow as pa
import pytest
from engine import OPTIONS, Engine, undo_nothing
from values import frame_rows, plain

from hudistream import HudiTable
from streaming.spark.read_hudi import read_hudi
from table import InvalidConfigError
from table.options.groups import KEEP_LATEST_FILE_VERSIONS, CleanSettings

pytestmark = pytest.mark.hudi

SCHEMA = pa.schema(
    [("id", pa.string()), ("p", pa.string()), ("ts", pa.int64()), ("v", pa.string()), ("w", pa.float64()),
     ("tags", pa.list_(pa.string())), ("_hoodie_is_deleted", pa.bool_())]
)  # fmt: skip
COLUMNS = ["_hoodie_commit_time", *SCHEMA.names]
TYPES = ("COPY_ON_WRITE", "MERGE_ON_READ")
INDEXES = ("BLOOM", "SIMPLE", "BUCKET")
FORMS = ("avro", "parquet")
PAYLOADS = ("DefaultHoodieRecordPayload", "OverwriteWithLatestAvroPayload")
STEPS, KEYS = 9, 60
TIMES = 3  # instants that are asked about, of each history


def options_of(seed):
    """Each pair of type, index, form of blocks and payload is met by one of the seeds."""
    payload = f"org.apache.hudi.common.model.{PAYLOADS[seed // 2 % 2]}"
    return {
        **OPTIONS,
        "hoodie.datasource.write.table.type": TYPES[seed % 2],
        "hoodie.datasource.write.payload.class": payload,
        "hoodie.compaction.payload.class": payload,
        "hoodie.index.type": INDEXES[seed % 3],
        "hoodie.bucket.index.num.buckets": "2",
        "hoodie.logfile.data.block.format": FORMS[seed // 4 % 2],
        "hoodie.compact.inline": "false",
        "hoodie.datasource.compaction.async.enable": "false",
        "hoodie.parquet.small.file.limit": "0" if seed % 4 < 2 else "104857600",
    }


def batch(rng, number, most):
    chosen = range(most) if not number else rng.sample(range(KEYS), rng.randint(1, KEYS // 3))
    return pa.Table.from_pylist(
        [
            {"id": f"k{key:03}", "p": f"p{key % 3}", "ts": number * 10 + rng.randint(-15, 5),
             "v": rng.choice([None, "a", "b"]), "w": rng.choice([None, 0.5]),
             "tags": [rng.choice(["x", "y"])] * rng.randint(0, 2),
             "_hoodie_is_deleted": (bool(number) and rng.random() < 0.1) or rng.choice([False, None])}
            for key in chosen
        ],
        SCHEMA,
    )  # fmt: skip


def step(rng, path, options, number):
    """One change of a table; what it was."""
    what = rng.choice(
        ["upsert", "upsert", "upsert", "delete", "insert_overwrite", "roll_back", "clean", "compact"]
    ) if number > 1 else "upsert"  # fmt: skip
    table = HudiTable.open(path) if number else None
    is_merge_on_read = options["hoodie.datasource.write.table.type"] == "MERGE_ON_READ"
    if what == "roll_back" and not is_merge_on_read:
        table.roll_back(table.newest_instant)
    elif what == "roll_back":
        dies(path, options, batch(rng, number, 40))  # the next writer rolls it back
    elif what == "clean":
        table.clean(CleanSettings(policy=KEEP_LATEST_FILE_VERSIONS, versions_retained=2, grace_ms=0), due=False)
    elif what == "compact":
        if is_merge_on_read:
            table.compact()
    else:
        if what == "insert_overwrite" and options["hoodie.index.type"] == "BUCKET":
            what = "upsert"  # rows would not lie in their buckets: it is refused
        rows = batch(rng, number, 40)
        if what == "delete":
            rows = rows.set_column(6, SCHEMA.field(6), pa.nulls(len(rows), pa.bool_()))
        engine = Engine(path, {**options, "hoodie.datasource.write.operation": what}, batch_rows=1000)
        try:
            engine.write(None, rows)
        finally:
            engine.writer.stop()
    return what


def dies(path, options, rows):
    """A writer that dies when its files are there."""
    engine = Engine(path, {**options, "hoodie.datasource.write.operation": "upsert"}, batch_rows=1000)
    distribute = engine.distribute

    def killed(plan, table):
        distribute(plan, table)
        raise KeyboardInterrupt

    engine.distribute = killed
    undo_nothing(engine.writer)
    with pytest.raises(KeyboardInterrupt):
        engine.write(None, rows)
    engine.writer.stop()


def texts(rows):
    return sorted(repr({name: plain(row[name]) for name in COLUMNS}) for row in rows)


def agree(hudi, spark, path, ask, asked, hudis):
    """The rows of a question by all three, or None where ours refuses it: then `read_hudi` does, too."""
    try:
        ours = texts(ask(HudiTable.open(path)).to_arrow().to_pylist())
    except InvalidConfigError:
        with pytest.raises(InvalidConfigError):
            read_hudi(spark, path, **asked).collect()
        return None
    assert texts(frame_rows(read_hudi(spark, path, **asked))) == ours, asked
    theirs = texts(hudi.read_by_either(path, hudis))
    if "since" in asked and HudiTable.open(path).config.table_type == "MERGE_ON_READ":
        theirs = without_late(
            theirs, ours, HudiTable.open(path).scan(as_of=asked.get("until"), meta_columns=True).to_arrow()
        )
    assert theirs == ours, hudis
    return ours


def without_late(theirs, ours, snapshot):
    """Rows of a range without those that lost to an older commit.

    Hudi merges only the files that the range wrote: it shows a late record although the base file keeps a newer one.
    """
    current = set(texts(snapshot.to_pylist()))
    return [row for row in theirs if row in current or row in ours]


def run(hudi, spark, path, seed):
    rng, options = random.Random(seed), options_of(seed)
    told = [step(rng, path, options, number) for number in range(STEPS)]
    table = HudiTable.open(path)
    asked = agree(hudi, spark, path, lambda one: one.scan(meta_columns=True), {}, {})
    assert asked is not None, told
    optimised = {"hoodie.datasource.query.type": "read_optimized"}
    assert texts(frame_rows(read_hudi(spark, path, options=optimised))) == texts(
        hudi.read_by_either(path, optimised)
    ), told
    times = [instant.time for instant in table.load_timeline().completed_writes]
    chosen = sorted(rng.sample(times, min(TIMES, len(times))))
    answered = 0
    for time in chosen:
        rows = agree(hudi, spark, path, lambda one, time=time: one.scan(as_of=time, meta_columns=True), {"as_of": time},
                     {"as.of.instant": time})  # fmt: skip
        answered += rows is not None
    ends = [*chosen, None]
    for since, until in [(a, b) for number, a in enumerate(chosen) for b in ends[number + 1 :]]:
        hudis = {"hoodie.datasource.query.type": "incremental", "hoodie.datasource.read.begin.instanttime": since}
        if until is not None:
            hudis["hoodie.datasource.read.end.instanttime"] = until
        given = {"since": since} if until is None else {"since": since, "until": until}
        rows = agree(hudi, spark, path, lambda one, since=since, until=until: one.changes(since, until), given, hudis)
        answered += rows is not None
    assert answered, told
    return told, answered


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
def test_every_query_of_a_random_history_agrees(hudi, spark, tmp_path, seed):
    run(hudi, spark, str(tmp_path / "t"), seed)

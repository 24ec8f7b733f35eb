"""A delete in a log is final, as in a copy-on-write table, whenever a compaction runs."""

import random
from datetime import date

import pyarrow as pa
import pytest
from tiers import quick

from hudistream import ArrowSink, CleanSettings, HudiTable, check
from table.errors import InvalidConfigError
from table.files.names import log_write_token, tells_no_deletes
from table.options.groups import BaseFileSettings, CompactionSettings
from table.scan import log_deletes
from table.services.compaction.compaction import compact, request_compaction

OPTIONS = {
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.bucket.index.num.buckets": "1",
    "hoodie.datasource.compaction.async.enable": "false",
    "hoodie.clean.automatic": "false",
    "hoodie.parquet.small.file.limit": "0",
}
PAYLOADS = ["DefaultHoodieRecordPayload", "OverwriteWithLatestAvroPayload"]


def sink(path, **options):
    return ArrowSink(str(path), {**OPTIONS, **options}, key="id", order_by="ts", operation="upsert")


def row(key, value, ts, deleted=False):
    columns = {
        "id": [key],
        "v": pa.array([value], pa.string()),
        "ts": pa.array([ts], pa.int64()),
        "_hoodie_is_deleted": [deleted],
    }
    return pa.table(columns)


def rows_of(path):
    rows = HudiTable.open(str(path)).scan().to_arrow().to_pylist()
    assert len({one["id"] for one in rows}) == len(rows), "a key is there twice"
    return {one["id"]: (one["v"], one["ts"]) for one in rows}


def random_steps(seed):
    rng = random.Random(seed)
    for number in range(14):
        yield (
            rng.choice(["upsert", "upsert", "marked", "delete"]),
            f"k{rng.randint(0, 2)}",
            f"{number}",
            rng.randint(1, 9),
        )


def take(writer, step):
    what, key, value, ts = step
    if what == "delete":
        writer.delete(row(key, None, ts))
    else:
        writer.write(row(key, value, ts, what == "marked"))


@pytest.mark.parametrize("payload", quick(1, PAYLOADS))
@pytest.mark.parametrize("index", quick(1, ["BUCKET", "BLOOM"]))
@pytest.mark.parametrize("seed", quick(1, range(6)))
def test_the_rows_are_those_of_copy_on_write_whenever_a_compaction_runs(tmp_path, index, payload, seed):
    """None, after each step, or one that is planned at some step and carried out later."""
    options = {
        "hoodie.index.type": index,
        "hoodie.datasource.write.payload.class": f"org.apache.hudi.common.model.{payload}",
    }
    paths = {name: tmp_path / name for name in ("cow", "never", "always", "pending")}
    writers = {name: sink(path, **options) for name, path in paths.items() if name != "cow"}
    writers["cow"] = sink(paths["cow"], **{**options, "hoodie.datasource.write.table.type": "COPY_ON_WRITE"})
    for writer in writers.values():
        writer.write(pa.concat_tables([row("k0", "base", 7), row("other", "base", 5)]))
    for number, step in enumerate(random_steps(seed)):
        for name, writer in writers.items():
            take(writer, step)
            if name == "always":
                writer.stop()
                HudiTable.open(str(paths[name])).compact()
            if name == "pending" and number % 4 == 1:
                writer.stop()
                request_compaction(HudiTable.open(str(paths[name])), CompactionSettings())
            if name == "pending" and number % 4 == 3:
                writer.stop()
                compact(HudiTable.open(str(paths[name])), CompactionSettings(), BaseFileSettings(), schedules=False)
        found = {name: rows_of(path) for name, path in paths.items()}
        assert found == dict.fromkeys(paths, found["cow"]), (number, step)
    for writer in writers.values():
        writer.stop()


@pytest.mark.parametrize("payload", PAYLOADS)
@pytest.mark.parametrize("index", ["BLOOM", "SIMPLE", "GLOBAL_BLOOM"])
@pytest.mark.parametrize("ordered", [True, False])
def test_a_deleted_key_that_comes_back_behind_the_plan_of_a_compaction_is_found_after_it(
    tmp_path, index, payload, ordered
):
    """The compaction leaves the key out of its base file; in a log alone no index would find it."""
    path, table = tmp_path / "t", lambda: HudiTable.open(str(tmp_path / "t"))
    options = {
        "hoodie.index.type": index,
        "hoodie.bloom.index.update.partition.path": "false",
        "hoodie.datasource.write.payload.class": f"org.apache.hudi.common.model.{payload}",
    }
    order = {"order_by": "ts"} if ordered else {}
    writer = ArrowSink(str(path), {**OPTIONS, **options}, key="id", operation="upsert", **order)
    writer.write(pa.concat_tables([row("a", "base", 1), row("b", "base", 1)]))
    writer.write(row("a", None, 2, True))
    writer.stop()
    request_compaction(table(), CompactionSettings())
    writer.write(row("a", "again", 3))
    writer.stop()
    assert rows_of(path) == {"a": ("again", 3), "b": ("base", 1)}
    compact(table(), CompactionSettings(), BaseFileSettings(), schedules=False)
    assert rows_of(path) == {"a": ("again", 3), "b": ("base", 1)}
    writer.write(row("a", "later", 4))
    writer.stop()
    assert rows_of(path) == {"a": ("later", 4), "b": ("base", 1)}


def test_a_base_file_above_a_pending_compaction_is_sound_before_and_after_it(tmp_path):
    path, table = tmp_path / "t", lambda: HudiTable.open(str(tmp_path / "t"))
    writer = sink(path, **{"hoodie.index.type": "BLOOM"})
    writer.write(pa.concat_tables([row("a", "base", 1), row("b", "base", 1)]))
    writer.write(row("a", None, 2, True))
    writer.stop()
    planned = request_compaction(table(), CompactionSettings())
    writer.write(row("a", "again", 3))
    writer.write(row("b", "changed", 4))
    writer.stop()
    found = {"a": ("again", 3), "b": ("changed", 4)}
    assert rows_of(path) == found
    assert check(table()).is_sound
    with pytest.raises(InvalidConfigError, match="2 commits came after"):
        table().roll_back(planned[0].time)  # what stands above the plan would lose its log files
    compact(table(), CompactionSettings(), BaseFileSettings(), schedules=False)
    assert rows_of(path) == found
    assert check(table()).is_sound
    writer.write(row("a", "later", 5))
    writer.write(row("b", None, 6, True))
    writer.stop()
    assert rows_of(path) == {"a": ("later", 5)}
    table().clean(CleanSettings(commits_retained=1, grace_ms=0, trigger_commits=0))
    assert rows_of(path) == {"a": ("later", 5)}
    assert check(table()).is_sound


def test_only_a_record_that_would_bring_rows_back_writes_a_base_file(tmp_path):
    path = tmp_path / "t"
    writer = sink(path, **{"hoodie.index.type": "BUCKET"})
    writer.write(pa.concat_tables([row("a", "base", 7), row("b", "base", 7)]))
    bases = lambda: len(list(path.glob("*.parquet")))  # noqa: E731
    writer.write(row("a", None, 8, True))
    writer.write(row("b", "later", 8))
    writer.write(row("a", "later", 9))
    assert bases() == 1, "what is newer than the delete is seen by all readers"
    writer.delete(row("a", None, 1))
    writer.write(row("a", "again", 1))
    writer.stop()
    assert bases() == 2
    assert rows_of(path) == {"a": ("again", 1), "b": ("later", 8)}


def test_log_files_without_deletes_are_not_opened_by_the_next_batch(tmp_path, monkeypatch):
    opened = []
    find = log_deletes.find_blocks

    def find_blocks(storage, file_slice, committed):
        opened.extend(log.name for log in file_slice.log_files)
        return find(storage, file_slice, committed)

    monkeypatch.setattr(log_deletes, "find_blocks", find_blocks)
    writer = sink(tmp_path / "t", **{"hoodie.index.type": "BUCKET"})
    for ts in range(1, 5):
        writer.write(row("a", "v", ts))
    assert not opened
    writer.write(row("b", None, 5, True))
    assert not opened
    writer.write(row("a", "v", 6))
    writer.stop()
    assert len(opened) == 1


def test_names_tell_what_has_no_deletes_of_known_commits_alone():
    time = "20261124101112131"
    known = frozenset([time, "20261124101112140"])
    plain = log_write_token("3-7-1", time, has_deletes=False)
    assert tells_no_deletes(plain, known)
    assert not tells_no_deletes(log_write_token("3-7-1", time, has_deletes=True), known)
    assert not tells_no_deletes(plain, frozenset())
    assert not tells_no_deletes("0-45-80", known)
    assert not tells_no_deletes("", known)
    assert all(int(part) < 2**31 for part in plain.split("-"))


# type -> an earlier value, the one that readers of a log take for none, and a later one
READ_AS_NONE = {
    "int": (pa.int32(), -5, 0, 7),
    "date": (pa.date32(), date(1969, 12, 1), date(1970, 1, 1), date(2026, 1, 2)),
}


@pytest.mark.parametrize("name", READ_AS_NONE)
@pytest.mark.parametrize("index", quick(1, ["BUCKET", "BLOOM"]))
@pytest.mark.parametrize("version", quick(1, [6, 9]))
def test_a_delete_with_a_value_that_logs_take_for_none_goes_to_the_base_file(tmp_path, name, index, version):
    """It is compared with the row, as any other value: late for one, in time for another."""
    kind, early, zero, late = READ_AS_NONE[name]
    path, key = str(tmp_path / "t"), {"hoodie.index.type": index, "hoodie.write.table.version": str(version)}

    def ordered(keys, ts, v, *, deleted=False):
        count = len(keys)
        columns = {"id": list(keys), "v": pa.array([v] * count, pa.string()), "ts": pa.array([ts] * count, kind)}
        return pa.table({**columns, "_hoodie_is_deleted": [deleted] * count})

    with sink(path, **key) as writer:
        writer.write(ordered("ab", late, "old"))
        writer.write(ordered("cd", early, "old"))
        writer.write(ordered("a", late, "newer"))  # in the log
        writer.write(ordered("ac", zero, None, deleted=True))
        assert {one: v for one, (v, _) in rows_of(path).items()} == {"a": "newer", "b": "old", "d": "old"}
        writer.write(ordered("ab", zero, None, deleted=True))
        writer.write(ordered("d", late, None, deleted=True))
    assert {one: v for one, (v, _) in rows_of(path).items()} == {"a": "newer", "b": "old"}
    compact(HudiTable.open(path), CompactionSettings(), BaseFileSettings())
    assert {one: v for one, (v, _) in rows_of(path).items()} == {"a": "newer", "b": "old"}

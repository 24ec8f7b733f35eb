import json
import os
import re

import pyarrow as pa
import pytest
from engine import Engine, key_set, rows

from table import HudiTable, archive, read_table
from table.errors import InvalidConfigError
from table.inspect.doctor import examine
from table.options.groups import ArchiveSettings, CleanSettings
from table.options.write_options import parse_options
from table.transaction.checkpoint import OUR_KEY, CommittedBatch
from table.transaction.unnamed_operation import check_goes_on

OPERATION = "hoodie.datasource.write.operation"
SINK = "hoodie.datasource.write.streaming.checkpoint.identifier"
REFUSED = "=insert; to keep one row per key, set hoodie.datasource.write.operation=upsert"


def unnamed(path, **options):
    return Engine(path, {OPERATION: None, **options})


def state(path):
    """Every file of the table but the writer's own, with its size."""
    found = {}
    for folder, _, names in os.walk(path):
        for name in names:
            full = os.path.join(folder, name)
            if ".heartbeat" not in full and "hudistream" not in full:
                found[full] = os.path.getsize(full)
    return found


def of_an_older_version(path):
    """Takes out of all commits what tells the operation of a batch; what the commit itself did stays."""
    for name in os.listdir(f"{path}/.hoodie"):
        if name.endswith(".commit"):
            with open(f"{path}/.hoodie/{name}") as file:
                document = json.load(file)
            entries = json.loads(document["extraMetadata"].get(OUR_KEY, "{}"))
            for entry in entries.values():
                entry.pop("operation", None)
            document["extraMetadata"][OUR_KEY] = json.dumps(entries)
            with open(f"{path}/.hoodie/{name}", "w") as file:
                json.dump(document, file)


def test_without_a_name_rows_are_upserted(tmp_path):
    path = str(tmp_path / "t")
    engine = unnamed(path)
    engine.write(0, rows(range(5)))
    engine.write(1, rows(range(5), ts=1))
    assert key_set(read_table(path)) == [f"k{n}" for n in range(5)]
    commits = HudiTable.open(path).load_timeline().completed_writes
    with open(f"{path}/.hoodie/{commits[-1].file_name}") as file:
        assert json.load(file)["operationType"] == "UPSERT"
    # a restart goes on
    unnamed(path).write(2, rows(range(7), ts=2))
    assert len(key_set(read_table(path))) == 7


def test_without_an_ordering_field_the_record_that_arrives_last_stays(tmp_path):
    path = str(tmp_path / "t")
    engine = unnamed(path, **{"hoodie.datasource.write.precombine.field": None})
    twice = pa.concat_tables([rows([1, 2], ts=9, v="first"), rows([1], ts=5, v="second")])
    engine.write(0, twice)
    found = read_table(path).sort_by("id")
    assert found.column("v").to_pylist() == ["second", "first"]
    engine.write(1, rows([2], lambda _: "p2", ts=1, v="late"))
    found = read_table(path).sort_by("id")
    assert found.column("v").to_pylist() == ["second", "late"]


@pytest.mark.parametrize("older", [False, True], ids=["commits of today", "commits of an older version"])
def test_a_stream_that_inserted_is_refused_until_it_names_its_operation(tmp_path, older):
    path = str(tmp_path / "t")
    Engine(path).write(0, rows(range(5)))
    if older:
        of_an_older_version(path)
    before = state(path)
    for _ in range(2):
        with pytest.raises(InvalidConfigError, match=re.escape(REFUSED)) as error:
            unnamed(path).write(1, rows(range(5), ts=1))
        assert "batch 0" in str(error.value)
    assert state(path) == before
    # what was committed is skipped as ever
    assert unnamed(path).write(0, rows(range(5))).skipped
    named, twin = path, str(tmp_path / "u")
    Engine(named).write(1, rows(range(5), ts=1))
    assert len(read_table(named)) == 10
    Engine(twin).write(0, rows(range(5)))
    Engine(twin, {OPERATION: "upsert"}).write(1, rows(range(5), ts=1))
    assert len(read_table(twin)) == 5
    # and from then on it may be left out
    unnamed(twin).write(2, rows(range(5), ts=2))
    assert len(read_table(twin)) == 5


def test_another_sinks_inserts_are_its_own_matter(tmp_path):
    path = str(tmp_path / "t")
    Engine(path, {SINK: "theirs"}).write(0, rows(range(5)))
    unnamed(path, **{SINK: "ours"}).write(0, rows(range(5), ts=1))
    assert len(read_table(path)) == 5
    with pytest.raises(InvalidConfigError, match="'theirs'"):
        unnamed(path, **{SINK: "theirs"}).write(1, rows(range(5)))


@pytest.mark.parametrize("older", [False, True], ids=["commits of today", "commits of an older version"])
def test_an_insert_is_known_from_the_archive_and_from_what_is_carried_along(tmp_path, older):
    path = str(tmp_path / "t")
    Engine(path, {SINK: "ours"}).write(0, rows(range(5)))
    others = Engine(path, {SINK: "theirs"})
    for number in range(6):
        others.write(number, rows(range(10 + number, 11 + number)))
    others.writer.stop()
    if older:
        of_an_older_version(path)
    assert archive(
        HudiTable.open(path), ArchiveSettings(min_commits=2, max_commits=3), CleanSettings(grace_ms=0)
    ).instants
    with pytest.raises(InvalidConfigError, match="'ours'"):
        unnamed(path, **{SINK: "ours"}).write(1, rows(range(5)))


def test_a_write_outside_of_a_stream_is_compared_with_the_last_such_write(tmp_path):
    path = str(tmp_path / "t")

    def outside(operation=None, sink="s"):
        engine = Engine(path, {OPERATION: operation, SINK: sink})
        engine.query_id = None
        return engine.write(None, rows(range(5)))

    outside("insert")
    before = state(path)
    with pytest.raises(InvalidConfigError, match="commit [0-9]+"):
        outside()
    assert state(path) == before
    outside(sink="other")
    # a stream's batches are no such writes
    unnamed(path, **{SINK: "s"}).write(0, rows(range(5)))
    with pytest.raises(InvalidConfigError, match="was an insert"):
        outside()
    outside("upsert")
    outside()
    assert len(read_table(path)) == 5


@pytest.mark.parametrize(
    ("last", "refused"),
    [
        (None, False),
        (CommittedBatch(3, "q", operation="INSERT"), True),
        (CommittedBatch(3, "q", operation=None), True),
        (CommittedBatch(3, "q", operation="UPSERT"), False),
        (CommittedBatch(3, "q", operation="BULK_INSERT"), False),
        (CommittedBatch(3, recorded=False), False),  # Hudi's own sink, which upserts by default
        (CommittedBatch(3, recorded=False, operation="INSERT"), True),
    ],
)
def test_which_last_batch_forbids_to_go_on(last, refused):
    if not refused:
        check_goes_on(last, "s")
        return
    with pytest.raises(InvalidConfigError, match="sink 's'"):
        check_goes_on(last, "s")


def test_the_doctor_says_in_advance_what_the_sink_refuses(tmp_path):
    path = str(tmp_path / "t")
    Engine(path).write(0, rows(range(5)))
    [stop] = [each.text for each in examine(path, parse_options({}).options).findings if each.level == "stop"]
    assert REFUSED in stop
    assert examine(path, parse_options({OPERATION: "upsert"}).options).may_write
    assert examine(path, parse_options({SINK: "new"}).options).may_write

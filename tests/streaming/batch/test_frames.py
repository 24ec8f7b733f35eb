"""A second call with a batch's number: the same frame is a repeat, another frame is not."""

import os
import weakref

import pyarrow as pa
import pytest
from engine import Engine, key_set, rows

from streaming.batch.frames import FRAMES, Frame, Taken, find_other
from streaming.batch.workers import Batch
from table import read_table
from table.errors import BatchOrderError, InvalidRecordError
from table.storage.opening import one_spelling

RUN, LATER = "b28d7445-c9ac-418c-9d64-ca76d78cc8bb", "07532e2f-5d76-4b11-9480-710d463b73a7"


class Rows:
    """What a caller would call a DataFrame."""


FIRST, SECOND = Rows(), Rows()


def frame(of=FIRST, plan=None, group=None, mark=None):
    return Frame(weakref.ref(of), plan, lambda: group, lambda: mark)


def taken(frame, run=None, query="q", batch=7, owner="a", operation="UPSERT"):
    return Taken(query, batch, run, frame, owner, operation)


@pytest.mark.parametrize(
    ("known", "now", "is_repeat"),
    [
        (taken(frame()), taken(frame()), True),
        (taken(frame(plan=1)), taken(frame(SECOND, plan=1)), True),
        (taken(frame()), taken(frame(SECOND)), False),  # nothing is known of their plans
        (taken(frame(plan=1)), taken(frame(SECOND, plan=2)), False),
        (taken(frame(plan=1)), taken(frame(plan=2)), True),  # the same object, whatever its plan tells
        (taken(frame()), taken(frame(SECOND), owner="b"), False),  # another sink of this name
        (taken(frame()), taken(frame(SECOND), batch=8), True),
        (taken(frame()), taken(frame(SECOND), query="r"), True),
        (taken(frame(), ("query", RUN)), taken(frame(SECOND), ("query", RUN)), False),
        (taken(frame(), ("query", RUN)), taken(frame(SECOND), ("query", LATER)), True),
        (taken(frame(), ("query", RUN)), taken(frame(SECOND), None), False),
        (taken(frame(), ("query", RUN)), taken(frame(SECOND), ("session", LATER)), False),  # they cannot be compared
        (taken(frame(), ("session", RUN)), taken(frame(SECOND), ("session", LATER)), True),
        (taken(frame(), operation="DELETE"), taken(frame(), operation="INSERT"), False),
        (taken(frame(), ("query", RUN), operation="DELETE"), taken(frame(), ("query", LATER)), True),
    ],
)
def test_a_batch_is_a_repeat_if_its_frame_is_or_if_another_run_brings_it(known, now, is_repeat):
    assert find_other([], now) is None
    assert find_other([known], now) is (None if is_repeat else known)


def test_a_frame_that_is_gone_equals_no_other_by_its_place_alone():
    gone = frame(Rows())
    assert gone.rows() is None
    assert not gone.is_same(frame(Rows()))


@pytest.mark.parametrize(
    ("group", "mark", "run"),
    [
        (RUN, "m", ("query", RUN)),
        ("nightly", "m", ("session", "m")),  # the caller's own job group
        (None, "m", ("session", "m")),  # a thread of the caller
        (None, None, None),
    ],
)
def test_a_run_is_known_by_its_job_group_or_by_its_session(group, mark, run):
    assert frame(mark=mark).find_run(group) == run


def test_addresses_of_one_table_have_one_spelling(tmp_path):
    os.symlink(tmp_path, tmp_path / "link")
    assert one_spelling(str(tmp_path / "link" / "t")) == one_spelling(f"{tmp_path}/t")
    assert one_spelling("s3a://bucket/t/") == one_spelling("s3://bucket/t")
    assert one_spelling("s3://bucket/t") != one_spelling("gs://bucket/t")


def write(engine, batch_id, numbers, of, group=RUN):
    """A batch that brings a frame, as `HudiSink` does."""
    workers, told = engine.workers(numbers if isinstance(numbers, pa.Table) else rows(numbers)), []
    batch = Batch(workers, batch_id, engine.query_id, lambda: told.append(1) or engine.query_id)
    brought = frame(of, group=group)
    try:
        return engine.writer.write(Batch(**{**vars(batch), "frame": brought}))
    finally:
        engine.asked = len(told)


@pytest.fixture
def engine(tmp_path):
    return Engine(str(tmp_path / "t"))


def test_another_frame_of_a_committed_batch_is_refused_and_the_same_one_skipped(engine):
    write(engine, 0, range(5), FIRST)
    assert write(engine, 0, range(5), FIRST).skipped
    with pytest.raises(BatchOrderError, match="this sink wrote it with another DataFrame in this run"):
        write(engine, 0, range(5, 10), SECOND)
    assert write(engine, 0, range(5), FIRST).skipped  # what was refused changed nothing
    write(engine, 1, range(5, 10), SECOND)
    assert key_set(read_table(engine.writer.table)) == [f"k{n}" for n in range(10)]


def test_a_sink_made_anew_knows_what_its_process_wrote(engine):
    write(engine, 0, range(5), FIRST)
    again = Engine(engine.writer.table)
    with pytest.raises(BatchOrderError, match="another sink of this process with the same name"):
        write(again, 0, range(5, 10), SECOND)
    assert write(again, 0, range(5), FIRST).skipped
    again.writer.stop()
    named = Engine(engine.writer.table, {"hoodie.datasource.write.streaming.checkpoint.identifier": "second"})
    assert write(named, 0, range(5, 10), SECOND).instant_time


def test_what_an_earlier_process_committed_is_skipped_once_in_a_run(engine):
    write(engine, 0, range(5), FIRST)
    FRAMES._known.clear()  # another process
    assert write(engine, 0, range(5), SECOND).skipped
    with pytest.raises(BatchOrderError, match="other rows"):
        write(engine, 0, range(5, 10), FIRST)


def test_a_batch_that_failed_may_come_with_other_rows(engine):
    with pytest.raises(InvalidRecordError):
        write(engine, 0, rows([0]).set_column(0, "id", pa.array([None], pa.string())), FIRST)
    assert write(engine, 0, range(5), SECOND).instant_time
    assert write(engine, 0, range(5), SECOND).skipped


def test_a_caller_without_a_frame_is_skipped_as_before(engine):
    write(engine, 0, range(5), FIRST)
    assert engine.write(0, rows(range(9))).skipped

"""What a rollback deletes: the files that markers name, and nothing that holds rows of others."""

import pytest

from table.errors import UnsupportedTableError
from table.files.markers import APPEND, CREATE, MERGE
from table.files.names import MarkerName
from table.services.rollback.plan import plan_rollback
from table.timeline.instant import Action, Instant, State

TIME = "20260101000000005"
FAILED = Instant(TIME, Action.DELTA_COMMIT, State.INFLIGHT)
BASE = f"p/f1-0_0-1-2_{TIME}.parquet"
LOG = "p/.f1-0_20260101000000001.log.3_0-1-2"


def plan(*markers, writers=None):
    return plan_rollback(FAILED, [MarkerName(*marker) for marker in markers], lambda path: f"/t/{path}", writers)


def test_an_instant_without_markers_deletes_nothing():
    made = plan()
    assert (made.instant_time, made.action, made.requests) == (TIME, "deltacommit", ())


@pytest.mark.parametrize("kind", [CREATE, MERGE])
def test_a_marked_base_file_is_deleted(kind):
    (request,) = plan((BASE, kind)).requests
    assert (request.partition_path, request.file_id, request.latest_base_instant) == ("p", "f1-0", TIME)
    assert request.files == (f"/t/{BASE}",)


def test_a_file_of_a_table_without_partitions_has_the_empty_path():
    (request,) = plan((BASE.removeprefix("p/"), CREATE)).requests
    assert request.partition_path == ""


@pytest.mark.parametrize("writers", [None, {LOG: frozenset()}, {LOG: frozenset([TIME])}])
def test_a_log_file_that_the_instant_wrote_alone_is_deleted_under_its_slice(writers):
    (request,) = plan((LOG, APPEND), writers=writers).requests
    assert (request.file_id, request.latest_base_instant) == ("f1-0", "20260101000000001")
    assert request.files == (f"/t/{LOG}",)


def test_a_log_file_with_rows_of_others_is_refused_by_name():
    writers = {LOG: frozenset([TIME, "20260101000000003"])}
    with pytest.raises(UnsupportedTableError, match=r"log\.3_0-1-2, which holds rows of 20260101000000003"):
        plan((LOG, APPEND), writers=writers)


def test_a_marker_of_no_data_file_is_refused():
    with pytest.raises(UnsupportedTableError, match="which holds rows of others"):
        plan(("p/notes.txt", APPEND))


def test_each_marker_has_its_request():
    assert [one.files[0] for one in plan((BASE, CREATE), (LOG, APPEND)).requests] == [f"/t/{BASE}", f"/t/{LOG}"]

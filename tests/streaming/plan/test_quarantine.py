"""Where the bad rows of a batch go: one folder a table and commit, in a value that travels to the workers."""

import pickle
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streaming.plan.quarantine import Quarantine
from table.storage.local import LocalStorage

TIME = "20260101000000001"
QUARANTINE = Quarantine(LocalStorage("/lake/t_bad_rows"), "t-0a1b2c3d", TIME, 7, "sink", 1_767_225_600_000_000)


def test_bad_rows_wait_in_a_folder_of_their_table_and_commit():
    assert QUARANTINE.staging_folder == f"_staging/t-0a1b2c3d/{TIME}"


@pytest.mark.parametrize("changed", [{"table_key": "u-0a1b2c3d"}, {"instant_time": "20260101000000002"}])
def test_another_table_and_another_commit_have_another_folder(changed):
    assert replace(QUARANTINE, **changed).staging_folder != QUARANTINE.staging_folder


@pytest.mark.parametrize(
    "changed", [{"storage": LocalStorage("/other")}, {"batch_id": None}, {"sink_id": "other"}, {"time_us": 0}]
)
def test_the_folder_depends_neither_on_the_store_nor_on_batch_sink_and_moment(changed):
    assert replace(QUARANTINE, **changed).staging_folder == QUARANTINE.staging_folder


def test_files_of_two_tables_in_one_folder_have_two_names():
    assert QUARANTINE.file_name("0-0-1") == QUARANTINE.file_name("0-0-1") != QUARANTINE.file_name("0-0-2")
    assert replace(QUARANTINE, table_key="u-0a1b2c3d").file_name("0-0-1") != QUARANTINE.file_name("0-0-1")
    assert QUARANTINE.file_name("0-0-1").startswith(f"{TIME}_0-0-1_")


@given(st.none() | st.integers(0, 2**63 - 1), st.text(max_size=20), st.integers(0, 2**62))
@settings(deadline=None)
def test_a_worker_gets_the_same_value_in_less_than_600_bytes(batch_id, sink_id, time_us):
    here = replace(QUARANTINE, batch_id=batch_id, sink_id=sink_id, time_us=time_us)
    sent = pickle.dumps(here)
    there = pickle.loads(sent)
    assert there == here
    assert there.staging_folder == here.staging_folder
    assert len(sent) < 600

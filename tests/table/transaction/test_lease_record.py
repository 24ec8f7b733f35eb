"""Records below .hoodie/.hudistream: of this version, of the first one, and of a later version."""

import json
import os
import subprocess
import sys

import pytest

from table import CommitConflictError, clock
from table.errors import CorruptFileError
from table.options.groups import HeartbeatSettings
from table.storage.local import LocalStorage
from table.timeline.end_record import COMMIT, EndRecord, decode_end
from table.timeline.instant import Action
from table.timeline.pins import Pin, write_pin
from table.transaction.commit_order import Place, decode_place
from table.transaction.heartbeat import (
    WriterIdentity,
    decode_identity,
    decode_sight,
    find_sight,
    heartbeat_path,
    write_heartbeat,
)
from table.transaction.lease import LEASE_FOLDER, Lease, find_holder, may_take_over
from table.transaction.lease_record import LeaseRecord, decode_lease, describe_holder, is_dead_here, this_machine
from table.transaction.provisional import KEPT, WITHDRAWN, decode_word, encode_word
from table.transaction.signs import ALIVE_FOLDER
from table.version import VERSION

SETTINGS = HeartbeatSettings(interval_ms=1_000_000, tolerable_misses=1)
WHO = WriterIdentity("sink", "query", "owner")
LATER = {"zone": "eu", "shards": [1, 2]}  # fields that this version does not know


def with_more(data, **changed):
    return json.dumps({**json.loads(data), **LATER, **changed}).encode()


def test_fields_of_a_later_version_are_ignored():
    record = LeaseRecord(3, WHO, "machine", 7)
    document = json.loads(record.encode())
    document["identity"]["tenant"] = "t"
    assert decode_lease(3, with_more(json.dumps(document), version="9")) == LeaseRecord(3, WHO, "machine", 7, "9")
    assert decode_place(4, with_more(Place(4, "1", Action.COMMIT, "o").encode())) == Place(4, "1", Action.COMMIT, "o")
    end = EndRecord("1", Action.COMMIT, COMMIT, "me", b"{}")
    assert decode_end("1", Action.COMMIT, with_more(end.encode())) == end
    assert decode_word("1", with_more(encode_word(KEPT))) == KEPT
    assert decode_identity(with_more(WHO.encode())) == WHO


def test_records_name_their_version():
    documents = [
        LeaseRecord(1, WHO),
        Place(1, "1", Action.COMMIT, "o"),
        EndRecord("1", Action.COMMIT, COMMIT, "me"),
        WHO,
    ]
    assert {json.loads(document.encode())["version"] for document in documents} == {VERSION}
    assert json.loads(encode_word(KEPT))["version"] == VERSION


def test_signs_name_their_version(tmp_path):
    storage = LocalStorage(str(tmp_path))
    lease = Lease(storage, SETTINGS)
    lease.hold(WriterIdentity("a", "q", lease.owner))
    pin = Pin("20260101000000000", 60, "0-1")
    write_pin(storage, pin)
    for path in (f"{ALIVE_FOLDER}/{lease.owner}", pin.path):
        assert json.loads(storage.read(path))["version"] == VERSION
    lease.release()


def test_the_first_records_are_read():
    first = {"identity": {"sink_id": "s", "query_id": None, "owner": "o"}, "machine": "m", "process": 1, "version": "0"}
    assert decode_lease(1, json.dumps(first).encode()) == LeaseRecord(1, WriterIdentity("s", None, "o"), "m", 1, "0")
    assert decode_word("1", b"kept") == KEPT
    assert decode_word("1", b"withdrawn") == WITHDRAWN
    assert decode_sight(WHO.encode()) is None


@pytest.mark.parametrize(
    "data", [b"", b"[]", b"{}", b'{"identity": {}}', b'{"identity": {"owner": ""}}', b"\xff", b"null"]
)
def test_a_record_that_cannot_be_read_is_not_released(data):
    record = decode_lease(1, data)
    assert not record.is_readable
    assert not record.is_released
    assert decode_lease(1, b'{"identity": null}').is_released


@pytest.mark.parametrize("data", [b"", b"maybe", b'{"word": "later"}', b"{}"])
def test_a_word_that_cannot_be_read_is_neither(data):
    with pytest.raises(CorruptFileError):
        decode_word("1", data)


@pytest.mark.parametrize(("youngest_ms", "free"), [(None, True), (5_000, False), (10_001, True)])
def test_an_unreadable_holder_lives_as_long_as_any_writer_gives_a_sign(youngest_ms, free):
    asked = []

    def age_ms(owner):
        asked.append(owner)
        return youngest_ms

    assert may_take_over(decode_lease(1, b"?"), WHO, age_ms, 9_000, 1_000) is free
    assert asked == [None]


def test_a_table_is_not_taken_from_a_living_writer_of_a_later_version(tmp_path):
    storage = LocalStorage(str(tmp_path))
    storage.create_exclusive(f"{LEASE_FOLDER}/5", b'{"holder": "in another form", "version": "9.0"}')
    storage.put(f"{ALIVE_FOLDER}/somebody", b"")
    lease = Lease(storage, SETTINGS)
    with pytest.raises(CommitConflictError, match="lease/5 cannot be read here"):
        lease.hold(WriterIdentity("a", "q", lease.owner))
    assert describe_holder(find_holder(storage)).startswith("a writer of another version")
    old = clock.now_ms() / 1000 - 3 * SETTINGS.expiry_ms / 1000
    os.utime(tmp_path / ALIVE_FOLDER / "somebody", (old, old))
    lease.hold(WriterIdentity("a", "q", lease.owner))
    assert find_holder(storage).number == 6
    lease.release()


def test_a_heartbeat_keeps_what_its_writer_has_not_seen(tmp_path):
    storage = LocalStorage(str(tmp_path))
    write_heartbeat(storage, "20260101000000000", WHO, "20250101000000000")
    assert find_sight(storage, "20260101000000000") == "20250101000000000"
    assert decode_identity(storage.read(heartbeat_path("20260101000000000"))) == WHO
    assert find_sight(storage, "20260101000000001") is None
    storage.put(heartbeat_path("20260101000000002"), b"")  # as Hudi's
    assert find_sight(storage, "20260101000000002") is None


def test_a_process_is_dead_when_its_number_is_free():
    if not this_machine():
        pytest.skip("this machine does not tell its boot")
    running = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    record = LeaseRecord(1, WHO, this_machine(), running.pid)
    assert not is_dead_here(record)
    running.kill()
    running.wait()
    assert is_dead_here(record)
    assert not is_dead_here(LeaseRecord(1, WHO, this_machine(), 0))
    assert not is_dead_here(LeaseRecord(1, WHO, this_machine(), 2**70))

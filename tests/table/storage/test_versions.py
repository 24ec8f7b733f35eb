"""Files that are replaced on the condition that nobody else has replaced them."""

import subprocess
import sys
import threading
import uuid
from pathlib import Path
from types import SimpleNamespace

import pytest
from s3_server import s3_options

from table.errors import InvalidConfigError, StorageError
from table.storage.local import LocalStorage
from table.storage.opening import open_storage

HOLDS_THE_GUARD = """
import sys, time
from table.storage.local_versions import guarded_exchange
with guarded_exchange(sys.argv[1], 5):
    print("inside", flush=True)
    time.sleep(60)
"""


@pytest.fixture(scope="module")
def s3():
    with s3_options() as options:
        yield options


@pytest.fixture(params=["local", "s3"])
def storage(request, tmp_path):
    if request.param == "local":
        return LocalStorage(str(tmp_path / "t"))
    return open_storage(f"s3a://lake/{uuid.uuid4()}", request.getfixturevalue("s3"))


def test_a_file_is_replaced_by_whoever_knows_its_version(storage):
    assert storage.has_versions
    assert storage.read_versioned("a/b") is None
    assert storage.replace_if("a/b", b"0", "some version") is None
    first = storage.replace_if("a/b", b"1", None)
    assert storage.read_versioned("a/b") == (b"1", first)
    assert storage.replace_if("a/b", b"2", None) is None
    second = storage.replace_if("a/b", b"2", first)
    assert second != first
    assert storage.replace_if("a/b", b"3", first) is None
    assert storage.read_versioned("a/b") == (b"2", second)
    assert storage.read("a/b") == b"2"
    storage.delete("a/b")
    assert storage.replace_if("a/b", b"3", second) is None
    assert storage.replace_if("a/b", b"4", None) is not None


def test_of_several_that_count_each_number_is_written_once(storage):
    counted = []

    def count():
        for _ in range(10):
            found = storage.read_versioned("n")
            number = int(found.data) + 1 if found else 1
            if storage.replace_if("n", str(number).encode(), found and found.version):
                counted.append(number)

    writers = [threading.Thread(target=count) for _ in range(4)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert sorted(counted) == list(range(1, len(counted) + 1))
    assert int(storage.read("n")) == len(counted) >= 10


@pytest.mark.slow
def test_a_process_that_dies_in_an_exchange_leaves_nothing_locked(tmp_path):
    storage = LocalStorage(str(tmp_path / "t"))
    full = str(tmp_path / "t" / "x")
    program = [sys.executable, "-c", HOLDS_THE_GUARD, full]
    with subprocess.Popen(program, stdout=subprocess.PIPE, cwd=Path(__file__).parents[3]) as other:
        assert other.stdout.readline() == b"inside\n"
        with pytest.raises(StorageError, match="another process has been replacing"):
            storage.replace_if("x", b"1", None, timeout_s=0.05)
        other.kill()
    assert storage.replace_if("x", b"1", None, timeout_s=5) is not None


def test_a_request_that_takes_too_long_is_given_up(s3):
    storage = open_storage("s3a://lake/slow", s3)
    with pytest.raises(StorageError, match="no answer within 1e-05 s"):
        storage.replace_if("x", b"1", None, timeout_s=0.00001)


def test_a_bucket_that_does_not_exist_is_no_absent_file(s3):
    storage = open_storage("s3a://nowhere/t", s3)
    for call in (lambda: storage.read_versioned("x"), lambda: storage.replace_if("x", b"1", None)):
        with pytest.raises(StorageError, match="there is no bucket 'nowhere'"):
            call()


@pytest.mark.parametrize(("unknown", "version"), [("IfMatch", "v"), ("IfNoneMatch", None)])
def test_a_client_that_would_leave_the_condition_out_puts_nothing(s3, monkeypatch, unknown, version):
    storage = open_storage(f"s3a://lake/{uuid.uuid4()}", s3)
    storage.put("x", b"1")
    known = {"Bucket", "Key", "Body", "IfMatch", "IfNoneMatch"} - {unknown}
    operation = SimpleNamespace(input_shape=SimpleNamespace(members=dict.fromkeys(known)))
    older = SimpleNamespace(meta=SimpleNamespace(service_model=SimpleNamespace(operation_model=lambda _: operation)))

    async def get_older(_bucket):
        return older

    with monkeypatch.context() as patched:
        patched.setattr(storage._fs, "get_s3", get_older)
        with pytest.raises(InvalidConfigError, match=f"does not know {unknown} of PutObject"):
            storage.replace_if("x", b"2", version)
    assert storage.read("x") == b"1"

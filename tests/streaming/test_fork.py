"""Processes that fork, or that start others: identity belongs to a process, and a child holds nothing of its parent."""

import atexit
import contextlib
import multiprocessing
import os
import socket
import sys

import pyarrow as pa
import pytest
from tiers import quick

from hudistream import ArrowSink
from table import HudiError, InvalidConfigError, read_table
from table.options.groups import HeartbeatSettings
from table.storage.local import LocalStorage
from table.transaction.heartbeat import WriterIdentity
from table.transaction.lease import Lease, find_holder
from table.transaction.membership import Membership
from table.transaction.signs import ALIVE_FOLDER

SHARED = {
    "hoodie.write.concurrency.mode": "optimistic_concurrency_control",
    "hoodie.datasource.write.streaming.checkpoint.identifier": "forked",
    "hudistream.clean.grace.ms": "0",
    "hoodie.clean.commits.retained": "1",
    "hoodie.keep.min.commits": "3",
    "hoodie.keep.max.commits": "5",
}
BATCHES = 6


def make_sink(path, shared=True, **more):
    return ArrowSink(path, SHARED if shared else {}, key="id", operation="upsert", workers=1, **more)


def ids(*names):
    return pa.table({"id": list(names)})


def write_batches(sink, name, acknowledged):
    """Writes batches of one child, and notes those that were acknowledged."""
    with open(acknowledged, "w") as file:
        for number in range(BATCHES):
            for _ in range(20):
                with contextlib.suppress(HudiError):
                    sink.write(ids(f"{name}-{number}-a", f"{name}-{number}-b"))
                    file.write(f"{name}-{number}-a\n{name}-{number}-b\n")
                    file.flush()
                    break
    sink.stop()


def in_child(act):
    """Runs something in a forked child, with its exit as Python does it. Returns the exit code."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            act()
            code = 0
        finally:
            os._exit(code)
    return pid


def wait_for(*pids):
    return [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids]


def acknowledged_in(folder):
    return {line for path in folder.glob("acknowledged-*") for line in path.read_text().split()}


@pytest.mark.parametrize("before", ["no batch", "a batch"])
def test_forked_children_of_several_writers_lose_no_acknowledged_row(tmp_path, before):
    path = str(tmp_path / "t")
    sink = make_sink(path)
    wanted = set()
    if before == "a batch":
        sink.write(ids("0"))
        wanted.add("0")
    children = [in_child(lambda n=n: write_batches(sink, f"c{n}", tmp_path / f"acknowledged-{n}")) for n in range(2)]
    assert wait_for(*children) == [0, 0]
    wanted |= acknowledged_in(tmp_path)
    assert len(wanted) >= 4 * BATCHES
    assert sorted(read_table(path).column("id").to_pylist()) == sorted(wanted)
    sink.stop()


@pytest.mark.parametrize("method", quick(1, multiprocessing.get_all_start_methods()))
def test_processes_of_multiprocessing_write_beside_each_other(tmp_path, method):
    path = str(tmp_path / "t")
    sink = make_sink(path)
    sink.write(ids("0"))
    context = multiprocessing.get_context(method)
    children = [
        context.Process(target=write_batches, args=(sink, f"c{n}", tmp_path / f"acknowledged-{n}")) for n in range(2)
    ]
    for child in children:
        child.start()
    for child in children:
        child.join()
    assert [child.exitcode for child in children] == [0, 0]
    wanted = acknowledged_in(tmp_path)
    assert len(wanted) == 4 * BATCHES
    assert sorted(read_table(path).column("id").to_pylist()) == sorted({"0", *wanted})
    sink.stop()


def test_the_workers_of_a_preforking_server_write_beside_each_other(tmp_path):
    """The sink is made where the server loads its application; each worker answers requests by batches."""
    path, sink = str(tmp_path / "t"), None
    sink = make_sink(path)
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()

        def serve():
            for _ in range(4):
                connection, _ = server.accept()
                with connection:
                    sink.write(ids(connection.recv(100).decode()))
                    connection.sendall(b"done")
            sink.stop()

        workers = [in_child(serve) for _ in range(2)]
        for number in range(8):
            with socket.create_connection(server.getsockname()) as client:
                client.sendall(f"r{number}".encode())
                assert client.recv(10) == b"done"
    assert wait_for(*workers) == [0, 0]
    assert sorted(read_table(path).column("id").to_pylist()) == [f"r{number}" for number in range(8)]


def test_a_child_is_refused_while_its_parent_has_the_table_alone(tmp_path):
    path = str(tmp_path / "t")
    sink = make_sink(path, shared=False)
    with sink:
        sink.write(ids("0"))
        told = tmp_path / "told"

        def act():
            try:
                sink.write(ids("1"))
            except HudiError as error:
                told.write_text(f"{type(error).__name__}: {error}")

        assert wait_for(in_child(act)) == [0]
        assert f"process {os.getpid()}" in told.read_text()
        assert told.read_text().startswith("TableHeldError")
        sink.write(ids("2"))
    assert sorted(read_table(path).column("id").to_pylist()) == ["0", "2"]


@pytest.mark.parametrize("make", [Lease, Membership])
def test_a_child_cannot_hold_the_table_with_the_lease_of_its_parent(tmp_path, make):
    lease, told = make(LocalStorage(str(tmp_path)), HeartbeatSettings()), tmp_path / "told"

    def act():
        with pytest.raises(InvalidConfigError, match=f"belongs to process {os.getppid()}, and this is its forked"):
            lease.hold(WriterIdentity("sink", "query", lease.owner))
        told.write_text("refused")

    assert wait_for(in_child(act)) == [0]
    assert told.read_text() == "refused"


def test_a_child_that_was_forked_in_the_middle_of_a_batch_is_refused(tmp_path):
    path, told = str(tmp_path / "t"), tmp_path / "told"

    def fork(_):
        def act():
            with pytest.raises(InvalidConfigError, match="make another ArrowSink in the child") as found:
                sink.write(ids("1"))
            told.write_text(str(found.value))

        assert wait_for(in_child(act)) == [0]

    sink = make_sink(path, validators=[fork])
    sink.write(ids("0"))
    assert f"forked from process {os.getpid()}" in told.read_text()
    assert read_table(path).column("id").to_pylist() == ["0"]
    sink.stop()


@pytest.mark.parametrize("shared", [False, True])
def test_a_child_releases_nothing_of_its_parent_not_at_its_exit_either(tmp_path, shared):
    path = str(tmp_path / "t")
    with make_sink(path, shared) as sink:
        sink.write(ids("0"))
        storage = LocalStorage(path)
        before = find_holder(storage), sorted(entry.name for entry in storage.list_dir(ALIVE_FOLDER))

        def exits():
            sink.stop()
            assert not sink._writer.lease.is_held
            sink._writer.lease.release()
            atexit._run_exitfuncs()  # finalizers among them

        assert wait_for(in_child(exits)) == [0]
        assert (find_holder(storage), sorted(entry.name for entry in storage.list_dir(ALIVE_FOLDER))) == before
        sink.write(ids("1"))
    assert sorted(read_table(path).column("id").to_pylist()) == ["0", "1"]


def test_a_lease_of_the_parent_cannot_be_taken_in_the_child(tmp_path):
    sink = make_sink(str(tmp_path / "t"))
    sink.write(ids("0"))

    def act():
        with pytest.raises(InvalidConfigError, match=f"belongs to process {os.getppid()}"):
            sink._writer.lease.hold(None)
        sys.stdout.flush()

    assert wait_for(in_child(act)) == [0]
    sink.stop()

import ctypes
import errno
import os
import pickle
import threading
import uuid

import fsspec
import pytest
from engine import Engine, key_set, rows

from table import InvalidConfigError, StorageError, read_table
from table.config.table_config import TableConfig
from table.hudi_table import HudiTable
from table.storage import local_creation
from table.storage.interface import join
from table.storage.local import LocalStorage
from table.storage.opening import open_storage
from table.storage.remote import FsspecStorage


@pytest.fixture(params=["local", "memory"])
def storage(request, tmp_path):
    return open_storage(str(tmp_path / "t") if request.param == "local" else f"memory://{uuid.uuid4()}/t")


def test_what_every_store_does(storage):
    assert storage.list_dir("") == []
    assert storage.create_exclusive("a/b", b"1")
    assert not storage.create_exclusive("a/b", b"2")
    assert storage.create_exclusive("a/empty", b"")
    assert not storage.create_exclusive("a/empty", b"")
    assert storage.read("a/b") == b"1"
    storage.put("a/b", b"3")
    assert storage.read("a/b") == b"3"
    assert {(e.name, e.size_bytes, e.is_dir) for e in storage.list_dir("a")} == {("b", 1, False), ("empty", 0, False)}
    assert [(e.name, e.is_dir) for e in storage.list_dir("") if e.name != ".hoodie"] == [("a", True)]
    assert [(e.name, e.size_bytes) for e in storage.list_prefix("a", "em")] == [("empty", 0)]
    assert storage.list_prefix("", "a") == storage.list_prefix("a/nothing", "b") == []  # files alone
    assert storage.exists("a/b")
    assert not storage.exists("a/c")
    with pytest.raises(FileNotFoundError):
        storage.read("a/c")
    with pytest.raises(FileNotFoundError):
        storage.open_input("a/c")
    assert storage.delete("a/b")
    assert not storage.delete("a/b")
    assert [e.name for e in storage.list_dir("a")] == ["empty"]
    storage.remove_empty_dir("a")
    assert storage.exists("a/empty")
    assert storage.delete("a/empty")
    storage.remove_empty_dir("a")
    assert storage.list_dir("a") == []
    assert pickle.loads(pickle.dumps(storage)).base_uri == storage.base_uri


def test_only_one_of_many_creates_a_file(storage):
    won = []
    barrier = threading.Barrier(8)

    def create(number):
        barrier.wait()
        if storage.create_exclusive("x/instant", str(number).encode() * 1000, durable=True):
            won.append(number)

    threads = [threading.Thread(target=create, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if isinstance(storage, LocalStorage):  # fsspec's memory store is for one thread
        assert len(won) == 1
        assert storage.read("x/instant") == str(won[0]).encode() * 1000


def test_a_table_in_memory_takes_batches(tmp_path):
    path = f"memory://{uuid.uuid4()}/t"
    engine = Engine(open_storage(path))
    engine.write(0, rows(range(30)))
    engine.write(1, rows(range(30, 60)))
    assert key_set(read_table(path)) == key_set(rows(range(60)))


def without_links(monkeypatch, *, renames):
    def refuse(_source, _target):
        raise OSError(errno.EPERM, "not here")

    def is_unknown(*_arguments):
        ctypes.set_errno(errno.EINVAL)
        return -1

    monkeypatch.setattr(os, "link", refuse)
    if not renames:
        monkeypatch.setattr(local_creation, "_find_renameat2", lambda: is_unknown)


@pytest.mark.parametrize("renames", [True, False])
def test_where_links_are_not_supported_a_file_is_still_created_once(tmp_path, monkeypatch, renames):
    without_links(monkeypatch, renames=renames)
    storage = LocalStorage(str(tmp_path))
    assert storage.create_exclusive("x/a", b"1", durable=True)
    assert not storage.create_exclusive("x/a", b"2", durable=True)
    assert storage.read("x/a") == b"1"
    assert os.listdir(tmp_path / ".hoodie") == []


def test_a_file_that_could_not_be_filled_is_not_there(tmp_path, monkeypatch):
    def is_full(_descriptor):
        raise OSError(errno.ENOSPC, "full")

    without_links(monkeypatch, renames=False)
    storage = LocalStorage(str(tmp_path))
    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", is_full)
        with pytest.raises(StorageError, match="full"):
            storage.create_exclusive("a", b"1")
    assert storage.create_exclusive("a", b"2")
    assert storage.read("a") == b"2"


def test_what_lies_below_a_file_is_not_there(tmp_path):
    storage = LocalStorage(str(tmp_path))
    (tmp_path / "a").write_text("a file where a folder is meant")
    assert not storage.delete("a/b")
    assert (storage.list_dir("a"), storage.exists("a/b")) == ([], False)
    with pytest.raises(FileNotFoundError):
        storage.read("a/b")


def test_hadoops_checksum_of_a_replaced_file_is_removed(tmp_path):
    storage = LocalStorage(str(tmp_path))
    storage.create_exclusive("a", b"1")
    (tmp_path / ".a.crc").write_text("old")
    storage.put("a", b"2")
    assert not (tmp_path / ".a.crc").exists()


@pytest.mark.parametrize("exists", [True, False])
def test_a_failed_precondition_of_s3_is_an_existing_file_only_if_it_is_there(exists):
    class Bucket(fsspec.AbstractFileSystem):
        protocol = "fake-s3"
        calls = 0

        def pipe_file(self, path, value, mode="overwrite", **kwargs):
            Bucket.calls += 1
            raise OSError(errno.EINVAL, "PreconditionFailed")

        def exists(self, path, **kwargs):
            return exists

    fsspec.register_implementation("fake-s3", Bucket, clobber=True)
    storage = FsspecStorage("fake-s3://b/t", "fake-s3", "b/t")
    if exists:
        assert not storage.create_exclusive("x", b"")
    else:
        with pytest.raises(StorageError, match="collide"):
            storage.create_exclusive("x", b"")
        assert Bucket.calls > 1


@pytest.mark.parametrize(
    ("path", "base"),
    [
        ("/data/t", "/data/t"),
        ("/data/t/", "/data/t"),
        ("file:///data/t", "/data/t"),
        ("file:/data/t", "/data/t"),
        ("file:///data/a%20b", "/data/a b"),
        ("t", os.path.join(os.getcwd(), "t")),
    ],
)
def test_local_paths_as_people_write_them(path, base):
    assert open_storage(path) == LocalStorage(base)


def test_a_backend_that_would_overwrite_is_refused():
    class Old(fsspec.AbstractFileSystem):
        protocol = "old"

        def pipe_file(self, path, value):
            raise AssertionError

        def ls(self, path, detail=True, **kwargs):
            return []

    fsspec.register_implementation("old", Old, clobber=True)
    with pytest.raises(InvalidConfigError, match="only if it is absent"):
        open_storage("old://b/t").create_exclusive(".hoodie/x", b"")


def test_schemes_lead_to_backends():
    storage = open_storage("memory://bucket/t/")
    assert (storage.base_uri, storage.protocol) == ("memory://bucket/t", "memory")
    with pytest.raises(InvalidConfigError, match="nope"):
        open_storage("nope://bucket/t")
    with pytest.raises(InvalidConfigError, match="empty"):
        open_storage(" ")


@pytest.mark.parametrize(
    ("base", "path"),
    [
        ("/data/t", "/data/t/p/a.parquet"),
        ("/data/t", "file:/data/t/p/a.parquet"),
        ("/data/t", "file:///data/t/p/a.parquet"),
        ("/moved/t", "/data/t/p/a.parquet"),
        ("s3a://b/t", "s3a://b/t/p/a.parquet"),
        ("s3://b/t", "s3a://b/t/p/a.parquet"),
    ],
)
def test_paths_in_plans_are_found_below_the_table(base, path):
    storage = LocalStorage(base) if base.startswith("/") else FsspecStorage(base, "s3", "b/t")
    assert storage.relative(path) == "p/a.parquet"
    assert storage.relative(storage.absolute("p/a.parquet")) == "p/a.parquet"


def test_a_path_of_another_table_is_refused():
    with pytest.raises(InvalidConfigError, match="does not lie"):
        LocalStorage("/data/t").relative("/data/other/p/a.parquet")


def test_empty_parts_vanish():
    assert join("", "a", "", "b") == "a/b"


def test_no_permission_is_said_with_the_path(tmp_path, monkeypatch):
    def denied(*_args, **_kwargs):
        raise PermissionError(errno.EACCES, "Permission denied")

    storage = LocalStorage(str(tmp_path))
    monkeypatch.setattr(os, "makedirs", denied)
    with pytest.raises(StorageError, match=r"create '\.hoodie/x'.*Permission denied"):
        storage.create_exclusive(".hoodie/x", b"1")


def test_no_text_of_anything_that_holds_a_storage_shows_its_secrets():
    from streaming.plan.quarantine import Quarantine
    from streaming.validators import PendingBatch

    storage = open_storage("s3a://lake/t", {"key": "AKIA", "secret": "S3CR3T"})
    assert storage.options == {"key": "AKIA", "secret": "S3CR3T"}
    assert pickle.loads(pickle.dumps(storage)) == storage
    engine = Engine(open_storage("memory://x/t"), aside=storage)
    for holder in (
        storage,
        PendingBatch("t", 1, "x", (), None, storage),
        Quarantine(storage, "t-0", "x", 1, "s", 0),
        HudiTable(storage, TableConfig("t", ("id",))),
        engine.writer,
        vars(engine.writer),
    ):
        for text in (repr(holder), str(holder), f"{holder}"):
            assert "S3CR3T" not in text
            assert "AKIA" not in text


@pytest.mark.parametrize(
    ("error", "said"),
    [(OSError("Unable to load libhdfs\nand a hundred lines"), "Unable to load libhdfs"), (OSError(), "OSError")],
    ids=["many lines", "none"],
)
def test_a_backend_that_does_not_open_is_named_in_one_line(monkeypatch, error, said):
    def fails(*_):
        raise error

    monkeypatch.setattr("table.storage.opening.open_backend", fails)
    with pytest.raises(InvalidConfigError, match=f"can open 'hdfs://a/b': {said}; supported are") as refused:
        open_storage("hdfs://a/b")
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("path", "partition_path"),
    [
        ("/data/old/p=1/a.parquet", "p=1"),  # the folder was renamed
        ("/alias/old/a.parquet", ""),
        ("s3a://bucket/t/lake/t/p=1/a.parquet", "p=1"),  # a folder above had the table's name, too
    ],
)
def test_a_file_of_a_renamed_table_is_found_in_its_partition_path(path, partition_path):
    assert LocalStorage("/data/t").relative(path, partition_path) == join(partition_path, "a.parquet")


@pytest.mark.parametrize("path", ["/data/old/p=1/a.parquet", "/data/old/p=2/../p=1/x"])
def test_a_file_elsewhere_is_none_of_the_table(path):
    with pytest.raises(InvalidConfigError, match="does not lie in the table"):
        LocalStorage("/data/t").relative(path, "p=2")


@pytest.mark.parametrize("asks", [lambda store: store.exists("a/b"), lambda store: store.is_open("1")])
def test_a_disk_that_gives_no_answer_does_not_say_that_a_file_is_not_there(tmp_path, monkeypatch, asks):
    store = LocalStorage(str(tmp_path))
    assert not asks(store)
    (tmp_path / "a").write_text("a file, and no folder")
    assert not asks(store)
    real = os.stat

    def fails(path, *given, **named):
        if str(path).startswith(str(tmp_path)):
            raise OSError(errno.EIO, "Input/output error")
        return real(path, *given, **named)

    monkeypatch.setattr(os, "stat", fails)
    with pytest.raises(StorageError, match="could not look for .*Input/output error"):
        asks(store)

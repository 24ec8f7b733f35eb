"""Backends are judged by what they do: of two creations of a file the second must fail."""

import fsspec
import pytest
from fsspec.implementations.memory import MemoryFileSystem

from table.errors import InvalidConfigError, StorageError
from table.storage.opening import open_storage


class TakesAnything(MemoryFileSystem):
    """As adlfs: the signature does not name the mode, and the mode is kept."""

    protocol = "anything"
    store, pseudo_dirs = {}, [""]
    creations = 0

    def pipe_file(self, path, value, **kwargs):
        TakesAnything.creations += kwargs.get("mode") == "create"
        return super().pipe_file(path, value, **kwargs)


class Overwrites(TakesAnything):
    protocol = "overwrites"
    store, pseudo_dirs = {}, [""]

    def pipe_file(self, path, value, **_):
        return super().pipe_file(path, value)


class KnowsNoMode(TakesAnything):
    protocol = "modeless"
    store, pseudo_dirs = {}, [""]

    def pipe_file(self, path, value):
        return super().pipe_file(path, value)


class IsDown(TakesAnything):
    protocol = "down"
    store, pseudo_dirs = {}, [""]

    def pipe_file(self, path, value, **_):
        raise TimeoutError("no answer")


@pytest.fixture(autouse=True)
def _registered():
    for each in (TakesAnything, Overwrites, KnowsNoMode, IsDown):
        each.store.clear()
        fsspec.register_implementation(each.protocol, each, clobber=True)


def test_a_backend_that_keeps_the_mode_is_tried_once_for_each_bucket():
    before = TakesAnything.creations
    for name in "ab":
        assert open_storage("anything://bucket/kept").create_exclusive(f".hoodie/{name}", b"x")
    assert not open_storage("anything://bucket/kept").create_exclusive(".hoodie/a", b"y")
    assert TakesAnything.creations == before + 5  # two to try it, three that were asked for
    assert [path for path in TakesAnything.store if "probe" in path] == []


@pytest.mark.parametrize("address", ["overwrites://bucket/t", "modeless://bucket/t"])
def test_a_backend_that_would_overwrite_is_refused_before_anything_is_created(address):
    storage = open_storage(address)
    for _ in range(2):
        with pytest.raises(InvalidConfigError, match="cannot create a file only if it is absent"):
            storage.create_exclusive(".hoodie/a", b"x")
    assert not Overwrites.store
    assert not KnowsNoMode.store


def test_a_store_without_an_answer_is_not_taken_for_one_that_overwrites():
    with pytest.raises(StorageError, match="no answer"):
        open_storage("down://bucket/t").create_exclusive(".hoodie/a", b"x")

"""Places that records name: none leads out of the table, whoever wrote the record."""

import os

import pytest

from table.errors import CorruptFileError, InvalidConfigError
from table.storage.local import LocalStorage
from table.storage.remote import FsspecStorage
from table.timeline.metadata.clean import CleanPlan, decode_clean_plan, encode_clean_plan
from table.timeline.metadata.compaction import (
    CompactionOperation,
    CompactionPlan,
    decode_compaction_plan,
    encode_compaction_plan,
)
from table.timeline.metadata.places import name_of, partition_of
from table.timeline.metadata.rollback import (
    RollbackPlan,
    RollbackRequest,
    decode_rollback_plan,
    encode_rollback_plan,
)
from table.timeline.metadata.savepoint import SavepointMetadata, decode_savepoint, encode_savepoint

OUTSIDE = ["../other/x", "a/../../other", "/etc", "..", ".hoodie", ".hoodie/x", "a/..", "a\0b"]


@pytest.mark.parametrize("path", ["", "a", "a=1/b=2", "a..b", "..a/b", ".hoodie_like/x", "äö/*"])
def test_partition_paths_within_the_table_stay_as_they_are(path):
    assert partition_of(path) == path


@pytest.mark.parametrize("path", OUTSIDE)
def test_no_plan_names_a_partition_outside_of_the_table(path):
    with pytest.raises(ValueError, match="does not lie in the table"):
        partition_of(path)
    compaction = CompactionPlan((CompactionOperation(path, "f", "1", None, ("l",)),))
    rollback = RollbackPlan("1", "commit", (RollbackRequest(path, "f", "1", ("/t/p/f",)),))
    clean = CleanPlan("KEEP_LATEST_COMMITS", ("1", "commit"), "1", {path: ("/t/p/f",)})
    savepoint = SavepointMetadata("u", 1, "", {path: ("f",)})
    for decode, data in (
        (decode_compaction_plan, encode_compaction_plan(compaction)),
        (decode_rollback_plan, encode_rollback_plan(rollback)),
        (decode_clean_plan, encode_clean_plan(clean)),
        (decode_savepoint, encode_savepoint(savepoint)),
    ):
        with pytest.raises(CorruptFileError, match="the-record"):
            decode(data, "the-record")


@pytest.mark.parametrize("name", ["../x", "a/b", "..", ".", "a\0"])
def test_no_plan_names_a_file_outside_of_its_partition(name):
    with pytest.raises(ValueError, match="no name of a file"):
        name_of(name)
    with pytest.raises(CorruptFileError, match="the-record"):
        decode_savepoint(encode_savepoint(SavepointMetadata("u", 1, "", {"p": (name,)})), "the-record")
    plan = encode_compaction_plan(CompactionPlan((CompactionOperation("p", name, "1", None, ("l",)),)))
    with pytest.raises(CorruptFileError, match="the-record"):
        decode_compaction_plan(plan, "the-record")


@pytest.mark.parametrize("kind", ["local", "memory"])
@pytest.mark.parametrize("path", ["../victim/f", "p/../../victim/f", "/victim/f"])
def test_no_call_of_a_store_leads_out_of_the_table(tmp_path, kind, path):
    (tmp_path / "victim").mkdir()
    (tmp_path / "victim" / "f").write_text("theirs")
    local = kind == "local"
    storage = LocalStorage(str(tmp_path / "t")) if local else FsspecStorage("memory://t", "memory", "/t", {})
    calls = [
        lambda: storage.read(path), lambda: storage.list_dir(path), lambda: storage.exists(path),
        lambda: storage.create_exclusive(path, b"x"), lambda: storage.put(path, b"x"), lambda: storage.absolute(path),
        lambda: storage.open_input(path), lambda: storage.open_output(path), lambda: storage.delete(path),
    ]  # fmt: skip
    for call in calls:
        with pytest.raises(InvalidConfigError, match=r"does not lie in the table|is not a data file of the table"):
            call()
    assert (tmp_path / "victim" / "f").read_text() == "theirs"


FOLDERS = (".hoodie/.temp", ".hoodie/.hudistream/pins", ".hoodie/.hudistream/lease", ".hoodie/archived", ".hoodie", "p")


@pytest.mark.parametrize("folder", FOLDERS)
def test_nothing_is_made_below_a_symbolic_link(tmp_path, folder):
    victim, table = tmp_path / "victim", tmp_path / "t"
    victim.mkdir()
    link = table / folder
    link.parent.mkdir(parents=True)
    link.symlink_to(victim)
    storage = LocalStorage(str(table))
    inside = f"{folder}/x/y"
    for make in (
        lambda: storage.put(inside, b"x"),
        lambda: storage.create_exclusive(inside, b"x"),
        lambda: storage.create_exclusive(inside, b""),
        lambda: storage.make_dir(inside),
        lambda: storage.open_output(inside),
    ):
        with pytest.raises(InvalidConfigError, match="is a symbolic link"):
            make()
    assert os.listdir(victim) == []


def test_the_folder_of_the_table_may_be_a_link(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "t").symlink_to(tmp_path / "real")
    storage = LocalStorage(str(tmp_path / "t"))
    storage.put("p/f", b"x")
    assert (tmp_path / "real" / "p" / "f").read_bytes() == b"x"
    assert storage.delete("p/f")


def test_a_file_that_is_a_link_is_not_written_through(tmp_path):
    (tmp_path / "theirs").write_text("theirs")
    (tmp_path / "t" / "p").mkdir(parents=True)
    (tmp_path / "t" / "p" / "f").symlink_to(tmp_path / "theirs")
    with pytest.raises(InvalidConfigError, match="is a symbolic link"):
        LocalStorage(str(tmp_path / "t")).open_output("p/f")
    assert (tmp_path / "theirs").read_text() == "theirs"

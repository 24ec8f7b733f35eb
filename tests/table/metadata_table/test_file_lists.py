"""The metadata table that Hudi wrote lists the same files as the store; where it may not, the store is asked."""

import pickle
import shutil
from pathlib import Path

import pytest

from table.config.table_config import update_properties
from table.errors import CorruptFileError
from table.hudi_table import HudiTable
from table.metadata_table.drop import drop_present_metadata_table
from table.metadata_table.metadata_listing import MetadataListing, narrow_paths
from table.metadata_table.metadata_table import METADATA_FOLDER
from table.metadata_table.records import ListRecord, combine
from table.scan.read_table import read_table
from table.services.check.check import check
from table.services.check.finding import Kind, Repair, Severity
from table.snapshot import Snapshot
from table.storage.interface import METAFOLDER, join
from table.storage.local import LocalStorage
from table.view.store_listing import StorageListing

GOLDEN = Path(__file__).parents[2] / "golden"
WITH_LISTS = [
    "cow_metadata_table",
    "v8_cow_archived",
    "v8_cow_cleaned",
    "v8_cow_defaults",
    "v8_cow_replaced",
    "v8_mor_compacted",
    "v8_mor_logs",
    "v9_cow_cleaned",
    "v9_cow_defaults",
    "v9_cow_indexes",
    "v9_mor_compacted",
    "v9_mor_logs",
]


@pytest.fixture(autouse=True)
def _utc(utc):
    """The golden tables' zone."""


def groups_by(listing, snapshot):
    """What a reader sees by a listing: partition paths with their file groups."""
    found = {path: tuple(snapshot.group_files(path, entries)) for path, entries in listing.walk()}
    return {path: groups for path, groups in found.items() if groups}


def sized(entries):
    """Names and sizes of data files."""
    return {
        entry.name: entry.size_bytes for entry in entries if not entry.name.startswith(".hoodie") and not entry.is_dir
    }


@pytest.mark.parametrize("name", WITH_LISTS)
def test_a_reader_sees_the_same_slices_by_the_lists_as_by_the_store(golden, name):
    path, _ = golden(name)
    snapshot = Snapshot.load(HudiTable.open(path))
    if not snapshot.config.metadata_partitions:
        pytest.fail(f"{name} has no metadata table: take another golden table")
    listing, store = snapshot.listing, StorageListing(snapshot.storage)
    assert isinstance(listing, MetadataListing)
    assert listing._load() is not None
    assert groups_by(listing, snapshot) == groups_by(store, snapshot) != {}
    for partition_path in listing.list_partition_paths():
        listed = sized(listing.list_files(partition_path))
        assert listed.items() <= sized(store.list_files(partition_path)).items()


def test_a_scan_lists_no_folder_of_data(golden, monkeypatch):
    path, expected = golden("v8_cow_defaults")
    listed, real = [], LocalStorage.list_dir
    monkeypatch.setattr(LocalStorage, "list_dir", lambda self, folder: listed.append(folder) or real(self, folder))
    assert read_table(path).num_rows == len(expected["rows"])
    assert listed[:2] == [join(METADATA_FOLDER, "files")] * 2
    assert all(folder.startswith(METAFOLDER) for folder in listed)


def test_a_writer_that_ignored_the_metadata_table_is_noticed(golden):
    path, _ = golden("v8_cow_defaults")
    table = HudiTable.open(path)
    newest = table.load_timeline().completed_writes[-1]
    for file in (Path(path) / ".hoodie/metadata/.hoodie/timeline").glob(f"{newest.time}*"):
        file.unlink()
    snapshot = Snapshot.load(table)
    assert snapshot.listing.list_partition_paths() == StorageListing(table.storage).list_partition_paths()
    assert snapshot.listing._load() is None


@pytest.mark.parametrize("damage", ["gone", "cut", "changed", "base", "property"])
def test_where_the_lists_cannot_be_read_the_store_is_asked(golden, damage, logs):
    path, _ = golden("v9_cow_defaults")
    table = HudiTable.open(path)
    folder = Path(path) / ".hoodie/metadata/files"
    if damage == "gone":
        shutil.rmtree(folder)
    elif damage == "property":  # another writer dropped it since the table was opened
        update_properties(table.storage, {"hoodie.table.metadata.partitions": ""})
    elif damage == "base":
        (base,) = folder.glob("*.hfile")
        data = bytearray(base.read_bytes())
        data[60] ^= 0xFF  # within the first data block
        base.write_bytes(data)
    else:
        log = sorted(folder.glob(".files*"))[-1]
        data = bytearray(log.read_bytes())
        data[len(data) // 2] ^= 0xFF
        log.write_bytes(data[:-5] if damage == "cut" else data)
    snapshot = Snapshot.load(table)
    assert groups_by(snapshot.listing, snapshot) == groups_by(StorageListing(table.storage), snapshot)
    told = [entry["log_level"] for entry in logs if entry["event"] == "metadata_table_not_used"]
    assert told == ["info" if damage == "property" else "warning"]


def test_one_folder_is_listed_without_reading_the_lists(golden):
    path, _ = golden("v8_cow_defaults")
    snapshot = Snapshot.load(HudiTable.open(path))
    (partition_path, *_) = StorageListing(snapshot.storage).list_partition_paths()
    by_store = sized(snapshot.listing.list_files(partition_path))
    assert snapshot.listing._lists is None
    snapshot.listing.list_partition_paths()
    assert by_store.items() >= sized(snapshot.listing.list_files(partition_path)).items() > {}.items()


def test_a_metadata_table_of_version_6_in_a_table_of_version_8_is_read(golden):
    """Hudi 1.0.2 makes one where its job names no table version and the table is not its own."""
    path, _ = golden("v8_cow_defaults")
    meta = Path(path) / ".hoodie/metadata/.hoodie"
    properties = (meta / "hoodie.properties").read_text()
    changes = {
        "hoodie.timeline.layout.version=2": "hoodie.timeline.layout.version=1",
        "hoodie.table.version=8": "hoodie.table.version=6",
    }
    for old, new in changes.items():
        assert old in properties
        properties = properties.replace(old, new)
    (meta / "hoodie.properties").write_text(properties)
    for file in (meta / "timeline").iterdir():
        if file.is_file():  # the times of completion go
            time, _, rest = file.name.partition(".")
            file.rename(meta / f"{time.partition('_')[0]}.{rest}")
    base = next((Path(path) / ".hoodie/metadata/files").glob("*.hfile")).name.rsplit("_", 1)[1].removesuffix(".hfile")
    for number, log in enumerate(sorted((Path(path) / ".hoodie/metadata/files").glob(".files*.log.*"))):
        log.rename(log.with_name(f".files-0000-0_{base}.log.{number + 1}_0-0-0"))
    snapshot = Snapshot.load(HudiTable.open(path))
    assert groups_by(snapshot.listing, snapshot) == groups_by(StorageListing(snapshot.storage), snapshot)
    assert snapshot.listing._load() is not None


def test_a_record_that_turns_out_damaged_on_the_way_sends_the_walk_to_the_store(golden):
    path, _ = golden("v8_cow_partitions")
    snapshot = Snapshot.load(HudiTable.open(path))
    lists, asked = snapshot.listing._load(), []

    def files(partition_path):
        asked.append(partition_path)
        raise CorruptFileError("damaged")

    lists.files = files
    assert groups_by(snapshot.listing, snapshot) == groups_by(StorageListing(snapshot.storage), snapshot)
    assert len(asked) == 1


def test_a_listing_that_travels_asks_the_store(golden):
    path, _ = golden("v8_cow_defaults")
    snapshot = Snapshot.load(HudiTable.open(path))
    assert pickle.loads(pickle.dumps(snapshot.listing)) == StorageListing(snapshot.storage)


def test_a_dropped_metadata_table_is_looked_for_once_more_and_nothing_happens(golden):
    path, _ = golden("v8_cow_defaults")
    storage = HudiTable.open(path).storage
    drop_present_metadata_table(storage)
    assert not (Path(path) / ".hoodie/metadata").exists()
    before = (Path(path) / ".hoodie/hoodie.properties").read_bytes()
    drop_present_metadata_table(storage)
    assert (Path(path) / ".hoodie/hoodie.properties").read_bytes() == before


@pytest.mark.pure
@pytest.mark.parametrize(
    ("records", "left"),
    [
        ([], {}),
        ([{"a": (5, False)}], {"a": 5}),
        ([{"a": (5, False)}, {"a": (7, False), "b": (1, False)}], {"a": 7, "b": 1}),
        ([{"a": (7, False)}, {"a": (5, False)}], {"a": 7}),
        ([{"a": (5, False)}, {"a": (0, True)}], {}),
        ([{"a": (0, True)}, {"a": (5, False)}], {"a": 5}),
        ([{"b": (0, True)}, {"a": (5, False)}], {"a": 5}),
    ],
)
def test_records_of_a_key_add_up(records, left):
    assert combine(map(ListRecord, records)) == left


@pytest.mark.pure
def test_partition_paths_are_narrowed_level_by_level():
    paths, asked = ["", "a", "a/x", "a/y", "b/x", "b/y/z"], []

    def narrow(folders):
        asked.append(list(folders))
        return [folder for folder in folders if folder not in {"b", "a/y"}]

    assert narrow_paths(paths, narrow) == ["", "a", "a/x"]
    assert asked == [["a", "b"], ["a/x", "a/y"]]


def findings_of(path, **how):
    """What a check says of the metadata table."""
    return [f for f in check(HudiTable.open(path), **how).findings if f.kind is Kind.METADATA_TABLE]


def test_a_check_compares_the_lists_with_the_store_and_drops_what_differs(golden):
    path, _ = golden("v8_cow_partitions")
    assert findings_of(path) == []
    folder = next(file.parent for file in Path(path).rglob("*.parquet"))
    newest = max(folder.glob("*.parquet"), key=lambda file: file.name.rsplit("_", 1)[1])
    with newest.open("ab") as file:
        file.write(b"\0")  # as a file that another writer put in its place
    (found,) = findings_of(path)
    assert (found.severity, found.repair) == (Severity.ERROR, Repair.POSSIBLE)
    assert str(newest.relative_to(path)) in found.text
    (repaired,) = findings_of(path, repair=True)
    assert repaired.repair is Repair.DONE
    assert HudiTable.open(path).config.metadata_partitions == ""
    assert findings_of(path) == []


def test_a_check_warns_of_lists_that_cannot_be_read(golden):
    path, _ = golden("v9_cow_defaults")
    shutil.rmtree(Path(path) / ".hoodie/metadata/files")
    (found,) = findings_of(path)
    assert (found.severity, found.where) == (Severity.WARNING, METADATA_FOLDER)

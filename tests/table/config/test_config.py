import errno
import fcntl
import zlib
from contextlib import suppress
from dataclasses import dataclass, field, replace

import pytest
from faults import FaultyStorage, Fuse, PowerCut
from hypothesis import given
from hypothesis import strategies as st

from table import hudi_table
from table.config.merge_mode import PAYLOAD_STRATEGY, MergeMode, merge_mode_in
from table.config.properties import format_properties, parse_properties
from table.config.table_config import (
    BACKUP_FILE,
    PROPERTIES_FILE,
    TableConfig,
    checksum,
    config_from_properties,
    keygen_type_of,
    load_properties,
    load_table_config,
    update_properties,
)
from table.errors import CorruptFileError, InvalidConfigError, StorageError, UnsupportedTableError
from table.hudi_table import create_table
from table.options.write_groups import TableSettings
from table.options.write_options import WriteOptions
from table.storage.local import LocalStorage

CONFIG = TableConfig("t", ("id",), ("region",), ("ts",))


def test_checksum_is_the_one_in_hudis_file(golden):
    path, _ = golden("cow_insert_partitioned")
    properties = load_properties(LocalStorage(path))
    assert properties["hoodie.table.checksum"] == "820205600" == str(checksum("cow_insert_partitioned"))
    assert zlib.crc32(b"db.t") == checksum("t", "db")


def test_hudis_properties_are_read_typed(golden):
    config = load_table_config(LocalStorage(golden("cow_insert_partitioned")[0]))
    assert config.record_key_fields == ("id",)
    assert config.partition_fields == ("region",)
    assert config.ordering_fields == ("ts",)
    assert (config.keygen_type, config.timezone, config.archive_folder) == ("SIMPLE", "LOCAL", "history")
    assert config_from_properties(config.to_properties()) == config


def test_key_generator_is_written_as_type_and_as_class():
    properties = CONFIG.to_properties()
    assert properties["hoodie.table.keygenerator.type"] == "SIMPLE"
    assert properties["hoodie.table.keygenerator.class"] == "org.apache.hudi.keygen.SimpleKeyGenerator"


@pytest.mark.parametrize("folder", ["..", "../x", "/tmp/x", "a/../../x", "s3://b/x", "a//b", "."])
def test_an_archive_outside_of_the_metadata_is_refused_wherever_it_is_said(folder):
    properties = {**CONFIG.to_properties(), "hoodie.archivelog.folder": folder}
    with pytest.raises(UnsupportedTableError, match=f"hoodie.archivelog.folder={folder}: the archive must lie within"):
        config_from_properties(properties)
    with pytest.raises(InvalidConfigError, match="must be the plain name of a folder within .hoodie"):
        WriteOptions(table=TableSettings(archive_folder=folder))


def test_an_archive_may_lie_deeper_within_the_metadata():
    assert config_from_properties({**CONFIG.to_properties(), "hoodie.archivelog.folder": "a/b"}).archive_folder == "a/b"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SIMPLE", "SIMPLE"),
        ("simple", "SIMPLE"),
        ("org.apache.hudi.keygen.SimpleKeyGenerator", "SIMPLE"),
        ("org.apache.hudi.keygen.SimpleAvroKeyGenerator", "SIMPLE"),
        ("NonpartitionedKeyGenerator", "NON_PARTITION"),
        ("org.apache.hudi.keygen.ComplexKeyGenerator", "COMPLEX"),
        ("com.acme.MyKeyGenerator", None),
    ],
)
def test_key_generators_by_type_and_class(text, expected):
    assert keygen_type_of(text) == expected


# what java.util.Properties reads, by its own documentation
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a=b", {"a": "b"}),
        ("a : b ", {"a": "b "}),
        ("  a   b", {"a": "b"}),
        ("# no\n! no\n\na=b", {"a": "b"}),
        ("a=b\\\n   c", {"a": "bc"}),
        ("a\\=b\\:c=d\\=e", {"a=b:c": "d=e"}),
        ("a=\\u00e9\\u0041", {"a": "éA"}),
        ("a=\\ud83d\\ude00", {"a": "😀"}),
        ("a", {"a": ""}),
        ("a=", {"a": ""}),
        ("a=\\t\\n\\\\", {"a": "\t\n\\"}),
        ("a=b\r\nc=d\r", {"a": "b", "c": "d"}),
        ("a=1\na=2", {"a": "2"}),
        ("a=c\\\\\nb=d", {"a": "c\\", "b": "d"}),
    ],
)
def test_java_properties_syntax(text, expected):
    assert parse_properties(text.encode("latin-1")) == expected


def test_a_broken_escape_is_named():
    with pytest.raises(CorruptFileError, match="u12"):
        parse_properties(b"a=\\u12")


@given(st.dictionaries(st.text(st.characters(exclude_categories=["Cs"]), min_size=1), st.text(
    st.characters(exclude_categories=["Cs"]))))  # fmt: skip
def test_properties_round_trip(properties):
    assert parse_properties(format_properties(properties, 0)) == properties


def test_a_missing_version_is_not_ours():
    assert config_from_properties({"hoodie.table.name": "t"}).version == 8


def test_no_table_name_is_no_table():
    with pytest.raises(UnsupportedTableError, match=r"hoodie\.table\.name"):
        config_from_properties({})


def test_a_table_is_created_once_whoever_comes_first(tmp_path):
    storage = LocalStorage(str(tmp_path / "t"))
    first = create_table(storage, CONFIG)
    second = create_table(storage, TableConfig("other", ("x",)))
    assert first.config == second.config == CONFIG
    hoodie = tmp_path / "t" / ".hoodie"
    assert sorted(p.name for p in hoodie.iterdir()) == [".aux", ".schema", ".temp", "archived", "hoodie.properties"]
    assert sorted(p.name for p in (hoodie / ".aux" / ".bootstrap").iterdir()) == [".fileids", ".partitions"]


def test_who_is_slower_in_creating_a_table_goes_on_by_the_properties_of_the_other(tmp_path, monkeypatch):
    create = hudi_table.create_table_config

    def create_later(storage, config):
        assert create(storage, replace(config, name="theirs"))
        return create(storage, config)

    monkeypatch.setattr(hudi_table, "create_table_config", create_later)
    assert create_table(LocalStorage(str(tmp_path / "t")), CONFIG).config.name == "theirs"


def test_a_damaged_file_is_read_from_its_backup(tmp_path):
    storage = LocalStorage(str(tmp_path / "t"))
    create_table(storage, CONFIG)
    storage.put(BACKUP_FILE, storage.read(PROPERTIES_FILE))
    storage.put(PROPERTIES_FILE, storage.read(PROPERTIES_FILE)[:100])
    assert load_table_config(storage) == CONFIG


def test_damaged_without_backup_is_an_error_not_an_empty_place(tmp_path):
    storage = LocalStorage(str(tmp_path / "t"))
    create_table(storage, CONFIG)
    broken = storage.read(PROPERTIES_FILE).replace(b"hoodie.table.name=t", b"hoodie.table.name=u")
    storage.put(PROPERTIES_FILE, broken)
    with pytest.raises(CorruptFileError, match=r"its hoodie\.table\.checksum is \d+, and not \d+"):
        load_table_config(storage)


def test_update_keeps_a_backup_until_the_new_file_is_whole(tmp_path):
    storage = LocalStorage(str(tmp_path / "t"))
    create_table(storage, CONFIG)
    changed = update_properties(storage, {"hoodie.table.metadata.partitions": ""})
    assert changed == load_table_config(storage) == CONFIG
    assert load_properties(storage)["hoodie.table.metadata.partitions"] == ""
    assert not storage.exists(BACKUP_FILE)


def test_update_stopped_at_every_call_leaves_a_readable_table(tmp_path):
    fuse = Fuse()
    storage = LocalStorage(str(tmp_path / "count"))
    create_table(storage, CONFIG)
    update_properties(FaultyStorage(storage, fuse), {"x": "1"})
    for number in range(1, len(fuse.calls) + 1):
        for after in (False, True):
            storage = LocalStorage(str(tmp_path / f"{number}-{after}"))
            create_table(storage, CONFIG)
            with pytest.raises(PowerCut):
                update_properties(FaultyStorage(storage, Fuse(number, after)), {"x": "1"})
            assert load_table_config(storage) == CONFIG
            update_properties(storage, {"x": "2"})
            assert load_properties(storage)["x"] == "2"


@dataclass
class Meanwhile(Fuse):
    """At one call another process changes the properties, from its begin to its end."""

    other: object = None
    changes: dict = field(default_factory=lambda: {"y": "2"})

    def pass_through(self, name, effect):
        self.calls.append(name)
        if len(self.calls) == self.at:
            update_properties(self.other, self.changes)
        found = effect()
        assert self.other.exists(PROPERTIES_FILE)
        return found


@pytest.mark.parametrize("has_versions", [True, False])
def test_two_processes_change_properties_at_once_and_the_file_is_always_there(tmp_path, monkeypatch, has_versions):
    monkeypatch.setattr(FaultyStorage, "has_versions", has_versions)
    fuse, lost = Fuse(), []
    storage = LocalStorage(str(tmp_path / "count"))
    create_table(storage, CONFIG)
    update_properties(FaultyStorage(storage, fuse), {"x": "1"})
    for number in range(1, len(fuse.calls) + 1):
        storage = LocalStorage(str(tmp_path / str(number)))
        create_table(storage, CONFIG)
        update_properties(FaultyStorage(storage, Meanwhile(number, other=storage)), {"x": "1"})
        found = load_properties(storage)
        assert found["x"] == "1"
        lost += [fuse.calls[number - 1]] if found.get("y") != "2" else []
    # a store without conditions loses what comes between the last look and the replacement
    assert lost == ([] if has_versions else [f"put {PROPERTIES_FILE}"])


def test_a_change_that_follows_from_the_properties_sees_those_of_another_process(tmp_path):
    def one_less(properties):
        return {"names": properties["names"].replace("a", "")}

    for number in range(1, 12):
        storage = LocalStorage(str(tmp_path / str(number)))
        create_table(storage, CONFIG)
        update_properties(storage, {"names": "abc"})
        other = Meanwhile(number, other=storage, changes={"names": "ab"})
        update_properties(FaultyStorage(storage, other), one_less)
        expected = {"bc"} if len(other.calls) < number else {"b"}
        if len(other.calls) - 1 <= number <= len(other.calls):  # ours was behind its last look
            expected = {"ab"}
        assert {load_properties(storage)["names"]} == expected


VERSION_9 = {
    "hoodie.table.name": "t",
    "hoodie.table.version": "9",
    "hoodie.timeline.layout.version": "2",
    "hoodie.archivelog.folder": "archived",
}


@pytest.mark.parametrize(("said", "expected"), [
    ({}, {"version": 9, "layout_version": 2, "timeline_folder": "timeline", "archive_folder": "history"}),
    ({"hoodie.timeline.path": "line", "hoodie.timeline.history.path": "old"},
     {"timeline_folder": "line", "archive_folder": "old"}),
    ({"hoodie.timeline.layout.version": "1", "hoodie.timeline.path": "line", "hoodie.timeline.history.path": "old"},
     {"timeline_folder": "timeline", "archive_folder": "archived"}),
    ({"hoodie.table.ordering.fields": "ts"}, {"ordering_fields": ("ts",)}),
    ({"hoodie.table.ordering.fields": "ts, n,m"}, {"ordering_fields": ("ts", "n", "m")}),
    ({"hoodie.table.precombine.field": "ts"}, {"ordering_fields": ("ts",)}),
    ({"hoodie.table.precombine.field": "old", "hoodie.table.ordering.fields": "ts"}, {"ordering_fields": ("ts",)}),
    ({"hoodie.table.ordering.fields": ""}, {"ordering_fields": ()}),
    ({"hoodie.table.format": "NATIVE"}, {"table_format": "native"}),
    ({"hoodie.table.format": "iceberg"}, {"table_format": "iceberg"}),
])  # fmt: skip
def test_properties_of_later_versions_are_read_typed(said, expected):
    config = config_from_properties({**VERSION_9, **said})
    assert {name: getattr(config, name) for name in expected} == expected


@pytest.mark.parametrize("key", ["hoodie.timeline.path", "hoodie.timeline.history.path"])
@pytest.mark.parametrize("folder", ["..", "../x", "a/../../x", "/x"])
def test_a_timeline_outside_of_the_metadata_is_refused(key, folder):
    with pytest.raises(UnsupportedTableError, match=f"{key}={folder}: .* must lie within .hoodie"):
        config_from_properties({**VERSION_9, key: folder})


MODE, PARTIAL = "hoodie.record.merge.mode", "hoodie.table.partial.update.mode"
STRATEGY = "hoodie.record.merge.strategy.id"


@pytest.mark.parametrize(("said", "mode"), [
    ({}, None),
    ({MODE: "EVENT_TIME_ORDERING"}, MergeMode.EVENT_TIME),
    ({MODE: " event_time_ordering "}, MergeMode.EVENT_TIME),
    ({MODE: "COMMIT_TIME_ORDERING", PARTIAL: ""}, MergeMode.COMMIT_TIME),
    ({MODE: "EVENT_TIME_ORDERING", PARTIAL: " ignore_defaults"}, MergeMode.PARTIAL_UPDATE),
    ({MODE: "CUSTOM", STRATEGY: PAYLOAD_STRATEGY}, None),
    ({MODE: "COMMIT_TIME_ORDERING", "hoodie.compaction.payload.class": "org.example.Mine"}, MergeMode.COMMIT_TIME),
])  # fmt: skip
def test_the_merge_mode_of_later_versions(said, mode):
    assert merge_mode_in(said) is mode


@pytest.mark.parametrize(("said", "named"), [
    ({MODE: "CUSTOM"}, f"{MODE}=CUSTOM"),
    ({MODE: "CUSTOM", STRATEGY: "11111111-0000-0000-0000-000000000000"}, f"{MODE}=CUSTOM"),
    ({MODE: "CUSTOM", STRATEGY: PAYLOAD_STRATEGY, PARTIAL: "IGNORE_DEFAULTS"}, f"{PARTIAL}=IGNORE_DEFAULTS"),
    ({MODE: "x", PARTIAL: "IGNORE_DEFAULTS"}, f"{MODE}=x"),
    ({MODE: "COMMIT_TIME_ORDERING", PARTIAL: "IGNORE_DEFAULTS"}, f"{PARTIAL}=IGNORE_DEFAULTS"),
    ({MODE: "EVENT_TIME_ORDERING", PARTIAL: "FILL_UNAVAILABLE"}, f"{PARTIAL}=FILL_UNAVAILABLE"),
    ({"hoodie.record.merge.property.b": "2", "hoodie.record.merge.property.a": "1"}, "merge.property.a=1"),
])  # fmt: skip
def test_a_merge_mode_that_is_not_known_is_named(said, named):
    with pytest.raises(UnsupportedTableError, match=f"{named}: how it merges .* let Hudi write and compact"):
        merge_mode_in(said)


@pytest.mark.parametrize("dies", [False, True])
def test_a_writer_of_hudi_that_deletes_the_properties_before_it_creates_them_leaves_none_lost(
    tmp_path, monkeypatch, dies
):
    """It has a backup. If it dies, or pauses for long, ours restores them."""
    monkeypatch.setattr("table.config.table_config._PAUSE_S", 0)

    class Deleted(Fuse):
        def __init__(self, at):
            super().__init__()
            self.at, self.back = at, 0

        def pass_through(self, name, effect):
            self.calls.append(name)
            number = len(self.calls)
            if number == self.at and storage.exists(PROPERTIES_FILE):
                self.back = number + 3
                data = storage.read(PROPERTIES_FILE)
                storage.create_exclusive(BACKUP_FILE, data)
                storage.delete_metafile(PROPERTIES_FILE)
            if number == self.back and not dies:
                storage.create_exclusive(PROPERTIES_FILE, storage.read(BACKUP_FILE))
            return effect()

    for number in range(1, 14):
        storage = LocalStorage(str(tmp_path / str(number)))
        create_table(storage, CONFIG)
        with suppress(StorageError):
            update_properties(FaultyStorage(storage, Deleted(number)), {"x": "1"})
        assert load_properties(storage) is not None, number
        update_properties(storage, {"x": "2"})
        assert load_properties(storage)["x"] == "2"


def test_a_disk_without_kernel_locks_has_no_conditions(tmp_path, monkeypatch):
    storage = LocalStorage(str(tmp_path))
    create_table(storage, CONFIG)

    def refuse(*_):
        raise OSError(errno.ENOLCK, "no locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)
    update_properties(storage, {"x": "1"})
    assert load_properties(storage)["x"] == "1"

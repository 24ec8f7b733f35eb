"""Folders are gone down by names: what an address would mean by a sign, a name does not."""

import uuid

import pyarrow as pa
import pytest
from s3_server import s3_options

from streaming.arrow_sink import ArrowSink
from table.errors import InvalidConfigError
from table.hudi_table import HudiTable
from table.quarantine.read import open_bad_rows
from table.storage.local import LocalStorage
from table.storage.opening import open_storage
from table.storage.subfolder import Subfolder

NAMES = ["a", "A", "a#b", "a?b", "%41", "a%20b", "%2e%2e%2foutside", "a b", "ü", "a+b", "a&b=c;d,e@f", "a'b", "{a}[b]",
         "a::b", "a\\b", "x" * 255]  # fmt: skip


@pytest.fixture(scope="module")
def s3():
    with s3_options() as options:
        yield options


@pytest.fixture(params=["disk", "file address", "memory", "s3"])
def place(request, tmp_path):
    """(address of a folder, storage options)."""
    return {
        "disk": lambda: (str(tmp_path / "la#ke"), None),
        "file address": lambda: (f"file://{tmp_path}/la%23ke", None),
        "memory": lambda: (f"memory://{uuid.uuid4()}", None),
        "s3": lambda: (f"s3a://lake/{uuid.uuid4()}", request.getfixturevalue("s3")),
    }[request.param]()


def test_each_name_is_a_folder_of_its_own_and_its_address_leads_back(place):
    root = open_storage(*place)
    for number, name in enumerate(NAMES):
        root.below(name).put("f", str(number).encode())
    assert {entry.name for entry in root.list_dir("")} == set(NAMES)
    for number, name in enumerate(NAMES):
        folder = root.below(name)
        assert folder.read("f") == root.read(f"{name}/f") == str(number).encode()
        assert open_storage(folder.base_uri, place[1]) == folder
        above = folder.above()
        assert above is None or above == (root, name)


def test_a_table_in_a_folder_of_any_name_is_written_read_and_put_right(place):
    root = open_storage(*place)
    for name in ("a#b", "%2e%2e%2fx", "a b%20", "ü?"):
        address = root.below(name).base_uri
        with ArrowSink(address, key="id", storage_options=place[1], bad_rows="quarantine") as sink:
            sink.write(pa.table({"id": pa.array([1, None], pa.int64())}), 0)
        table = HudiTable.at(root.below(name))
        assert table.config.name == name
        assert open_bad_rows(table.storage).base_uri == address + "_bad_rows"
        assert len([one for one in open_bad_rows(table.storage).list_names("") if one.endswith(".parquet")]) == 1
    assert {entry.name.removesuffix("_bad_rows") for entry in root.list_dir("")} == {
        "a#b",
        "%2e%2e%2fx",
        "a b%20",
        "ü?",
    }


@pytest.mark.parametrize("name", ["", ".", "..", "a/b"])
def test_no_name_leads_out(place, name):
    with pytest.raises(InvalidConfigError):
        open_storage(*place).below(name)


@pytest.mark.parametrize(
    ("path", "folder"),
    [
        ("/lake/t", "/lake/t_bad_rows"),
        ("/lake/t/", "/lake/t_bad_rows"),
        ("file:///lake/t%23", "/lake/t#_bad_rows"),
        ("memory://lake/t//", "memory://lake/t_bad_rows"),
        ("s3a://bucket/lake/t//", "s3a://bucket/lake/t_bad_rows"),
        ("s3a://bucket/lake/t#1", "s3a://bucket/lake/t#1_bad_rows"),
    ],
)
def test_bad_rows_lie_beside_the_table_also_where_its_path_ends_with_a_slash(path, folder):
    assert open_bad_rows(open_storage(path)).base_uri == folder


@pytest.mark.parametrize("path", ["s3://bucket", "s3a://bucket//", "/", "memory://t"])
def test_a_table_at_the_root_of_a_store_has_no_place_beside_it(path):
    with pytest.raises(InvalidConfigError, match=r"at the root of its store.* set hudistream\.bad\.rows\.path"):
        open_bad_rows(open_storage(path))


def test_a_long_name_has_a_folder_beside_it_on_a_disk(tmp_path):
    table = LocalStorage(str(tmp_path / ("x" * 255)))
    open_bad_rows(table).put("f", b"")
    assert open_bad_rows(table).exists("f")


def test_a_folder_for_bad_rows_that_is_named_is_that_folder(tmp_path):
    assert open_bad_rows(LocalStorage("/t"), f"{tmp_path}/b#1") == LocalStorage(f"{tmp_path}/b#1")


def test_the_root_of_the_memory_store_has_folders():
    assert open_storage("memory://").below("a") == open_storage("memory://a")
    assert open_storage("/").below("a") == open_storage("/a")


def test_a_storage_within_a_table_has_no_tables_below_it():
    inner = Subfolder(LocalStorage("/t"), ".hoodie/metadata")
    assert inner.above() is None
    with pytest.raises(InvalidConfigError, match="holds no tables"):
        inner.below("x")


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("file:///data/a#b", "write %23 for it"),
        ("file:///data/a?b", "write %3F for it"),
        ("file://data/t", r"three slashes, as in file:///data/t"),
        ("file://", "names no folder"),
        ("file:", "names no folder"),
        ("/data/a\0b", "zero byte"),
        ("file:///data/%00", "zero byte"),
        ("/data/t ", "begins or ends with a space"),
        (" /data/t", "begins or ends with a space"),
        ("s3a://lake/t?versionId=3", "at which the client of S3 cuts a path"),
    ],
)
def test_an_address_of_which_a_part_would_be_passed_over_is_refused(path, said):
    with pytest.raises(InvalidConfigError, match=said):
        open_storage(path)


@pytest.mark.parametrize(
    ("path", "base"),
    [
        ("file://localhost/data/t", "/data/t"),
        ("FILE:///data/%C3%BC%23", "/data/ü#"),
        ("file:///data/x%20", "/data/x "),
        ("file:///data/%FF", "/data/\udcff"),
        ("/data/a%20b#c?d", "/data/a%20b#c?d"),
        ("/data/t\n", "/data/t"),
        ("S3A://lake/T%20", "s3a://lake/T%20"),
    ],
)
def test_an_address_in_other_spellings(path, base):
    assert open_storage(path).base_uri == base


def test_a_path_that_the_client_would_cut_is_refused_before_a_request(s3):
    storage = open_storage(f"s3a://lake/{uuid.uuid4()}", s3)
    with pytest.raises(InvalidConfigError, match="at which the client of S3 cuts a path"):
        storage.put("day=a?versionId=b/f", b"x")
    assert storage.list_tree("") == {}

"""Which records a commit adds to a record index, and where they lie: by table, and against records of Hudi."""

import pyarrow as pa
import pytest

from table.config.metadata_indexes import RECORD_INDEX
from table.errors import CorruptFileError, UnsupportedTableError
from table.files.key_changes import KeyChanges
from table.metadata_table import record_index
from table.metadata_table.location_codec import Location, decode_location, encode_location, newest_location
from table.metadata_table.record_codec import schema_of
from table.metadata_table.record_index import new_locations
from table.metadata_table.records import Value

UUID_ID = "0d701a8c-e374-48b8-af61-c842ca1337e8-0"
# of Hudi 1.2.0, in the golden table v9_cow_indexes
OF_HUDI = "0000000000000a000000020204757302f0a2a2b79ca38df01a02afa0e6dea6ef9b9ea10102000200028ee5c7b1c068000000"
MADE_MS = 1795348298055


def keys(*texts):
    return (pa.array(texts, pa.string()),)


def held(locations, count):
    found = locations.by_group(count)
    assert all(index == RECORD_INDEX and 0 <= number < count for index, number in found)
    added = {key.decode(): value for records in found.values() for key, value in records.added}
    return added, sorted(key for records in found.values() for key in records.deleted.to_pylist())


def test_a_location_is_the_one_of_hudi():
    assert encode_location("us", UUID_ID, MADE_MS, 9).hex() == OF_HUDI


@pytest.mark.parametrize("file_id", ["00000001-x", f"{UUID_ID}x", UUID_ID.upper(), f"{UUID_ID[:-2]}-"])
def test_an_id_that_is_no_uuid_is_kept_as_text(file_id):
    value = encode_location("", file_id, 1, 8)
    assert newest_location([Value(value, schema_of(8))], 8) == value
    assert file_id.encode() in value
    assert decode_location([Value(value, schema_of(8))]) == Location("", file_id, 1)


@pytest.mark.parametrize("file_id", [UUID_ID, UUID_ID[:-2], f"{UUID_ID[:-2]}-17"])
def test_a_location_is_decoded(file_id):
    value = encode_location("a/b", file_id, 7, 9)
    assert file_id.encode() not in value
    assert decode_location([Value(value, schema_of(9))]) == Location("a/b", file_id, 7)


def test_where_a_key_is_after_a_delete():
    one = Value(encode_location("a", UUID_ID, 7, 8), schema_of(8))
    assert decode_location([one, Value(None, "")]) is None
    with pytest.raises(CorruptFileError, match="damaged"):
        decode_location([Value(b"\x07", schema_of(8))])


def test_a_key_that_no_hfile_holds_is_refused():
    with pytest.raises(UnsupportedTableError, match="a key has 32768 bytes"):
        new_locations({("", UUID_ID): KeyChanges(keys("a", "x" * 32768))}, 8, 5)


@pytest.mark.parametrize("count", [1, 2, 10])
def test_keys_are_added_deleted_and_moved(count):
    changes = {
        ("a", UUID_ID): KeyChanges(keys("new", "twice"), keys("gone", "moved")),
        ("b", "other-0"): KeyChanges((*keys("moved"), *keys("twice")), keys("gone")),
    }
    in_a, in_b = (encode_location(*group, 5, 8) for group in changes)
    added, deleted = held(new_locations(changes, 8, 5), count)
    assert added == {"new": in_a, "twice": in_b, "moved": in_b}
    assert deleted == ["gone"]


def test_each_group_has_its_keys_ascending():
    made = new_locations({("", UUID_ID): KeyChanges(keys(*(f"k{n}" for n in range(200, 0, -1))))}, 8, 5)
    found = made.by_group(4)
    assert len(made) == 200
    assert len(found) == 4
    for records in found.values():
        assert [key for key, _ in records.added] == sorted(key for key, _ in records.added)


def test_nothing_changes():
    made = new_locations({}, 8, 5)
    assert (len(made), made.by_group(3)) == (0, {})


def test_keys_that_are_not_known_or_too_many_are_refused(monkeypatch):
    with pytest.raises(UnsupportedTableError, match="not known to this process"):
        new_locations(None, 8, 5)
    monkeypatch.setattr(record_index, "MOST_KEYS", 2)
    with pytest.raises(UnsupportedTableError, match="adds and deletes 3 keys, which are more than 2"):
        new_locations({("", UUID_ID): KeyChanges(keys("a", "b"), keys("c"))}, 8, 5)


def test_the_newest_record_counts_in_the_schema_of_the_table():
    old, new = (Value(encode_location("", UUID_ID, time, 8), schema_of(8)) for time in (1, 2))
    gone = Value(None, "")
    assert newest_location([old, new], 8) == new.data
    assert newest_location([old, gone, new], 8) == new.data
    assert newest_location([old, gone], 8) is None
    later = newest_location([new], 9)
    assert later == encode_location("", UUID_ID, 2, 9)

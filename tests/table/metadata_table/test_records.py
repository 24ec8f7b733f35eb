"""Records of the metadata table: names of partition paths, and later records upon earlier ones."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from table.metadata_table.records import (
    ALL_PARTITIONS,
    ListRecord,
    RecordType,
    combine,
    key_of,
    partition_path_of,
)

NAMES = st.sampled_from("abc")
ENTRIES = st.dictionaries(NAMES, st.tuples(st.integers(0, 9), st.booleans()))
RECORDS = st.lists(ENTRIES.map(ListRecord), max_size=6)


@pytest.mark.parametrize(("path", "key"), [("", "."), ("p", "p"), ("day=1/p", "day=1/p"), (".hidden", ".hidden")])
def test_only_the_path_of_a_table_without_partitions_has_another_key(path, key):
    assert key_of(path) == key
    assert partition_path_of(key) == path


@given(st.text().filter(lambda path: path != "."))
@settings(deadline=None)
def test_each_partition_path_comes_back_from_its_key(path):
    assert partition_path_of(key_of(path)) == path


def test_hudi_knows_records_by_these_numbers_and_this_key():
    numbers = {"ALL_PARTITIONS": 1, "FILES": 2, "COLUMN_STATS": 3, "RECORD_INDEX": 5, "PARTITION_STATS": 6}
    assert {kind.name: int(kind) for kind in RecordType} == numbers
    assert ALL_PARTITIONS == "__all_partitions__"


@pytest.mark.parametrize(
    ("records", "left"),
    [
        ([{"a": (7, False)}, {"a": (7, True)}], {}),
        ([{"a": (7, False)}, {"a": (0, True)}, {"a": (5, False)}], {"a": 5}),
        ([{"a": (7, False), "b": (1, False)}, {"a": (0, True), "c": (2, False)}], {"b": 1, "c": 2}),
        ([{"a": (0, False)}], {"a": 0}),
    ],
)
def test_a_deletion_takes_its_name_alone_and_leaves_no_size_behind(records, left):
    assert combine(map(ListRecord, records)) == left


@given(RECORDS, st.data())
@settings(deadline=None)
def test_a_compaction_of_the_oldest_records_changes_nothing(records, data):
    count = data.draw(st.integers(0, len(records)))
    compacted = ListRecord({name: (size, False) for name, size in combine(records[:count]).items()})
    assert combine([compacted, *records[count:]]) == combine(records)


@given(RECORDS, st.sets(NAMES))
@settings(deadline=None)
def test_what_the_last_record_deletes_is_gone_and_the_rest_stays(records, deleted):
    before = combine(records)
    after = combine([*records, ListRecord(dict.fromkeys(deleted, (9, True)))])
    assert after == {name: size for name, size in before.items() if name not in deleted}


@given(RECORDS, NAMES, st.integers(0, 20))
@settings(deadline=None)
def test_a_file_that_is_listed_again_never_becomes_smaller(records, name, size):
    before, after = combine(records), combine([*records, ListRecord({name: (size, False)})])
    assert after == {**before, name: max(size, before.get(name, 0))}

"""A slice with log files: which blocks count, and what becomes of their records."""

import json
import tracemalloc

import log_files
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from log_files import data_block, delete_block, read, read_pieces, record, rollback_block, shown, write_base, write_log
from tiers import examples

from table import CorruptFileError, UnsupportedTableError
from table.config.merge_mode import MergeMode
from table.config.table_config import TableConfig
from table.files.log.framing import BlockType, Header, LogBlock, encode_block
from table.records.merge import MergeRules
from table.scan.merge_slice import rules_of
from table.schema.avro_schema import DELETE_MARKER, to_avro
from table.storage.local import LocalStorage

KINDS = (BlockType.AVRO_DATA, BlockType.PARQUET_DATA)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("memory_bytes", [1 << 27, 0])
def test_log_records_replace_rows_add_rows_and_delete_rows(tmp_path, kind, memory_bytes):
    write_base(tmp_path, [record(key, 5, "base") for key in "abcd"])
    write_log(tmp_path, 1, [data_block("2", [record("a", 6, "log"), record("e", 1, "new")], kind)])
    write_log(tmp_path, 2, [delete_block("3", [("b", None), ("c", 4), ("d", 5)])])
    rows = read(tmp_path, ("1", "2", "3"), memory_bytes=memory_bytes)
    assert shown(rows) == [("a", 6, "log", None), ("c", 5, "base", None), ("e", 1, "new", None)]


def test_rows_of_the_base_file_come_in_its_order_and_new_ones_behind_them(tmp_path):
    write_base(tmp_path, [record(key, 5, "base") for key in "cab"])
    write_log(tmp_path, 1, [data_block("2", [record(key, 6, "log") for key in "xbaw"])])
    assert [row["id"] for row in read(tmp_path, ("1", "2"))] == [*"cab", *"xw"]


def test_a_slice_may_have_no_base_file(tmp_path):
    write_log(tmp_path, 1, [data_block("1", [record("a", 1, "first"), record("b", 1, "first")])])
    write_log(tmp_path, 2, [delete_block("2", [("a", 9)])])
    assert shown(read(tmp_path, ("1", "2"))) == [("b", 1, "first", None)]


def test_log_files_behind_a_pending_compaction_change_the_base_file_before_it(tmp_path):
    write_base(tmp_path, [record(key, 1, "base") for key in "ab"])
    write_log(tmp_path, 1, [data_block("2", [record("a", 2, "before")])])
    write_log(tmp_path, 1, [data_block("4", [record("b", 2, "behind")])], time="3")
    assert shown(read(tmp_path, ("1", "2", "4"))) == [("a", 2, "before", None), ("b", 2, "behind", None)]


@pytest.mark.parametrize(
    ("time", "committed", "inflight", "counts"),
    [
        ("3", ("2", "3"), (), True),
        ("3", ("2", "4"), (), False),  # failed, or taken back
        ("3", ("2", "4"), ("3",), False),
        ("1", ("2", "4"), (), True),  # archived
        ("1", ("2", "4"), ("1",), False),  # older than the active timeline, and not finished
        ("5", ("2", "4"), (), False),  # younger than what the snapshot shows
    ],
)
def test_a_block_counts_when_its_instant_is_completed(tmp_path, time, committed, inflight, counts):
    write_base(tmp_path, [record("a", 1, "base")], time="2")
    write_log(tmp_path, 1, [data_block(time, [record("a", 2, "log")])], time="2")
    [row] = read(tmp_path, committed, inflight=inflight)
    assert row["v"] == ("log" if counts else "base")


def test_a_rollback_takes_back_the_blocks_of_its_target_that_stand_before_it(tmp_path):
    write_base(tmp_path, [record("a", 1, "base"), record("b", 1, "base")])
    write_log(tmp_path, 1, [data_block("2", [record("a", 2, "taken back")]), delete_block("2", [("b", None)])])
    # the rollback's own time does not matter: it may be later than all commits
    write_log(tmp_path, 2, [rollback_block("9", "2"), rollback_block("9", "2")])
    assert shown(read(tmp_path, ("1", "2"))) == [("a", 1, "base", None), ("b", 1, "base", None)]
    write_log(tmp_path, 3, [data_block("2", [record("a", 3, "again")])])
    assert shown(read(tmp_path, ("1", "2"))) == [("a", 3, "again", None), ("b", 1, "base", None)]


def test_damage_without_a_frame_is_passed_over_and_damage_within_one_is_not(tmp_path):
    write_base(tmp_path, [record("a", 1, "base")])
    first, second = (encode_block(data_block("2", [record("a", ts, f"log {ts}")])) for ts in (2, 3))
    for damaged in (first[:40] + second, first + b"strange" + second, first[:6] + bytes(8) + first[14:] + second):
        write_log(tmp_path, 1, damaged)
        assert shown(read(tmp_path, ("1", "2"))) == [("a", 3, "log 3", None)]
    write_log(tmp_path, 1, second + first[:-1])
    assert shown(read(tmp_path, ("1", "2"))) == [("a", 3, "log 3", None)]
    write_log(tmp_path, 1, first[:14] + bytes(4) + first[18:] + second)
    with pytest.raises(CorruptFileError, match="format version 0"):
        read(tmp_path, ("1", "2"))


@pytest.mark.parametrize(
    ("block", "message"),
    [
        (LogBlock(BlockType.HFILE_DATA, {Header.INSTANT_TIME: "2"}, b""), "HFILE_DATA"),
        (LogBlock(BlockType.COMMAND, {Header.COMMAND_BLOCK_TYPE: "7"}, b""), "command '7'"),
        (LogBlock(BlockType.DELETE, {Header.INSTANT_TIME: "2"}, b"\0\0\0\2\0\0\0\0"), "delete block version 2"),
    ],
)
def test_what_is_not_read_is_refused_by_name(tmp_path, block, message):
    write_base(tmp_path, [record("a", 1, "base")])
    write_log(tmp_path, 1, [block])
    with pytest.raises(UnsupportedTableError, match=message):
        read(tmp_path, ("1", "2"))


def test_merge_semantics_that_are_not_known_are_refused_by_name():
    with pytest.raises(UnsupportedTableError, match=r"com\.example\.Mine"):
        rules_of(TableConfig("t", ("id",), payload_class="com.example.Mine"), log_files.SCHEMA)
    with pytest.raises(UnsupportedTableError, match=r"populate\.meta\.fields"):
        rules_of(TableConfig("t", ("id",), populate_meta_fields=False), log_files.SCHEMA)


def test_log_records_beyond_the_limit_are_not_in_memory(tmp_path):
    text = "x" * 1000
    write_base(tmp_path, [record(f"k{number:05}", 1, text) for number in range(8000)])
    for version in range(1, 9):
        keys = range(version * 1000, version * 1000 + 1500)
        write_log(tmp_path, version, [data_block("2", [record(f"k{key:05}", version, text) for key in keys])])
    peaks = {}
    for limit in (1 << 20, 1 << 30):
        held = []
        tracemalloc.start()
        before = pa.total_allocated_bytes()
        pieces = read_pieces(tmp_path, ("1", "2"), memory_bytes=limit)
        count = 0
        for piece in pieces:
            held.append(pa.total_allocated_bytes() - before)
            count += len(piece)
        peaks[limit] = max(held) + tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert count == 9500
    assert peaks[1 << 20] < 18 << 20 < 26 << 20 < peaks[1 << 30]


def test_superseded_log_records_are_left_out_before_anything_goes_to_disk(tmp_path, monkeypatch):
    monkeypatch.setattr("table.scan.merge_slice.SpilledLots", None)
    names = [f"k{number:03}" for number in range(100)]
    write_base(tmp_path, [record(name, 0, "base") for name in names])
    for version in range(1, 30):
        write_log(tmp_path, version, [data_block(str(version + 1), [record(name, version, "log") for name in names])])
    committed = ("1", *(str(version + 1) for version in range(1, 30)))
    rows = read(tmp_path, committed, memory_bytes=20_000)
    assert shown(rows) == [(name, 29, "log", None) for name in names]


# --- against a row by row model

keys = st.sampled_from("abcdef")
orders = st.integers(0, 3)
records = st.lists(
    st.builds(record, keys, orders, st.sampled_from("vwxyz") | st.none(), st.none() | st.just(1.5)), max_size=5
)
blocks = st.one_of(
    st.tuples(st.just("data"), st.sampled_from(KINDS), records),
    st.tuples(st.just("delete"), st.none(), st.lists(st.tuples(keys, orders | st.none()), max_size=4)),
    st.tuples(st.just("rollback"), st.none(), st.none()),
)
histories = st.lists(st.tuples(st.sampled_from("2345"), blocks), max_size=8)
NATURAL = object()


def newer(old, new):
    """Whether a record replaces an older one: by the order, later ones on ties."""
    return new is NATURAL or old is NATURAL or new >= old


def filled(old, new):
    return {name: new[name] if new[name] is not None or name.startswith("_") else old[name] for name in new}


def together(old, new, mode):
    """One of two states of a key: (order, row), where the row is None for a delete."""
    comes = mode is MergeMode.COMMIT_TIME or newer(old[0], new[0])
    if mode is not MergeMode.PARTIAL_UPDATE or old[1] is None or new[1] is None:
        return new if comes else old
    first, second = (old, new) if comes else (new, old)
    row = filled(first[1], second[1])
    return row["ts"], row


def modelled(base, history, committed, mode):
    """What the slice shows, a record at a time."""
    counted = []
    for time, (what, _, content) in history:
        if what == "rollback":
            counted = [found for found in counted if found[0] != time]
        elif time in committed:
            counted.append((time, what, content))
    log = {}
    for _, what, content in counted:
        for entry in content:
            key, state = (entry["id"], (entry["ts"], entry)) if what == "data" else (entry[0], (entry[1], None))
            if what == "delete" and entry[1] is None:
                state = (NATURAL, None)
            log[key] = together(log[key], state, mode) if key in log else state
    rows = {row["id"]: (row["ts"], row) for row in base}
    for key, state in log.items():
        if key not in rows:
            rows[key] = state
        else:
            rows[key] = together(rows[key], state, mode)
    return shown_or_none([row for _, row in rows.values() if row is not None])


def shown_or_none(rows):
    return sorted((row["id"], row["ts"], str(row["v"]), str(row["w"])) for row in rows)


def block_of(time, block):
    what, kind, content = block
    if what == "data":
        return data_block(time, content, kind)
    return delete_block(time, content) if what == "delete" else rollback_block("9", time)


@pytest.mark.parametrize("mode", list(MergeMode))
@given(
    st.lists(keys, unique=True),
    histories,
    st.sets(st.sampled_from("2345")),
    st.sampled_from([0, 300, 700, 2000, 1 << 27]),
    st.integers(1, 3),
)
@settings(max_examples=examples(60), suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_a_slice_reads_as_a_record_at_a_time_would(tmp_path_factory, mode, stored, history, extra, memory_bytes, files):
    folder = tmp_path_factory.mktemp("slice")
    committed = {"1", *extra}
    base = [record(key, 1, "base", 0.5) for key in stored]
    write_base(folder, base)
    for number in range(files):
        part = [
            block_of(time, block) for at, (time, block) in enumerate(history) if at * files // len(history) == number
        ]
        write_log(folder, number + 1, part)
    found = read(folder, sorted(committed), MergeRules(mode, ("ts",), orders_deletes=True), memory_bytes=memory_bytes)
    assert shown_or_none(found) == modelled(base, history, committed, mode)


def test_a_record_that_says_it_is_deleted_deletes_its_key_in_the_order_of_the_others(tmp_path, monkeypatch):
    wide = log_files.SCHEMA.append(pa.field(DELETE_MARKER, pa.bool_()))
    monkeypatch.setattr(log_files, "SCHEMA", wide)
    monkeypatch.setattr(log_files, "AVRO", json.dumps(to_avro(wide, "t")))
    write_base(tmp_path, [{**record(key, 5, "base"), DELETE_MARKER: False} for key in "ab"])
    gone = [{**record(key, ts, None), DELETE_MARKER: True} for key, ts in (("a", 5), ("b", 4), ("c", 9))]
    write_log(tmp_path, 1, [data_block("2", gone)])
    assert shown(read(tmp_path, ("1", "2"))) == [("b", 5, "base", None)]
    assert read(tmp_path, ("1", "2"), columns=["v", "id"]) == [{"v": "base", "id": "b"}]


def test_a_record_that_does_not_say_whether_it_is_deleted_is_not_and_says_nothing_afterwards(tmp_path, monkeypatch):
    wide = log_files.SCHEMA.append(pa.field(DELETE_MARKER, pa.bool_()))
    monkeypatch.setattr(log_files, "SCHEMA", wide)
    monkeypatch.setattr(log_files, "AVRO", json.dumps(to_avro(wide, "t")))
    write_base(tmp_path, [{**record(key, 5, "base"), DELETE_MARKER: False} for key in "ab"])
    silent = {**record("a", 6, "log"), DELETE_MARKER: None}
    write_log(tmp_path, 1, [data_block("2", [silent, {**record("c", 1, "old"), DELETE_MARKER: True}])])
    write_log(tmp_path, 2, [data_block("3", [{**record("c", 2, "new"), DELETE_MARKER: None}])])
    for mode, said in ((MergeMode.EVENT_TIME, None), (MergeMode.PARTIAL_UPDATE, False)):
        rows = read(tmp_path, ("1", "2", "3"), MergeRules(mode, ("ts",), orders_deletes=True))
        found = {row["id"]: (row["v"], row[DELETE_MARKER]) for row in rows}
        assert found == {"a": ("log", said), "b": ("base", False), "c": ("new", None)}


def test_a_small_log_file_is_read_once_and_what_is_kept_is_bounded(tmp_path, monkeypatch):
    opened = []
    for name in ("read", "open_input"):
        inner = getattr(LocalStorage, name)

        def noted(self, path, *given, inner=inner, name=name):
            opened.append((name, path.endswith("parquet")))
            return inner(self, path, *given)

        monkeypatch.setattr(LocalStorage, name, noted)
    write_base(tmp_path, [record("a", 0, "base")])
    for version in range(1, 5):
        write_log(tmp_path, version, [data_block(str(version + 1), [record("a", version, "log")])])
    committed = ("1", *(str(version + 1) for version in range(1, 5)))
    assert shown(read(tmp_path, committed)) == [("a", 4, "log", None)]
    assert [name for name, is_base in opened if not is_base] == ["read"] * 4
    opened.clear()
    monkeypatch.setattr("table.scan.log_records._KEPT_BYTES", 0)
    assert shown(read(tmp_path, committed)) == [("a", 4, "log", None)]
    assert [name for name, is_base in opened if not is_base] == ["open_input"] * 8

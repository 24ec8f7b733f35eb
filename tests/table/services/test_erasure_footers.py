"""What a footer tells of keys that no row has, and how such a footer is written anew."""

import shutil
from contextlib import suppress

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from faults import FaultyStorage, Fuse, PowerCut, dying_process

from hudistream import ArrowSink, HudiTable, TableHeldError, read_table
from table.errors import HudiError
from table.files.base.hudi_footer import BLOOM_KEY, BLOOM_TYPE_KEY, MAX_KEY, MIN_KEY
from table.files.bloom.bloom_filter import sized_dynamic_filter, sized_filter
from table.hudi_table import HudiTable as PlainTable
from table.options.choices import CleanPolicy
from table.options.groups import CleanSettings
from table.options.write_options import WriteOptions, parse_options
from table.schema.avro_schema import RECORD_KEY
from table.services.erasure.footer_entries import find_entries
from table.services.erasure.traces import find_traces
from table.services.erasure.write_anew import write_anew

ROWS = pa.array([f"k{n}" for n in range(50)])
GONE = pa.array(["zz", "a"])
BOTH = pa.concat_arrays([ROWS, GONE])
NEWEST = CleanSettings(policy=CleanPolicy.KEEP_LATEST_FILE_VERSIONS, versions_retained=1, grace_ms=0)


def metadata(tmp_path, entries, keys=ROWS):
    path = tmp_path / "f.parquet"
    with pq.ParquetWriter(path, pa.schema([(RECORD_KEY, pa.string())])) as writer:
        writer.write_table(pa.table({RECORD_KEY: keys}))
        writer.add_key_value_metadata(entries)
    return pq.read_metadata(path)


def of_filter(bloom):
    return {BLOOM_KEY: bloom.encode(), BLOOM_TYPE_KEY: bloom.type_code}


FILTER, DYNAMIC = sized_filter(100, 1e-6), sized_dynamic_filter(30, 1e-6, 90)
CASES = {
    "nothing": ({MIN_KEY: "k0", MAX_KEY: "k9", **of_filter(FILTER.added(ROWS))}, ()),
    "no entries": ({}, ()),
    "the least key": ({MIN_KEY: "a", MAX_KEY: "k9"}, ("key range",)),
    "the greatest key": ({MIN_KEY: "k0", MAX_KEY: "zz"}, ("key range",)),
    "the filter": (of_filter(FILTER.added(BOTH)), ("bloom filter",)),
    "a dynamic filter": (of_filter(DYNAMIC.added(BOTH)), ("bloom filter",)),
    "a dynamic filter of the rows": (of_filter(DYNAMIC.added(ROWS)), ()),
    "a filter that is full of other keys": (of_filter(sized_filter(1, 0.5).added(ROWS)), ()),
    "a filter that cannot be read": ({BLOOM_KEY: "no base64"}, ("bloom filter",)),
}


@pytest.mark.parametrize(("entries", "found"), CASES.values(), ids=CASES)
def test_entries_that_tell_of_a_key(tmp_path, entries, found):
    assert find_entries(metadata(tmp_path, entries), GONE, lambda: ROWS) == found


def test_statistics_that_tell_of_a_key(tmp_path):
    assert find_entries(metadata(tmp_path, {}, BOTH), GONE, lambda: BOTH) == ("column statistics",)


def test_keys_are_not_read_where_the_filter_says_no(tmp_path):
    def read_keys():
        raise AssertionError

    assert find_entries(metadata(tmp_path, of_filter(FILTER.added(ROWS))), GONE, read_keys) == ()


OPTIONS = {"hoodie.table.services.enabled": "false", "hoodie.parquet.block.size": "60000"}
FORMS = [("cow", 6), ("mor", 6), ("cow", 8), ("mor", 9)]


def rows(count, ts):
    return pa.table(
        {"id": [f"k{n:05d}" for n in range(count)], "ts": [ts] * count, "v": [f"v{ts}.{n}" for n in range(count)]}
    )


def fill(path, table_type="cow", version=6, **more):
    """A file of several row groups, whose greatest key was deleted by an ordinary batch."""
    options = {**OPTIONS, "hoodie.write.table.version": str(version), **more}
    with ArrowSink(path, options, key="id", order_by="ts", table_type=table_type) as sink:
        sink.write(pa.concat_tables([rows(4000, 0), pa.table({"id": ["zz"], "ts": [0], "v": ["x"]})]))
        sink.delete(["zz"])
    if table_type == "mor":
        HudiTable.open(path).compact()
    return parse_options(options).options


def traces(path, only_current=False):
    found = find_traces(HudiTable.open(path), pa.array(["zz"]), NEWEST)
    return [trace for trace in found if not (only_current and "next clean" in trace.why)]


@pytest.mark.parametrize(("table_type", "version"), FORMS)
def test_a_file_is_written_anew_with_the_same_rows_and_a_footer_of_their_keys(tmp_path, table_type, version):
    path = str(tmp_path / "t")
    options = fill(path, table_type, version)
    before = read_table(path, meta_columns=True)
    [stale] = traces(path, only_current=True)
    assert stale.rows == 0
    assert "bloom filter" in stale.entries
    assert write_anew(HudiTable.open(path), [stale.path], options)
    assert not traces(path, only_current=True)
    after = read_table(path, meta_columns=True)
    assert after.drop_columns(["_hoodie_file_name"]).equals(before.drop_columns(["_hoodie_file_name"]))
    assert not HudiTable.open(path).check().findings
    assert write_anew(HudiTable.open(path), [stale.path], options) is None, "it is not the current version any more"
    with ArrowSink(path, options) as sink:  # and a stream goes on
        assert sink.write(rows(10, 5)).rows_updated == 10
    assert len(read_table(path)) == 4000


def test_a_file_with_log_files_is_left_to_a_compaction(tmp_path):
    path = str(tmp_path / "t")
    options = fill(path, "mor")
    [stale] = traces(path, only_current=True)
    with ArrowSink(path, options) as sink:
        sink.write(rows(10, 5))
    assert write_anew(HudiTable.open(path), [stale.path], options) is None


def test_a_table_that_is_held_is_left_alone(tmp_path):
    path = str(tmp_path / "t")
    options = fill(path)
    [stale] = traces(path, only_current=True)
    with ArrowSink(path, options) as sink:
        sink.write(rows(1, 5))
        with pytest.raises(TableHeldError):
            write_anew(HudiTable.open(path), [stale.path], options)
    assert len(read_table(path)) == 4000


@pytest.mark.parametrize("after", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_the_power_may_fail_at_every_call(tmp_path, after):
    path = str(tmp_path / "t")
    options = fill(path)
    [stale] = traces(path, only_current=True)
    expected = read_table(path).sort_by("id")
    counted, fuse = shutil.copytree(path, str(tmp_path / "counted")), Fuse()
    on(counted, fuse, stale, options)
    for number in range(1, len(fuse.calls) + 1, 3):
        mine = shutil.copytree(path, str(tmp_path / "mine"))
        with suppress(PowerCut, HudiError), dying_process():
            on(mine, Fuse(number, after), stale, options)
        with ArrowSink(mine, options) as sink:
            sink.write(rows(1, 0))
        assert read_table(mine).sort_by("id").equals(expected), fuse.calls[number - 1]
        assert not HudiTable.open(mine).check().findings, fuse.calls[number - 1]
        shutil.rmtree(mine)


def on(path, fuse, stale, options):
    table = HudiTable.open(path)
    write_anew(PlainTable(FaultyStorage(table.storage, fuse), table.config), [stale.path], options)


def test_an_ordinary_batch_goes_on_with_the_older_filter(tmp_path):
    path = str(tmp_path / "t")
    fill(path)
    [stale] = traces(path, only_current=True)
    assert "bloom filter" in stale.entries, "to make filters anew costs a read of all keys: only an erasure pays for it"
    assert not WriteOptions().file_settings.keys_anew
    assert pc.max(read_table(path).column("id")).as_py() == "k03999"

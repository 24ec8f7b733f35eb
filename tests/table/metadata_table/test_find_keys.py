"""Keys are found in what was decoded, and what was decoded is remembered only while it is the whole truth."""

import random
import shutil
from pathlib import Path

import pyarrow as pa
import pytest
from engine import Engine, form_of, rows

from table import CorruptFileError
from table.files.hfile.pieces import Sought, pieces_of
from table.files.hfile.read_hfile import HFile
from table.files.hfile.write_hfile import encode_hfile
from table.hudi_table import HudiTable
from table.index.key_cache import KeyCache
from table.metadata_table import compact
from table.metadata_table.compact import compact_lists
from table.metadata_table.find_keys import read_layers
from table.metadata_table.known_layers import KnownLayer, OpenLayer, layers_of_file, merge_layers
from table.metadata_table.read_record_index import see_record_index
from table.storage.local import LocalStorage

INDEXED = {
    "hoodie.index.type": "RECORD_INDEX",
    "hoodie.metadata.enable": "true",
    "hoodie.metadata.record.index.enable": "true",
}


def layer_of(records, schema="{}"):
    file = HFile(encode_hfile(sorted(records.items()), schema))
    return [layer.known() for layer in layers_of_file(file, file.places)]


def drawn_layers(draw):
    """Layers and what is left of them: key -> value and schema."""
    layers, model = [], {}
    for number in range(draw.randrange(1, 6)):
        keys = {b"k" * draw.randrange(1, 4) + b"%d" % draw.randrange(40) for _ in range(draw.randrange(1, 30))}
        records = {key: draw.choice((b"", b"a", b"bb", b"%d" % number)) for key in keys}
        schema = draw.choice(("{}", '"bytes"'))
        layers += layer_of(records, schema)
        for key, value in records.items():
            model.pop(key, None)
            if value:
                model[key] = value, schema
    return layers, model


@pytest.mark.parametrize("seed", range(40))
def test_the_newest_record_of_each_key_is_left(seed):
    layers, model = drawn_layers(random.Random(seed))
    merged = merge_layers(layers)
    values = [merged.values[number] for number in merged.numbers]
    assert list(zip(merged.keys.to_pylist(), values, strict=True)) == sorted(model.items())


@pytest.mark.parametrize("seed", range(20))
def test_layers_say_of_keys_what_they_say_when_they_are_merged(seed):
    draw = random.Random(seed)
    layers, model = drawn_layers(draw)
    keys = [b"k%d" % number for number in range(20)] + [b"kk7", b"other"]
    found = {}
    for layer in layers:
        hits = layer.match(Sought(pa.array(keys, pa.binary())))
        for at, number in zip(hits.keys.tolist(), hits.numbers.tolist(), strict=True):
            found[keys[at]] = hits.values[number], hits.schema
    left = {key: told for key, told in found.items() if told[0]}
    assert left == {key: told for key, told in model.items() if key in keys}


def test_no_layers_leave_nothing():
    merged = merge_layers([])
    assert (merged.keys.to_pylist(), merged.numbers.tolist()) == ([], [])


def test_an_empty_key_is_damage():
    with pytest.raises(CorruptFileError, match="an empty key"):
        OpenLayer(pieces_of(pa.array([b""])), pieces_of(pa.array([b"v"])), "").known()


def test_a_file_with_fewer_entries_than_it_says_is_damage():
    file = HFile(encode_hfile([(b"a", b"1"), (b"b", b"2")], "{}"))
    file.entry_count = 3
    with pytest.raises(CorruptFileError, match="has 2 entries, and its trailer says 3"):
        list(layers_of_file(file, file.places))


@pytest.fixture
def reads(monkeypatch):
    """Paths of files of the index that were read."""
    found = []
    for name in ("read", "read_part"):
        real = getattr(LocalStorage, name)

        def noting(self, path, *more, real=real):
            if "record_index/" in path:
                found.append(path)
            return real(self, path, *more)

        monkeypatch.setattr(LocalStorage, name, noting)
    return found


@pytest.fixture(params=[6, 8])
def table(request, tmp_path):
    """A table whose record index has base files and log files, and its writer."""
    path = str(tmp_path / "t")
    engine = Engine(path, {**form_of(request.param, "COPY_ON_WRITE"), **INDEXED})
    for number in range(3):
        engine.write(number, rows(range(number * 20, number * 20 + 30), ts=number))
    plain = HudiTable.open(path)
    compact_lists(plain.storage, plain.load_timeline(), delta_commits=1)
    engine.write(3, rows(range(100, 110), ts=3))
    engine.writer.stop()
    return HudiTable.open(path), engine


KEYS = pa.array([f"k{number}" for number in range(-5, 130)])


def index_of(table):
    return see_record_index(table.storage, table.config, table.known_lists).as_of(table.load_timeline())


def test_a_second_look_reads_no_file(table, reads):
    index, cache = index_of(table[0]), KeyCache(10**7)
    first = index.find(KEYS, cache)
    assert {path.rpartition(".")[2] for path in reads} >= {"hfile"}
    reads.clear()
    again = index.find(KEYS, cache)
    assert reads == []
    alone = index.find(KEYS)
    for places in (again, alone):
        assert places.unknown.tolist() == first.unknown.tolist()
        assert {group: at.tolist() for group, at in places.by_group().items()} == {
            group: at.tolist() for group, at in first.by_group().items()
        }
    assert len(first.unknown) == 5 + 30 + 20  # below 0, between 70 and 100, from 110 on


def test_after_a_commit_its_log_files_alone_are_read(table, reads):
    table, engine = table
    cache = KeyCache(10**7)
    index_of(table).find(KEYS, cache)
    engine.write(4, rows(range(110, 120), ts=4))
    engine.writer.stop()
    reads.clear()
    places = index_of(table).find(KEYS, cache)
    assert len(places.unknown) == 5 + 30 + 10
    assert reads
    assert all(".log." in path for path in reads)


def test_a_commit_that_a_snapshot_does_not_have_is_left_out_whatever_is_remembered(table):
    table, engine = table
    cache, before = KeyCache(10**7), table.load_timeline()
    engine.write(4, rows(range(110, 120), ts=4))
    engine.writer.stop()
    seen = see_record_index(table.storage, table.config, table.known_lists)
    for timeline, missing in ((table.load_timeline(), 10), (before, 20), (table.load_timeline(), 10)):
        assert len(seen.as_of(timeline).find(KEYS, cache).unknown) == 5 + 30 + missing
    cache = KeyCache(10**7)
    for timeline, missing in ((before, 20), (table.load_timeline(), 10)):
        assert len(seen.as_of(timeline).find(KEYS, cache).unknown) == 5 + 30 + missing


def test_the_first_base_files_of_an_index_are_not_remembered(tmp_path, reads):
    """Those of an index that is made anew have the same names."""
    path, form = str(tmp_path / "t"), form_of(8, "COPY_ON_WRITE")
    Engine(path, {**form, "hoodie.metadata.enable": "false"}).write(0, rows(range(30), ts=0))
    engine = Engine(path, {**form, **INDEXED})
    engine.write(1, rows(range(20, 40), ts=1))
    engine.writer.stop()
    index, cache = index_of(HudiTable.open(path)), KeyCache(10**7)
    bases = {one.base_file.path for one in index.slices.values()}
    for _ in range(2):
        reads.clear()
        assert len(index.find(KEYS, cache).unknown) == 5 + 90
        assert {path.partition("metadata/")[2] for path in reads if path.endswith(".hfile")} == bases


def test_without_room_nothing_is_remembered(table, reads):
    index, cache = index_of(table[0]), KeyCache(0)
    for _ in range(2):
        reads.clear()
        assert len(index.find(KEYS, cache).unknown) == 55
        assert reads


def test_what_is_remembered_makes_room_for_bounds_of_files(table, reads):
    index, cache = index_of(table[0]), KeyCache(10**7)
    index.find(KEYS, cache)
    held = cache.held_bytes
    assert held > 0
    while cache._strip_one():
        pass
    assert cache.held_bytes < held
    reads.clear()
    assert len(index.find(KEYS, cache).unknown) == 55
    assert reads


def test_all_records_of_a_slice_are_read_for_its_compaction(table):
    index = index_of(table[0])
    layers = [layer for one in index.slices.values() for layer in read_layers(index.own, one, index.committed)]
    assert all(isinstance(layer, KnownLayer) for layer in layers)
    assert sorted(merge_layers(layers).keys.to_pylist()) == sorted(
        f"k{number}".encode() for number in (*range(70), *range(100, 110))
    )


def test_a_large_slice_is_merged_entry_by_entry_into_the_same_file(table, tmp_path, monkeypatch):
    made = []
    for name, most in (("columns", compact._MOST_AT_ONCE), ("entries", 0)):
        shutil.copytree(tmp_path / "t", tmp_path / name)
        monkeypatch.setattr(compact, "_MOST_AT_ONCE", most)
        copied = HudiTable.open(str(tmp_path / name))
        assert compact_lists(copied.storage, copied.load_timeline(), delta_commits=1) is compact.Compaction.DONE
        files = Path(copied.storage.base_uri, ".hoodie", "metadata", "record_index").glob("*.hfile")
        made.append({file.name: file.read_bytes() for file in files})
    assert made[0] == made[1]
    assert len(made[0]) == 20  # each of ten file groups has a new base file beside the older one

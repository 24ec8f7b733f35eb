"""Records of change files: the schemas that Hudi writes, and values of every type."""

import json
import random
import zipfile
from pathlib import Path

import fastavro
import pyarrow as pa
import pytest
from change_files import blocks_of, records_of
from every_type import EVERY_TYPE, random_batch

from table.config.change_images import ChangeImages
from table.files.log.avro_data import joined_runs
from table.files.log.change_records import DELETED, INSERTED, UPDATED, change_schema, count_changed, encode_changes
from table.files.log.framing import BlockType, Header, LogBlock, encode_block
from table.keys.search import KeyCount
from table.schema.avro_schema import schema_json, with_meta_columns

GOLDEN = Path(__file__).parents[2] / "golden" / "cdc"
AVRO = schema_json(with_meta_columns(EVERY_TYPE), "t")
TIME = "20260101000000000"


@pytest.mark.parametrize("file", sorted(GOLDEN.glob("*.zip")), ids=lambda file: file.stem)
def test_hudis_own_change_files_have_that_schema(file, tmp_path):
    with zipfile.ZipFile(file) as archive:
        archive.extractall(tmp_path)
    found = {block.header[Header.SCHEMA] for one in tmp_path.rglob("*.cdc") for block in blocks_of(one)}
    images = ChangeImages(file.stem.partition("_")[2].partition("_")[2].upper())
    [told] = found
    theirs = json.loads(told)
    row = next((field["type"][1] for field in theirs["fields"] if field["name"] == "before"), None)
    avro = AVRO if row is None else json.dumps({**row, "namespace": theirs["namespace"]})
    theirs.pop("doc", None)  # 1.2.0 says that it is empty
    assert json.loads(change_schema(images, avro)) == theirs


@pytest.mark.parametrize("file", sorted(GOLDEN.glob("*.zip")), ids=lambda file: file.stem)
def test_a_key_is_found_in_hudis_own_change_files(file, tmp_path):
    with zipfile.ZipFile(file) as archive:
        archive.extractall(tmp_path)
    for one in tmp_path.rglob("*.cdc"):
        [block], records = blocks_of(one), records_of(one)
        images = [
            [str(row["id"]) for row in (record["before"], record["after"]) if row]
            for record in records
            if "ts_ms" in record
        ]
        told = [key for keys in images for key in keys] or [record["record_key"] for record in records]
        for key in {*told, "nobody"}:
            assert count_changed(block, one.name, ["id"], pa.array([key])) == KeyCount(told.count(key))


def block_of(images, runs):
    header = {Header.INSTANT_TIME: TIME, Header.SCHEMA: change_schema(images, AVRO)}
    return LogBlock(BlockType.CDC_DATA, header, joined_runs(runs))


@pytest.mark.parametrize("images", ChangeImages)
@pytest.mark.parametrize("count", [1, 40, 3000])
def test_values_of_every_type_come_back(images, count, tmp_path):
    rng = random.Random(count)
    old, new = random_batch(rng, 0, count), random_batch(rng, 0, count)
    keys = pa.chunked_array([pa.array([f"k{number}" for number in range(count)])])
    runs = [
        run
        for operation, before, after in ((INSERTED, None, new), (UPDATED, old, new), (DELETED, old, None))
        for run in encode_changes(images, AVRO, TIME, operation, keys, before, after)
    ]
    block = block_of(images, runs)
    (tmp_path / "f.cdc").write_bytes(encode_block(block))
    found = records_of(tmp_path / "f.cdc")
    assert [record["op"] for record in found] == ["i"] * count + ["u"] * count + ["d"] * count
    assert [record["record_key"] for record in found if "record_key" in record] == (
        [] if images is ChangeImages.DATA_BEFORE_AFTER else keys.to_pylist() * 3
    )
    nothing = [None] * count
    if images is not ChangeImages.OP_KEY_ONLY:
        assert [record["before"] for record in found] == nothing + 2 * plain(old)
    if images is ChangeImages.DATA_BEFORE_AFTER:
        assert {record["ts_ms"] for record in found} == {TIME}
        assert [record["after"] for record in found] == 2 * plain(new) + nothing
    else:
        assert count_changed(block, "f", ["id"], keys.combine_chunks()) == KeyCount(3 * count)


def plain(rows):
    """Rows as fastavro gives them: maps are dictionaries."""
    counts = [None if one is None else dict(one) for one in rows.column("counts").to_pylist()]
    return [{**row, "counts": held} for row, held in zip(rows.to_pylist(), counts, strict=True)]


def test_a_block_without_records_is_whole(tmp_path):
    (tmp_path / "f.cdc").write_bytes(encode_block(block_of(ChangeImages.DATA_BEFORE_AFTER, [])))
    assert records_of(tmp_path / "f.cdc") == []
    assert fastavro.parse_schema(json.loads(change_schema(ChangeImages.DATA_BEFORE, AVRO)))

"""Which blocks of log files tell the positions of the rows that they change."""

from base64 import b64decode
from glob import glob

import pytest
from engine import Engine, rows
from pyroaring import BitMap64

from table import read_table
from table.files.log.framing import BlockType, Header, scan_blocks
from table.files.names import parse_base_file

OPTIONS = {
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.datasource.write.operation": "upsert",
    "hoodie.datasource.compaction.async.enable": "false",
}


def blocks_of(path, changed=(7, 1, 4), **options):
    """The blocks of a batch of changes of one file group whose base file has nine rows."""
    for batch_id, keys in enumerate([range(9), changed]):
        Engine(path, {**OPTIONS, **options}).write(batch_id, rows(keys, lambda _: "p", ts=batch_id))
    found = []
    for file in glob(f"{path}/p/.*.log.*"):
        with open(file, "rb") as stream:
            found += [place.block for place in scan_blocks(stream)]
    assert len(read_table(path)) == 9
    return found


@pytest.mark.parametrize("block_format", ["avro", "parquet"])
@pytest.mark.parametrize("version", ["8", "9"])
def test_blocks_tell_the_rows_of_the_base_file_in_their_order(tmp_path, version, block_format):
    path = str(tmp_path / "t")
    options = {"hoodie.write.table.version": version, "hoodie.logfile.data.block.format": block_format}
    [block] = blocks_of(path, **options)
    [base] = [parse_base_file(name.rpartition("/")[2]) for name in glob(f"{path}/p/*.parquet")]
    assert block.header[Header.BASE_FILE_INSTANT_TIME_OF_RECORD_POSITIONS] == base.instant_time
    assert list(BitMap64.deserialize(b64decode(block.header[Header.RECORD_POSITIONS]))) == [1, 4, 7]


def test_each_block_tells_those_of_its_records(tmp_path):
    """Small blocks, and a block of deletes: an `id` of a key stands at its number."""
    blocks = blocks_of(
        str(tmp_path / "t"),
        changed=(8, 0, 5, 2),
        **{
            "hoodie.write.table.version": "8",
            "hoodie.logfile.data.block.format": "parquet",
            "hoodie.logfile.data.block.max.size": "1",
        },
    )
    told = [list(BitMap64.deserialize(b64decode(block.header[Header.RECORD_POSITIONS]))) for block in blocks]
    assert {block.type for block in blocks} == {BlockType.PARQUET_DATA}
    assert told == [[0], [2], [5], [8]]


@pytest.mark.parametrize(
    "options",
    [
        {"hoodie.write.table.version": "6"},
        {"hoodie.write.table.version": "8", "hoodie.write.record.positions": "false"},
        {"hoodie.write.table.version": "8", "hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "1"},
    ],
    ids=["version 6", "not wanted", "no key is looked up"],
)
def test_other_blocks_tell_none(tmp_path, options):
    blocks = blocks_of(str(tmp_path / "t"), **options)
    assert blocks
    assert not any(Header.RECORD_POSITIONS in block.header for block in blocks)

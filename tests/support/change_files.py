"""Change files (``.cdc``) as records, decoded by the schema in their headers."""

import io
import json
import struct

import fastavro

from table.files.log.framing import BlockType, Header, Verdict, scan_blocks


def blocks_of(file):
    """The blocks of a change file: all of them are whole, and of that type."""
    with open(file, "rb") as stream:
        places = list(scan_blocks(stream))
    assert all(place.verdict is Verdict.WHOLE for place in places)
    assert {place.block.type for place in places} == {BlockType.CDC_DATA}
    return [place.block for place in places]


def records_of(file):
    """The records of all its blocks."""
    return [record for block in blocks_of(file) for record in _decoded(block)]


def _decoded(block):
    schema = fastavro.parse_schema(json.loads(block.header[Header.SCHEMA]), named_schemas={})
    content = io.BytesIO(bytes(block.content))
    version, count = struct.unpack(">ii", content.read(8))
    assert version == 3
    for _ in range(count):
        (length,) = struct.unpack(">i", content.read(4))
        yield fastavro.schemaless_reader(io.BytesIO(content.read(length)), schema, None)
    assert not content.read()

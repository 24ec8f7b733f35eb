"""Writes the lists of files of a metadata table anew, for tests."""

import io
import json
from dataclasses import replace
from pathlib import Path

import fastavro

from table.files.hfile.read_hfile import HFile
from table.files.hfile.write_hfile import encode_hfile
from table.files.log.framing import BlockType, scan_blocks
from table.files.log.framing import encode_block as encode_block_of_log


def rewrite_lists(path, change=lambda key, entries: entries):
    """Writes the lists of files in a table's metadata table anew, with HFiles of this module.

    Args:
        path: of the table.
        change: takes a key and its entries, and returns the entries to write: name -> size and mark of deletion.

    Returns:
        How many HFiles were written.
    """
    count, folder = 0, Path(path) / ".hoodie/metadata/files"
    for file in sorted(folder.glob("*.hfile")):
        old = HFile(file.read_bytes())
        file.write_bytes(_changed(old, change, is_base_file=True))
        count += 1
    for file in sorted(folder.glob(".files*.log.*")):
        blocks = []
        for place in scan_blocks(io.BytesIO(file.read_bytes())):
            content = bytes(place.block.content)
            if place.block.type is BlockType.HFILE_DATA:
                content, count = _changed(HFile(content), change), count + 1
            blocks.append(replace(place.block, content=content))
        file.write_bytes(b"".join(map(encode_block_of_log, blocks)))
    return count


def _changed(file, change, *, is_base_file=False):
    schema = fastavro.parse_schema(json.loads(file.schema))
    entries = []
    for key, value in file.entries():
        record = fastavro.schemaless_reader(io.BytesIO(value), schema)
        record["filesystemMetadata"] = change(key.decode(), record["filesystemMetadata"])
        out = io.BytesIO()
        fastavro.schemaless_writer(out, schema, record)
        entries.append((key, out.getvalue()))
    return encode_hfile(entries, file.schema, is_base_file=is_base_file)

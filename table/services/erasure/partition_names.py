"""Finds partition paths in which no row remains, and the files and folders that still name them."""

import base64
import json
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import quote

import pyarrow as pa
import pyarrow.parquet as pq

from table.errors import CorruptFileError, HudiError
from table.files.hfile.read_hfile import HFile
from table.files.log.framing import BlockType, Verdict, read_block, scan_blocks
from table.hudi_table import HudiTable
from table.metadata_table.metadata_table import METADATA_FOLDER
from table.scan.scan import make_scan
from table.schema.avro_schema import PARTITION_PATH
from table.snapshot import Snapshot
from table.storage.interface import METAFOLDER, Storage, join
from table.timeline.end_record import ENDS_FOLDER

_DELTA_LOG = "_delta_log"
_PACKED = (b"deflate", b"snappy", b"zstandard", b"bzip2", b"xz")
_AVRO, _LEAD_BYTES = b"Obj\x01", 4096


@dataclass(frozen=True, slots=True)
class PartitionTrace:
    """A partition path in which no row remains, and which is still named.

    Attributes:
        partition_path: the path; its values are those of the partition columns.
        places: folders and files that name it, relative to the table: the partition's folder, instants, end records,
            the archive, the metadata table, a Delta log.
    """

    partition_path: str
    places: tuple[str, ...]


@dataclass(frozen=True)
class PartitionNames:
    """What is known of partition paths without rows.

    Attributes:
        traces: the paths that are still named.
        unread: files that may name one, and cannot be searched.
    """

    traces: tuple[PartitionTrace, ...] = ()
    unread: tuple[str, ...] = ()


def find_partition_names(table: HudiTable) -> PartitionNames:
    """Looks for partition paths in which no row remains: in folders, timeline, archive and catalogs beside the data.

    Args:
        table: the table, opened after its properties changed last.

    Raises:
        CorruptFileError: an instant or a file of the archive is damaged.
        StorageError: the store fails.
    """
    if not table.config.partition_fields:
        return PartitionNames()
    snapshot = Snapshot.load(table)
    folders = {path for path in table.store_listing.list_partition_paths() if path}
    gone = sorted((folders | _named_by_writes(snapshot)) - _with_rows(table) - {""})
    if not gone:
        return PartitionNames()
    places: dict[str, list[str]] = {path: [path] if _is_folder(table.storage, path) else [] for path in gone}
    needles = {path: _needles(path) for path in gone}
    unread = []
    for file in _list_records(table.storage):
        content = _read(table.storage, file)
        if content is None:
            unread.append(file)
            continue
        for path in gone:
            if f"/{path}/" in file or any(needle in content for needle in needles[path]):
                places[path].append(file)
    return PartitionNames(
        tuple(PartitionTrace(path, tuple(named)) for path, named in places.items() if named), tuple(unread)
    )


def _with_rows(table: HudiTable) -> set[str]:
    found: set[str] = set()
    for batch in make_scan(table, [PARTITION_PATH]).to_batches():
        found.update(batch.column(0).unique().to_pylist())
    return found


def _named_by_writes(snapshot: Snapshot) -> set[str]:
    """The partition paths that writes name, on the active timeline and in the archive."""
    active = (snapshot.commits.find(instant) for instant in snapshot.timeline.completed_writes)
    archived = (change.metadata for change in snapshot.table.archived_timeline.read_changes())
    return {path for each in (*active, *archived) if each is not None for path, _ in each.file_groups}


def _is_folder(storage: Storage, path: str) -> bool:
    above, _, name = path.rpartition("/")
    return any(entry.is_dir and entry.name == name for entry in storage.list_dir(above))


def _list_records(storage: Storage) -> Iterator[str]:
    """Every file beside the data that may name partition paths, relative to the table."""
    for folder in (METAFOLDER, _DELTA_LOG):
        yield from (join(folder, name) for name in sorted(storage.list_tree(folder)))


def _needles(path: str) -> tuple[bytes, ...]:
    """How a partition path is spelled in JSON, in Avro, in the path of a file, and in an address."""
    spelled = dict.fromkeys((path, json.dumps(path)[1:-1], quote(path, safe="/="), quote(path, safe="/")))
    found = [f"{lead}{text}{end}" for text in spelled for lead, end in (('"', '"'), ('"', "/"), ("/", "/"))]
    nested = [text.replace('"', '\\"') for text in found if '"' in text]  # JSON within a text of JSON
    raw = path.encode()
    return (*(text.encode() for text in (*found, *nested)), _varint(len(raw)) + raw)


def _varint(length: int) -> bytes:
    """A length as Avro writes it."""
    number, out = length << 1, bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def _read(storage: Storage, path: str) -> bytes | None:
    """What a file says, unpacked; None if it is not known."""
    try:
        data = storage.read(path)
        return data + _unpack(storage, path, data)
    except FileNotFoundError:
        return b""  # it was deleted meanwhile
    except (HudiError, pa.ArrowException, ValueError, OSError, AttributeError):
        return None


def _unpack(storage: Storage, path: str, data: bytes) -> bytes:
    """What a file says in packed form; b"" where it says all in plain form.

    Raises:
        CorruptFileError: it cannot be unpacked.
    """
    if path.endswith(".parquet"):
        return _unpack_parquet(data)
    if path.startswith(f"{METADATA_FOLDER}/") and data:
        return _unpack_metadata(storage, path, data)
    if path.startswith(f"{ENDS_FOLDER}/"):
        return base64.b64decode(json.loads(data).get("base64") or "")
    if data.startswith(_AVRO) and any(codec in data[:_LEAD_BYTES] for codec in _PACKED):
        raise CorruptFileError(f"{path} is packed in a form that is not read here")
    return b""


def _unpack_parquet(data: bytes) -> bytes:
    rows = pq.read_table(pa.BufferReader(data))
    return b'"' + b'"'.join(text for column in rows.columns for chunk in column.chunks for text in _texts(chunk)) + b'"'


def _texts(values: pa.Array) -> Iterator[bytes]:
    """The texts and bytes in an array, those of nested types included."""
    kind = values.type
    if pa.types.is_struct(kind):
        for part in values.flatten():
            yield from _texts(part)
    elif pa.types.is_map(kind):
        yield from _texts(values.keys)
        yield from _texts(values.items)
    elif pa.types.is_list(kind) or pa.types.is_large_list(kind):
        yield from _texts(values.flatten())
    elif pa.types.is_dictionary(kind):
        yield from _texts(values.dictionary)
    elif pa.types.is_string(kind) or pa.types.is_binary(kind) or pa.types.is_large_string(kind):
        yield from (text for text in values.cast(pa.large_binary()).to_pylist() if text is not None)


def _unpack_metadata(storage: Storage, path: str, data: bytes) -> bytes:
    """Keys and values of a file of the metadata table; b"" of its timeline."""
    name = path.rsplit("/", 1)[-1]
    if name.endswith(".hfile"):
        return _entries(data)
    if ".log." not in name:
        return b""
    found = []
    with storage.open_input(path) as stream:
        for place in scan_blocks(stream, with_content=False):
            if place.verdict is not Verdict.WHOLE or place.block is None:
                raise CorruptFileError(f"{path} has a damaged block")
            if place.block.type is BlockType.HFILE_DATA:
                found.append(_entries(bytes(read_block(stream, place).content)))
    return b"".join(found)


def _entries(data: bytes) -> bytes:
    return b"".join(b'"' + key + b'"' + value for key, value in HFile(data).entries())

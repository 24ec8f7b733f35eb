"""What the footer of a base file says of keys that none of its rows has."""

from collections.abc import Callable, Mapping

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from table.errors import CorruptFileError
from table.files.base.hudi_footer import BLOOM_KEY, BLOOM_TYPE_KEY, MAX_KEY, MIN_KEY
from table.files.bloom.bloom_filter import AnyBloomFilter, BloomFilter, decode_filter, empty_filter
from table.schema.avro_schema import RECORD_KEY

KEY_RANGE, BLOOM_FILTER, STATISTICS = "key range", "bloom filter", "column statistics"


def find_entries(metadata: pq.FileMetaData, gone: pa.Array, read_keys: Callable[[], pa.Array]) -> tuple[str, ...]:
    """The parts of a footer that contain keys.

    Args:
        metadata: the footer.
        gone: record keys that no row of the file has (string).
        read_keys: reads the record keys of all rows (string). It is called only if the filter says that it may hold one
            of the keys.

    Returns:
        Any of `KEY_RANGE`, `BLOOM_FILTER` and `STATISTICS`. A filter that cannot be read is among them: nothing is
        known of it.
    """
    if not len(gone):
        return ()
    entries: Mapping[bytes, bytes] = metadata.metadata or {}
    found = []
    if _any_of([entries.get(name.encode()) for name in (MIN_KEY, MAX_KEY)], gone):
        found.append(KEY_RANGE)
    if BLOOM_KEY.encode() in entries and _tells(entries, gone, read_keys):
        found.append(BLOOM_FILTER)
    if _any_of(_bounds(metadata), gone):
        found.append(STATISTICS)
    return tuple(found)


def _any_of(stored: list[bytes | str | None], keys: pa.Array) -> bool:
    texts = [value.decode(errors="replace") if isinstance(value, bytes) else value for value in stored]
    return bool(pc.any(pc.is_in(pa.array(texts, pa.string()), value_set=keys, skip_nulls=True)).as_py())


def _bounds(metadata: pq.FileMetaData) -> list[bytes | str | None]:
    """The bounds of the record key in each row group."""
    names = [metadata.schema.column(number).path for number in range(metadata.num_columns)]
    if RECORD_KEY not in names:
        return []
    chunks = (metadata.row_group(group).column(names.index(RECORD_KEY)) for group in range(metadata.num_row_groups))
    statistics = [chunk.statistics for chunk in chunks if chunk.statistics is not None and chunk.statistics.has_min_max]
    return [bound for one in statistics for bound in (one.min, one.max)]


def _tells(entries: Mapping[bytes, bytes], gone: pa.Array, read_keys: Callable[[], pa.Array]) -> bool:
    """Whether a filter holds one of the keys for another reason than that the keys of the rows set the same bits."""
    kind = entries.get(BLOOM_TYPE_KEY.encode())
    try:
        stored = decode_filter(entries[BLOOM_KEY.encode()].decode(), kind.decode() if kind is not None else None, 0)
    except (CorruptFileError, UnicodeDecodeError):
        return True
    held = gone.filter(pa.array(stored.may_contain(gone)))
    return len(held) > 0 and not _emptied(stored).added(read_keys()).may_contain(held).all()


def _emptied(bloom: AnyBloomFilter) -> AnyBloomFilter:
    """A filter of the same form and size without keys."""
    row = empty_filter(bloom.hashes, bloom.bits)
    if isinstance(bloom, BloomFilter):
        return row
    return type(bloom)(bloom.hashes, bloom.bits, bloom.row_keys, bloom.max_keys, 0, (row,))

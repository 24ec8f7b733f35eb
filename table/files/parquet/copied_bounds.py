"""Bounds for copied chunks of files that this project wrote before it gave them.

Such files have no bounds where values are long (`table.files.parquet.value_bounds`), and the bounds of their floats
leave NaN out (`table.files.parquet.nan_bounds`). Only these columns are decoded, and only when a row group is copied
for the first time: the new file's footer says that it has all bounds (`Footer.has_all_bounds`). Encoding the whole row
group again would cost the work of all its columns.
"""

import pyarrow as pa

from table.files.base.stored_file import StoredBaseFile
from table.files.parquet.chunk_statistics import lacks_bounds, with_bounds
from table.files.parquet.nan_bounds import find_nan, has_floats, with_open_bounds
from table.files.parquet.row_groups import RowGroup, chunk_path, chunks_of, encode_group
from table.files.parquet.value_bounds import as_bounds, find_extremes
from table.schema.avro_schema import FILE_NAME


def group_with_bounds(stored: StoredBaseFile, number: int, schema: pa.Schema) -> RowGroup:
    """A row group of a sealed file, as its footer describes it, with its missing bounds added.

    Args:
        stored: the file.
        number: number of the row group.
        schema: schema of the file's rows (Arrow).

    Raises:
        CorruptFileError, StorageError: when a column without bounds cannot be decoded or read.
    """
    groups = stored.footer.groups
    assert groups is not None, "only sealed files are copied"
    if stored.footer.has_all_bounds:
        return groups[number]
    group = groups[number].decoded
    lacking = {chunk_path(chunk)[0].decode() for chunk in chunks_of(group) if lacks_bounds(chunk)}
    names = {chunk_path(chunk)[0].decode() for chunk in chunks_of(group)}
    floats = [field for field in schema if has_floats(field.type) and field.name in names]
    if not lacking and not floats:
        return groups[number]
    wanted = pa.schema([field for field in schema if field.name in lacking])
    extremes = find_extremes(stored.read_batches(wanted, [number])) if lacking else {}
    nan = find_nan(stored.read_batches(pa.schema(floats), [number])) if floats else frozenset()
    bounded = with_open_bounds(with_bounds(group, as_bounds(extremes)), nan)
    return encode_group(bounded, number, FILE_NAME)

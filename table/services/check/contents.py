"""What base files hold: rows, filters, key ranges, schemas. Some ten thousand rows of one file at a time."""

import heapq
import zlib
from collections.abc import Iterable, Iterator

import pyarrow as pa

from table.columns.conform import conform
from table.errors import CorruptFileError, StorageError
from table.files.base.hudi_footer import AVRO_SCHEMA_KEY, BLOOM_KEY, BLOOM_TYPE_KEY, key_range, stored_bounds
from table.files.base.stored_file import StoredBaseFile
from table.files.bloom.bloom_filter import AnyBloomFilter, decode_filter
from table.schema.avro_schema import RECORD_KEY, relaxed, with_meta_columns
from table.services.check.finding import Finding, Kind, Repair, Severity
from table.services.check.look import Look
from table.storage.interface import Storage
from table.view.file_group import BaseFile, DataFile

_REWRITE = "write its rows again (`insert_overwrite` of its partition); upserts with the index SIMPLE find its keys"
_BACKUP = "restore a savepoint, bring the file back from a backup, or write its rows again"


def choose_files(look: Look, sample: int | None) -> list[DataFile]:
    """Files of the snapshot to be read: the same ones whenever the table is the same.

    Args:
        look: the table.
        sample: how many; None means all.
    """
    live = (file for folder in look.folders.values() for file in look.current_files(folder))
    if sample is None:
        return sorted(live, key=lambda file: file.path)
    return heapq.nsmallest(sample, live, key=lambda file: (zlib.crc32(file.path.encode()), file.path))


def check_contents(
    storage: Storage, files: Iterable[BaseFile], schema: pa.Schema | None, *, has_meta_fields: bool = True
) -> Iterator[Finding]:
    """Reads files and says what is wrong with them.

    Args:
        files: which ones.
        schema: the table's newest columns without meta columns; None: types are not compared.
        has_meta_fields: whether rows hold their keys (``hoodie.populate.meta.fields``): else files have no filter.
    """
    for file in files:
        try:
            yield from _check_file(storage, file.path, schema, has_meta_fields=has_meta_fields)
        except FileNotFoundError:
            continue  # cleaned since
        except (CorruptFileError, StorageError) as error:
            if not storage.exists(file.path):
                continue
            yield _refused(Kind.UNREADABLE_FILE, file.path, f"it cannot be read: {error}", _BACKUP)


def _check_file(storage: Storage, path: str, schema: pa.Schema | None, *, has_meta_fields: bool) -> Iterator[Finding]:
    with StoredBaseFile(storage, path) as file:
        entries = file.footer.key_values
        bloom, problem = _filter_of(entries.get(BLOOM_KEY), entries.get(BLOOM_TYPE_KEY))
        if problem:
            yield _refused(Kind.WRONG_FILTER, path, problem, _REWRITE)
        bounds = stored_bounds(file.footer)
        lacking = [name for name in (BLOOM_KEY, AVRO_SCHEMA_KEY) if name not in entries and has_meta_fields]
        if lacking:
            yield _without_entries(path, lacking)
        missed, found, misfit = 0, None, ""
        wanted = relaxed(with_meta_columns(schema)) if schema is not None else None
        for rows in file.read_stored(wanted.names if wanted is not None else [RECORD_KEY]):
            if wanted is not None and not misfit:
                misfit = _misfit(rows, wanted)
            keys = _keys_of(rows)
            if keys is None or not len(keys):
                continue
            if bloom is not None:
                missed += sum(int((~bloom.may_contain(chunk)).sum()) for chunk in keys.chunks)
            least, most = key_range(keys)
            found = _wider(found, least, most)
    if misfit:
        advice = "write the file's partition again with the table's schema"
        yield _refused(Kind.SCHEMA_DOES_NOT_FIT, path, misfit, advice)
    if missed:
        text = f"its bloom filter does not hold {missed} of its keys: upserts would insert them again"
        yield _refused(Kind.WRONG_FILTER, path, text, _REWRITE)
    if bounds is not None and found is not None and not _covers(bounds, found):
        text = f"its footer says that keys lie within {bounds}, and they lie within {found}"
        yield _refused(Kind.WRONG_KEY_RANGE, path, text, _REWRITE)


def _without_entries(path: str, lacking: list[str]) -> Finding:
    text = f"its footer lacks {' and '.join(lacking)}: its keys are always read"
    advice = "nothing: files written without a filter are fine"
    return Finding(Kind.NO_HUDI_FOOTER, Severity.NOTE, path, text, Repair.REFUSED, "files are not changed", advice)


def _filter_of(text: str | None, kind: str | None) -> tuple[AnyBloomFilter | None, str]:
    if text is None:
        return None, ""
    try:
        return decode_filter(text, kind, 1), ""
    except CorruptFileError as error:
        return None, f"its bloom filter cannot be read: {error}"


def _misfit(rows: pa.Table, wanted: pa.Schema) -> str:
    """Why rows cannot be read with the table's columns, or "" (pure)."""
    for column in wanted:
        if column.name in rows.column_names:
            stored = rows.schema.field(column.name).type
            try:
                conform(rows.select([column.name]), pa.schema([column]))
            except (pa.ArrowException, TypeError, ValueError) as error:
                return f"its column {column.name!r} ({stored}) cannot be read as the table's {column.type}: {error}"
    return ""


def _keys_of(rows: pa.Table) -> pa.ChunkedArray | None:
    if RECORD_KEY not in rows.column_names:
        return None  # a table without meta columns
    return rows.column(RECORD_KEY).cast(pa.string()).drop_null()


def _utf16(text: str) -> bytes:
    return text.encode("utf-16-be", "surrogatepass")


def _wider(found: tuple[str, str] | None, least: str, most: str) -> tuple[str, str]:
    """A range that takes in another one, in Java's order (pure)."""
    if found is None:
        return least, most
    return min(found[0], least, key=_utf16), max(found[1], most, key=_utf16)


def _covers(bounds: tuple[str, str], found: tuple[str, str]) -> bool:
    return _utf16(bounds[0]) <= _utf16(found[0]) and _utf16(found[1]) <= _utf16(bounds[1])


def _refused(kind: Kind, path: str, text: str, advice: str) -> Finding:
    return Finding(kind, Severity.ERROR, path, text, Repair.REFUSED, "its bytes cannot be made again from here", advice)

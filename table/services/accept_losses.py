"""Goes on without lost data: says what is lost, makes the rest readable, and records that a person accepted it.

The files are changed before the record is made. So a command that dies is run again: what it did not record is still
refused. A log file is written anew without its damaged blocks. A base file that cannot be read is deleted.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from table.config.table_config import load_table_config
from table.config.writable import check_version_written
from table.errors import CorruptFileError
from table.files.base.stored_file import StoredBaseFile
from table.files.log.framing import ScannedBlock, scan_blocks
from table.files.names import parse_log_file
from table.hudi_table import HudiTable
from table.log import get_logger
from table.metadata_table.drop import drop_present_metadata_table
from table.notebook import ShownInNotebooks
from table.options.choices import CompactionStrategy, TableType
from table.options.groups import CompactionSettings
from table.references.losses import AcceptedLoss, accepted_of, name_losses, record_losses
from table.schema.avro_schema import with_meta_columns
from table.services.check.log_contents import decode_block, ordering_of
from table.services.compaction.compaction import compact
from table.snapshot import Snapshot
from table.storage.interface import Storage
from table.takes_path import takes_path
from table.timeline.named_files import NamedFile, NamedFiles
from table.transaction.lease import hold_table
from table.view.file_group import BaseFile
from table.view.file_system_view import walk_file_groups
from table.view.known_files import LostFile

_END = b"PAR1"  # of a Parquet file

log = get_logger("hudistream.losses")


@dataclass(frozen=True)
class Damaged:
    """A file of the newest snapshot that readers and services fail at.

    Attributes:
        named: the file as the newest commit that wrote it names it.
        kept: (start, end) of the bytes that can be read; none: the file is deleted when its loss is accepted.
        reason: what is wrong.
        is_whole: whether the kept bytes are all that the commit wrote: others appended to a base file.
    """

    named: NamedFile
    kept: tuple[tuple[int, int], ...]
    reason: str
    is_whole: bool = False


@dataclass(frozen=True, repr=False)
class Losses(ShownInNotebooks):
    """What a table has lost.

    Attributes:
        table: its address.
        files: files that commits name, and that are gone or differ.
        damaged: files that cannot be read whole, some of the former among them.
        record: path of the record that says that they were accepted; None: they were not.
    """

    table: str
    files: tuple[LostFile, ...]
    damaged: tuple[Damaged, ...]
    record: str | None = None

    def __bool__(self) -> bool:
        """Whether there are any."""
        return bool(self.files or self.damaged)

    @property
    def rows(self) -> int:
        """Rows and changes in these files, as their commits say. A damaged log file may have kept some."""
        named = {lost.named.path: lost.named.rows for lost in self.files}
        named.update((one.named.path, 0 if one.is_whole else one.named.rows) for one in self.damaged)
        return sum(named.values())


@takes_path
def find_losses(table: HudiTable, *, reads_rows: bool = False) -> Losses:
    """What the newest snapshot of a table has lost: files that are gone or cut short, and files that cannot be read.

    Lists the folders of the table, and reads its log files and the footers of its base files. Changes nothing.

    Args:
        table: the table, or its path.
        reads_rows: whether the rows of base files are read, too: a damaged page shows in no footer.

    Raises:
        HudiError: the timeline or a folder cannot be read.
    """
    snapshot = Snapshot.load(table)
    files = tuple(name_losses(snapshot))
    cut = frozenset(lost.named.path for lost in files if lost.size_bytes is not None)
    return Losses(table.storage.base_uri, files, tuple(_find_damaged(snapshot, cut, reads_rows=reads_rows)))


@takes_path
def accept_losses(table: HudiTable, *, reads_rows: bool = False) -> Losses:
    """Accepts what `find_losses` finds, so that batches, services and readers go on without it.

    The table is held meanwhile. Damaged blocks are cut out of log files. Base files that cannot be read are deleted:
    readers then see the version before, if there is one. Where log files are left without their base file, a compaction
    makes one of them. A metadata table is dropped, because its lists name these files; the next batch makes it anew
    where its options ask for one.

    Args:
        table: the table, or its path.
        reads_rows: as in `find_losses`.

    Returns:
        What was accepted, with the path of its record; nothing where nothing was lost.

    Raises:
        UnsupportedTableError: tables of this version are not written here.
        CommitConflictError: a live writer holds the table.
    """
    check_version_written(table.config, "accept losses of")
    storage = table.storage
    with hold_table(storage, "hudistream accept-loss"):
        found = find_losses(table, reads_rows=reads_rows)
        if not found:
            return found
        accepted = {lost.named.path: accepted_of(lost) for lost in found.files}
        accepted |= {one.named.path: _mend(storage, one) for one in found.damaged}
        drop_present_metadata_table(storage)
        record = record_losses(storage, accepted.values())
    log.warning("losses_accepted", table=storage.base_uri, files=len(accepted), rows=found.rows, record=record)
    gone = [path for path, loss in accepted.items() if loss.left_bytes is None]
    is_base_gone = any(parse_log_file(path.rpartition("/")[2]) is None for path in gone)
    if is_base_gone and table.config.table_type == TableType.MERGE_ON_READ:
        # writers that look up keys in base files refuse a file group that has keys in log files alone
        now = replace(table, config=load_table_config(storage) or table.config)
        compact(now, CompactionSettings(strategy=CompactionStrategy.UNBOUNDED))
    return Losses(found.table, found.files, found.damaged, record)


def _mend(storage: Storage, damaged: Damaged) -> AcceptedLoss:
    """Leaves what can be read of a file, and returns the record of its loss."""
    path = damaged.named.path
    sound = b"".join(storage.read_part(path, start, end) for start, end in damaged.kept)
    if sound:
        storage.put(path, sound)
    else:
        storage.delete(path)
    loss = accepted_of(LostFile(damaged.named, len(sound) or None))
    return replace(loss, reason=f"{path}: {damaged.reason}")


def _find_damaged(snapshot: Snapshot, cut: frozenset[str], *, reads_rows: bool) -> Iterator[Damaged]:
    """The files of the newest slices that cannot be read whole."""
    schema, named = snapshot.load_schema(), snapshot.confirmed.named or NamedFiles()
    ordering = ordering_of(snapshot.config, schema)
    columns = with_meta_columns(schema).names if reads_rows and schema is not None else []
    for _, groups in walk_file_groups(snapshot.table.store_listing, snapshot.slicing):
        for group in groups:
            mine = {file.name: file for file in named.of(group.partition_path).get(group.file_id, ())}
            for file in group.merged_slice.files:
                unknown = NamedFile(file.name, file.partition_path, file.file_id, "", file.size_bytes)
                by_commit = mine.get(file.name, unknown)
                found = (
                    _damage_of_base(snapshot.storage, by_commit, file.size_bytes, columns)
                    if isinstance(file, BaseFile)
                    else _damage_of_log(snapshot.storage, by_commit, ordering, passes_over=file.path not in cut)
                )
                if found is not None:
                    yield found


def _damage_of_base(storage: Storage, file: NamedFile, size_bytes: int, columns: Sequence[str]) -> Damaged | None:
    reason = _why_closed(storage, file.path, size_bytes, columns)
    if reason is None:
        return None
    end = file.size_bytes
    if size_bytes > end > 0 and storage.read_part(file.path, end - len(_END), end) == _END:
        return Damaged(file, ((0, file.size_bytes),), "bytes were appended to it; all its rows are kept", is_whole=True)
    return Damaged(file, (), reason)


def _why_closed(storage: Storage, path: str, size_bytes: int, columns: Sequence[str]) -> str | None:
    """Why a base file cannot be opened, or these columns of it not be read; None if they can."""
    try:
        with StoredBaseFile(storage, path, size_bytes) as stored:
            for _ in stored.read_stored(columns) if columns else ():
                pass  # a page that is damaged raises
            return None if stored.footer.key_values else "its footer is empty"
    except FileNotFoundError:
        return None  # it was cleaned since
    except CorruptFileError as error:
        return str(error)


def _damage_of_log(storage: Storage, file: NamedFile, ordering: pa.Schema, *, passes_over: bool) -> Damaged | None:
    """The damage of a log file.

    Args:
        passes_over: whether bytes that readers pass over are left alone: a dead writer may have left them.
    """
    kept: list[tuple[int, int]] = []
    reason = ""
    try:
        with storage.open_input(file.path) as stream:
            for place in scan_blocks(stream):
                fault = _fault_of(place, file, ordering)
                if fault is None and place.block is None and not passes_over:
                    fault = f"the bytes from {place.start} to {place.end} are no block: {place.reason}"
                reason = reason or fault or ""
                if fault is None:
                    kept.append((place.start, place.end))
    except FileNotFoundError:
        return None  # it was deleted since, or the names of files told it already
    return Damaged(file, tuple(kept), reason) if reason else None


def _fault_of(place: ScannedBlock, file: NamedFile, ordering: pa.Schema) -> str | None:
    """Why readers fail at a place; None where they do not: what a dead writer left is passed over."""
    if place.block is None:
        fails = place.is_framed or not place.begins
        return f"the block at byte {place.start} is damaged: {place.reason}" if fails else None
    try:
        decode_block(place.block, ordering, file.path)
    except CorruptFileError as error:
        return f"the block at byte {place.start} is damaged: {error}"
    return None

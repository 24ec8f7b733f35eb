"""Goes on without lost data: says what is lost, makes the rest readable, and records that a person accepted it.

The files are changed before the record is made. So a command that dies is run again: what it did not record is still
refused. A log file is written anew without its damaged blocks; a base file that cannot be opened is deleted.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from table.config.writable import check_version_written
from table.errors import CorruptFileError
from table.files.base.stored_file import StoredBaseFile
from table.files.log.framing import ScannedBlock, scan_blocks
from table.hudi_table import HudiTable
from table.log import get_logger
from table.metadata_table.drop import drop_present_metadata_table
from table.notebook import ShownInNotebooks
from table.references.losses import AcceptedLoss, accepted_of, name_losses, record_losses
from table.services.check.log_contents import decode_block, ordering_of
from table.snapshot import Snapshot
from table.storage.interface import Storage
from table.takes_path import takes_path
from table.timeline.named_files import NamedFile, NamedFiles
from table.transaction.lease import hold_table
from table.view.file_system_view import walk_file_groups
from table.view.known_files import LostFile

log = get_logger("hudistream.losses")


@dataclass(frozen=True)
class DamagedLog:
    """A log file of the newest snapshot that readers and compactions fail at.

    Attributes:
        named: the log file as the newest commit that wrote it names it.
        kept: (start, end) of the bytes of its sound blocks.
        reason: what is wrong with the first damaged block.
    """

    named: NamedFile
    kept: tuple[tuple[int, int], ...]
    reason: str


@dataclass(frozen=True, repr=False)
class Losses(ShownInNotebooks):
    """What a table has lost.

    Attributes:
        table: its address.
        files: files that commits name, and that are gone or differ.
        damaged: log files with damaged blocks.
        record: path of the record that says that they were accepted; None: they were not.
    """

    table: str
    files: tuple[LostFile, ...]
    damaged: tuple[DamagedLog, ...]
    record: str | None = None

    def __bool__(self) -> bool:
        """Whether there are any."""
        return bool(self.files or self.damaged)

    @property
    def rows(self) -> int:
        """Rows and changes in these files, as their commits say. A damaged log file may have kept some."""
        return sum(lost.named.rows for lost in self.files) + sum(log.named.rows for log in self.damaged)


@takes_path
def find_losses(table: HudiTable) -> Losses:
    """What the newest snapshot of a table has lost: files that are gone or cut short, and damaged blocks of log files.

    Lists the folders of the table, and reads its log files. Changes nothing.

    Args:
        table: the table, or its path.

    Raises:
        HudiError: the timeline or a folder cannot be read.
    """
    snapshot = Snapshot.load(table)
    files = tuple(name_losses(snapshot))
    return Losses(table.storage.base_uri, files, tuple(_find_damaged(snapshot)))


@takes_path
def accept_losses(table: HudiTable) -> Losses:
    """Accepts what `find_losses` finds, so that batches, services and readers go on without it.

    The table is held meanwhile. Damaged blocks are cut out of log files, and base files that cannot be opened are
    deleted: readers then see the version before, if there is one. A metadata table is dropped, because its lists name
    these files; the next batch makes it anew where its options ask for one.

    Args:
        table: the table, or its path.

    Returns:
        What was accepted, with the path of its record; nothing where nothing was lost.

    Raises:
        UnsupportedTableError: tables of this version are not written here.
        CommitConflictError: a live writer holds the table.
    """
    check_version_written(table.config, "accept losses of")
    storage = table.storage
    with hold_table(storage, "hudistream accept-loss"):
        found = find_losses(table)
        if not found:
            return found
        accepted = [*_settle_files(storage, found.files), *_mend_logs(storage, found.damaged)]
        drop_present_metadata_table(storage)
        record = record_losses(storage, accepted)
    log.warning("losses_accepted", table=storage.base_uri, files=len(accepted), rows=found.rows, record=record)
    return Losses(found.table, found.files, found.damaged, record)


def _settle_files(storage: Storage, files: Sequence[LostFile]) -> Iterator[AcceptedLoss]:
    for lost in files:
        accepted = accepted_of(lost)
        if not lost.named.is_log and lost.size_bytes is not None and not _opens(storage, lost):
            storage.delete(lost.named.path)
            accepted = accepted_of(LostFile(lost.named, None))
        yield accepted


def _opens(storage: Storage, lost: LostFile) -> bool:
    """Whether a base file of another size can be read all the same."""
    try:
        with StoredBaseFile(storage, lost.named.path, lost.size_bytes) as stored:
            return bool(stored.footer.key_values)
    except CorruptFileError:
        return False


def _mend_logs(storage: Storage, damaged: Sequence[DamagedLog]) -> Iterator[AcceptedLoss]:
    for one in damaged:
        path = one.named.path
        sound = b"".join(storage.read_part(path, start, end) for start, end in one.kept)
        if sound:
            storage.put(path, sound)
        else:
            storage.delete(path)
        loss = accepted_of(LostFile(one.named, len(sound) or None))
        yield AcceptedLoss(**{**vars(loss), "reason": f"{path}: {one.reason}"})


def _find_damaged(snapshot: Snapshot) -> Iterator[DamagedLog]:
    """The log files of the newest slices that hold a damaged block."""
    ordering, named = ordering_of(snapshot.config, snapshot.load_schema()), snapshot.confirmed.named or NamedFiles()
    for _, groups in walk_file_groups(snapshot.table.store_listing, snapshot.slicing):
        for group in groups:
            for file in group.merged_slice.log_files:
                mine = named.of(file.partition_path).get(file.file_id, ())
                unknown = NamedFile(file.name, file.partition_path, file.file_id, "", file.size_bytes)
                told = next((one for one in mine if one.name == file.name), unknown)
                found = _damage_in(snapshot.storage, told, ordering)
                if found is not None:
                    yield found


def _damage_in(storage: Storage, file: NamedFile, ordering: pa.Schema) -> DamagedLog | None:
    kept: list[tuple[int, int]] = []
    reason = ""
    try:
        with storage.open_input(file.path) as stream:
            for place in scan_blocks(stream):
                fault = _fault_of(place, file, ordering)
                reason = reason or fault or ""
                if fault is None:
                    kept.append((place.start, place.end))
    except FileNotFoundError:
        return None  # it was deleted since, or the names of files told it already
    return DamagedLog(file, tuple(kept), reason) if reason else None


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

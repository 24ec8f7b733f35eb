"""What shows that a batch or a reader of a table fails, or may fail soon. `health` and `doctor` ask the same probes."""

from dataclasses import dataclass

from table import clock
from table.config.metadata_indexes import FILES, RECORD_INDEX
from table.errors import CorruptFileError, InvalidConfigError, UnsupportedTableError
from table.hudi_table import HudiTable
from table.metadata_table.file_lists import load_file_lists
from table.metadata_table.metadata_table import MetadataTable
from table.metadata_table.read_record_index import see_record_index
from table.references.losses import left_of, load_losses
from table.snapshot import Snapshot
from table.storage.interface import METAFOLDER, Room
from table.view.file_group import FileGroup, parse_data_files
from table.view.known_files import LostFile, find_lost


@dataclass(frozen=True)
class Probes:
    """What the probes of a table found.

    Attributes:
        groups: the file groups in sight, as the store lists them.
        replaced: file groups that replace commits replaced, and whose files are still there.
        lost: files that commits name, and that are gone or have another size: batches are refused.
        clock: why a batch refuses this machine's clock; "" where it does not.
        damaged_commits: completed writes whose files are empty or torn, and whose end records say the same.
        metadata_table: why the metadata table that the properties promise cannot be opened; "" where it can, or where
            they promise none.
        damaged_index: why the lists of files or the record index of the metadata table cannot be trusted: a file is
            gone, empty or damaged; "" where they can.
        room: free bytes and rights; None where the store does not say.
    """

    groups: tuple[FileGroup, ...]
    replaced: tuple[FileGroup, ...]
    lost: tuple[LostFile, ...]
    clock: str
    damaged_commits: tuple[str, ...]
    metadata_table: str
    damaged_index: str
    room: Room | None


def probe(snapshot: Snapshot) -> Probes:
    """Asks all probes of a table. Lists each partition folder once; changes nothing.

    Args:
        snapshot: the newest.

    Raises:
        HudiError: the timeline or a folder cannot be read.
    """
    groups, replaced, lost = _look_at_files(snapshot)
    table = snapshot.table
    return Probes(
        tuple(groups),
        tuple(replaced),
        tuple(lost),
        find_skew(snapshot),
        tuple(sorted(instant.time for instant in snapshot.commits.damaged)),
        _find_metadata_table(table),
        _find_damaged_index(snapshot),
        table.storage.look_for_room((METAFOLDER, table.layout.names.folder)),
    )


def find_skew(snapshot: Snapshot) -> str:
    """Why a batch refuses this machine's clock: the newest instant is ahead of it. "" where it does not."""
    try:
        clock.check_skew(snapshot.timeline.last_time or "", clock.now_ms(), snapshot.config.timezone)
    except InvalidConfigError as error:
        return str(error)
    return ""


def _find_metadata_table(table: HudiTable) -> str:
    if not table.config.metadata_partitions:
        return ""
    try:
        MetadataTable.open(table.storage)
    except FileNotFoundError:
        return "it is gone"
    except (CorruptFileError, UnsupportedTableError) as error:
        return str(error)
    return ""


def _find_damaged_index(snapshot: Snapshot) -> str:
    table = snapshot.table
    try:
        if FILES in table.config.metadata_indexes:
            load_file_lists(table.storage, ())
        if RECORD_INDEX in table.config.metadata_indexes:
            see_record_index(table.storage, table.config, table.known_lists).as_of(snapshot.timeline)
    except CorruptFileError as error:
        return str(error)
    except (UnsupportedTableError, FileNotFoundError):  # it is being changed, or the probe before this one says more
        return ""
    return ""


def _look_at_files(snapshot: Snapshot) -> tuple[list[FileGroup], list[FileGroup], list[LostFile]]:
    """File groups in sight, replaced ones, and named files that are gone or differ. The store itself is listed."""
    snapshot.commits.named_files.accept(left_of(load_losses(snapshot.storage)))
    committed, groups, lost = snapshot.confirmed, list[FileGroup](), list[LostFile]()
    replaced = list[FileGroup]()
    unseen = set(committed.named or ())
    for path, entries in snapshot.table.store_listing.walk():
        groups += snapshot.group_files(path, entries)
        replaced += snapshot.replaced_groups(path, entries)
        lost += find_lost(path, *parse_data_files(path, entries), committed)
        unseen.discard(path)
    for path in sorted(unseen):
        lost += find_lost(path, (), (), committed)
    return groups, replaced, lost

"""Compares what the metadata table lists with the store: readers of Hudi trust its lists by default."""

from collections.abc import Sequence

from table.config.metadata_indexes import FILES
from table.hudi_table import HudiTable
from table.metadata_table.file_lists import Failures, FileLists, load_file_lists
from table.metadata_table.metadata_table import METADATA_FOLDER
from table.services.check.finding import Finding, Kind, Repair, Severity
from table.snapshot import Snapshot
from table.storage.interface import FileInfo, join
from table.timeline.timeline import Timeline

ADVICE = (
    "`hudistream check --repair` drops the metadata table, and Hudi's next writer makes it anew; until then set "
    "hoodie.metadata.enable=false in Hudi's readers"
)


def check_file_lists(table: HudiTable, timeline: Timeline) -> list[Finding]:
    """Finds a metadata table that hides files of the newest snapshot, or lists files that are gone.

    Args:
        timeline: the table's, listed before.

    Raises:
        StorageError: the store fails while data files are listed.
    """
    if FILES not in table.config.metadata_indexes:
        return []
    try:
        lists = load_file_lists(table.storage, (instant.time for instant in timeline.completed_writes))
        differing = _find_differing(table, timeline, lists)
    except Failures as error:
        text = f"the metadata table cannot be read: {error}"
        return [Finding(Kind.METADATA_TABLE, Severity.WARNING, METADATA_FOLDER, text, Repair.POSSIBLE, advice=ADVICE)]
    if not differing:
        return []
    text = (
        f"the metadata table and the store differ about {len(differing)} files of the newest snapshot, among them "
        f"{differing[0]}: readers that trust it see other rows"
    )
    return [Finding(Kind.METADATA_TABLE, Severity.ERROR, METADATA_FOLDER, text, Repair.POSSIBLE, advice=ADVICE)]


def _find_differing(table: HudiTable, timeline: Timeline, lists: FileLists) -> list[str]:
    """Paths of the newest snapshot's files that only one of the two has, or that have another size."""
    snapshot, by_store, by_lists = Snapshot(table, timeline), set(), set()
    for path, entries in table.store_listing.walk():
        by_store |= _current(snapshot, path, entries)
    for path in lists.partition_paths():
        entries = [FileInfo(name, size, 0, False) for name, size in lists.files(path).items()]
        by_lists |= _current(snapshot, path, entries)
    return sorted(path for path, _ in by_store ^ by_lists)


def _current(snapshot: Snapshot, path: str, entries: Sequence[FileInfo]) -> set[tuple[str, int]]:
    groups = snapshot.group_files(path, entries)
    return {(join(path, file.name), file.size_bytes) for group in groups for file in group.current_files}

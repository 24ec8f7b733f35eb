"""Notices that a file of the metadata table is gone: an instant names the files that it wrote.

A reader would take a lost log file for one that never was, and show fewer rows, or take a key for new.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from table.errors import CorruptFileError, UnsupportedTableError
from table.files.names import parse_base_file, parse_log_file
from table.metadata_table.metadata_table import METADATA_FOLDER, MetadataTable, is_making
from table.storage.at_once import each_at_once
from table.timeline.instant import Action, Instant
from table.timeline.metadata.commit import WriteStat
from table.timeline.same_content import decode_whole
from table.timeline.timeline import Timeline
from table.view.file_group import FileSlice

WRITES = (Action.DELTA_COMMIT, Action.COMMIT)


@dataclass(frozen=True)
class NamedFiles:
    """The files that an instant of the metadata table wrote.

    Attributes:
        instant: completed.
        by_index: index -> their names.
    """

    instant: Instant
    by_index: Mapping[str, frozenset[str]]


def name_files(instant: Instant, stats: Iterable[WriteStat]) -> NamedFiles:
    """The files in write stats, by index (pure)."""
    found: dict[str, set[str]] = {}
    for stat in stats:
        if stat.path:
            found.setdefault(stat.partition_path, set()).add(stat.path.rpartition("/")[2])
    return NamedFiles(instant, {index: frozenset(names) for index, names in found.items()})


def read_named(own: MetadataTable, instants: Iterable[Instant]) -> list[NamedFiles]:
    """What instants of the metadata table wrote. One that was archived or dropped meanwhile is left out.

    Args:
        own: the metadata table.
        instants: completed.

    Raises:
        CorruptFileError: the file of an instant is damaged.
        StorageError: the store fails.
    """

    def read(instant: Instant) -> NamedFiles | None:
        try:
            whole = decode_whole(instant, own.storage.read(instant.path))
        except FileNotFoundError:
            return None
        if whole is None:
            raise CorruptFileError(f"{METADATA_FOLDER}/{instant.path} is damaged")
        return name_files(instant, whole.stats)

    return [named for named in each_at_once(own.storage, read, instants) if named is not None]


def check_all_seen(own: MetadataTable, timeline: Timeline, found: FileSlice, times: Collection[str]) -> None:
    """Refuses a slice of which a file is gone. Instants are read only if nothing of theirs was seen.

    Args:
        own: the metadata table.
        timeline: of the metadata table, listed before the files.
        found: the slice, which was read.
        times: instants of the blocks of its log files.

    Raises:
        CorruptFileError: names the file.
        UnsupportedTableError: the metadata table was changed meanwhile.
        StorageError: the store fails.
    """
    try:
        check_whole(found, read_named(own, find_unseen(timeline, found, times)), ())
    except CorruptFileError as error:
        if own.load_timeline().files != timeline.files:
            raise UnsupportedTableError("the metadata table was changed while it was read") from error
        raise


def find_unseen(timeline: Timeline, found: FileSlice, times: Collection[str]) -> list[Instant]:
    """The instants that may have written files of a slice of which nothing was seen (pure).

    Args:
        timeline: of the metadata table.
        found: the slice.
        times: instants of the blocks of its log files.
    """
    base = _begins(found)
    writes = timeline.completed_of(*WRITES)
    return [one for one in writes if one.time not in times and _is_in_slice(one, base)]


def _begins(found: FileSlice) -> str:
    """The time of a slice's base file; "": it has none, or an empty one."""
    return found.base_file.instant_time if found.base_file is not None and found.base_file.size_bytes else ""


def _is_in_slice(instant: Instant, base: str) -> bool:
    """Whether what an instant wrote is in a slice that begins with a base file of that time; "": with none (pure)."""
    if instant.action is Action.COMMIT:
        return instant.time > base
    if is_making(instant.time):
        return not base
    return _visible_at(instant) >= base


def _visible_at(instant: Instant) -> str:
    return instant.completion_time or instant.time


def check_whole(found: FileSlice, every: Collection[NamedFiles], names: Collection[str]) -> None:
    """Refuses a slice that does not have a file which an instant wrote for it (pure).

    Hudi may drop an index, and make it anew under the same names: what was written before that is gone.

    Args:
        found: the slice.
        every: the files that the instants of the metadata table wrote.
        names: of the files in the folder of the index that hold anything.

    Raises:
        CorruptFileError: names the file.
    """
    makings = (one for one in every if is_making(one.instant.time) and _names_of(one, found))
    made = max((_visible_at(one.instant) for one in makings), default="")
    for named in every:
        if _visible_at(named.instant) >= made and _is_in_slice(named.instant, _begins(found)):
            for name in sorted(_names_of(named, found).difference(names)):
                raise CorruptFileError(
                    f"{found.partition_path}/{name} of the metadata table is gone or empty, and "
                    f"{named.instant.file_name} wrote it"
                )


def _names_of(named: NamedFiles, found: FileSlice) -> frozenset[str]:
    """The files of the file group of a slice that an instant wrote."""
    files = (
        (name, parse_base_file(name) or parse_log_file(name)) for name in named.by_index.get(found.partition_path, ())
    )
    return frozenset(name for name, file in files if file is not None and file.file_id == found.file_id)

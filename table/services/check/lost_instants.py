"""Instants that end records decided to be committed, and that neither timeline nor archive has.

Their instant files were deleted by others. The end record is the only record of their data files.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace

from table.errors import CorruptFileError
from table.files.names import parse_base_file
from table.storage.interface import Storage
from table.timeline.end_record import DATA_ACTIONS, EndRecord, find_end
from table.timeline.metadata.commit import WriteStat
from table.timeline.timeline import Timeline


@dataclass(frozen=True)
class LostInstant:
    """An instant without instant files.

    Attributes:
        end: its end record, without content.
        stats: the files that it wrote.
        paths: of all files that the record names.
    """

    end: EndRecord
    stats: tuple[WriteStat, ...]
    paths: frozenset[str]


def load_lost(
    storage: Storage, ends: Iterable[EndRecord], timeline: Timeline, known: Collection[str]
) -> tuple[Mapping[str, LostInstant], frozenset[str]]:
    """The lost instants by time, and those whose end record does not hold a commit.

    Args:
        storage: the table's.
        ends: the end records that were listed before the timeline.
        timeline: the table's.
        known: instants that are in the archive, or that rollbacks and restores undid.

    Raises:
        StorageError: the store fails.
    """
    there = {instant.time for instant in timeline}.union(known)
    lost, broken = dict[str, LostInstant](), set[str]()
    for one in sorted(ends, key=lambda end: end.time):
        if not one.is_commit or one.action not in DATA_ACTIONS or one.time in there:
            continue
        try:
            end = find_end(storage, one.time, one.action)
            if end is not None:
                metadata = end.metadata
                lost[one.time] = LostInstant(replace(end, content=b""), metadata.stats, metadata.named_paths)
        except CorruptFileError:
            broken.add(one.time)
    return lost, frozenset(broken)


def find_needed(lost: Mapping[str, LostInstant], time: str) -> tuple[WriteStat, ...]:
    """The files of a lost instant that readers need once all lost instants are back (pure).

    A file is not needed if a later lost instant wrote a base file of the same file group.

    Args:
        lost: the lost instants by time.
        time: of the one.
    """
    newest: dict[tuple[str, str], str] = {}
    for later, one in sorted(lost.items()):
        bases = (stat for stat in one.stats if parse_base_file(stat.path.rpartition("/")[2]) is not None)
        newest.update({(stat.partition_path, stat.file_id): later for stat in bases})
    return tuple(stat for stat in lost[time].stats if newest.get((stat.partition_path, stat.file_id), "") <= time)

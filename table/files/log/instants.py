"""Which instants wrote into a log file: a file of one instant alone goes with it, one of several must stay."""

from dataclasses import dataclass

from table.files.log.framing import BlockType, Header, scan_blocks
from table.storage.interface import Storage


@dataclass(frozen=True, slots=True)
class LogInstants:
    """What the headers of a log file's whole blocks say.

    Attributes:
        writers: instants of blocks with records, or with keys to be deleted.
        targets: instants whose blocks rollback blocks take back.
        rollbacks: instants of these rollback blocks.
    """

    writers: frozenset[str] = frozenset()
    targets: frozenset[str] = frozenset()
    rollbacks: frozenset[str] = frozenset()


def read_instants(storage: Storage, path: str) -> LogInstants:
    """The instants of a log file; none where there is no such file.

    Raises:
        StorageError: the file cannot be read.
    """
    try:
        with storage.open_input(path) as stream:
            places = list(scan_blocks(stream, with_content=False))
    except FileNotFoundError:
        return LogInstants()
    blocks = [place.block for place in places if place.block is not None]
    commands = [block for block in blocks if block.type is BlockType.COMMAND]
    return LogInstants(
        frozenset(b.header.get(Header.INSTANT_TIME, "") for b in blocks if b.type is not BlockType.COMMAND),
        frozenset(block.header.get(Header.TARGET_INSTANT_TIME, "") for block in commands),
        frozenset(block.header.get(Header.INSTANT_TIME, "") for block in commands),
    )


def find_writers(storage: Storage, path: str) -> frozenset[str]:
    """Instants of a log file's whole blocks, commands included; none where there is no such file.

    Raises:
        StorageError: the file cannot be read.
    """
    found = read_instants(storage, path)
    return found.writers | found.rollbacks


def is_written_by(storage: Storage, path: str, instant_time: str) -> bool:
    """Whether nobody but an instant wrote into a log file. Names come again: a file that was deleted may be another's.

    Raises:
        StorageError: the file cannot be read.
    """
    return find_writers(storage, path) <= {instant_time}

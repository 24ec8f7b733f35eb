"""Finds the instants that wrote a log file's blocks: a rollback may delete only a file of a single instant."""

from dataclasses import dataclass

from table.files.log.framing import BlockType, Header, scan_blocks
from table.storage.interface import Storage


@dataclass(frozen=True, slots=True)
class LogInstants:
    """Instants in the headers of a log file's whole blocks.

    Attributes:
        writers: instants that wrote data blocks or delete blocks.
        targets: instants whose blocks a rollback block takes back.
        rollbacks: instants that wrote these rollback blocks.
    """

    writers: frozenset[str] = frozenset()
    targets: frozenset[str] = frozenset()
    rollbacks: frozenset[str] = frozenset()


def read_instants(storage: Storage, path: str) -> LogInstants:
    """The instants of a log file; no instants if the file does not exist.

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
    """Instants that wrote a log file's whole blocks, command blocks included; empty if the file does not exist.

    Raises:
        StorageError: the file cannot be read.
    """
    found = read_instants(storage, path)
    return found.writers | found.rollbacks


def is_written_by(storage: Storage, path: str, instant_time: str) -> bool:
    """Whether this instant wrote every whole block of the log file.

    A deleted log file's name can be reused, so the name alone proves nothing.

    Raises:
        StorageError: the file cannot be read.
    """
    return find_writers(storage, path) <= {instant_time}

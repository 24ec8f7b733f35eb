"""Which instants wrote into a log file: a file of one instant alone goes with it, one of several must stay."""

from table.files.log.framing import Header, scan_blocks
from table.storage.interface import Storage


def find_writers(storage: Storage, path: str) -> frozenset[str]:
    """Instants of a log file's whole blocks, from their headers; none where there is no such file.

    Raises:
        StorageError: the file cannot be read.
    """
    try:
        with storage.open_input(path) as stream:
            places = list(scan_blocks(stream, with_content=False))
    except FileNotFoundError:
        return frozenset()
    return frozenset(place.block.header.get(Header.INSTANT_TIME, "") for place in places if place.block is not None)

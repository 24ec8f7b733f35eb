"""All tables below a folder at a glance: which there are and how well each is, the worst first."""

from collections.abc import Iterator

from table.errors import HudiError
from table.hudi_table import HudiTable
from table.inspect.glance_rows import Glance
from table.inspect.health import load_health
from table.log import get_logger
from table.services.kept_settings import KeptSettings
from table.storage.at_once import each_at_once
from table.storage.interface import METAFOLDER, Storage

MOST_LEVELS = 5
MOST_FOLDERS = 10_000  # that are listed in search of tables

log = get_logger("hudistream.inspect")


def find_tables(folder: Storage) -> Iterator[Storage]:
    """The tables below a folder, in the order of their names. Nothing within a table is looked at.

    Args:
        folder: the folder; if it is a table itself, it is the only one.

    Raises:
        StorageError: a folder cannot be listed.
    """
    level, listed = [folder], 0
    for _ in range(MOST_LEVELS + 1):
        deeper: list[Storage] = []
        for here, names in zip(level, each_at_once(folder, _folders, level), strict=True):
            if METAFOLDER in names:
                yield here
            else:
                deeper += [here.below(name) for name in sorted(names) if not name.startswith(".")]
        listed += len(level)
        level = deeper[: max(0, MOST_FOLDERS - listed)]
        if len(level) < len(deeper):
            log.warning("folders_not_searched", below=folder.base_uri, folders=len(deeper) - len(level))


def _folders(folder: Storage) -> list[str]:
    return [entry.name for entry in folder.list_dir("") if entry.is_dir]


def load_glances(
    folder: Storage, settings: KeptSettings | None = None, stale_after_s: float | None = None
) -> list[Glance]:
    """The health of each table below a folder, the worst first; of those that are alike, the one with more findings.

    Args:
        folder: see `find_tables`.
        settings: as of `load_health`.
        stale_after_s: as of `load_health`.

    Raises:
        StorageError: a folder above the tables cannot be listed.
    """
    # each asks the store side by side
    found = [_glance_at(table, settings, stale_after_s) for table in find_tables(folder)]
    return sorted(found, key=lambda one: (-one.verdict, -len(one.findings), one.path))


def _glance_at(storage: Storage, settings: KeptSettings | None, stale_after_s: float | None) -> Glance:
    try:
        return Glance(storage.base_uri, load_health(HudiTable.at(storage), settings, stale_after_s))
    except HudiError as error:
        return Glance(storage.base_uri, None, str(error))

"""Which table a person may have meant, where there is none: a path is misspelled, or a folder too high or too low."""

from table.columns.near_name import find_near_name
from table.config.table_config import PROPERTIES_FILE
from table.errors import HudiError
from table.storage.interface import METAFOLDER, Storage

_LEVELS = 4  # folders above the path that are looked at
_ASKED = 20  # folders below it that are asked whether they are tables
_SHOWN = 3


def near_tables(storage: Storage) -> str:
    """The end of an error about a folder that is no table, such as ``; did you mean '/data/lake/orders'?``.

    Args:
        storage: the folder.

    Returns:
        "" where nothing is near, or where the store does not answer: it is a hint.
    """
    try:
        return _around(storage) or _below(storage) or _beside(storage)
    except HudiError:
        return ""


def _is_table(storage: Storage) -> bool:
    return storage.exists(PROPERTIES_FILE)


def _folders(storage: Storage) -> list[str]:
    return sorted(entry.name for entry in storage.list_dir("") if entry.is_dir and entry.name != METAFOLDER)


def _around(storage: Storage) -> str:
    found = storage.above()
    for _ in range(_LEVELS):
        if found is None:
            return ""
        if _is_table(found[0]):
            return f"; {found[0].base_uri!r} is a table: give its folder, not one within it"
        found = found[0].above()
    return ""


def _below(storage: Storage) -> str:
    tables = [name for name in _folders(storage)[:_ASKED] if _is_table(storage.below(name))]
    if not tables:
        return ""
    more = f" and {len(tables) - _SHOWN} more" if len(tables) > _SHOWN else ""
    return f"; there are tables within it: {', '.join(tables[:_SHOWN])}{more}"


def _beside(storage: Storage) -> str:
    """The table that differs in the name of one folder on the path."""
    rest: list[str] = []
    found = storage.above()
    for _ in range(_LEVELS):
        if found is None:
            return ""
        folder, name = found
        near = find_near_name(name, [known for known in _folders(folder) if known != name])
        if near is not None:
            meant = folder.below(near)
            for part in rest:
                meant = meant.below(part)
            if _is_table(meant):
                return f"; did you mean {meant.base_uri!r}?"
        rest.insert(0, name)
        found = folder.above()
    return ""

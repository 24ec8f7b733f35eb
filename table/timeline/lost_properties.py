"""Says what is lost where a table has no ``hoodie.properties`` any more: its instants show that it was a table."""

from table.config.table_config import PROPERTIES_FILE, TableConfig, load_table_config
from table.errors import CorruptFileError
from table.storage.interface import METAFOLDER, Storage, join
from table.timeline.instant import REQUEST_TIME_NAMES, WRITE_ACTIONS, CompletionTimeNames, InstantNames

WAY_OUT = (
    "`hudistream check PATH --repair` makes the file again from Hudi's backup or from the copy that hudistream keeps "
    "below .hoodie/.hudistream; else bring it back from a backup of your own. A table made with the same options "
    "elsewhere has the same file but for hoodie.table.name and hoodie.table.checksum"
)
_NAMES: tuple[InstantNames, ...] = (REQUEST_TIME_NAMES, CompletionTimeNames())


def open_config(storage: Storage) -> TableConfig | None:
    """The table's configuration, or None if there is no table, and was none.

    Raises:
        CorruptFileError: the properties are gone or damaged, and there are commits.
        UnsupportedTableError: as `config_from_properties`.
    """
    try:
        config = load_table_config(storage)
    except CorruptFileError as error:
        raise CorruptFileError(f"{error}; this was a table with {_told(count_commits(storage))}: {WAY_OUT}") from error
    if config is not None:
        return config
    commits = count_commits(storage)
    if not commits:
        return None
    config = load_table_config(storage)  # Hudi's writers delete the file before they create it anew
    if config is not None:
        return config
    raise CorruptFileError(
        f"{PROPERTIES_FILE} of {storage.base_uri!r} is gone, and this was a table with {_told(commits)}, whose files "
        f"are there: nothing was created. {WAY_OUT}"
    )


def _told(commits: int) -> str:
    return f"{commits} commit" if commits == 1 else f"{commits} commits"


def count_commits(storage: Storage) -> int:
    """How many completed writes the active timeline has, in either layout."""
    entries = storage.list_dir(METAFOLDER)
    folders = {join(METAFOLDER, entry.name) for entry in entries if entry.is_dir}
    count = 0
    for names in _NAMES:
        if names.folder == METAFOLDER:
            found = [entry.name for entry in entries if not entry.is_dir]
        else:
            found = storage.list_names(names.folder) if names.folder in folders else []
        parsed = (names.parse(name) for name in found)
        count += sum(one is not None and one.is_completed and one.action in WRITE_ACTIONS for one in parsed)
    return count

"""Reads and writes the file that says which columns have statistics (HoodieIndexMetadata)."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from table.config.metadata_indexes import COLUMN_STATS, PARTITION_STATS, RECORD_INDEX
from table.config.table_config import TableConfig
from table.errors import UnsupportedTableError
from table.metadata_table.statistics import Statistics
from table.storage.interface import METAFOLDER, Storage, join

DEFINITIONS_FILE = join(METAFOLDER, ".index_defs", "index.json")
_UNTYPED, _TYPED = "V1", "V2"


def load_statistics(storage: Storage, config: TableConfig) -> Statistics:
    """The statistics of a table whose metadata table has them.

    Args:
        storage: of the table.
        config: its properties.

    Raises:
        UnsupportedTableError: no definition names the columns, or the statistics are not of files.
        StorageError: the store fails.
    """
    if COLUMN_STATS not in config.metadata_indexes:
        raise UnsupportedTableError(f"there are {PARTITION_STATS} without {COLUMN_STATS}")
    try:
        defined = json.loads(storage.read(DEFINITIONS_FILE))["indexDefinitions"][COLUMN_STATS]
        columns = tuple(str(name) for name in defined["sourceFields"])
        return Statistics(columns, defined.get("version") == _TYPED, PARTITION_STATS in config.metadata_indexes)
    except FileNotFoundError as error:
        raise UnsupportedTableError(f"no {DEFINITIONS_FILE} names the columns with statistics") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise UnsupportedTableError(f"{DEFINITIONS_FILE} cannot be read: {error!r}") from error


def check_is_global(storage: Storage) -> None:
    """Refuses a record index with a record for each partition path and key, as Hudi makes from 1.1 on if an option says
    so.

    Args:
        storage: of the table. Versions before 9 define no record index: theirs is global.

    Raises:
        UnsupportedTableError: the index is one of partition paths, or its definition cannot be read.
        StorageError: the store fails.
    """
    try:
        defined = json.loads(storage.read(DEFINITIONS_FILE))["indexDefinitions"].get(RECORD_INDEX, {})
        is_partitioned = str((defined.get("indexOptions") or {}).get("isPartitioned", "false")).lower() == "true"
    except FileNotFoundError:
        return
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise UnsupportedTableError(f"{DEFINITIONS_FILE} cannot be read: {error!r}") from error
    if is_partitioned:
        raise UnsupportedTableError("a record index of partition paths is not maintained")


def define_statistics(storage: Storage, kept: Statistics, columns: Iterable[str]) -> None:
    """Writes which columns have statistics. Other definitions of the file are kept.

    Args:
        storage: of the table.
        kept: which statistics the table keeps.
        columns: names of the columns.

    Raises:
        StorageError: the store fails.
    """
    defined = {
        "indexName": COLUMN_STATS,
        "indexType": COLUMN_STATS,
        "indexFunction": COLUMN_STATS,
        "sourceFields": list(columns),
        "indexOptions": {},
        **({"version": _TYPED} if kept.is_typed else {}),
    }
    _define(storage, COLUMN_STATS, defined)


def define_record_index(storage: Storage) -> None:
    """Writes that the record index has one record for each key of the table.

    Args:
        storage: of the table.

    Raises:
        StorageError: the store fails.
    """
    defined = {
        "indexName": RECORD_INDEX,
        "indexType": RECORD_INDEX,
        "indexFunction": "",
        "sourceFields": [],
        "indexOptions": {"isPartitioned": "false"},
        "version": _UNTYPED,
    }
    _define(storage, RECORD_INDEX, defined)


def _define(storage: Storage, index: str, defined: Mapping[str, Any]) -> None:
    try:
        document = json.loads(storage.read(DEFINITIONS_FILE))
    except (FileNotFoundError, ValueError):
        document = {}
    definitions = {**(document.get("indexDefinitions") or {}), index: defined}
    storage.put(DEFINITIONS_FILE, json.dumps({**document, "indexDefinitions": definitions}, indent=2).encode())

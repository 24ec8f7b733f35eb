"""Changes of the properties that happen only while their process holds the table.

A conversion holds the table's lease, copies the timeline, and then changes the properties at one stroke. If it stands
still before that change, its lease expires, and another writer commits into the timeline that was copied: the change
would take these commits away. The same holds for a metadata table that was made, and is then named. A compaction needs
no lease: the writer before can complete one meanwhile, which the copy or the metadata table would not have.

So such a process leaves its mark in the properties, and then confirms its lease and lists the timeline. Whoever takes
the lease removes the mark, before anything else. So does a process that completes an action which changed files, before
the action is visible. All of them change the properties on a condition (`update_properties`), so one of them comes
first. An action that read the properties before the mark is pending in that listing. In a store without conditions a
change may still come late.
"""

from collections.abc import Callable, Collection, Mapping
from typing import Protocol

from table.config.table_config import TableConfig, load_properties, update_properties
from table.errors import CorruptFileError, TableHeldError
from table.storage.interface import Storage

MARK = "hudistream.changing"


class Holding(Protocol):
    """How a process holds a table (`table.transaction.lease.Lease`)."""

    owner: str

    def confirm(self) -> None:
        """Raises a CommitConflictError if another writer has taken the table over."""


def mark_change(
    storage: Storage, holding: Holding, beside: Callable[[Mapping[str, str]], Mapping[str, str]] = lambda _: {}
) -> TableConfig:
    """Announces a change of the properties. Returns the properties.

    Args:
        storage: of the table.
        holding: how the caller holds the table.
        beside: keys and values that change with the announcement, for the properties as they are then.

    Raises:
        CommitConflictError: another writer has taken the table over.
    """
    marked = update_properties(storage, lambda properties: {MARK: holding.owner, **beside(properties)})
    holding.confirm()
    return marked


def change_held(
    storage: Storage, holding: Holding, written: Mapping[str, str], removed: Collection[str] = ()
) -> TableConfig:
    """Makes the change that was announced, and removes its mark.

    Args:
        storage: of the table.
        holding: who set the mark.
        written: keys and their new values.
        removed: keys to remove.

    Returns:
        The changed properties.

    Raises:
        TableHeldError: the mark is gone: another writer took the table over, or completed an action. The properties are
            as they were.
    """
    return update_properties(storage, _HeldChange(storage.base_uri, holding.owner, written), {*removed, MARK})


class _HeldChange:
    """What changes, by the properties as they are: they are asked again after each attempt."""

    def __init__(self, address: str, owner: str, written: Mapping[str, str]) -> None:
        self._address, self._owner, self._written = address, owner, written
        self._is_begun = False

    def __call__(self, properties: Mapping[str, str]) -> Mapping[str, str]:
        if properties.get(MARK) == self._owner:
            self._is_begun = True
            return self._written
        if self._is_begun and all(properties.get(key) == value for key, value in self._written.items()):
            return {}  # it is done
        raise TableHeldError(
            f"another writer took over the table {self._address!r}, or completed an action in it, while its properties "
            "were to be changed; they are as they were: run it again"
        )


def withdraw_change(storage: Storage) -> None:
    """Removes the mark of a process that may not make its change any more. The caller has taken the lease, or is that
    process.

    Damaged properties have no mark: who changes them reads them before, and who makes them again leaves the mark out.

    Raises:
        StorageError: the store fails; nothing may be written before a later call succeeds.
    """
    try:
        properties = load_properties(storage) or {}
    except CorruptFileError:
        return
    if MARK in properties:
        update_properties(storage, {}, {MARK})


def withdraw_for_action(storage: Storage, config: TableConfig) -> TableConfig:
    """Removes the mark of a process that does not know of an action which is about to be completed.

    Args:
        storage: of the table.
        config: its properties, read after the action was requested.

    Returns:
        The properties: with the change, if it came first.

    Raises:
        StorageError: the store fails; the action must not be completed before a later call succeeds.
    """
    return update_properties(storage, {}, {MARK}) if MARK in config.extra else config

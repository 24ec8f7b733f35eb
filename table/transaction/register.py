"""A numbered register: files that are created if they are absent, of which the greatest number counts.

::

    <folder>/<n>   the nth entry; created if absent; the greatest n counts

Of two processes that want the next number, one succeeds. The file that counts is never overwritten, so a process that
wakes up late cannot take back a number that it has lost. The process that makes an entry deletes the files of lesser
numbers.
"""

from contextlib import suppress
from dataclasses import dataclass

from table.errors import StorageError
from table.storage.interface import Storage, join
from table.timeline.active_timeline import create_settled

_TRIES = 20


@dataclass(frozen=True, slots=True)
class Entry:
    """An entry of a register.

    Attributes:
        number: from 1.
        data: content of the file.
    """

    number: int
    data: bytes


@dataclass(frozen=True)
class Register:
    """The register in one folder.

    Attributes:
        storage: the table's store.
        folder: relative to the table.
    """

    storage: Storage
    folder: str

    def find_last(self) -> Entry | None:
        """The entry that counts; None if no entry was ever made.

        Raises:
            StorageError: the register changes faster than it can be read.
        """
        for _ in range(_TRIES):
            number = self.last_number
            if number == 0:
                return None
            try:
                return Entry(number, self.storage.read(self.path(number)))
            except FileNotFoundError:
                continue  # the next entry was made between the two calls
        raise StorageError(f"{self.folder} of {self.storage.base_uri!r} changes faster than it can be read")

    def append(self, last: int, data: bytes) -> Entry | None:
        """Makes the entry after the last one.

        Args:
            last: number of the entry that `find_last` gave before the caller decided; 0: there was none.
            data: different from the data of every other process that may make this entry.

        Returns:
            The entry; None if another process made the entry first, so that the caller's `last` is outdated.

        Raises:
            CommitOutcomeUnknownError: the store does not say which process made the entry.
        """
        number = last + 1
        if create_settled(self.storage, self.path(number), data) != data:
            return None
        numbers = self._numbers()
        if max(numbers, default=number) != number:
            self.storage.delete_metafile(self.path(number))  # an entry of this number was made and deleted long ago
            return None
        with suppress(StorageError):  # the entry is made; the process that makes the next one deletes remaining files
            for older in numbers:
                if older < number:
                    self.storage.delete_metafile(self.path(older))
        return Entry(number, data)

    def path(self, number: int) -> str:
        """The file of an entry, relative to the table."""
        return join(self.folder, str(number))

    @property
    def last_number(self) -> int:
        """The number of the entry that counts; 0 if no entry was ever made."""
        return max(self._numbers(), default=0)

    def _numbers(self) -> list[int]:
        return [int(entry.name) for entry in self.storage.list_dir(self.folder) if entry.name.isdigit()]

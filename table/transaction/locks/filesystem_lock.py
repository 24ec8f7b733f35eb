"""A lock that is a file, which only one writer can create (FileSystemBasedLockProvider).

Hudi deletes the file without checking which writer created it: when a client closes, and when a writer finds the file
expired. On a local disk Hudi also checks whether the file exists before it creates it, and these two calls are not
atomic. So this lock reads the file again before a change becomes final. It deletes only its own file, and only if no
other writer can have replaced it.
"""

import os
import re
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime

from table import clock, threads
from table.errors import InvalidConfigError, StorageError, TableHeldError
from table.log import get_logger
from table.options.lock_settings import LockProvider, LockSettings
from table.storage.interface import METAFOLDER, TEMPORARY_PREFIX, FileInfo, Storage, failed, join
from table.storage.local import LocalStorage
from table.storage.opening import open_storage
from table.transaction.lease_record import is_process_dead, this_machine
from table.transaction.locks.lock_info import LockInfo, decode_lock_info, describe_lock_info, is_expired
from table.transaction.locks.patience import Deadline, Grip, PatientLock
from table.transaction.locks.provider import CLOCK_DRIFT_MS, LockState
from table.version import VERSION

# schemes that Hudi knows to create a file only if it is absent (StorageSchemes)
_SCHEMES = ("file", "hdfs", "dfs", "hopsfs", "viewfs")
_NAME = "lock"
_RELEASES, _RELEASES_AGAIN_S = 3, 0.1

log = get_logger("hudistream.lock")


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A lock file as it was at one moment.

    Attributes:
        data: its content.
        modified_ms: its modification time.
    """

    data: bytes
    modified_ms: int


class LockPath:
    """The path of the file ``lock``, and the operations on it.

    Args:
        settings: the folder of the file, if it is not the table's own, and further suitable schemes.

    Raises:
        InvalidConfigError: the folder's scheme is not known to create a file only if it is absent.
    """

    def __init__(self, storage: Storage, settings: LockSettings) -> None:
        address = settings.filesystem_path
        self._is_of_table = address is None
        self._storage = storage if address is None else open_storage(address, getattr(storage, "options", None))
        self._folder = METAFOLDER if address is None else ""
        self._path = join(self._folder, _NAME)
        self.place = self._storage.absolute(self._path)
        found = re.match(r"^([a-zA-Z][a-zA-Z0-9+.-]+):", self._storage.base_uri)
        scheme = found[1].lower() if found else "file"
        if scheme not in (*_SCHEMES, *settings.filesystem_schemes):
            raise InvalidConfigError(
                f"hoodie.write.lock.provider=filesystem: {self.place!r} has the scheme {scheme!r}, and Hudi keeps such "
                f"locks on {', '.join(_SCHEMES)} alone; use the lock provider storage, zookeeper or dynamodb, or set "
                "hoodie.write.lock.filesystem.path to a folder on one of these"
            )

    def create(self, data: bytes) -> bool:
        """Creates the file unless it exists.

        Raises:
            StorageError: the store fails; it is not known whether the file was created.
        """
        try:
            return self._storage.create_exclusive(self._path, data)
        except StorageError:
            found = self.look()
            if found is None:
                raise
            return found.data == data

    def look(self) -> FoundFile | None:
        """The file; None if it does not exist.

        Raises:
            StorageError: the store fails.
        """
        entry = self._entry()
        if entry is None:
            return None
        try:
            return FoundFile(self._storage.read(self._path), entry.modified_ms)
        except FileNotFoundError:
            return None

    def _entry(self) -> FileInfo | None:
        return next((entry for entry in self._storage.list_dir(self._folder) if entry.name == _NAME), None)

    def read(self) -> bytes | None:
        """The content of the file; None if it does not exist.

        Raises:
            StorageError: the store fails.
        """
        try:
            return self._storage.read(self._path)
        except FileNotFoundError:
            return None

    def break_dead(self, data: bytes) -> bool:
        """Removes the file of a dead process of this machine. Of several writers that try it, one succeeds.

        A rename decides which writer succeeds. If two writers read the file and then deleted it, both could succeed,
        and the second would delete the file that the first had created for itself.

        Args:
            data: content of the file when its process was found dead.

        Returns:
            Whether this writer removed the file.

        Raises:
            StorageError: the store fails.
        """
        if not isinstance(self._storage, LocalStorage):
            return False
        taken = self._storage.absolute(join(self._folder, TEMPORARY_PREFIX + clock.fresh_uuid()))
        try:
            os.rename(self.place, taken)
        except FileNotFoundError:
            return False
        except OSError as error:
            raise failed("rename", self.place, error) from error
        try:
            with open(taken, "rb") as file:
                is_dead = file.read() == data
            if not is_dead:  # another writer was faster, and this is its new file: it is put back
                with suppress(FileExistsError):
                    os.link(taken, self.place)
        except OSError as error:
            raise failed("read", taken, error) from error
        finally:
            with suppress(OSError):
                os.unlink(taken)
        return is_dead

    def delete(self) -> None:
        """Deletes the file, whichever writer created it.

        Raises:
            StorageError: the store fails.
        """
        if self._is_of_table:
            self._storage.delete_metafile(self._path)
        else:
            self._storage.delete(self._path)


class FilesystemLock(PatientLock):
    """The file-system lock of one table.

    Args:
        settings: folder of the file, its expiry, and how often to try.

    Raises:
        InvalidConfigError: the scheme is not suitable for the lock.
    """

    def __init__(self, storage: Storage, settings: LockSettings) -> None:
        self.path = LockPath(storage, settings)
        super().__init__(repr(self.path.place), settings)
        self.expiry_ms = settings.filesystem_expiry_min * 60_000

    @property
    def is_shared_between_processes(self) -> bool:
        """True: the lock excludes writers of other processes."""
        return True

    def _take(self, deadline: Deadline) -> Grip | None:  # noqa: ARG002 Hudi looks once per attempt, too
        self._release_left()
        grip = FilesystemGrip(self)
        try:
            is_taken = self.path.create(grip.content) or (
                (self._break_dead() or self._delete_expired()) and self.path.create(grip.content)
            )
        except StorageError:
            grip.leave()
            raise
        return grip if is_taken else None

    def _release_left(self) -> None:
        """Releases again what this process could not release: its file names a living process that holds nothing."""
        left = _LEFT.get(self.place, [])
        while left:
            left.pop().release()

    def _break_dead(self) -> bool:
        """Removes a file whose process ran on this machine and has ended; a lease is taken over by the same rule."""
        data = self.path.read()
        info = decode_lock_info(data) if data is not None else None
        if data is None or info is None or not is_process_dead(info.machine, info.process):
            return False
        if not self.path.break_dead(data):
            return False
        log.warning("lock_of_dead_process_broken", lock=self.place, holder=describe_lock_info(data))
        return True

    def _delete_expired(self) -> bool:
        found = self.path.look()
        if found is None:
            return True
        if not is_expired(found.modified_ms, self.expiry_ms, clock.now_ms()):
            return False
        log.warning("lock_expired", lock=self.place, holder=describe_lock_info(found.data))
        if self.path.look() == found:  # no other writer has put a new file in its place
            self.path.delete()
        return True

    def describe(self) -> LockState | None:
        """The writer that created the file, the time of creation, and the time of expiry."""
        found = self.path.look()
        return None if found is None else self._state(found)

    def _state(self, found: FoundFile) -> LockState:
        expired = is_expired(found.modified_ms, self.expiry_ms, clock.now_ms())
        return LockState(
            LockProvider.FILESYSTEM,
            self.place,
            is_held=not expired,
            holder=describe_lock_info(found.data),
            since_ms=found.modified_ms,
            until_ms=found.modified_ms + self.expiry_ms if self.expiry_ms else None,
            note="expired: the next writer deletes it" if expired else "",
        )

    def break_lock(self) -> LockState | None:
        """Deletes the file."""
        found = self.path.look()
        if found is None:
            return None
        if self.path.look() != found:
            raise TableHeldError(f"the lock {self.place} changed hands meanwhile: it was not broken")
        self.path.delete()
        return self._state(found)


class FilesystemGrip:
    """A file-system lock while it is held.

    Args:
        lock: the lock that is held.

    Attributes:
        content: content of the file while it is ours.
    """

    def __init__(self, lock: FilesystemLock) -> None:
        self._lock = lock
        self._began_s = clock.monotonic_s()
        self._may_be_gone = False
        now_ms = clock.now_ms()
        created: datetime = clock.to_datetime(now_ms, "LOCAL")
        self.content = LockInfo(
            lockCreateTime=created.strftime("%Y-%m-%d %H:%M:%S.") + f"{now_ms % 1000:03d}",
            lockThreadName=str(getattr(threads.current_thread(), "name", "")),
            lockOwner=clock.fresh_uuid(),
            process=os.getpid(),
            version=VERSION,
            machine=this_machine(),
        ).encode()

    @property
    def _may_be_replaced(self) -> bool:
        """Whether other writers may count the file as abandoned."""
        expiry_ms = self._lock.expiry_ms
        return expiry_ms > 0 and (clock.monotonic_s() - self._began_s) * 1000 >= expiry_ms - CLOCK_DRIFT_MS

    def check(self) -> None:
        """Checks that the file is still ours.

        Raises:
            CommitConflictError: the file is not ours, or is older than its expiry.
            StorageError: the store fails.
        """
        if self._may_be_replaced:
            raise TableHeldError(
                f"the lock {self._lock.place} was held for longer than hoodie.write.lock.filesystem.expire="
                f"{self._lock.settings.filesystem_expiry_min} minutes, and others may have taken it: run it again, or "
                "raise the option for all writers of the table"
            )
        data = self._lock.path.read()
        if data == self.content:
            return
        now = "no writer: the file was deleted" if data is None else describe_lock_info(data)
        raise TableHeldError(f"the lock {self._lock.place} is not held any more, it belongs to {now}: run it again")

    def release(self) -> None:
        """Deletes the file if it is ours. A file that may have expired is left to the next writer.

        Raises:
            StorageError: the file could not be deleted; this process tries it again before it takes the lock.
        """
        for number in range(_RELEASES):
            if number:
                clock.sleep_s(_RELEASES_AGAIN_S)
            try:
                return self._release()
            except StorageError:
                if number + 1 == _RELEASES:
                    self.leave()
                    raise
        return None

    def _release(self) -> None:
        data = None if self._may_be_replaced else self._lock.path.read()
        if data == self.content:
            self._may_be_gone = True  # also where the answer is lost
            self._lock.path.delete()
        elif not self._may_be_gone:
            log.warning("lock_was_taken_over", lock=self._lock.place)

    def leave(self) -> None:
        """Remembers that the file may be there although no writer holds the lock."""
        self._may_be_gone = True  # it may never have been created
        _LEFT.setdefault(self._lock.place, []).append(self)


_LEFT: dict[str, list[FilesystemGrip]] = {}  # by the place of the lock, for all locks of this process

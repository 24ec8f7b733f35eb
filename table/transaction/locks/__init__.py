"""Locks of a table that several writers share, by the protocols of Hudi's own lock providers.

A new provider is a `PatientLock` beside the others, entered in `make_lock.py`; its rules in a pure module, its options
and Hudi's class in `table.options.lock_settings`. It can be broken (`break_lock` of `provider.py`; what became of it
then: `table.cli.lock`), and has a place in `find_locks.py` if it leaves a file in the table. `guarded` in
`table.transaction.lock` takes the lock.
"""

from table.options.lock_settings import LockProvider, LockSettings
from table.transaction.locks.make_lock import make_lock
from table.transaction.locks.provider import HeldLock, LockState, SharedLock

__all__ = ["HeldLock", "LockProvider", "LockSettings", "LockState", "SharedLock", "make_lock"]

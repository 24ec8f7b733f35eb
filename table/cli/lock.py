"""Commands for the lock that several writers share: show its holder, and break the lock of a dead holder."""

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from table import clock
from table.cli.arguments import add_command, add_format, add_options, load_options, load_storage_options
from table.cli.output import UsageError, say, say_json
from table.config.table_config import PROPERTIES_FILE
from table.errors import StorageError
from table.options.lock_settings import LockProvider
from table.storage.interface import Storage
from table.storage.opening import open_storage
from table.transaction.locks.find_locks import find_locks
from table.transaction.locks.provider import LockState, SharedLock

_BROKEN_BY = {
    LockProvider.STORAGE: "its record says now that it was released",
    LockProvider.FILESYSTEM: "the file was deleted",
    LockProvider.ZOOKEEPER: "its node was deleted",
    LockProvider.DYNAMODB: "its row says now that it was released",
}
_STILL_AT_WORK = (
    "its holder may still be at work: a hudistream finds out before it completes a commit, a writer of another engine "
    "does not"
)


def add_commands(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Declares the commands."""
    summary = "show who holds the lock that several writers share, or take it from a holder that is gone"
    lock = commands.add_parser("lock", help=summary, description=f"{summary.capitalize()}.")
    whats = lock.add_subparsers(dest="what", metavar="show|break", required=True)
    provider = "--set hoodie.write.lock.provider=zookeeper --set hoodie.write.lock.zookeeper.url=zk:2181"
    for what, does, run in (
        ("show", "show who holds the lock, since when and until when", _show),
        ("break", "take the lock from its holder; make sure first that the holder is gone", _break),
    ):
        examples = [
            f"hudistream lock {what} s3://lake/events",
            f"hudistream lock {what} /data/lake/events {provider} --set hoodie.write.lock.zookeeper.base_path=/hudi",
        ]
        command = add_command(whats, what, does, examples, run)
        add_options(command)
        add_format(command)


@contextmanager
def _locks(given: argparse.Namespace) -> Iterator[tuple[Storage, list[SharedLock]]]:
    """The table's storage, and its locks. The table need not exist yet: its first writer takes the lock earlier."""
    storage = open_storage(given.path, load_storage_options(given))
    locks = find_locks(storage, load_options(given).lock)
    try:
        yield storage, locks
    finally:
        for lock in locks:
            lock.close()


def _no_lock(storage: Storage) -> str:
    has_table = storage.exists(PROPERTIES_FILE)
    return "no lock is held" if has_table else f"no lock is held, and there is no table at {storage.base_uri!r}"


def _show(given: argparse.Namespace) -> int:
    with _locks(given) as (storage, locks):
        states = [state for state in (lock.describe() for lock in locks) if state is not None]
    if given.format == "json":
        say_json({"table": storage.base_uri, "locks": [_state_json(state) for state in states]})
        return 0
    say([line for state in states for line in _state_lines(state)] or [_no_lock(storage)])
    return 0


def _break(given: argparse.Namespace) -> int:
    with _locks(given) as (storage, locks):
        held = [lock for lock in locks if _is_held(lock)]
        if len(held) > 1:
            raise UsageError(
                "lock break: the table has more than one lock that is held; say which one is to be broken, with "
                "--set hoodie.write.lock.provider=storage or filesystem"
            )
        broken = held[0].break_lock() if held else None
    if given.format == "json":
        say_json({"table": storage.base_uri, "broken": None if broken is None else _state_json(broken)})
        return 0
    if broken is None:
        say([f"{_no_lock(storage)}: nothing was done"])
        return 0
    say([f"broke the lock of {broken.holder or broken.note}: {_BROKEN_BY[broken.provider]}", _STILL_AT_WORK])
    return 0


def _is_held(lock: SharedLock) -> bool:
    """Whether the lock is held, so that there is a lock to break; a lock that cannot be read counts as held."""
    try:
        state = lock.describe()
    except StorageError:
        return True
    return state is not None and state.is_held


def _state_json(state: LockState) -> dict[str, Any]:
    return {
        "provider": str(state.provider),
        "place": state.place,
        "held": state.is_held,
        "holder": state.holder,
        "since": _time(state.since_ms),
        "until": _time(state.until_ms),
        "age_s": None if state.since_ms is None else round((clock.now_ms() - state.since_ms) / 1000, 3),
        "note": state.note,
    }


def _state_lines(state: LockState) -> list[str]:
    lines = [f"{'held' if state.is_held else 'free'}   {state.provider} lock {state.place}"]
    if state.holder:
        lines.append(f"       {'by' if state.is_held else 'last held by'} {state.holder}")
    if state.since_ms is not None:
        age_s = (clock.now_ms() - state.since_ms) / 1000
        lines.append(f"       since {_time(state.since_ms)} ({age_s:.0f} s ago)")
    if state.until_ms is not None:
        lines.append(f"       {'valid' if state.is_held else 'was valid'} until {_time(state.until_ms)}")
    return [*lines, f"       {state.note}"] if state.note else lines


def _time(epoch_ms: int | None) -> str | None:
    return None if epoch_ms is None else clock.to_datetime(epoch_ms).isoformat(timespec="milliseconds")

"""Signs of life: a file that only its owner touches. Its age is the difference of two modification times of the store.

::

    .hoodie/.hudistream/alive/<owner>
"""

from table import clock
from table.storage.interface import OWN_FOLDER, Storage, join
from table.version import SIGN

ALIVE_FOLDER = join(OWN_FOLDER, "alive")


def list_signs(storage: Storage) -> dict[str, int]:
    """Owner -> when it gave its last sign, in milliseconds of the store's clock."""
    return {entry.name: entry.modified_ms for entry in storage.list_dir(ALIVE_FOLDER)}


def give_sign(storage: Storage, owner: str) -> None:
    """Touches the sign of an owner.

    Raises:
        StorageError: the store fails.
    """
    storage.put(join(ALIVE_FOLDER, owner), SIGN)


def forget_sign(storage: Storage, owner: str) -> None:
    """Deletes the sign of an owner: it does not count among the living any more."""
    storage.delete_metafile(join(ALIVE_FOLDER, owner))


def measure_age_ms(storage: Storage, owner: str | None, me: str) -> int | None:
    """How long ago an owner was alive, by the store's clock alone.

    Args:
        owner: a writer; None: any writer but this one.
        me: this writer.

    Returns:
        Milliseconds; None where the owner left no sign.
    """
    give_sign(storage, me)
    times = list_signs(storage)
    now_ms = times.pop(me, None)
    signs = times.values() if owner is None else [times[owner]] if owner in times else []
    newest = max(signs, default=None)
    return None if newest is None or now_ms is None else max(0, now_ms - newest)


def measure_now_ms(storage: Storage, me: str) -> int:
    """The store's time: the modification time of a file that was just written."""
    give_sign(storage, me)
    times = list_signs(storage)
    return times.get(me, clock.now_ms())


def read_age_ms(storage: Storage, owner: str | None) -> int | None:
    """About how long ago an owner was alive, for people. Uses this machine's clock, and writes nothing.

    Args:
        owner: a writer; None: any writer.
    """
    times = list_signs(storage)
    signs = times.values() if owner is None else [times[owner]] if owner in times else []
    newest = max(signs, default=None)
    return max(0, clock.now_ms() - newest) if newest is not None else None

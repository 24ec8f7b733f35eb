"""Signs of life: files that only their owners touch. The store's modification times give their age.

::

    .hoodie/.hudistream/alive/<owner>
"""

from table import clock
from table.storage.interface import OWN_FOLDER, Storage, join
from table.version import SIGN

ALIVE_FOLDER = join(OWN_FOLDER, "alive")


def still_counts(age_ms: int | None, expiry_ms: int, granularity_ms: int) -> bool:
    """Whether a sign of life is young enough: of a writer, of an instant, of an archival (pure).

    Args:
        age_ms: of the sign; None: there is none.
        expiry_ms: how long it counts.
        granularity_ms: to which the store rounds the times of its files (`Storage.time_granularity_ms`).
    """
    return age_ms is not None and age_ms <= expiry_ms + granularity_ms


def list_signs(storage: Storage) -> dict[str, int]:
    """Owner -> time of its last sign, in milliseconds of the store's clock."""
    return {entry.name: entry.modified_ms for entry in storage.list_dir(ALIVE_FOLDER)}


def give_sign(storage: Storage, owner: str) -> None:
    """Touches the sign of an owner.

    Raises:
        StorageError: the store fails.
    """
    storage.put(join(ALIVE_FOLDER, owner), SIGN)


def forget_sign(storage: Storage, owner: str) -> None:
    """Deletes the sign of an owner, which no longer counts as alive."""
    storage.delete_metafile(join(ALIVE_FOLDER, owner))


def measure_age_ms(storage: Storage, owner: str | None, me: str) -> int | None:
    """Milliseconds since an owner's last sign, by the store's clock alone.

    Args:
        owner: a writer; None: any writer except this one.
        me: this writer.

    Returns:
        The milliseconds; None if there is no sign.
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
    """About how many milliseconds ago an owner gave a sign, for display. Uses this machine's clock; writes no file.

    Args:
        owner: a writer; None: any writer.
    """
    times = list_signs(storage)
    signs = times.values() if owner is None else [times[owner]] if owner in times else []
    newest = max(signs, default=None)
    return max(0, clock.now_ms() - newest) if newest is not None else None

"""A disk, or a mounted file system, that answers late and not always.

It does to calls of `LocalStorage` what `bad_network` does to an object store. A call waits (*slow*, *late*), fails
before it has its effect (*refused*), or has its effect and fails (*answer lost*, as on a mount whose server restarts).
Threads that wait for different times get their answers in another order than they asked.
"""

import functools
import random
import time
from collections import Counter

from table.errors import StorageError
from table.storage.local import LocalStorage

# calls that tell what happened by an error; `exists`, `is_open` and `list_names` are slow alone
MAY_FAIL = (
    "read",
    "list_dir",
    "create_exclusive",
    "put",
    "_delete",
    "publish",
    "fence",
    "replace_if",
    "read_versioned",
)
MAY_WAIT = (*MAY_FAIL, "exists", "is_open", "list_names", "open_staging", "sync")


def spoil_disk(seed, share=0.02):
    """Lets calls of this process's local storages fail from now on.

    Args:
        seed: decides what happens when.
        share: of the calls that something happens to.

    Returns:
        A `Counter` of what happened.
    """
    luck, happened = random.Random(seed), Counter()
    for name in MAY_WAIT:
        setattr(LocalStorage, name, _spoiled(getattr(LocalStorage, name), name, luck, happened, share))
    return happened


def _spoiled(call, name, luck, happened, share):
    kinds = ("slow", "late", "refused", "answer lost") if name in MAY_FAIL else ("slow", "late")

    @functools.wraps(call)
    def spoiled(*args, **kwargs):
        kind = luck.choice(kinds) if luck.random() < share else None
        if kind is not None:
            happened[kind] += 1
        if kind in ("slow", "late"):
            time.sleep(luck.uniform(0.01, 0.1) if kind == "slow" else luck.uniform(0.3, 1.5))
        if kind == "refused":
            raise StorageError(f"could not {name} {args[1]!r}: the bad disk refused it")
        answer = call(*args, **kwargs)
        if kind == "answer lost":
            raise StorageError(f"could not {name} {args[1]!r}: the bad disk lost the answer")
        return answer

    return spoiled

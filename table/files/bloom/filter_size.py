"""The number of keys that a fitted filter is sized for (pure)."""

import math

from table.options.groups import BaseFileSettings

_BEYOND = 1.25  # a file with more than this many times the keys of a full file is taken to grow beyond the full size


def bytes_per_entry(fpp: float) -> float:
    """Footer bytes for each key that a filter is sized for: its bits, six in a base64 character."""
    return -math.log(fpp) / math.log(2) ** 2 / 6


def entries_per_key(settings: BaseFileSettings) -> float:
    """Filter entries per key of a full file. At most 1 where files have a full size: a full file gets no more keys."""
    headroom = settings.bloom_headroom
    return headroom if settings.full_bytes is None else min(1.0, headroom)


def fitted_entries(settings: BaseFileSettings, keys: int, data_bytes: int = 0) -> int:
    """The number of keys to size a file's filter for: its keys times the headroom, at most the keys of a full file.

    A larger filter would never be filled. In a nearly full file it would also push the file over its size, or stop
    the file early.

    Args:
        settings: headroom, rate and, if files have one, the size of a full file.
        keys: number of keys in the file.
        data_bytes: bytes of the file's rows, without the footer.
    """
    roomy = int(keys * settings.bloom_headroom)
    if settings.full_bytes is None or not data_bytes:
        return roomy
    full = int(keys * settings.full_bytes / (data_bytes + keys * bytes_per_entry(settings.bloom_fpp)))
    # a larger file grows by another rule, such as a bucket's: without headroom each growth would need a new filter
    return roomy if keys > _BEYOND * full else min(roomy, max(keys, full))

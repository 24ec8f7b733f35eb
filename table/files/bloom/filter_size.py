"""For how many keys a filter that is fitted to its file is sized (pure)."""

import math

from table.options.groups import BaseFileSettings

_BEYOND = 1.25  # files with more than this times the keys of a full one do not stop at the size of a full one


def bytes_per_entry(fpp: float) -> float:
    """How many bytes of a footer each key takes that a filter is sized for: its bits, six of them in a digit."""
    return -math.log(fpp) / math.log(2) ** 2 / 6


def entries_per_key(settings: BaseFileSettings) -> float:
    """For how many times the keys of a full file its filter is sized: it gets no more keys, so it needs no headroom."""
    headroom = settings.bloom_headroom
    return headroom if settings.full_bytes is None else min(1.0, headroom)


def fitted_entries(settings: BaseFileSettings, keys: int, data_bytes: int = 0) -> int:
    """For how many keys the filter of a file is sized: some times its keys, but no more than the file gets.

    A filter with more room would never use it. Near the end it would also make the file outgrow its size, or stop it
    early.

    Args:
        settings: headroom, rate and, if files have one, the size of a full file.
        keys: of the file.
        data_bytes: what they take in it, without the footer.
    """
    roomy = int(keys * settings.bloom_headroom)
    if settings.full_bytes is None or not data_bytes:
        return roomy
    full = int(keys * settings.full_bytes / (data_bytes + keys * bytes_per_entry(settings.bloom_fpp)))
    # a file that is larger grows by another rule, as those of buckets do: without headroom each growth costs a filter
    return roomy if keys > _BEYOND * full else min(roomy, max(keys, full))

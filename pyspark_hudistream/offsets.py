"""Offsets of a stream: up to which instant it has read, and where a batch ends (pure).

An offset is ``{"instant": …, "began_after": …}``. Everything up to ``instant`` was read. The stream began after
``began_after``, which is the same in all offsets of a stream. It is needed because Spark does not keep the first
offset: a stream that began at ``latest`` and stopped before its first batch was done would begin at another instant.
"""

from collections.abc import Sequence

Offset = dict[str, str]


def make_offset(instant: str, began_after: str) -> Offset:
    """An offset.

    Args:
        instant: instant time.
        began_after: instant time.
    """
    return {"instant": instant, "began_after": began_after}


def since_of(start: Offset, end: Offset) -> str:
    """The instant after which a batch begins.

    Args:
        start: of the batch, from Spark.
        end: of the batch.
    """
    same_stream = start.get("began_after") == end.get("began_after", start.get("began_after"))
    return start["instant"] if same_stream else end["began_after"]


def choose_end(instants: Sequence[tuple[str, int]], max_instants: int | None, max_bytes: int | None) -> str:
    """The instant with which a batch ends.

    Args:
        instants: time, and bytes of files written; oldest first, all after the start of the batch; at least one.
        max_instants: most instants; None means all.
        max_bytes: most bytes of their files; None means all. One instant is always taken.
    """
    end, written = instants[0]
    for time, size in instants[1:max_instants]:
        written += size
        if max_bytes is not None and written > max_bytes:
            break
        end = time
    return end

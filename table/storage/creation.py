"""Creates a file of a remote store if it is absent, and recognises a creation whose answer was lost.

A client repeats a request whose answer was lost, and the repeated request finds the file that the first one made. On S3
each call puts a mark of its own into the metadata of the object, and a call that finds an object looks whether the mark
is its own. Content and ETag would prove nothing: two writers may create files of equal bytes, as requested instants of
one millisecond, and exactly one of them must have created the file. So the mark holds for every caller: requested
instants, end records, leases, heartbeats, markers and locks have one winner, whatever they contain.
"""

from typing import Any

from table import clock
from table.errors import StorageError
from table.storage.backend import Ask
from table.storage.reach import is_collision, is_unmet

_MARK = "hudistream-creation"
_TRIES = 5
_PAUSE_S = 0.1


def create_if_absent(ask: Ask, path: str, data: bytes, *, keeps_marks: bool) -> bool:
    """Creates a file unless it exists. Returns whether this call created it.

    Args:
        ask: the store.
        path: the file.
        data: its content.
        keeps_marks: whether the store is S3. Elsewhere a creation whose answer was lost counts as another writer's.

    Raises:
        StorageError: when the store fails; whether the file exists is then not known.
    """
    mark = clock.fresh_uuid() if keeps_marks else ""
    given = {"Metadata": {_MARK: mark}} if mark else {}
    for _ in range(_TRIES):
        try:
            ask("create", path, lambda fs, full: fs.pipe_file(full, data, mode="create", **given))
        except FileExistsError:
            if not mark:
                return False
        except StorageError as error:
            if not (is_unmet(error) or is_collision(error)):
                raise
        else:
            return True
        is_ours = _is_ours(ask, path, mark)
        if is_ours is not None:
            return is_ours
        clock.sleep_s(_PAUSE_S)
    raise StorageError(f"could not create {path!r}: the store kept answering that requests collide")


def _is_ours(ask: Ask, path: str, mark: str) -> bool | None:
    """Whether the file was created with this mark; None if there is no file (it was deleted, or is being created)."""
    if not mark:
        return False if ask("look for", path, lambda fs, full: fs.exists(full)) else None
    try:
        return bool(ask("look for", path, _mark_of) == mark)
    except FileNotFoundError:
        return None


def _mark_of(fs: Any, full: str) -> str:
    """The mark of an object; "" if it has none, as those of other programs."""
    bucket, key = fs.split_path(full)[:2]
    answer = fs.call_s3("head_object", Bucket=bucket, Key=key)
    return str(answer.get("Metadata", {}).get(_MARK, ""))

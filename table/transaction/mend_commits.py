"""Writes completed files again that were emptied or torn: the end record of the commit has the same content.

Readers of this project take the end record's content meanwhile. Other engines fail, or see other rows.
"""

from contextlib import suppress

from table.errors import InvalidConfigError
from table.hudi_table import HudiTable
from table.log import get_logger
from table.references.undone import load_undone_times
from table.snapshot import Snapshot
from table.storage.interface import Storage
from table.timeline.active_timeline import begin_instant
from table.timeline.end_record import EndRecord
from table.timeline.instant import Action, Instant, State
from table.timeline.layout import name_instant
from table.timeline.metadata.commit import CommitMetadata
from table.timeline.same_content import WRITER_KEY, decode_whole
from table.transaction.commit import carry_out_commit
from table.transaction.completion import completed_past
from table.transaction.lock import Step, guarded

log = get_logger("hudistream.commit")


def mend_commits(snapshot: Snapshot) -> tuple[Instant, ...]:
    """Writes the completed files again that the snapshot's commits were found damaged in. Can be repeated.

    A file that was archived or undone since does not come back: it is replaced, and not created. On a store that knows
    no conditions it may come back; then the next writer finds it (`table.transaction.came_back`).

    Args:
        snapshot: the table; its commits were read.

    Returns:
        The instants whose files were written.

    Raises:
        StorageError: the store fails.
    """
    damaged = snapshot.commits.damaged
    if not damaged:
        return ()
    mended, undoing = [], _list_undoing(snapshot)
    with guarded(snapshot.table, Step.RECOVER):
        for instant, substitute in sorted(damaged.items()):
            if instant.time in undoing:
                continue
            content = substitute.encode(instant, snapshot.layout)
            if _replace_damaged(snapshot.storage, instant, content):
                log.warning("damaged_commit_mended", table=snapshot.storage.base_uri, path=instant.path)
                mended.append(instant)
            del damaged[instant]
    return tuple(mended)


def _list_undoing(snapshot: Snapshot) -> frozenset[str]:
    """The instants that a pending rollback or restore undoes."""
    pending = snapshot.timeline.pending_of(Action.ROLLBACK, Action.RESTORE)
    return frozenset(time for instant in pending for time in load_undone_times(snapshot, instant))


def _replace_damaged(storage: Storage, instant: Instant, content: bytes) -> bool:
    """Replaces a completed file if it is there and damaged. Returns whether it did."""
    with suppress(InvalidConfigError):  # the store, or the disk, knows no conditions after all
        if storage.has_versions:
            seen = storage.read_versioned(instant.path)
            if seen is None or decode_whole(instant, seen.data) is not None:
                return False
            return storage.replace_if(instant.path, content, seen.version) is not None
    with suppress(FileNotFoundError):
        if decode_whole(instant, storage.read(instant.path)) is None:
            storage.put(instant.path, content)
            return True
    return False


def put_back(table: HudiTable, end: EndRecord) -> Instant:
    """Puts an instant back whose files were lost, and carries out its end record, which says "commit".

    Args:
        table: held by the caller.
        end: the decision. Nothing undid the instant, no later write was completed, and its files are there.

    Raises:
        HudiError: the end could not be carried out; it can be done again.
    """
    storage, layout = table.storage, table.layout
    requested = name_instant(layout, end.time, end.action, State.REQUESTED)
    profile = CommitMetadata(operation=end.metadata.operation, extra={WRITER_KEY: end.by})
    storage.create_exclusive(requested.path, b"", durable=True)
    begin_instant(storage, requested, layout.encode_commit(profile))
    completed = carry_out_commit(table, completed_past(table, end))
    log.warning("lost_instant_put_back", table=storage.base_uri, instant_time=end.time)
    return completed

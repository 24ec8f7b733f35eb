"""Losses: a file that commits name is gone or differs. A second look confirms that, and people may accept it.

Accepted losses are recorded below ``.hoodie/.hudistream/losses``, which Hudi ignores. A record lists the files of one
acceptance. A file counts as accepted in the state that the record says: a later change of the same file is a new loss.
"""

import json
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from table import clock
from table.errors import CorruptFileError, HudiError, LostDataError, TimelineMovedError
from table.snapshot import Snapshot
from table.storage.interface import OWN_FOLDER, Storage, join
from table.timeline.named_files import Left, NamedFiles
from table.version import VERSION
from table.view.file_group import CommittedInstants, parse_data_files
from table.view.known_files import LostFile, find_lost, lost_error

Planned = TypeVar("Planned")

LOSSES_FOLDER = join(OWN_FOLDER, "losses")


@dataclass(frozen=True)
class AcceptedLoss:
    """A loss that a person accepted.

    Attributes:
        path: of the file, relative to the table.
        commit: instant time of the newest commit that wrote it.
        size_bytes: as the commit said.
        left_bytes: of what was left of it; None: nothing.
        rows: that the file held, as the commit said.
        reason: what was wrong, in words.
        accepted_at: ISO 8601, UTC.
    """

    path: str
    commit: str
    size_bytes: int
    left_bytes: int | None
    rows: int
    reason: str
    accepted_at: str


def accepted_of(lost: LostFile) -> AcceptedLoss:
    """The record for a file that is gone or differs."""
    named, now = lost.named, clock.to_datetime(clock.now_ms()).isoformat()
    return AcceptedLoss(named.path, named.time, named.size_bytes, lost.size_bytes, named.rows, str(lost), now)


def record_losses(storage: Storage, losses: Iterable[AcceptedLoss]) -> str:
    """Records that losses are accepted. Returns the path of the record, relative to the table."""
    path = join(LOSSES_FOLDER, f"{clock.now_ms()}-{clock.fresh_uuid()[:8]}.json")
    content = {"writer": VERSION, "losses": [vars(loss) for loss in losses]}
    storage.create_exclusive(path, json.dumps(content, indent=1, ensure_ascii=False).encode(), durable=True)
    return path


def load_losses(storage: Storage) -> Mapping[str, AcceptedLoss]:
    """Path -> the accepted loss; of several for one file the newest.

    Raises:
        CorruptFileError: a record is damaged.
    """
    found: dict[str, AcceptedLoss] = {}
    for entry in sorted(storage.list_dir(LOSSES_FOLDER), key=lambda entry: entry.name):
        try:
            content = json.loads(storage.read(join(LOSSES_FOLDER, entry.name)))
            found.update((loss["path"], AcceptedLoss(**loss)) for loss in content["losses"])
        except (ValueError, TypeError, KeyError) as error:
            raise CorruptFileError(f"{join(LOSSES_FOLDER, entry.name)} is not a record of losses: {error}") from error
    return found


def left_of(losses: Mapping[str, AcceptedLoss]) -> Left:
    """What is left of accepted losses (pure)."""
    return {path: (loss.commit, loss.left_bytes) for path, loss in losses.items()}


def leave_out_accepted(snapshot: Snapshot) -> None:
    """Makes a snapshot count accepted losses as such. One listing.

    Raises:
        CorruptFileError: a record is damaged.
    """
    snapshot.commits.named_files.accept(left_of(load_losses(snapshot.storage)))


def name_losses(
    snapshot: Snapshot, paths: Iterable[str] | None = None, losses: Mapping[str, AcceptedLoss] | None = None
) -> list[LostFile]:
    """The files that the active timeline names, that the newest snapshot needs, and that are gone or differ.

    The store itself is listed. Accepted losses are left out.

    Args:
        snapshot: the table now.
        paths: partition paths to look at; None: all that the active timeline names.
        losses: that were accepted, where the caller has loaded them.
    """
    accepted = load_losses(snapshot.storage) if losses is None else losses
    snapshot.commits.named_files.accept(left_of(accepted))
    committed = snapshot.confirmed
    named = committed.named or NamedFiles()
    return [lost for path in (named if paths is None else paths) for lost in _lost_in(snapshot, path, committed)]


def _lost_in(snapshot: Snapshot, path: str, committed: CommittedInstants) -> list[LostFile]:
    bases, logs = parse_data_files(path, snapshot.table.store_listing.list_files(path))
    return list(find_lost(path, bases, logs, committed))


def explain_failure(snapshot: Snapshot, error: HudiError) -> HudiError:
    """What a failure comes from, after a second look at the table.

    Args:
        snapshot: the table, its timeline listed after the failure.
        error: the failure of a batch or a service; its partition path says where to look.

    Returns:
        A `LostDataError` that names the table and the file, if commits name a file that is gone or differs. A
        `TimelineMovedError`, if that is so no longer: another writer replaced the file, or its loss was accepted, and
        the work can be done again. Else the failure itself.
    """
    paths = None if error.partition_path is None else (error.partition_path,)
    lost = name_losses(snapshot, paths)
    if not lost:
        if isinstance(error, CorruptFileError):
            way_out = (
                "put the file back from a copy, or restore a savepoint. Else `hudistream accept-loss PATH --read` says "
                "what is damaged, and goes on without it"
            )
            error.args = (f"{error.args[0]}; {way_out}",)
        if not isinstance(error, LostDataError):
            return error
        if load_losses(snapshot.storage):
            moved = "files are compared with the commits again, without the losses that were accepted"
        else:
            moved = f"the table changed while its files were compared with its commits: {error.args[0]}"
        return _placed(TimelineMovedError(moved), error)
    found = _placed(lost_error(lost, snapshot.storage.base_uri), error)
    found.partition_path, found.file_group = lost[0].named.partition_path, lost[0].named.file_id
    return found


def with_second_look(snapshot: Snapshot, plan: Callable[[CommittedInstants], Planned]) -> Planned:
    """Plans from listed file groups, and looks again where files seem to be lost.

    Args:
        snapshot: the table.
        plan: lists file groups by the instants that it is given.

    Raises:
        LostDataError: commits name a file that is gone or differs; the message names the table and the ways out.
        TimelineMovedError: that is so no longer.
    """
    try:
        return plan(snapshot.confirmed)
    except LostDataError as error:
        found = explain_failure(snapshot.again(), error)
        if isinstance(found, LostDataError):
            raise found from error
    try:
        return plan(snapshot.confirmed)  # without accepted losses, which are known now
    except LostDataError as error:
        raise TimelineMovedError(f"the table changed while its file groups were listed: {error.args[0]}") from error


def check_inputs(snapshot: Snapshot, groups: Collection[tuple[str, str]]) -> frozenset[str]:
    """Refuses to rewrite file groups of which a file is gone or differs.

    Args:
        snapshot: the table now.
        groups: (partition path, file id) of those that are read.

    Returns:
        Paths of files that are gone, and whose loss was accepted: a plan may name them.

    Raises:
        LostDataError: commits name a file that is gone or differs.
    """
    losses = load_losses(snapshot.storage)
    found = name_losses(snapshot, sorted({path for path, _ in groups}), losses)
    lost = [one for one in found if (one.named.partition_path, one.named.file_id) in groups]
    if lost:
        raise lost_error(lost, snapshot.storage.base_uri)
    return frozenset(path for path, loss in losses.items() if loss.left_bytes is None)


def _placed(found: HudiError, error: HudiError) -> HudiError:
    found.instant_time, found.partition_path = error.instant_time, error.partition_path
    found.file_group, found.__cause__ = error.file_group, error
    return found

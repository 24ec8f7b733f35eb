"""Before a batch widens an ordering column, logs whose records the older type orders are compacted.

Hudi's readers do not compare an ordering value of a delete with values of another type: they fail. And integers that
differ can become equal floats, so that a late record of a log would win.
"""

from dataclasses import replace

import pyarrow as pa

from streaming.batch.agreement import Agreement, agree
from streaming.batch.profile_cache import ProfileCache
from streaming.batch.services import TableServices
from streaming.plan.plan_tasks import merge_rules
from table.errors import ActionPendingError, CommitConflictError, WriteConflictError
from table.lock import NO_LOCK
from table.log import get_logger
from table.options.choices import CompactionStrategy, TableType
from table.options.write_options import WriteOptions
from table.scan.log_deletes import find_logged, find_ordered_deletes
from table.schema.evolution import rounds
from table.services.compaction.compaction import schedule_compaction
from table.services.compaction.execution import carry_out_compactions
from table.services.compaction.runner import runner_of
from table.services.service import Spread
from table.snapshot import Snapshot
from table.view.file_group import FileSlice

_COMPACTIONS = 2  # one that is pending already, and the one that is planned here

log = get_logger("hudistream.sink")


def agree_settled(
    options: WriteOptions,
    snapshot: Snapshot,
    columns: pa.Schema,
    profiles: ProfileCache,
    services: TableServices,
    spread: Spread | None,
) -> tuple[Snapshot, Agreement]:
    """As `agree`, after the compactions that a widened ordering column needs. The caller holds the table.

    Args:
        options: how to write.
        snapshot: the table as it is now.
        columns: the batch's columns (Arrow).
        profiles: the cache of the table's write profile.
        services: of the writer.
        spread: compacts slices on other machines; None: there are none.

    Returns:
        The table after them, and what was agreed about it.

    Raises:
        ActionPendingError: slices have to be compacted, and that cannot be done here. The message says how.
        HudiError: as `agree`, and of a compaction that fails.
    """
    agreed = agree(options, snapshot, columns, profiles)
    for number in range(_COMPACTIONS + 1):
        unsettled = _find_unsettled(options, snapshot, agreed)
        if not unsettled:
            break
        if number == _COMPACTIONS or not (options.services.enabled and options.compaction.executes):
            raise ActionPendingError(_refusal(snapshot, agreed, unsettled, _hindrance(snapshot, options)))
        services.wait()  # a compaction may be under way
        log.info(
            "compacting_before_widening", table=snapshot.storage.base_uri, slices=len(unsettled), columns=_told(agreed)
        )
        try:
            _compact(snapshot, options, unsettled, spread)
        except CommitConflictError as conflict:
            raise ActionPendingError(_refusal(snapshot, agreed, unsettled, str(conflict))) from conflict
        snapshot = snapshot.again()
        agreed = agree(options, snapshot, columns, profiles)
    return snapshot, agreed


def agree_again(options: WriteOptions, seen: Snapshot, columns: pa.Schema, profiles: ProfileCache) -> Agreement:
    """As `agree`, when other writers have committed since `agree_settled`.

    Raises:
        WriteConflictError: they left logs that have to be compacted first.
    """
    agreed = agree(options, seen, columns, profiles)
    unsettled = _find_unsettled(options, seen, agreed)
    if unsettled:
        raise WriteConflictError(_refusal(seen, agreed, unsettled, "another writer wrote them since the batch began"))
    return agreed


def _find_unsettled(options: WriteOptions, snapshot: Snapshot, agreed: Agreement) -> list[FileSlice]:
    """The slices that have to be compacted before the batch; without a widened column nothing is looked at."""
    config = snapshot.config
    has_logs = config.table_type == TableType.MERGE_ON_READ
    if not agreed.widened or not has_logs or not merge_rules(options, config).compares:
        return []
    if any(rounds(old.type, new.type) for old, new in agreed.widened):
        return find_logged(snapshot)
    ordering = pa.schema([field for field in agreed.schema if field.name in config.ordering_fields])
    return find_ordered_deletes(snapshot, ordering)


def _compact(snapshot: Snapshot, options: WriteOptions, left: list[FileSlice], spread: Spread | None) -> None:
    """Carries out the compactions that are pending; without one, compacts the slices."""
    wanted = frozenset((found.partition_path, found.file_id) for found in left)
    all_of_them = replace(options.compaction, strategy=CompactionStrategy.UNBOUNDED)
    table = snapshot.table
    planned = schedule_compaction(table, all_of_them, shared=options.concurrency.is_shared, only=wanted)
    runner = runner_of(options.compaction, spread)
    carry_out_compactions(planned, options.file_settings, runner, beside_others=table.lock is not NO_LOCK)


def _hindrance(snapshot: Snapshot, options: WriteOptions) -> str:
    """Why this writer does not compact the slices."""
    if options.services.enabled and options.compaction.executes:
        pending = ", ".join(instant.file_name for instant in snapshot.timeline.pending) or "another writer"
        return f"{pending} is in the way"
    return (
        "the options of this sink let it run no compaction (hoodie.datasource.compaction.async.enable, "
        "hoodie.compact.inline, hoodie.datasource.write.streaming.disable.compaction, hoodie.table.services.enabled)"
    )


def _told(agreed: Agreement) -> list[str]:
    return [f"{old.name} from {old.type} to {new.type}" for old, new in agreed.widened]


def _refusal(snapshot: Snapshot, agreed: Agreement, left: list[FileSlice], why: str) -> str:
    first, [(old, _), *_] = left[0], agreed.widened
    return (
        f"the batch widens {', '.join(_told(agreed))}, which orders the records of a key. {len(left)} file slices with "
        f"older values in their log files have to be compacted first, because readers could not compare them any more, "
        f"such as file group {first.file_id} in {first.partition_path!r}. It was not done here: {why}. Run `hudistream "
        f"compact {snapshot.storage.base_uri}`, then the batch again; or cast {old.name} to {old.type} before the sink"
    )

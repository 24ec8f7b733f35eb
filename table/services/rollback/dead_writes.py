"""Ends dead writes before an operator's clean, if several writers share the table.

As Hudi does (CleanActionExecutor, rollbackFailedWrites).
"""

from table.errors import CommitConflictError
from table.hudi_table import HudiTable
from table.log import get_logger
from table.options.groups import HeartbeatSettings
from table.services.rollback.rollback import roll_back_failed_writes
from table.transaction.heartbeat import WriterIdentity
from table.transaction.lease import hold_table
from table.transaction.liveness import Beside

log = get_logger("hudistream.rollback")


def roll_back_dead_writes(table: HudiTable, heartbeat: HeartbeatSettings) -> None:
    """Ends the writes of writers whose heartbeat shows that they are dead (the policy LAZY).

    While a live writer shares the table, nothing is done here: that writer does it before each batch.

    Args:
        heartbeat: when a writer counts as dead.

    Raises:
        HudiError: a write could not be ended.
    """
    name = "hudistream clean"
    try:
        with hold_table(table.storage, name) as lease:
            identity = WriterIdentity(name, None, lease.owner)
            roll_back_failed_writes(table, identity, heartbeat, beside=Beside.OTHER_ENGINES)
    except CommitConflictError as error:
        log.info("failed_writes_left_to_writers", table=table.storage.base_uri, why=str(error))

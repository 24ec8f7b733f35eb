"""Clusters the table of a stream between two of its batches."""

from table.errors import CommitConflictError
from table.failures import describe
from table.hudi_table import HudiTable
from table.log import get_logger
from table.options.write_options import WriteOptions
from table.services.clustering.clustering import ClusteringOutcome, Elsewhere, cluster_held
from table.services.service import Spread
from table.transaction.heartbeat import WriterIdentity
from table.transaction.lease import Lease

log = get_logger("hudistream.services")


def cluster_if_due(
    table: HudiTable, options: WriteOptions, identity: WriterIdentity, lease: Lease, spread: Spread | None = None
) -> tuple[ClusteringOutcome | None, tuple[str, ...]]:
    """Clusters the table, if the sink does so and enough commits have come. A failure fails no batch: it is logged.

    Args:
        table: of the stream.
        options: of the sink.
        identity: the writer.
        lease: its hold on the table.
        spread: has groups clustered on other machines; None: there are none.

    Returns:
        What was done, or None; and what failed, for the batch's summary.
    """
    if not (options.clustering.inline and options.services.enabled):
        return None, ()
    try:
        elsewhere = Elsewhere(spread, options.clustering.executors_from_mb)
        done = cluster_held(
            table, options.clustering, options.file_settings, lease, identity, only_due=True, elsewhere=elsewhere
        )
    except CommitConflictError as conflict:  # another writer was faster: after the next commit, then
        log.info("clustering_put_off", table=table.storage.base_uri, why=str(conflict))
        return None, ()
    except Exception as error:  # noqa: BLE001 the batch is committed: whatever fails, it was written
        log.warning("clustering_failed", table=table.storage.base_uri, error=describe(error))
        return None, (describe(error),)
    return done, ()

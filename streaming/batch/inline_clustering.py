"""Clusters the table of a stream between two of its batches."""

from table.errors import CommitConflictError
from table.failures import describe
from table.hudi_table import HudiTable
from table.log import get_logger
from table.options.write_options import WriteOptions
from table.services.clustering.clustering import ClusteringOutcome, cluster_held
from table.services.runner import PieceRunner
from table.services.service import Spread
from table.transaction.heartbeat import WriterIdentity
from table.transaction.lease import Lease

log = get_logger("hudistream.services")


def cluster_if_due(
    table: HudiTable, options: WriteOptions, identity: WriterIdentity, lease: Lease, spread: Spread | None = None
) -> tuple[ClusteringOutcome | None, tuple[str, ...]]:
    """Clusters the table, if the options say so and enough commits have come. A failure is logged, and fails no batch.

    Args:
        table: the table of the stream.
        options: the options of the sink.
        identity: the writer.
        lease: the writer's hold on the table.
        spread: clusters groups on other machines; None: there are no other machines.

    Returns:
        What was done, or None; and the errors, for the batch's summary.
    """
    if not (options.clustering.inline and options.services.enabled):
        return None, ()
    try:
        runner = PieceRunner(1, spread, options.clustering.executors_from_mb)
        done = cluster_held(
            table, options.clustering, options.file_settings, lease, identity, only_due=True, runner=runner
        )
    except CommitConflictError as conflict:  # another writer was faster: the next commit tries again
        log.info("clustering_put_off", table=table.storage.base_uri, why=str(conflict))
        return None, ()
    except Exception as error:  # noqa: BLE001 the batch is committed: a failure here does not fail it
        log.warning("clustering_failed", table=table.storage.base_uri, error=describe(error))
        return None, (describe(error),)
    return done, ()

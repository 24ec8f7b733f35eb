"""Clustering as a service after commits: planned between two batches, carried out beside the next ones."""

from dataclasses import dataclass

from table.config.table_config import TableConfig
from table.errors import CommitConflictError
from table.hudi_table import HudiTable
from table.log import get_logger
from table.options.choices import CleanFailure
from table.options.clustering_settings import ClusteringSettings
from table.options.groups import BaseFileSettings, HeartbeatSettings
from table.services.clustering.clustering import is_due
from table.services.clustering.command import cluster_as_member
from table.services.clustering.execution import carry_out_scheduled
from table.services.clustering.scheduling import schedule_clustering
from table.services.runner import PieceRunner
from table.services.service import ServiceOutcome, Spread, TableService, Trigger
from table.snapshot import Snapshot
from table.transaction.heartbeat import WriterIdentity
from table.transaction.lease import Lease

CLUSTERING = "clustering"
"""Name of the service."""

log = get_logger("hudistream.services")


@dataclass(frozen=True)
class ClusteringService(TableService[Snapshot]):
    """Rewrites small files and unsorted rows in the background.

    A writer that holds the table alone requests a plan, whose file groups its batches leave alone until the service has
    carried it out. Beside other writers the service is a writer of its own, and gives way to them.

    Attributes:
        settings: when, which slices, and in which order.
        base_file: how base files are encoded.
        heartbeat: how long a writer of its own is taken for alive after it has died.
        sink_id: whose plans it carries out.
        lease: the sink's hold on the table.
    """

    settings: ClusteringSettings
    base_file: BaseFileSettings
    heartbeat: HeartbeatSettings
    sink_id: str
    lease: Lease
    on_failure: CleanFailure = CleanFailure.WARN
    name: str = CLUSTERING
    plans_between_batches: bool = True

    def trigger(self, config: TableConfig) -> Trigger:  # noqa: ARG002 as `TableService`
        """After each commit, beside the next batch."""
        return Trigger.BACKGROUND

    def plan(self, table: HudiTable) -> Snapshot | None:
        """The table with a new clustering of this sink on its timeline.

        None where nothing is due, or where the sink leaves the execution to another job.
        """
        snapshot = Snapshot.load(table)
        if self.settings.in_background and self.lease.is_shared:
            return snapshot if is_due(snapshot, self.settings) else None
        by = self.sink_id if self.settings.in_background else None
        try:
            schedule_clustering(snapshot, self.settings, self.lease, scheduled_by=by, only_due=True)
        except CommitConflictError as conflict:  # another write is under way: after the next commit, then
            log.debug("clustering_put_off", table=table.storage.base_uri, why=str(conflict))
            return None
        return snapshot.again() if self.settings.in_background else None

    def execute(self, table: HudiTable, plan: Snapshot, spread: Spread | None = None) -> ServiceOutcome:
        """Carries them out: large ones on other machines, if there are any."""
        runner = PieceRunner(1, spread, self.settings.executors_from_mb)
        try:
            if self.lease.is_shared:
                one = cluster_as_member(table, self.settings, self.base_file, self.heartbeat, runner)
                return ServiceOutcome(clusterings=int(one is not None))
            me = WriterIdentity(self.sink_id, None, self.lease.owner)
            done = carry_out_scheduled(plan, self.base_file, self.lease, me, runner)
        except CommitConflictError as conflict:  # a batch got in between: after the next commit, then
            log.info("clustering_put_off", table=table.storage.base_uri, why=str(conflict))
            return ServiceOutcome()
        return ServiceOutcome(clusterings=len(done))

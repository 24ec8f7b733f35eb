"""Before each batch, a writer ends the writes of dead writers, and lets other writers into a shared table."""

from collections.abc import Mapping

from streaming.batch.marker_cleanup import MarkerCleanup
from streaming.batch.quarantine import finish_quarantine
from streaming.batch.services import TableServices
from table.config.properties_copy import keep_copy
from table.config.table_config import MERGER_VERSION
from table.errors import CommitConflictError
from table.hudi_table import HudiTable
from table.keys.keygen import doubled_by
from table.log import get_logger
from table.options.agreement import check_options_agree
from table.options.choices import TableType
from table.options.write_options import WriteOptions
from table.quarantine.place import table_keys
from table.references.strays import delete_rolled_back_elsewhere
from table.references.undone import find_foreign_rollbacks
from table.services.clean.emptied_partitions import remove_emptied_partitions
from table.services.key_encoding import settle_key_encoding
from table.services.rollback.first_commit import make_first_commit
from table.services.rollback.rollback import Marks, list_marks, roll_back_failed_writes
from table.snapshot import Snapshot
from table.storage.interface import Storage
from table.timeline.active_timeline import sweep_temporaries
from table.timeline.commit_cache import CommitCache
from table.timeline.instant import Action
from table.transaction.heartbeat import WriterIdentity, sweep_heartbeats
from table.transaction.lease import Lease
from table.transaction.liveness import Beside
from table.transaction.planned_clusterings import withdraw_outdated, withdraw_signed
from table.transaction.signs import measure_now_ms

log = get_logger("hudistream.sink")


class Recovery:
    """Brings a table into the state in which a batch can begin.

    Args:
        options: how to write.
        commits: decoded commits of the table.
        quarantine: the folder for bad rows; None: bad rows fail the batch.
        cleanup: deletes the markers of this writer's own commits.
    """

    def __init__(
        self, options: WriteOptions, commits: CommitCache, quarantine: Storage | None, cleanup: MarkerCleanup
    ) -> None:
        self._options, self._commits, self._quarantine = options, commits, quarantine
        self._cleanup = cleanup
        self._keys_told = self._swept = False
        self._rollbacks_seen: frozenset[str] = frozenset()
        self._plans_seen: frozenset[str] = frozenset()
        self._properties: Mapping[str, str] | None = None  # in the copy of them

    def list_marks(self, storage: Storage) -> Marks:
        """Leftovers of instants, for `run`; without what this writer is about to delete itself."""
        return list_marks(storage, self._cleanup.under_way)

    def run(
        self, table: HudiTable, identity: WriterIdentity, lease: Lease, services: TableServices, marks: Marks | None
    ) -> Snapshot:
        """Rolls back or finishes the writes of dead writers, and prepares the table for a batch.

        Only a single writer removes the folders of partitions that cleans emptied.

        Args:
            table: the table, which the caller holds.
            identity: the writer.
            lease: the writer's hold on the table.
            services: report the partitions that cleans emptied.
            marks: as `list_marks` found them; None: they are listed now.

        Returns:
            The snapshot after recovery.

        Raises:
            CommitConflictError: a pending instant is in the way that this writer cannot end.
        """
        snapshot = settle_key_encoding(self._end_dead_writes(table, identity, lease, marks))
        table = snapshot.table
        check_options_agree(self._options, table.config)  # only now it is known how an old table spells its keys
        self._tell_keys(table)
        self._properties = keep_copy(table.storage, table.config.extra, self._properties)
        self._look_behind_rollbacks(snapshot)
        withdraw_signed(snapshot, self._options.sink.id if services.is_clustering else None)
        emptied = services.take_emptied()
        if lease.beside is Beside.NO_WRITER:  # other writers could be about to write there
            remove_emptied_partitions(table, emptied)
            self._plans_seen = withdraw_outdated(snapshot, self._plans_seen)
        if lease.beside is Beside.OTHER_ENGINES:
            snapshot = make_first_commit(snapshot, identity, lease)
            lease.share()
        if self._quarantine is not None:
            keys = table_keys(table.storage.base_uri, table.config.name)
            finish_quarantine(self._quarantine, keys, snapshot)
        return snapshot

    def _tell_keys(self, table: HudiTable) -> None:
        """Warns once about a table whose rows Hudi would add again; it refuses those of earlier versions itself."""
        why = doubled_by(table.config) if table.config.version >= MERGER_VERSION else None
        if why is not None and not self._keys_told:
            log.warning("keys_spelled_otherwise", table=table.storage.base_uri, hint=why)
        self._keys_told = True

    def _end_dead_writes(
        self, table: HudiTable, identity: WriterIdentity, lease: Lease, marks: Marks | None
    ) -> Snapshot:
        heartbeat = self._options.heartbeat
        try:
            seen = marks or self.list_marks(table.storage)
            found = roll_back_failed_writes(
                table, identity, heartbeat, beside=lease.beside, commits=self._commits, marks=seen
            )
        except CommitConflictError:
            lease.release()  # the command that ends the instant in the way, such as a restore, must hold the table
            raise
        if not self._swept:
            now_ms = measure_now_ms(table.storage, identity.owner)
            sweep_temporaries(table.storage, now_ms, table.layout)
            times = {instant.time for instant in found.timeline.pending}
            sweep_heartbeats(table.storage, times, heartbeat, now_ms, shared=lease.is_shared)
            self._swept = True
        return found

    def _look_behind_rollbacks(self, snapshot: Snapshot) -> None:
        """Deletes log files that another engine left when it rolled back their instant.

        This must happen before an instant can change which files are visible. Each rollback is checked once per
        process. Our own rollbacks are skipped: they name every file that their instant wrote.
        """
        rollbacks = frozenset(instant.time for instant in snapshot.timeline.completed_of(Action.ROLLBACK))
        if rollbacks <= self._rollbacks_seen:
            return
        foreign = find_foreign_rollbacks(snapshot, self._rollbacks_seen)
        if snapshot.config.table_type == TableType.MERGE_ON_READ:
            delete_rolled_back_elsewhere(snapshot.table, foreign.keys())
        self._rollbacks_seen = rollbacks

"""A manifest as a service after commits. It fails no batch: the next manifest names what this one could not."""

from table.catalog.delta.delta_log import DeltaLog
from table.catalog.manifest import write_manifest
from table.config.table_config import TableConfig
from table.hudi_table import HudiTable
from table.options.catalog_settings import ManifestFor
from table.options.choices import CleanFailure
from table.services.service import ServiceOutcome, Spread, TableService, Trigger


class ManifestService(TableService[ManifestFor]):
    """Writes the manifest of a table.

    Args:
        reader: who reads it.
        after: None: it runs after each commit. The service that does: this one runs after compactions, before a clean
            deletes what the manifest names.
    """

    name = "manifest"
    on_failure = CleanFailure.WARN

    def __init__(self, reader: ManifestFor, after: "ManifestService | None" = None) -> None:
        self._reader, self._after = reader, after
        self._log: DeltaLog | None = None

    @property
    def follows_commits(self) -> bool:
        """Whether it runs after each commit."""
        return self._after is None

    def trigger(self, config: TableConfig) -> Trigger:  # noqa: ARG002
        """After each commit, beside the next batch; or after each compaction."""
        return Trigger.BACKGROUND if self._after is None else Trigger.AFTER_COMPACTION

    def plan(self, table: HudiTable) -> ManifestFor | None:  # noqa: ARG002
        """The reader alone: `execute` looks at the table."""
        return self._reader

    def execute(
        self,
        table: HudiTable,
        plan: ManifestFor,
        spread: Spread | None = None,  # noqa: ARG002
    ) -> ServiceOutcome:
        """Writes the manifest.

        Raises:
            HudiError: as `write_manifest`.
        """
        write_manifest(table, plan, self._log_of(table))
        return ServiceOutcome()

    def _log_of(self, table: HudiTable) -> DeltaLog:
        if self._after is not None:
            return self._after._log_of(table)  # noqa: SLF001 of this class
        if self._log is None:
            self._log = DeltaLog(table)
        return self._log

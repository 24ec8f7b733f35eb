"""Registration as a service after commits. It fails no batch: the next registration does what this one could not."""

from table.catalog.catalog import Catalog
from table.catalog.connect import connect
from table.catalog.sync import sync_table
from table.config.table_config import TableConfig
from table.hudi_table import HudiTable
from table.options.catalog_settings import CatalogSettings
from table.options.choices import CleanFailure
from table.services.service import ServiceOutcome, Spread, TableService, Trigger


class CatalogService(TableService[CatalogSettings]):
    """Keeps the registration of a table up.

    Args:
        settings: where and how.
        catalog: None: one is connected to by the settings, at the first commit.
    """

    name = "catalog sync"
    follows_commits = True
    on_failure = CleanFailure.WARN

    def __init__(self, settings: CatalogSettings, catalog: Catalog | None = None) -> None:
        self._settings, self._catalog = settings, catalog

    def trigger(self, config: TableConfig) -> Trigger:  # noqa: ARG002
        """After each commit, beside the next batch."""
        return Trigger.BACKGROUND

    def plan(self, table: HudiTable) -> CatalogSettings | None:  # noqa: ARG002
        """The settings alone: `execute` finds out what to do, and no other writer must know of a plan."""
        return self._settings

    def execute(
        self,
        table: HudiTable,
        plan: CatalogSettings,
        spread: Spread | None = None,  # noqa: ARG002
    ) -> ServiceOutcome:
        """Registers what is new since the last time that it succeeded.

        Raises:
            CatalogError: the catalog does not answer, or refuses.
        """
        self._catalog = self._catalog or connect(plan)
        try:
            sync_table(table, self._catalog, plan)
        finally:
            self._catalog.close()  # closes connections only: until the next batch they may die unnoticed
        return ServiceOutcome()

"""From settings to a catalog."""

from table.catalog.catalog import Catalog
from table.catalog.glue import GlueCatalog
from table.catalog.hive_metastore import HiveMetastore
from table.options.catalog_settings import CatalogKind, CatalogSettings, check_names_catalog


def connect(settings: CatalogSettings) -> Catalog:
    """The catalog that the settings name.

    Args:
        settings: its kind and address.

    Raises:
        InvalidConfigError: they do not say which.
        CatalogError: what it needs is not installed.
    """
    kind = check_names_catalog(settings)
    return GlueCatalog(settings) if kind is CatalogKind.GLUE else HiveMetastore(settings)

"""Connects to the catalog that the settings name."""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from table.catalog.catalog import Catalog
from table.catalog.glue import GlueCatalog
from table.catalog.hive_metastore import HiveMetastore
from table.options.catalog_settings import CatalogKind, CatalogSettings, check_names_catalog

_CATALOGS: Mapping[CatalogKind, Callable[[CatalogSettings], Catalog]] = MappingProxyType(
    {CatalogKind.GLUE: GlueCatalog, CatalogKind.HMS: HiveMetastore}
)


def connect(settings: CatalogSettings) -> Catalog:
    """The catalog that the settings name.

    Args:
        settings: kind and address of the catalog.

    Raises:
        InvalidConfigError: the settings name no catalog.
        CatalogError: the catalog's client is not installed.
    """
    return _CATALOGS[check_names_catalog(settings)](settings)

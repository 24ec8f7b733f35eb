"""Checks that this project can read a table: it must know the layout of the timeline and the files."""

from collections.abc import Mapping
from types import MappingProxyType

from table.config.table_config import NATIVE_FORMAT, TableConfig
from table.errors import UnsupportedTableError

# table version -> layout of its timeline
READ_VERSIONS: Mapping[int, int] = MappingProxyType({6: 1, 8: 2, 9: 2})


def to_a_known_version(version: int) -> str:
    """How a table gets a version that this project knows, for errors (pure).

    Args:
        version: ``hoodie.table.version`` of the table.
    """
    newest = max(READ_VERSIONS)
    if version > newest:
        return (
            f"a later Hudi wrote it. Downgrade it with that Hudi's CLI (`downgrade table --toVersion {newest}`), and "
            f"keep its writers at hoodie.write.table.version={newest} and hoodie.write.auto.upgrade=false"
        )
    if version in READ_VERSIONS:
        return "the two contradict each other. Restore hoodie.properties from a copy"
    near = min(known for known in READ_VERSIONS if known > version)
    return f"upgrade it with Hudi's CLI (`upgrade table --toVersion {near}`)"


def check_can_read(config: TableConfig) -> None:
    """Refuses a table of an unknown version, or one whose files another table format lays out.

    Raises:
        UnsupportedTableError: names the property, its value, and the supported values.
    """
    if READ_VERSIONS.get(config.version) != config.layout_version:
        raise UnsupportedTableError(
            f"the table has hoodie.table.version={config.version} and hoodie.timeline.layout.version="
            f"{config.layout_version}; read are version 6 with layout 1, and versions 8 and 9 with layout 2: "
            f"{to_a_known_version(config.version)}"
        )
    if config.table_format != NATIVE_FORMAT:
        raise UnsupportedTableError(
            f"the table has hoodie.table.format={config.table_format}; read is {NATIVE_FORMAT}: use a reader of it"
        )

"""Partition path -> its values in a catalog (pure; the classes of ``PartitionValueExtractor``)."""

from collections.abc import Sequence
from urllib.parse import unquote

from table.errors import CatalogError
from table.options.catalog_settings import PartitionExtractor


def partition_values(
    path: str,
    fields: Sequence[str],
    extractor: PartitionExtractor | None = None,
    *,
    is_styled: bool = False,
    decodes: bool = False,
) -> tuple[str, ...]:
    """The values of a partition path, one for each partition field.

    Args:
        path: relative to the table, such as ``region=eu/day=2026-01-01`` or ``eu/2026-01-01``.
        fields: the partition fields; none for a table without partitions.
        extractor: how the path is split; None: a single field takes the whole path, several fields one level each.
        is_styled: whether each level of the table's paths begins with the name of its field.
        decodes: whether the table's paths are URL-encoded.

    Raises:
        CatalogError: the path does not have as many levels as there are fields.
    """
    if not fields or extractor is PartitionExtractor.NONE:
        return ()
    if extractor is PartitionExtractor.SLASHED_DAY:
        parts = ["-".join(_value(part, is_styled=is_styled) for part in path.split("/"))]
    elif len(fields) == 1 and extractor is not PartitionExtractor.EACH_LEVEL:
        parts = [_value(path, is_styled=is_styled)]
    else:
        parts = [_value(part, is_styled=is_styled) for part in path.split("/")]
    if len(parts) != len(fields):
        raise CatalogError(
            f"partition path {path!r} has {len(parts)} levels, and the table has {len(fields)} partition fields "
            f"({', '.join(fields)}): set hoodie.datasource.hive_sync.partition_extractor_class to the class that "
            "takes such paths apart"
        )
    return tuple(unquote(part) if decodes else part for part in parts)


def _value(part: str, *, is_styled: bool) -> str:
    """The value of a level, without the field's name if the level has one: a value may hold an equals sign."""
    name, equals, value = part.partition("=")
    return value if is_styled and equals and name else part

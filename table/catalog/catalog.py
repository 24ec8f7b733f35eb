"""What a catalog is asked for: one interface of Hive's metastore, of AWS Glue, and of whatever comes next."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from table.catalog.registration import Registration

Partitions = Mapping[tuple[str, ...], str]  # values of the partition columns -> location


class Catalog(Protocol):
    """A catalog. Every method raises `CatalogError` where it does not answer, or refuses."""

    def create_database(self, name: str) -> None:
        """Creates a database where there is none of that name."""

    def find_table(self, database: str, name: str) -> Registration | None:
        """What is registered under a name; None: nothing."""

    def create_table(self, wanted: Registration) -> None:
        """Registers a table. A table that another process registered meanwhile stays as it is."""

    def change_table(self, wanted: Registration, *, cascades: bool) -> None:
        """Registers a table anew.

        Args:
            wanted: what it becomes.
            cascades: whether its partitions get its columns, too.
        """

    def list_partitions(self, of: Registration) -> Partitions:
        """All partitions of a table."""

    def add_partitions(self, of: Registration, added: Partitions) -> int:
        """Adds those that are not there. Returns how many that were."""

    def move_partitions(self, of: Registration, moved: Partitions) -> None:
        """Gives partitions other locations."""

    def drop_partitions(self, of: Registration, dropped: Sequence[tuple[str, ...]]) -> None:
        """Drops those that are there. No file is deleted."""

    def close(self) -> None:
        """Ends connections. The next call opens others."""

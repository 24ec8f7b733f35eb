"""The interface of every catalog: Hive's metastore, AWS Glue, and later ones."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from table.catalog.registration import Registration

Partitions = Mapping[tuple[str, ...], str]  # values of the partition columns -> location


class Catalog(Protocol):
    """A catalog. Every method raises `CatalogError` if the catalog does not answer, or refuses the request."""

    def create_database(self, name: str) -> None:
        """Creates a database unless one of that name exists."""

    def find_table(self, database: str, name: str) -> Registration | None:
        """The registration under a name; None if there is none."""

    def create_table(self, wanted: Registration) -> None:
        """Registers a table. A table that another process registered meanwhile stays as it is."""

    def change_table(self, wanted: Registration, *, cascades: bool) -> None:
        """Registers a table anew.

        Args:
            wanted: the new registration.
            cascades: whether its partitions get the new columns, too.
        """

    def list_partitions(self, of: Registration) -> Partitions:
        """All partitions of a table."""

    def add_partitions(self, of: Registration, added: Partitions) -> int:
        """Adds the missing partitions. Returns how many were missing."""

    def move_partitions(self, of: Registration, moved: Partitions) -> None:
        """Gives partitions other locations."""

    def drop_partitions(self, of: Registration, dropped: Sequence[tuple[str, ...]]) -> None:
        """Drops the existing ones of these partitions. No file is deleted."""

    def close(self) -> None:
        """Ends connections. The next call opens new ones."""

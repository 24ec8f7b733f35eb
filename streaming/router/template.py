"""What a router makes its tables of, as its user said it: it is pickled with the router, and never changes."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from streaming.table_sink import Callback, FailureHook
from streaming.validators import Validator
from table.errors import InvalidConfigError
from table.options.choices import WriteLocation
from table.options.short_names import with_index, with_short_names
from table.options.write_options import WriteOptions, parse_options
from table.storage.folder_names import address_below

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


@dataclass(frozen=True)
class RouterLimits:
    """What a router may take.

    Attributes:
        new_tables: most tables that a batch may make; a batch with more fails before anything is written.
        open_tables: most tables whose writers are kept from batch to batch.
        idle_s: after so many seconds without rows a table's writer gives back its thread, its lease and its cache.
        services: most tables whose services run at the same time.
        batches_aside: most batches of a failing table that wait; with more, the query fails. 0: it fails at once, after
            the other tables are written.
    """

    new_tables: int = 100
    open_tables: int = 64
    idle_s: float = 60.0
    services: int = 2
    batches_aside: int = 100


@dataclass(frozen=True)
class RouterTemplate:
    """What a router makes its tables of.

    Attributes:
        root: folder of the tables.
        table: the column with the table's name, or a function that makes it.
        options: for every table.
        own: table -> options that are its own; they count more than `options`.
        short_names: the arguments by short name, which are options, too.
        storage_options: of fsspec's file system.
        schemas: table -> its columns, as Arrow's schema or as Spark's.
        unfold: the column whose fields become columns; None: there is none.
        keeps_name: whether the column with the table's name is a column of the tables.
        limits: what the router may take.
        hooks: validators, callbacks and failure hooks of each table.
    """

    root: str
    table: "str | Callable[[DataFrame], Column]"
    options: Mapping[str, Any]
    own: Mapping[str, Mapping[str, Any]]
    short_names: Mapping[str, Any]
    storage_options: Mapping[str, Any]
    schemas: Mapping[str, Any]
    unfold: str | None
    keeps_name: bool
    limits: RouterLimits
    hooks: tuple[Sequence[Validator], Sequence[Callback], Sequence[FailureHook]]

    @cached_property
    def shared(self) -> WriteOptions:
        """The options of a table that has none of its own."""
        return self.options_of("")

    def options_of(self, name: str) -> WriteOptions:
        """The options of a table.

        Raises:
            InvalidConfigError: an option is unknown or refused, or contradicts another.
        """
        given = {**self.options, **self.own.get(name, {})}
        named = with_index(given, self.short_names.get("index"))
        return with_short_names(parse_options(named, address_below(self.root, name)).options, **self.short_names)

    def options_of_all(self) -> list[WriteOptions]:
        """The shared options, and those of each table that has its own."""
        return [self.shared, *map(self.options_of, self.own)]

    def check(self) -> None:
        """Refuses options that do not fit a router.

        Raises:
            InvalidConfigError: an option is unknown or refused, contradicts another, or is not for routers.
        """
        operation = self.shared.effective_operation
        if operation.replaces:
            raise InvalidConfigError(
                f"hoodie.datasource.write.operation={operation} in a router: each micro-batch would replace the one "
                "before; use insert, upsert or delete"
            )
        if any(options.tasks.location is WriteLocation.DRIVER for options in self.options_of_all()):
            raise InvalidConfigError(
                "hudistream.write.location=driver in a router: its tables are written with executors; leave the "
                "option out, or write each table with a HudiSink of its own"
            )

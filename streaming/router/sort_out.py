"""A batch of a router becomes rows by table; rows that name none are put aside, or refused."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from streaming.batch.workers import Batch
from streaming.router.aside import delete_files
from streaming.router.nameless import check_nameless, open_folder, put_nameless_aside
from streaming.router.routed_table import Arrived, gather
from streaming.router.split import STAGED_FOLDER, Piece, SplitRules, Splitter
from streaming.router.template import RouterTemplate
from table import clock
from table.config.table_config import PROPERTIES_FILE
from table.errors import InvalidConfigError
from table.options.choices import BadRows
from table.quarantine.place import ENDING
from table.storage.interface import Storage, join

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_SHOWN = 5


class KnownTables:
    """The tables below a root that are known to exist.

    Args:
        place: the root.
    """

    def __init__(self, place: Storage) -> None:
        self._place = place
        self._names: set[str] = set()

    def add(self, name: str) -> None:
        """Notes a table that was written."""
        self._names.add(name)

    def find_new(self, names: Sequence[str]) -> list[str]:
        """Those of some tables that do not exist, sorted. Only tables that are not known are looked for."""
        unknown = [name for name in names if name not in self._names]
        self._names |= {name for name in unknown if self._place.exists(join(name, PROPERTIES_FILE))}
        return sorted(name for name in unknown if name not in self._names)


class Sorter:
    """Sorts the batches of one router.

    Args:
        template: of the router.
        place: the root.
        storage: the router's folder.
        known: the tables that are known to exist.
    """

    def __init__(self, template: RouterTemplate, place: Storage, storage: Storage, known: KnownTables) -> None:
        self._template, self._place, self._storage, self._known = template, place, storage, known

    def split(self, batch: "DataFrame", batch_id: int) -> tuple[list[Piece], str | None]:
        """Reads the rows of a batch once, and stages them by table.

        Args:
            batch: the rows.
            batch_id: Spark's id.

        Returns:
            The pieces, and the query whose rows the tasks saw; None: they saw none, or there are no rows.
        """
        from streaming.spark.schema import to_arrow_schema  # noqa: PLC0415
        from streaming.spark.split_frame import split_frame  # noqa: PLC0415

        template, arriving = self._template, to_arrow_schema(batch.schema)
        if isinstance(template.table, str) and not template.keeps_name and template.table in arriving.names:
            arriving = arriving.remove(arriving.get_field_index(template.table))
        folder = join(STAGED_FOLDER, f"{batch_id}-{clock.fresh_uuid()}")
        bad_rows = [options.bad_rows for options in template.options_of_all()]
        is_kept = any(one.action is BadRows.QUARANTINE and one.path is None for one in bad_rows)
        rules = SplitRules(template.unfold, template.shared.tasks.memory_bytes, ENDING if is_kept else None)
        return split_frame(batch, template.table, Splitter(self._storage, folder, arriving, rules))

    def sort_out(self, opened: Batch, pieces: Sequence[Piece]) -> dict[str, Arrived]:
        """The rows of each table. Rows that name none are put aside, or refused.

        Args:
            opened: the batch.
            pieces: its rows.

        Raises:
            InvalidRecordError: rows name no table.
            InvalidConfigError: the batch would make more tables than expected.
        """
        template, found = self._template, gather(pieces)
        nameless = found.pop(None, None)
        bad_rows, own = template.shared.bad_rows, nameless.pieces if nameless is not None else ()
        if own:
            all_rows = sum(piece.rows for piece in pieces)
            check_nameless(self._storage, own, all_rows, opened.batch_id, bad_rows)
        arrived = {name: rows for name, rows in found.items() if name is not None}
        self._check_new(arrived)
        if own:
            folder = open_folder(self._place, bad_rows.path, template.storage_options)
            put_nameless_aside(self._storage, own, folder, opened, template.shared.sink.id)
            delete_files(self._storage, own)
        return arrived

    def _check_new(self, arrived: Mapping[str, Arrived]) -> None:
        """Refuses a batch that would make more tables than expected: the column may not be what it is taken for."""
        new, most = self._known.find_new(list(arrived)), self._template.limits.new_tables
        if len(new) > most:
            raise InvalidConfigError(
                f"the batch would make {len(new)} tables ({', '.join(new[:_SHOWN])} …), and limits.new_tables is "
                f"{most}: is {self._template.table!r} the column with the table's name? Nothing was written"
            )

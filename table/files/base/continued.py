"""The older file that a base file continues, and which of its row groups the caller writes."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from table.files.base.stored_file import StoredBaseFile
from table.files.parquet.copy_checks import why_encoded_anew
from table.options.groups import BaseFileSettings


@dataclass(frozen=True)
class Continued:
    """The file that a new one continues: its rows come first.

    A caller that changes rows decides about each row group: it decodes the group and writes the rows itself, or it
    makes a patch, or it leaves the group to the writer.

    Attributes:
        stored: the open file. The caller closes it.
        reason: why no row group can be copied: the writer encodes those that are left to it. None: it copies them.
        decoded: numbers of the row groups whose rows the caller writes, as carried rows.
        patches: numbers of the row groups of which the caller changes some columns, ascending -> makes the changed
            columns, with all rows of the row group. The file name and the record key are not among them. The chunks of
            the other columns are copied. One patch is made at a time.
    """

    stored: StoredBaseFile
    reason: str | None = None
    decoded: frozenset[int] = frozenset()
    patches: Mapping[int, Callable[[], pa.Table]] = field(default_factory=dict)

    @property
    def left(self) -> list[int]:
        """Numbers of the row groups that are left to the writer, in file order."""
        taken = {*self.decoded, *self.patches}
        return [number for number in range(len(self.stored.group_rows)) if number not in taken]

    @property
    def is_planned(self) -> bool:
        """Whether the caller has decided about each row group. Otherwise the last ones may be encoded again."""
        return bool(self.decoded or self.patches)

    @property
    def is_copied(self) -> bool:
        """Whether bytes of the older file go into the new one."""
        return self.reason is None and bool(self.patches or self.left)


def continue_file(stored: StoredBaseFile | None, schema: pa.Schema, settings: BaseFileSettings) -> Continued | None:
    """The older file as a writer of new rows continues it; None if there is no older file.

    Args:
        stored: the open file, or None.
        schema: meta columns and table columns of the new file (Arrow).
        settings: how the new file is written.
    """
    return None if stored is None else Continued(stored, why_encoded_anew(stored, schema, settings))

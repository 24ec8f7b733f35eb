"""Rows that share a key with the rows of a condition, but do not fulfil it: a delete by key would take them, too."""

import pyarrow as pa
import pyarrow.compute as pc

from table.errors import InvalidConfigError
from table.hudi_table import HudiTable
from table.scan.predicate import Where, parse_where
from table.scan.scan import Scan
from table.schema.avro_schema import PARTITION_PATH, RECORD_KEY

_NAMED = 5  # keys in an error
_GOES, _STAYS = "_hudistream_goes", "_hudistream_stays"


def identity_of(table: HudiTable, *, by_path: bool) -> list[str]:
    """The columns by which a delete finds a row.

    Args:
        table: the table.
        by_path: whether a key is found in its partition path alone.
    """
    config = table.config
    if config.populate_meta_fields:
        return [*([PARTITION_PATH] if by_path else []), RECORD_KEY]
    fields = [*(config.partition_fields if by_path else ()), *config.record_key_fields]
    return list(dict.fromkeys(name.partition(".")[0] for name in fields))


def _leaves_of(table: HudiTable, found: pa.Table) -> list[str]:
    """The columns of `identity_of`, with the fields of structs in place of the structs."""
    config = table.config
    fields = dict.fromkeys((*config.partition_fields, *config.record_key_fields))
    return [
        leaf
        for name in found.column_names
        for leaf in ([one for one in fields if one.partition(".")[0] == name and one != name] or [name])
    ]


def _flat(rows: pa.Table, names: list[str]) -> pa.Table:
    while any(name not in rows.column_names for name in names):
        rows = rows.flatten()
    return rows.select(names)


def _counted(rows: pa.Table, goes: int) -> pa.Table:
    marks = pa.repeat(pa.scalar(goes, pa.int64()), len(rows)), pa.repeat(pa.scalar(1 - goes, pa.int64()), len(rows))
    return rows.append_column(_GOES, marks[0]).append_column(_STAYS, marks[1])


def check_no_rows_beside(table: HudiTable, where: Where, found: pa.Table) -> None:
    """Refuses a condition that is true for some rows of a key, and not for others.

    Args:
        table: the table; its newest snapshot is asked.
        where: as in `Scan`.
        found: the rows that are to go, with the columns of `identity_of` alone.

    Raises:
        InvalidConfigError: it names keys.
        HudiError: as `Scan.to_arrow`.
    """
    if not len(found):
        return
    stored, names = tuple(found.column_names), _leaves_of(table, found)
    found = _flat(found, names)
    every = Scan(table, meta_columns=True)
    wanted = parse_where(where, every.schema, zone=table.config.timezone).expression
    last = names[-1]
    shares = pc.field(*last.split(".") if last not in stored else (last,)).isin(pc.unique(found.column(last)))
    others = _flat(Scan(table, stored, shares & (~wanted | wanted.is_null())).to_arrow(), names)
    # no join: it would match no null, and null is the value of a partition path
    both = pa.concat_tables([_counted(found, goes=1), _counted(others, goes=0)])
    identities = both.group_by(names).aggregate([(_GOES, "sum"), (_STAYS, "sum")])
    goes, stays = identities.column(f"{_GOES}_sum"), identities.column(f"{_STAYS}_sum")
    shared = identities.filter(pc.and_(pc.greater(goes, 0), pc.greater(stays, 0)))
    if not len(shared):
        return
    beside = pc.sum(shared.column(f"{_STAYS}_sum")).as_py()
    keys = pc.unique(shared.column(last))
    shown = ", ".join(repr(key.as_py()) for key in keys[:_NAMED])
    more = f" and {len(keys) - _NAMED} more" if len(keys) > _NAMED else ""
    raise InvalidConfigError(
        f"where={where}: {beside} rows for which it is not true have the same {last} as rows for which it is: "
        f"{shown}{more}. A delete of {table.storage.base_uri!r} goes by record key and would take them, so nothing was "
        "deleted: give a condition that takes all rows of a key or none (the keys themselves), or replace the "
        "partition paths by the rows that stay (operation insert_overwrite)"
    )

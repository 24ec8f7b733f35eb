"""Finds rows that cannot be stored because a value is missing or too long, and names the value (pure)."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from table.columns.required_values import find_nulls
from table.files.log.delete_block import find_too_long, may_be_too_long
from table.schema.avro_schema import RECORD_KEY

NO_KEY = "the record key is null or empty"


@dataclass(frozen=True)
class BadRows:
    """Rows that cannot be stored for the same reason.

    Attributes:
        rows: one boolean per row of the input: whether it is one of these rows.
        reason: what is wrong with their values.
    """

    rows: npt.NDArray[np.bool_]
    reason: str


def explain_nulls(required: Sequence[str], ordering_fields: Sequence[str] = ()) -> dict[str, str]:
    """Columns that must not be null -> the reason that is given for a row with a null.

    Args:
        required: columns in which the table's schema allows no null.
        ordering_fields: columns that order records of a key; none where they may be null.
    """
    reasons = {name: f"column {name} is null where the schema allows none" for name in required}
    return reasons | {name: f"the ordering field {name} is null" for name in ordering_fields}


def find_bad_rows(
    rows: pa.Table, required: Mapping[str, str], exempt: npt.NDArray[np.bool_] | None = None
) -> Iterator[BadRows]:
    """Finds rows without a record key, or with a null in a required column. Each row is in one `BadRows`.

    Args:
        rows: with ``_hoodie_record_key``.
        required: columns that must not be null -> the reason, from `explain_nulls`.
        exempt: rows that are not checked; None: all are checked.
    """
    missing = [_mask(pc.equal(pc.fill_null(pc.utf8_length(rows.column(RECORD_KEY)), 0), 0))]
    missing += [find_nulls(rows, name) for name in required]
    if not any(mask.any() for mask in missing):
        return
    lacks = np.column_stack(missing)
    if exempt is not None:
        lacks[exempt] = False
    kinds, kind_of_row = np.unique(lacks, axis=0, return_inverse=True)
    reasons = (NO_KEY, *required.values())
    for number, kind in enumerate(kinds):
        if kind.any():
            reason = "; ".join(reason for reason, is_so in zip(reasons, kind, strict=True) if is_so)
            yield BadRows(kind_of_row.reshape(-1) == number, reason)


def find_long_decimals(rows: pa.Table, ordering_fields: Sequence[str]) -> Iterator[BadRows]:
    """Finds rows with an ordering value that no log file could hold, were its row deleted. Each is in one `BadRows`.

    Args:
        rows: of a batch for a merge-on-read table.
        ordering_fields: columns that order records of a key.
    """
    unjudged = np.ones(len(rows), np.bool_)
    for name in (one for one in ordering_fields if one in rows.column_names):
        if (
            may_be_too_long(rows.schema.field(name).type)
            and (long := unjudged & find_too_long(rows.column(name))).any()
        ):
            unjudged &= ~long
            value = rows.column(name)[int(np.argmax(long))].as_py()
            yield BadRows(
                long, f"the ordering field {name} is {value:f}, longer than decimal(30,15): round or rescale it"
            )


def _mask(flags: pa.ChunkedArray) -> npt.NDArray[np.bool_]:
    mask: npt.NDArray[np.bool_] = flags.to_numpy()
    return mask

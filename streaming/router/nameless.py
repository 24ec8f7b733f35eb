"""Rows whose name cannot be a table's: they fail the batch, or are put aside as bad rows of the router."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import pyarrow as pa

from streaming.batch.quarantine import now_us, publish
from streaming.batch.workers import Batch
from streaming.plan.quarantine import Quarantine
from streaming.router.split import NAME_COLUMN, Piece
from streaming.task.quarantine_writer import QuarantineWriter
from table import clock
from table.columns.text_bytes import find_bad_text, made_readable
from table.errors import InvalidRecordError
from table.log import get_logger
from table.options.choices import BadRows
from table.options.write_groups import BadRowSettings
from table.storage.interface import Storage
from table.storage.opening import open_storage

_FOLDER = "_bad_rows"  # below the router's root: no table can have a name that begins so
_KEY = "router"  # in the place of a table's key, which ends with eight digits
_SHOWN = 5
_REASON = "the name of the table is null, or cannot be the name of a folder"
_RULES = (
    "it has a separator, a control character, or one of : * ? < > | and double quotes, begins with a point, an "
    "underscore, a hyphen or a space, ends with a point or a space, or has more than 255 bytes"
)

log = get_logger("hudistream.router")


def check_nameless(
    storage: Storage, pieces: Sequence[Piece], all_rows: int, batch_id: int | None, settings: BadRowSettings
) -> None:
    """Refuses a batch whose rows name no table, unless such rows are put aside, and are few enough.

    Args:
        storage: the router's folder.
        pieces: the rows that name none.
        all_rows: of the batch.
        batch_id: Spark's id.
        settings: the router's options for bad rows.

    Raises:
        InvalidRecordError: the message shows some of the names, and the ways out.
    """
    rows = sum(piece.rows for piece in pieces)
    some, most = ", ".join(_show_names(storage, pieces)), settings.max_share
    if settings.action is not BadRows.QUARANTINE:
        raise InvalidRecordError(
            f"{rows} rows of batch {batch_id} name no table, for example {some}: the name is null or empty, or cannot "
            f"be the name of a folder on every store ({_RULES}). Filter such rows out before the router, give them a "
            "table, or set hudistream.bad.rows=quarantine; nothing of the batch is visible"
        )
    if most is not None and rows / all_rows > most:
        raise InvalidRecordError(
            f"{rows} of {all_rows} rows of batch {batch_id} name no table, for example {some}: a share of "
            f"{rows / all_rows:.3f}, and hudistream.bad.rows.max.share={most:g}; no row was put aside, and nothing of "
            "the batch is visible. Look at the source, or allow a greater share"
        )


def _show_names(storage: Storage, pieces: Sequence[Piece]) -> list[str]:
    found: dict[str, None] = {}
    for piece in pieces:
        with piece.open(storage) as reader:
            for batch in reader:
                found |= dict.fromkeys(map(_shown, batch.column(NAME_COLUMN).unique().to_pylist()))
                if len(found) >= _SHOWN:
                    return list(found)[:_SHOWN]
    return list(found)


def _shown(name: str | None) -> str:
    return "null" if name is None else repr(name if len(name) <= 60 else f"{name[:60]}…")


def open_folder(root: Storage, given: str | None, storage_options: Mapping[str, Any]) -> Storage:
    """Where these rows go: ``hudistream.bad.rows.path``, or the folder ``_bad_rows`` below the router's root."""
    return open_storage(given, storage_options) if given else root.below(_FOLDER)


def put_nameless_aside(storage: Storage, pieces: Sequence[Piece], folder: Storage, batch: Batch, sink_id: str) -> None:
    """Writes the rows as one file of bad rows. A batch that comes again replaces its file.

    Args:
        storage: the router's folder.
        pieces: the rows.
        folder: of bad rows.
        batch: Spark's; its query and its id name the file.
        sink_id: the name of the router's sinks.

    Raises:
        StorageError: the file is not written.
    """
    # outside a stream nothing tells a batch that comes again from another one of its number
    of_query = clock.fresh_uuid() if batch.query_id is None else batch.query_id
    name = f"{of_query}-{batch.batch_id}"
    writer = QuarantineWriter(Quarantine(folder, _KEY, name, batch.batch_id, sink_id, now_us()), _KEY)
    try:
        for piece in pieces:
            with piece.open(storage) as reader:
                for rows in reader:
                    writer.write(_made_storable(pa.Table.from_batches([rows])), _REASON)
        file = writer.close()
    except BaseException:
        with suppress(Exception):  # the first failure must be raised
            writer.abandon()
        raise
    assert file is not None
    publish(folder, _KEY, name, (file,))
    log.warning(
        "rows_quarantined",
        root=folder.base_uri,
        batch_id=batch.batch_id,
        rows=sum(piece.rows for piece in pieces),
        file=file,
        reason=_REASON,
    )


def _made_storable(rows: pa.Table) -> pa.Table:
    return made_readable(rows) if find_bad_text(rows) else rows

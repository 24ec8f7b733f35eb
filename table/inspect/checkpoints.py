"""The streams of a table: the last batch of each sink, and where its sources stood."""

import pyarrow as pa

from table.hudi_table import HudiTable
from table.snapshot import Snapshot
from table.transaction.checkpoint import REPLAY_SINK
from table.transaction.last_batch import find_last_batches, find_streamer_positions

STREAMER = "HoodieStreamer"
_SCHEMA = pa.schema(
    [
        ("sink", pa.string()),
        ("batch_id", pa.int64()),
        ("query_id", pa.string()),
        ("operation", pa.string()),
        ("epoch", pa.int64()),
        ("positions", pa.list_(pa.string())),
    ]
)


def load_checkpoints(table: HudiTable) -> pa.Table:
    """A row for each sink that has written batches of the table, and one for Hudi's HoodieStreamer if it has.

    Returns:
        Columns: ``sink``, its name; ``batch_id`` and ``query_id`` of its last batch; ``operation``; ``epoch``, how
        often another query went on where the earlier one ended; ``positions``, one JSON text for each source of the
        query, where it stood after that batch, empty where it was not recorded.

    Raises:
        CorruptFileError: a commit or the archive is damaged.
    """
    snapshot = Snapshot.load(table)
    batches = find_last_batches(snapshot)
    rows: list[dict[str, object]] = [
        {
            "sink": sink_id,
            "batch_id": last.batch_id,
            "query_id": last.query_id,
            "operation": last.operation,
            "epoch": last.epoch,
            "positions": list(last.positions),
        }
        for sink_id, last in sorted(batches.items())
        if sink_id != REPLAY_SINK  # a person replays bad rows
    ]
    streamer = find_streamer_positions(snapshot)
    if streamer and streamer not in {last.positions for last in batches.values()}:
        rows.append({"sink": STREAMER, "positions": list(streamer)})
    return pa.Table.from_pylist(rows, schema=_SCHEMA)

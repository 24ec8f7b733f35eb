"""Bad rows go back into the table, each once: a replay is a batch of a sink of its own (`table.quarantine.replays`)."""

import pyarrow as pa
import pyarrow.compute as pc

from streaming.batch.micro_batch import MicroBatchWriter
from streaming.batch.summary import BatchSummary
from streaming.batch.workers import Batch
from streaming.task.in_process import InProcessWorkers
from table import clock
from table.errors import CommitOutcomeUnknownError, HudiError, InvalidConfigError
from table.hudi_table import HudiTable
from table.log import get_logger
from table.quarantine.place import FILE, ROW, TOLD, table_keys
from table.quarantine.replays import (
    Replay,
    forget_replay,
    list_replays,
    mark_replay,
    read_replayed,
    record_replay,
)
from table.snapshot import Snapshot
from table.storage.interface import Storage
from table.transaction.checkpoint import REPLAY_SINK
from table.transaction.last_batch import find_last_batch

log = get_logger("hudistream.quarantine")


def replay_rows(writer: MicroBatchWriter, table: HudiTable, storage: Storage, rows: pa.Table) -> BatchSummary:
    """Writes bad rows that were corrected, as one batch; rows that were replayed before are passed over.

    Args:
        writer: of the sink.
        table: where the rows go.
        storage: the folder of bad rows.
        rows: corrected (Arrow), each with its place.

    Raises:
        InvalidConfigError: a row does not name its place, or two rows name the same.
        HudiError: nothing of the rows is visible.
    """
    places = _places_of(rows)
    keys = table_keys(table.storage.base_uri, table.config.name)
    last = find_last_batch(Snapshot.load(table), REPLAY_SINK)
    replays = list_replays(storage, keys)
    for replay in replays:
        if replay.is_committed(last) and not replay.is_marked:
            mark_replay(storage, replay)
    taken = read_replayed(storage, [replay for replay in replays if replay.is_committed(last)])
    fresh = [number for number, place in enumerate(places) if place not in taken]
    if not fresh:
        return BatchSummary(writer.table, None, None, skipped=True)
    replay = Replay(keys[0], 0 if last is None else last.batch_id + 1, clock.fresh_uuid(), is_marked=False)
    record_replay(storage, replay, _by_file([places[number] for number in fresh]))
    chosen = rows.take(pa.array(fresh, pa.int64()))
    workers = InProcessWorkers(chosen.drop_columns([name for name in TOLD if name in chosen.column_names]))
    batch = Batch(workers, replay.number, query_id=replay.ident, sink_id=REPLAY_SINK)
    try:
        summary = writer.write(batch)
    except CommitOutcomeUnknownError:
        raise  # the next replay asks the commits
    except HudiError:
        forget_replay(storage, replay)
        raise
    mark_replay(storage, replay)
    log.info("bad_rows_replayed", table=writer.table, rows=len(fresh), passed_over=len(places) - len(fresh))
    return summary


def _places_of(rows: pa.Table) -> list[tuple[str, int]]:
    missing = [name for name in (FILE, ROW) if name not in rows.column_names]
    if missing:
        raise InvalidConfigError(
            f"the rows have no column {' and no column '.join(missing)}: replay takes the corrected rows of "
            "read_bad_rows, with these columns as they were; other rows are written with write"
        )
    if any(pc.any(pc.is_null(rows.column(name))).as_py() for name in (FILE, ROW)):
        raise InvalidConfigError(f"a row has a null in {FILE} or {ROW}: each row tells the place that it was read from")
    places = list(zip(rows.column(FILE).to_pylist(), map(int, rows.column(ROW).to_pylist()), strict=True))
    seen: set[tuple[str, int]] = set()
    for place in places:
        if place in seen:
            raise InvalidConfigError(f"row {place[1]} of {place[0]} is there twice: a bad row is replayed once")
        seen.add(place)
    return places


def _by_file(places: list[tuple[str, int]]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for file, number in places:
        found.setdefault(file, []).append(number)
    return found

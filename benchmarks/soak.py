"""`make soak`: 2,000 small batches with cleaning and archival on, files that fill and roll many times.

Asserts that batch time, memory, entries below ``.hoodie``, snapshot reads and versions a file group stay flat from the
second tenth of the batches to the last, and writes the figures and a picture to ``docs/soak``. With
``--table-type mor`` half of the rows are updates, and compactions run beside the batches: log files of a slice stay
flat, too (``docs/soak/mor``). With ``--hot`` four fifths of the rows change a fifth of the keys of a merge-on-read
table with a record index, and one row in ten deletes its key (``docs/soak/hot``). With ``--version 9`` the table is one
of Hudi 1.1 (``docs/soak/v9``). With ``--store s3`` it is on a server that speaks S3, in a process of its own
(``docs/soak/s3``): 3,600 batches take an hour. The processor time of that server is told apart: it needs 0.3 ms for
each file that it lists, and looks at each key that it has for each listing. Other work of the machine beside the second
or the last tenth spoils the ratios.
"""

import argparse
import collections
import contextlib
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import fsspec
import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq
from report import picture
from run import machine
from workloads import keys_of

DOCS = Path(__file__).parent.parent / "docs" / "soak"
OPTIONS = {
    "hoodie.table.name": "soak",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.operation": "insert",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.datasource.write.partitionpath.field": "p",
    "hoodie.parquet.max.file.size": "1000000",
}
ROWS = 2_000
MOST = 1.1  # times the second tenth
COLUMNS = ("seconds", "processor", "server", "entries", "versions", "groups", "read", "logs", "driver", "jvm", "worker")
KNOWN = 40_000  # keys that are updated: a table that does not grow shows what grows
MERGE_ON_READ = {
    "hoodie.datasource.write.operation": "upsert",
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.index.type": "BUCKET",
    "hoodie.bucket.index.num.buckets": "2",
}
HOT = {
    **MERGE_ON_READ,
    "hoodie.index.type": "RECORD_INDEX",
    "hoodie.metadata.enable": "true",
    "hoodie.metadata.record.index.enable": "true",
}
SCHEMA = "id string, p string, ts bigint, amount double"


def ids_of(kind, number, rng):
    """Numbers of the keys in a batch."""
    if kind == "cow":
        return np.arange(number * ROWS, (number + 1) * ROWS)
    if not number:
        return np.arange(KNOWN)
    if kind == "mor":
        return np.sort(rng.choice(KNOWN, ROWS, replace=False))
    hot = rng.integers(0, KNOWN // 5, ROWS * 4 // 5)
    return np.concatenate([hot, rng.integers(KNOWN // 5, KNOWN, ROWS - len(hot))])


def generate(folder, batches, kind):
    """One file for each batch. Returns how many keys there are in the end."""
    os.makedirs(folder)
    rng = np.random.default_rng(7)
    lives = np.zeros(batches * ROWS if kind == "cow" else KNOWN, bool)
    first_ts = 0
    for number in range(batches):
        ids = ids_of(kind, number, rng)
        columns = {
            "id": keys_of(ids),
            "p": np.array([f"p{n}" for n in range(4)])[ids % 4],
            "ts": np.arange(first_ts, first_ts + len(ids)),
            "amount": rng.random(len(ids)),
        }
        lives[ids] = True
        if kind == "hot":
            deletes = columns["_hoodie_is_deleted"] = rng.random(len(ids)) < 0.1 * bool(number)
            for key, is_deleted in zip(ids.tolist(), deletes.tolist(), strict=True):  # the last row of a key counts
                lives[key] = not is_deleted
        first_ts += len(ids)
        file = os.path.join(folder, f"{number:05d}.parquet")
        pq.write_table(pa.table(columns), file)
        os.utime(file, (1e9 + number, 1e9 + number))
    return int(lives.sum())


@contextlib.contextmanager
def s3_server():
    """Serves S3 from a process of its own. Yields what fsspec needs to reach it."""
    import s3fs

    port = 40_000 + os.getpid() % 20_000
    server = subprocess.Popen(
        [sys.executable, "-m", "moto.server", "-p", str(port)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    client = {"endpoint_url": f"http://127.0.0.1:{port}", "region_name": "eu-west-1"}
    options = {"key": "test", "secret": "test", "client_kwargs": client}
    try:
        for _ in range(100):
            try:
                s3fs.S3FileSystem(**options, skip_instance_cache=True).mkdir("lake")
                break
            except Exception:
                time.sleep(0.2)
        yield options
    finally:
        server.terminate()


def files_below(table, storage_options):
    """Paths of all files of a table, relative to it."""
    fs, root = fsspec.url_to_fs(table, **(storage_options or {}))
    fs.invalidate_cache()
    return [file.removeprefix(root).lstrip("/") for file in fs.find(root)]


def sizes(table, storage_options):
    """Entries of the active timeline, most versions of a file group, and file groups."""
    files = files_below(table, storage_options)
    instants = [file for file in files if file.startswith(".hoodie/timeline/")]
    at = ".hoodie/timeline" if instants else ".hoodie"
    entries = sum(os.path.dirname(file) == at for file in files)
    versions = collections.Counter(
        os.path.basename(file).split("_")[0]
        for file in files
        if file.endswith(".parquet") and not file.startswith(".hoodie/")
    )
    return entries, max(versions.values(), default=0), len(versions)


def processes(server=False):
    """This process and those below it, but for the server that speaks S3; or that server alone."""
    found = [] if server else [psutil.Process()]
    for child in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.Error):  # it has ended
            if ("moto.server" in child.cmdline()) is server:
                found.append(child)
    return found


def memory():
    """MiB of this process, of the JVM, and of the largest Python worker."""
    me, *children = processes()
    jvm = worker = 0
    for child in children:
        try:
            size = child.memory_info().rss
            if "java" in child.name():
                jvm = max(jvm, size)
            elif "python" in child.name():
                worker = max(worker, size)
        except psutil.Error:
            continue
    return [round(size / 2**20, 1) for size in (me.memory_info().rss, jvm, worker)]


def processor_s(server=False):
    """Seconds of processor time of `processes`: what else the machine does is not in it."""
    spent = 0.0
    for one in processes(server):
        try:
            times = one.cpu_times()
        except psutil.Error:
            continue
        spent += times.user + times.system
    return spent


def read(table, storage_options):
    """How long a snapshot takes, most log files of one of its slices, and its rows.

    Another process reads it: what a reader of a table that grows needs is not memory of the sink.
    """
    command = [sys.executable, __file__, "--read", table, "--storage-options", json.dumps(storage_options)]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True, cwd=Path(__file__).parent.parent)
    return json.loads(done.stdout)


def read_here(table, storage_options):
    """What `read` gives, in this process."""
    from hudistream import HudiTable

    started = time.perf_counter()
    scan = HudiTable.open(table, storage_options).scan()
    rows = sum(batch.num_rows for batch in scan.to_batches())
    seconds = time.perf_counter() - started
    return seconds, max(len(found.log_files) for found in scan.plan().slices), rows


def stream(place, kind, keys, looks_every, version, storage_options):
    from pyspark.sql import SparkSession

    from streaming import HudiSink

    table = "s3://lake/table" if storage_options else os.path.join(place, "table")
    builder = SparkSession.builder.master("local[2]").appName("soak").config("spark.driver.memory", "2g")
    for key, value in {"spark.ui.enabled": "false", "spark.sql.shuffle.partitions": "4"}.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    has_logs = kind != "cow"
    options = {
        **OPTIONS,
        **{"cow": {}, "mor": MERGE_ON_READ, "hot": HOT}[kind],
        "hoodie.write.table.version": str(version),
    }
    sink, samples = HudiSink(table, options, storage_options), []

    def write(batch, batch_id):
        started, spent, served = time.perf_counter(), processor_s(), processor_s(server=True)
        sink(batch, batch_id)
        seconds, spent, served = (
            time.perf_counter() - started,
            processor_s() - spent,
            processor_s(server=True) - served,
        )
        if batch_id % looks_every == 0:
            read_s, logs, rows = read(table, storage_options)
            # a table that gets rows alone grows: what a row costs must not
            slow = [*sizes(table, storage_options), read_s if has_logs else read_s * 1_000_000 / rows, logs, *memory()]
        else:
            slow = samples[-1][3:]
        samples.append([seconds, spent, served, *slow])
        if batch_id % 100 == 0:
            print(f"batch {batch_id}: {samples[-1]}", file=sys.stderr, flush=True)

    schema = SCHEMA + ", _hoodie_is_deleted boolean" * (kind == "hot")
    source = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1)
    query = source.parquet(os.path.join(place, "in")).writeStream.foreachBatch(write)
    query.option("checkpointLocation", os.path.join(place, "checkpoint")).trigger(
        availableNow=True
    ).start().awaitTermination()
    sink.stop()
    rows = read(table, storage_options)[2]
    assert rows == keys, f"{rows} rows of {keys}"
    assert sink.services.failures == 0, sink.services.last_error
    return samples


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batches", type=int, default=2000)
    parser.add_argument("--table-type", choices=("cow", "mor"), default="cow")
    parser.add_argument("--hot", action="store_true", help="a merge-on-read table of hot keys, with deletes")
    parser.add_argument("--version", type=int, choices=(6, 8, 9), default=6, help="of the table")
    parser.add_argument("--store", choices=("disk", "s3"), default="disk", help="where the table is")
    parser.add_argument("--read", metavar="TABLE", help="read it once, and say how long that took")
    parser.add_argument("--storage-options", type=json.loads, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.read:
        print(json.dumps(read_here(given.read, given.storage_options)))
        return
    batches, kind = given.batches, "hot" if given.hot else given.table_type
    has_logs = kind != "cow"
    docs = DOCS / kind if has_logs else DOCS
    docs = docs if given.version == 6 else docs / f"v{given.version}"
    docs = docs if given.store == "disk" else docs / given.store
    import logging

    import structlog

    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    place = tempfile.mkdtemp()
    try:
        keys = generate(os.path.join(place, "in"), batches, kind)
        looks_every = max(7, batches // 100) | 1
        with s3_server() if given.store == "s3" else contextlib.nullcontext() as storage_options:
            samples = stream(place, kind, keys, looks_every, given.version, storage_options)
    finally:
        shutil.rmtree(place, ignore_errors=True)
    columns = dict(zip(COLUMNS, zip(*samples, strict=True), strict=True))
    tenth = batches // 10

    def compared(name):
        """Medians of the second and of the last tenth, and their ratio."""
        early = statistics.median(columns[name][tenth : 2 * tenth])
        late = statistics.median(columns[name][-tenth:])
        return {"second_tenth": round(early, 4), "last_tenth": round(late, 4), "ratio": round(late / early, 3)}

    names = {
        "seconds": "seconds a batch",
        "processor": "processor seconds a batch",
        **({"server": "processor seconds of the S3 server a batch"} if given.store == "s3" else {}),
        "read": "seconds of a snapshot read" if has_logs else "seconds of a snapshot read, per million rows",
        "entries": "entries of the timeline",
        "driver": "MiB of the driver",
        "jvm": "MiB of the JVM",
        "worker": "MiB of the largest worker",
    }
    result = {
        "batches": batches,
        "measured": time.strftime("%Y-%m-%d"),
        "machine": machine(),
        **{told: compared(name) for name, told in names.items()},
        "file_groups": columns["groups"][-1],
        "most_entries": max(columns["entries"]),
        "most_versions": max(columns["versions"]),
        "most_log_files_of_a_slice": max(columns["logs"]),
    }
    docs.mkdir(parents=True, exist_ok=True)
    (docs / "result.json").write_text(json.dumps(result, indent=1) + "\n")
    step = max(1, batches // 200)
    smooth = [statistics.median(columns["seconds"][at : at + step]) for at in range(0, batches, step)]
    (docs / "seconds.svg").write_text(
        picture(f"{batches} batches: seconds a batch (median of {step})", {"seconds": smooth}, "s")
    )
    curves = {
        "entries of the timeline": list(columns["entries"][::step]),
        "file groups": list(columns["groups"][::step]),
        "versions of a file group, at most": list(columns["versions"][::step]),
        "log files of a slice, at most": list(columns["logs"][::step]),
    }
    (docs / "sizes.svg").write_text(picture(f"{batches} batches: what grows, and what does not", curves, ""))
    print(json.dumps(result, indent=1))
    free = {"jvm", "server"}
    grown = [told for name, told in names.items() if name not in free and result[told]["ratio"] > MOST]
    assert not grown, f"grew: {grown}"
    assert result["most_versions"] < 40
    assert result["most_entries"] < 400
    assert result["most_log_files_of_a_slice"] < 20


if __name__ == "__main__":
    main()

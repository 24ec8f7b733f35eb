"""Bytes and processor time of base files, without Spark: `python benchmarks/files.py OTHER_CHECKOUT [--rounds 5]`.

Rows of workload A go into 8 file groups, 12,500 rows each a batch, as a worker writes them: the first batch makes the
files, the others top them up. Then Arrow reads the files that are left. Each run is a process of its own. Rounds go
through the other checkout, this one, and this one with options, in turns. Processor time is that of one thread's work:
encoding, bloom filters (with key ranges), the rest of the writing, and reading. Ratios are medians of the ratios
within each round, with the least and the greatest.
"""

import argparse
import glob
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).parent
PARTS = ("encoding", "filters", "rest", "reading")
SHARED = "hudistream.parquet.shared.key.chunk"
FORMS = {
    "now": (),
    "keys stored once": (f"{SHARED}=true",),
}
BEFORE = "before"


class Clock:
    """Processor seconds of calls, those of calls within them left out."""

    def __init__(self):
        self.seconds = dict.fromkeys(PARTS, 0.0)
        self.nested = [0.0]

    def timed(self, part, call):
        """The same call, whose time goes to that part."""

        def run(*arguments, **named):
            started = time.process_time()
            self.nested.append(0.0)
            try:
                return call(*arguments, **named)
            finally:
                spent = time.process_time() - started
                self.seconds[part] += spent - self.nested.pop()
                self.nested[-1] += spent

        return run


def write_batch(context, buckets, rows, number):
    """One batch: the next version of each file group. Returns the buckets of the batch to come."""
    from table.files.names import build_file_id
    from table.write.context import Attempt, Bucket, BucketType
    from table.write.write_bucket import open_bucket

    context.storage.open_staging(context.instant_time)
    after = {}
    for task, (path, part) in enumerate(rows.items()):
        bucket = buckets.get(path) or Bucket(BucketType.INSERT, path, build_file_id(f"{task:08}-0000-0000-0000-0"))
        writer = open_bucket(context, bucket, Attempt(f"{task}-{number}-0"))
        writer.write(part)
        stat, _ = writer.close()
        if bucket.base_file:
            context.storage.delete(f"{path}/{bucket.base_file}")
        after[path] = Bucket(BucketType.UPDATE, path, bucket.file_id, stat.path.rsplit("/", 1)[-1])
    return after


def run_once(folder, batches, options):
    """One run of the checkout that is imported. Returns its figures."""
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq
    from candidate import TABLE_OPTIONS
    from workloads import KEY, PARTITION

    from table.files.base.file_keys import FileKeys
    from table.files.base.writer import BaseFileWriter
    from table.options.write_options import parse_options
    from table.schema.avro_schema import RECORD_KEY, schema_json, with_meta_columns
    from table.storage.local import LocalStorage
    from table.write.context import WriteContext

    settings = parse_options({**TABLE_OPTIONS, **options}).options.base_file
    clock = Clock()
    BaseFileWriter._flush = clock.timed("encoding", BaseFileWriter._flush)
    FileKeys.summarize = clock.timed("filters", FileKeys.summarize)
    write, read = clock.timed("rest", write_batch), clock.timed("reading", pq.read_table)
    buckets, by_batch = {}, []
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.path.isdir("/dev/shm") else None) as place:
        storage = LocalStorage(place)
        for number, file in enumerate(sorted(glob.glob(os.path.join(folder, "*.parquet")))[:batches]):
            rows = pq.read_table(file)
            instant = f"202601010000{number:02}000"
            avro = schema_json(with_meta_columns(rows.schema), "t")
            context = WriteContext(storage, instant, rows.schema, avro, settings)
            rows = rows.append_column(RECORD_KEY, rows.column(KEY))
            paths = sorted(pc.unique(rows.column(PARTITION)).to_pylist())
            parts = {path: rows.filter(pc.equal(rows.column(PARTITION), path)).combine_chunks() for path in paths}
            before = sum(clock.seconds.values())
            buckets = write(context, buckets, parts, number)
            by_batch.append(round(sum(clock.seconds.values()) - before, 4))
        files = glob.glob(os.path.join(place, "*", "*.parquet"))
        held = sum(len(read(file, use_threads=False)) for file in files)
        columns = column_bytes(files)
    seconds = {part: round(spent, 4) for part, spent in clock.seconds.items()}
    return {
        "rows": held,
        "bytes": columns.pop("whole"),
        "columns": columns,
        "seconds": seconds,
        "writing": round(sum(spent for part, spent in seconds.items() if part != "reading"), 4),
        "by_batch": by_batch,
        "pyarrow": pa.__version__,
    }


def column_bytes(files):
    """Bytes of each column, of the footers, and of the files; what two columns share counts for the second one."""
    import pyarrow.parquet as pq

    found = {"whole": 0, "footer": 0}
    for file in files:
        metadata = pq.read_metadata(file)
        found["whole"] += os.path.getsize(file)
        found["footer"] += metadata.serialized_size
        for group in map(metadata.row_group, range(metadata.num_row_groups)):
            chunks = [group.column(number) for number in range(group.num_columns)]
            for chunk in chunks:
                places = [other.data_page_offset for other in chunks]
                shared = places.count(chunk.data_page_offset) > 1 and chunk.path_in_schema == "_hoodie_record_key"
                size = 0 if shared else chunk.total_compressed_size
                found[chunk.path_in_schema] = found.get(chunk.path_in_schema, 0) + size
    return found


def run(checkout, folder, batches, options):
    """A run of a checkout, in a process of its own."""
    given = [f"--option={pair}" for pair in options]
    said = subprocess.run(
        [sys.executable, str(HERE / "files.py"), "--once", folder, "--batches", str(batches), *given],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(checkout), str(HERE)])},
    )
    return json.loads(said.stdout.splitlines()[-1])


def compared(runs, label, value):
    """Median of the rounds; for all but the first label, the ratio to it."""
    median = f"{statistics.median(map(value, runs[label])):.2f}"
    if label == BEFORE:
        return median
    each = [value(one) / value(before) for before, one in zip(runs[BEFORE], runs[label], strict=True)]
    return f"{median}: {statistics.median(each):.2f} times ({min(each):.2f} to {max(each):.2f})"


def page(document):
    """The results as a page."""
    runs = document["results"]
    facts = ", ".join(f"{key} {value}" for key, value in document["machine"].items())
    last = {label: each[-1] for label, each in runs.items()}
    lines = ["# Base files", "", *__doc__.split("\n\n")[1].splitlines(), ""]
    count = f"{last['now']['rows']:,} rows in {len(last['now']['by_batch'])} batches, {len(runs['now'])} rounds"
    commits = f"before is commit {document['before']}, now is {document['now']}"
    lines += [f"{count}, measured {document['measured']}: {facts}; {commits}.", ""]
    lines += [f"| processor seconds | {' | '.join(runs)} |", "|---|" + "---:|" * len(runs)]
    parts = {"writing": lambda one: one["writing"]}
    parts |= {part: lambda one, part=part: one["seconds"][part] for part in PARTS}
    for part, value in parts.items():
        name = part if part in ("writing", "reading") else f"writing: {part}"
        lines.append(f"| {name} | {' | '.join(compared(runs, label, value) for label in runs)} |")
    lines += ["", f"| bytes per row | {' | '.join(runs)} |", "|---|" + "---:|" * len(runs)]
    whole = {label: one["bytes"] / one["rows"] for label, one in last.items()}
    ratios = {label: "" if label == BEFORE else f": {size / whole[BEFORE]:.2f} times" for label, size in whole.items()}
    sizes = (f"{size:.1f}{ratios[label]}" for label, size in whole.items())
    lines.append(f"| **whole** | {' | '.join(sizes)} |")
    columns = last[BEFORE]["columns"]
    for name in sorted(columns, key=columns.get, reverse=True):
        each = [one["columns"][name] / one["rows"] for one in last.values()]
        if max(each) >= 0.05:
            lines.append(f"| `{name}` | " + " | ".join(f"{size:.2f}" for size in each) + " |")
    return "\n".join(lines) + "\n"


def revision(checkout):
    """Its commit."""
    command = ["git", "rev-parse", "--short", "HEAD"]
    return subprocess.run(command, capture_output=True, text=True, check=True, cwd=checkout).stdout.strip()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("other", type=Path, nargs="?", default=HERE.parent, help="a checkout to compare with")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--batches", type=int, default=12)
    parser.add_argument("--once", metavar="FOLDER")
    parser.add_argument("--option", action="append", default=[], metavar="KEY=VALUE", help="with --once")
    given = parser.parse_args()
    if given.once:
        options = dict(pair.split("=", 1) for pair in given.option)
        return print(json.dumps(run_once(given.once, given.batches, options)))
    from run import machine
    from workloads import generate

    sides = {BEFORE: (given.other.resolve(), ()), **{label: (HERE.parent, options) for label, options in FORMS.items()}}
    runs = {label: [] for label in sides}
    with tempfile.TemporaryDirectory() as place:
        folder = os.path.join(place, "in")
        generate("A", folder, given.batches)
        for number in range(given.rounds):
            for label in list(sides)[:: 1 if number % 2 == 0 else -1]:
                checkout, options = sides[label]
                runs[label].append(run(checkout, folder, given.batches, options))
                found = runs[label][-1]
                print(f"round {number + 1}, {label}: {found['writing']} s, {found['bytes']:,} bytes", flush=True)
    document = {
        "measured": time.strftime("%Y-%m-%d"),
        "machine": machine(),
        "before": revision(given.other),
        "now": revision(HERE.parent),
        "results": runs,
    }
    (HERE / "results" / "files.json").write_text(json.dumps(document, indent=1) + "\n")
    (HERE / "files.md").write_text(page(document))
    return print(page(document))


if __name__ == "__main__":
    main()

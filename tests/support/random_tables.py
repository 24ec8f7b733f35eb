"""Random histories of merge-on-read tables: rows, and the options with which Hudi writes them."""

import pyarrow as pa
from oracles.hudi import JVM

SCHEMA = pa.schema(
    [("id", pa.string()), ("p", pa.string()), ("ts", pa.int64()), ("v", pa.string()), ("w", pa.float64()),
     ("_hoodie_is_deleted", pa.bool_())]
)  # fmt: skip


def random_batch(rng, keys, most):
    """Rows with distinct keys below `keys`, from 1 to `most`; some are deletions."""
    chosen = rng.sample(range(keys), rng.randint(1, most))
    return pa.Table.from_pylist(
        [
            {"id": f"k{key:02}", "p": f"p{key % 2}", "ts": rng.randint(1, 4), "v": rng.choice([None, "a", "b", "c"]),
             "w": rng.choice([None, 0.5, 1.5]), "_hoodie_is_deleted": rng.random() < 0.15 or rng.choice([False, None])}
            for key in chosen
        ],
        SCHEMA,
    )  # fmt: skip


def log_options(rng, payload, blocks):
    """Hudi's, for a table whose writes make log files until somebody compacts."""
    return {
        **JVM,
        "hoodie.datasource.write.table.type": "MERGE_ON_READ",
        "hoodie.datasource.write.payload.class": f"org.apache.hudi.common.model.{payload}",
        "hoodie.compaction.payload.class": f"org.apache.hudi.common.model.{payload}",
        "hoodie.logfile.data.block.format": blocks,
        "hoodie.compact.inline": "false",
        "hoodie.clean.automatic": "false",
        "hoodie.upsert.shuffle.parallelism": "1",
        "hoodie.delete.shuffle.parallelism": "1",
        # new keys go into log files, too, where the index finds keys in those
        "hoodie.index.type": rng.choice(["BLOOM", "INMEMORY"]),
    }


def by_key(rows):
    """Rows in order of their keys."""
    return sorted(rows, key=lambda row: (row["id"], row["p"]))

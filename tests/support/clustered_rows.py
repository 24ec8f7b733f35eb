"""Rows of tables that tests cluster: `x` and `y` lie in another order than the keys. And plans of another engine."""

from dataclasses import replace

import pyarrow as pa

from table.clock import InstantClock
from table.hudi_table import HudiTable
from table.options.clustering_settings import ClusteringSettings
from table.services.clustering.clustering import plan_now
from table.snapshot import Snapshot
from table.timeline.active_timeline import request_instant
from table.timeline.instant import Action
from table.timeline.metadata.clustering import encode_clustering_plan

BY_HAND = {
    "hoodie.clean.automatic": "false",
    "hoodie.archive.automatic": "false",
    "hoodie.datasource.compaction.async.enable": "false",
    "hoodie.parquet.small.file.limit": "0",
}


def a_batch(numbers, ts, deleted=()):
    """Rows with these numbers as keys, in two partition paths; some of them are deletes."""
    numbers = list(numbers)
    return pa.table(
        {
            "id": [f"k{n}" for n in numbers],
            "p": [f"p{n % 2}" for n in numbers],
            "ts": pa.array([ts] * len(numbers), pa.int64()),
            "x": pa.array([n * 7919 % 1000 for n in numbers], pa.int64()),
            "y": [None if n % 11 == 0 else f"{n * 31 % 97:02d}" for n in numbers],
            "_hoodie_is_deleted": [n in deleted for n in numbers],
        }
    )


def plan_elsewhere(path, *partitions, columns="x"):
    """Requests a clustering of these partition paths, or of all, as another engine does. Returns its instant."""
    snapshot = Snapshot.load(HudiTable.open(path))
    plan = plan_now(snapshot, ClusteringSettings(sort_columns=columns, partitions=partitions))
    content = encode_clustering_plan(replace(plan, is_ours=False), f"file:{path}")
    action = Action.CLUSTERING if snapshot.layout.completes_in_order else Action.REPLACE_COMMIT
    return request_instant(snapshot.storage, snapshot.timeline, action, InstantClock(), content)

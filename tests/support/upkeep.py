"""Table services one step at a time, and settings that keep little."""

import os
from glob import glob

from table.options.groups import KEEP_LATEST_FILE_VERSIONS, ArchiveSettings, CleanSettings
from table.services.clean.judgement import plan_clean
from table.snapshot import Snapshot
from table.timeline.active_timeline import request_instant
from table.timeline.instant import Action
from table.timeline.metadata.clean import encode_clean_plan

OPERATION = "hoodie.datasource.write.operation"
UPSERT = {OPERATION: "upsert"}
LAST_VERSION = CleanSettings(policy=KEEP_LATEST_FILE_VERSIONS, versions_retained=1, grace_ms=0)
NARROW = ArchiveSettings(min_commits=2, max_commits=3)


def request_clean(table, settings):
    """A clean whose process dies, or whose thread pauses, when its plan is durable."""
    snapshot = Snapshot.load(table)
    plan = plan_clean(snapshot, settings)
    return request_instant(table.storage, snapshot.timeline, Action.CLEAN, table.instant_clock, encode_clean_plan(plan))


def data_files(path, partition="*"):
    """The base files on disk, as whole paths: all, or those of one partition path."""
    return sorted(glob(os.path.join(path, partition, "*.parquet")))

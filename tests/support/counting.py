"""An engine that says what it asked the store for: data folders, and commits."""

import pickle
import re
from dataclasses import replace

from engine import Engine
from faults import FaultyStorage, Fuse

from table.storage.local import LocalStorage
from table.timeline.instant import REQUEST_TIME_NAMES

BUCKETS = {"hoodie.bucket.index.num.buckets": "2"}
_COMMIT_READ = re.compile(r"read \.hoodie/(\d+\.(?:commit|deltacommit|replacecommit))")


class Counting(Engine):
    """An engine that says which data folders were listed, by the driver and by its tasks; plans travel as on Spark."""

    def __init__(self, path, options):
        self.on_driver, self.on_workers = Fuse(), Fuse()
        at_workers = FaultyStorage(LocalStorage(path), self.on_workers)
        super().__init__(FaultyStorage(LocalStorage(path), self.on_driver), {**BUCKETS, **options}, at_workers)

    def distribute(self, plan, table):
        changes = plan.changes and replace(plan.changes, files=sent(plan.changes.files))
        return super().distribute(replace(plan, small_files=sent(plan.small_files), changes=changes), table)

    def take_listed(self):
        """Data folders that driver and tasks listed since this was asked last."""
        taken = [data_folders(fuse.calls) for fuse in (self.on_driver, self.on_workers)]
        self.on_driver.calls.clear()
        self.on_workers.calls.clear()
        return taken

    def commits_read(self):
        """Completed commits that were read since `take_listed` was asked last, in order."""
        calls = [*self.on_driver.calls, *self.on_workers.calls]
        return tuple(REQUEST_TIME_NAMES.parse(found[1]) for found in map(_COMMIT_READ.fullmatch, calls) if found)


def sent(files):
    """What arrives of a plan's part on a worker."""
    return pickle.loads(pickle.dumps(files))


def data_folders(calls):
    """Folders of data that these calls of a store listed."""
    folders = [call.removeprefix("list_dir").strip() for call in calls if call.startswith("list_dir")]
    return sorted(folder for folder in folders if not folder.startswith(".hoodie"))

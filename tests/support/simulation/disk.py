"""The world's store: files in memory, each call a point where faults strike."""

import hashlib

import pyarrow as pa

from table.errors import StorageError
from table.storage.interface import FileInfo, Stage, Storage
from table.storage.versions import VersionedFile

from .shared_lock import WorldLock
from .world import Killed

GRANULARITY_MS = 1


class Disk:
    """What is stored. Listeners are told of every change of a path.

    Args:
        world: where it is.
        fence: how late files are kept out: ``folders`` as local disks do, ``tickets`` as S3 does, ``none``.
    """

    def __init__(self, world, fence="folders"):
        self.world, self.files, self.listeners, self.watchers = world, {}, [], []
        self.fence, self.open_stages, self.uploads, self.upload_number = fence, set(), {}, 0
        self.lock = WorldLock(world)

    def set(self, path, data):
        self.files[path] = (bytes(data), self.world.now_ms)
        self._tell(path)

    def remove(self, path):
        if self.files.pop(path, None) is None:
            return False
        self._tell(path)
        return True

    def _tell(self, path):
        for listener in self.listeners:
            listener(path)

    def entries(self, folder):
        """Name -> (size, modified, is a folder) of what lies in a folder."""
        found, start = {}, folder + "/" if folder else ""
        for path, (data, modified) in self.files.items():
            if path.startswith(start):
                name, _, rest = path[len(start) :].partition("/")
                if rest:
                    found.setdefault(name, (0, 0, True))
                else:
                    found[name] = (len(data), modified, False)
        return found


def _versioned(disk, path):
    if path not in disk.files:
        return None
    data = disk.files[path][0]
    return VersionedFile(data, hashlib.sha256(data).hexdigest())


class SimStorage(Storage):
    """A process's way to the disk.

    Args:
        disk: the world's.
        process: whose way; a dead process changes nothing.
        rate: share of the changing calls that fail, or whose answer is lost.
    """

    def __init__(self, disk, process=None, rate=0):
        self.disk, self.process, self.base_uri = disk, process, "/table"
        self.luck = Luck(disk.world, rate)

    def _call(self, verb, path, effect, *, changes=False):
        world = self.disk.world
        world.point(f"{verb} {path}")
        if self.process is not None and self.process.killed:
            raise Killed
        for watcher in self.disk.watchers:
            watcher(verb, path, self.process)
        if changes:
            self.luck.before(verb, path)
        result = effect()
        if changes:
            self.luck.after(verb, path)
        return result

    def read(self, path):
        def effect():
            if path not in self.disk.files:
                raise FileNotFoundError(path)
            return self.disk.files[path][0]

        return self._call("read", path, effect)

    def list_dir(self, path):
        return self._call(
            "list",
            path,
            lambda: [FileInfo(name, *facts) for name, facts in self.disk.entries(path).items()],
        )

    @property
    def lists_by_prefix(self):
        return self.disk.fence == "tickets"

    def exists(self, path):
        return self._call("exists", path, lambda: path in self.disk.files or bool(self.disk.entries(path)))

    def create_exclusive(self, path, data, *, durable=False):
        def effect():
            if path in self.disk.files:
                return False
            self.disk.set(path, data)
            return True

        return self._call("create", path, effect, changes=True)

    def put(self, path, data):
        self._call("put", path, lambda: self.disk.set(path, data), changes=True)

    has_versions = True  # as a local disk and S3 have

    def read_versioned(self, path, timeout_s=60.0):
        return self._call("read", path, lambda: _versioned(self.disk, path))

    def replace_if(self, path, data, version, timeout_s=60.0):
        def effect():
            now = _versioned(self.disk, path)
            if (now.version if now is not None else None) != version:
                return None
            self.disk.set(path, data)
            return hashlib.sha256(data).hexdigest()

        return self._call("put", path, effect, changes=True)

    def _delete(self, path):
        return self._call("delete", path, lambda: self.disk.remove(path), changes=True)

    def remove_empty_dir(self, path):
        return not self.disk.entries(path)

    def list_tree(self, path):
        start = path + "/"
        return self._call(
            "list",
            path,
            lambda: {
                name[len(start) :]: FileInfo(name.rsplit("/", 1)[-1], len(data), modified, False)
                for name, (data, modified) in self.disk.files.items()
                if name.startswith(start)
            },
        )

    @property
    def calls_at_once(self):
        """As S3, whose requests are made at the same time where they need no order."""
        return 16 if self.disk.fence == "tickets" else 1

    @property
    def time_granularity_ms(self):
        return 1

    @property
    def has_fence(self):
        return self.disk.fence != "none"

    def open_staging(self, instant_time):
        if self.disk.fence != "folders":
            super().open_staging(instant_time)
        else:
            self._call("open_staging", instant_time, lambda: self.disk.open_stages.add(instant_time))

    def is_open(self, instant_time):
        if self.disk.fence != "folders":
            return super().is_open(instant_time)
        return self._call("is_open", instant_time, lambda: instant_time in self.disk.open_stages)

    def stage(self, instant_time, path):
        def effect():
            if self.disk.fence != "tickets":
                return Stage(instant_time)
            self.disk.upload_number += 1  # an id is never given twice
            ticket = f"upload{self.disk.upload_number}"
            self.disk.uploads[ticket] = path
            return Stage(instant_time, ticket)

        return self._call("stage", path, effect)

    def fence(self, instant_time):
        if self.disk.fence != "folders":
            super().fence(instant_time)
        else:
            self._call("fence", instant_time, lambda: self.disk.open_stages.discard(instant_time))

    def revoke(self, path, ticket):
        if ticket:
            self._call("revoke", ticket, lambda: self.disk.uploads.pop(ticket, None))

    def staged_instants(self):
        if self.disk.fence != "folders":
            return super().staged_instants()
        return self._call("list", "staged", lambda: sorted(self.disk.open_stages))

    def publish(self, path, stage, output):
        def effect():
            if self.disk.fence == "folders" and stage.instant_time not in self.disk.open_stages:
                raise StorageError(f"{path} is fenced")
            if self.disk.fence == "tickets" and self.disk.uploads.pop(stage.ticket, None) is None:
                raise StorageError(f"the upload of {path} was aborted")
            self.disk.set(path, output.data)

        if self.disk.fence != "none":
            self._call("publish", path, effect, changes=True)

    def make_dir(self, path):
        pass

    def open_input(self, path, size=None):
        return pa.BufferReader(self.read(path))

    def open_output(self, path, stage=None):
        self.disk.world.point(f"open {path}")
        return SimOutput(self, path, stage)

    def open_copy(self, source, ranges, path, stage=None):
        data = self.read(source)
        output = SimOutput(self, path, stage)
        for piece in ranges:
            output.write(data[piece.start : piece.start + piece.length])
        return output

    def sync(self, path):
        pass


class SimOutput:
    """A file under way; it is there once it is published, or closed where the store has no fence."""

    closed = False

    def __init__(self, storage, path, stage):
        self._storage, self._path, self._data, self._stage = storage, path, bytearray(), stage

    @property
    def data(self):
        return bytes(self._data)

    def write(self, data):
        self._data += bytes(data)
        return len(data)

    def tell(self):
        return len(self._data)

    def flush(self):
        pass

    def readable(self):
        return False

    def writable(self):
        return True

    def seekable(self):
        return False

    def close(self):
        if self.closed:
            return
        self.closed = True
        self._publish()

    def _publish(self):
        storage = self._storage
        if self._stage is not None and storage.has_fence:
            return
        storage._call("publish", self._path, lambda: storage.disk.set(self._path, self._data), changes=True)


class Luck:
    """Failures of the store as one process sees them.

    Args:
        world: whose luck.
        rate: share of the calls that change something and fail.
    """

    def __init__(self, world, rate):
        self._world, self._rate = world, rate

    def before(self, verb, path):
        if self._strikes():
            self._world.tell(f"{verb} {path} fails")
            raise StorageError(f"could not {verb} {path!r}: the world has it so")

    def after(self, verb, path):
        if self._strikes():
            self._world.tell(f"{verb} {path} happens, its answer is lost")
            raise StorageError(f"could not {verb} {path!r}: no answer")

    def _strikes(self):
        world = self._world
        return self._rate and not world.calm and world.current is not None and world.random.random() < self._rate


__all__ = ["Disk", "Killed", "Luck", "SimStorage"]

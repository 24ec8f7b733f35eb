"""A store that stops at the n-th call: a power cut, for every place where one can happen."""

from contextlib import contextmanager
from dataclasses import dataclass, field
from unittest import mock

from table.storage.interface import Storage
from table.transaction import lease


class PowerCut(BaseException):
    """Not an Exception: nothing may catch it and go on. Threads of a dead process end by it (`filterwarnings`)."""


@contextmanager
def dying_process():
    """Whoever takes the table here is of a process that is not there any more for whoever comes next."""
    with mock.patch.object(lease, "this_process", return_value=2**30):
        yield


@dataclass
class Fuse:
    """Counts calls of all stores that share it, and cuts the power at one of them.

    Attributes:
        at: the call that fails; None never.
        after: whether the call has its effect before the power goes.
    """

    at: int | None = None
    after: bool = False
    calls: list = field(default_factory=list)
    blown: bool = False

    def pass_through(self, name, effect):
        if self.blown:
            raise PowerCut("the power is off")
        self.calls.append(name)
        if self.at is not None and len(self.calls) == self.at:
            self.blown = True
            if self.after:
                effect()
            raise PowerCut(name)
        return effect()


class FaultyStorage(Storage):
    """Every call of another storage, through a fuse."""

    def __init__(self, inner: Storage, fuse: Fuse) -> None:
        self._inner, self._fuse = inner, fuse
        self.base_uri = inner.base_uri

    def _call(self, name, *args, **kwargs):
        detail = f"{name} {args[0]}" if args else name
        return self._fuse.pass_through(detail, lambda: getattr(self._inner, name)(*args, **kwargs))

    def read(self, path):
        return self._call("read", path)

    def list_dir(self, path):
        return self._call("list_dir", path)

    def exists(self, path):
        return self._call("exists", path)

    def create_exclusive(self, path, data, *, durable=False):
        return self._call("create_exclusive", path, data, durable=durable)

    def put(self, path, data):
        return self._call("put", path, data)

    @property
    def has_versions(self):
        return self._inner.has_versions

    @property
    def keeps_conditions(self):
        return self._inner.keeps_conditions

    def read_versioned(self, path, timeout_s=60.0):
        return self._call("read_versioned", path, timeout_s)

    def replace_if(self, path, data, version, timeout_s=60.0):
        return self._call("replace_if", path, data, version, timeout_s)

    def _delete(self, path):
        return self._call("_delete", path)

    def remove_empty_dir(self, path):
        return self._call("remove_empty_dir", path)

    def list_tree(self, path):
        return self._call("list_tree", path)

    @property
    def has_fence(self):
        return self._inner.has_fence

    @property
    def time_granularity_ms(self):
        return self._inner.time_granularity_ms

    def open_staging(self, instant_time):
        return self._call("open_staging", instant_time)

    def is_open(self, instant_time):
        return self._call("is_open", instant_time)

    def stage(self, instant_time, path):
        return self._call("stage", instant_time, path)

    def fence(self, instant_time):
        return self._call("fence", instant_time)

    def revoke(self, path, ticket):
        return self._call("revoke", path, ticket)

    def staged_instants(self):
        return self._call("staged_instants")

    def publish(self, path, stage, output):
        return self._fuse.pass_through(f"publish {path}", lambda: self._inner.publish(path, stage, output.inner))

    def discard(self, path, stage, output):
        if not self._fuse.blown:
            self._inner.discard(path, stage, output.inner)

    def make_dir(self, path):
        return self._call("make_dir", path)

    def open_input(self, path, size=None):
        return self._call("open_input", path, size)

    def open_output(self, path, stage=None):
        return FaultyOutput(self._call("open_output", path, stage), self._fuse, path)

    def open_copy(self, source, ranges, path, stage=None):
        return FaultyOutput(self._call("open_copy", source, ranges, path, stage), self._fuse, path)

    def sync(self, path):
        return self._call("sync", path)


class FaultyOutput:
    """Writes (of what a buffer holds) and the closing of a file are calls, too."""

    closed = False
    buffer_bytes = 16_384

    def __init__(self, inner, fuse, path):
        self._inner, self._fuse, self._path = inner, fuse, path
        self._held, self._told = b"", inner.tell()

    @property
    def inner(self):
        return self._inner

    def write(self, data):
        self._held += bytes(data)
        self._told += len(data)
        if len(self._held) >= self.buffer_bytes:
            self._pass_on()
        return len(data)

    def _pass_on(self):
        held, self._held = self._held, b""
        self._fuse.pass_through(f"write {self._path}", lambda: self._inner.write(held))

    def flush(self):
        pass

    def tell(self):
        return self._told

    def readable(self):
        return False

    def writable(self):
        return True

    def seekable(self):
        return False

    def close(self):
        if not self.closed:
            self.closed = True
            if self._fuse.blown:
                self._inner.close()
            else:
                self._pass_on()
                self._fuse.pass_through(f"close {self._path}", self._inner.close)

"""ZooKeeper as far as locks need it, in memory; with requests that fail."""

from table.errors import StorageError
from table.transaction.locks.zookeeper_session import FoundNode


class FakeZookeeper:
    """The servers.

    Attributes:
        nodes: path -> what it is.
        now_ms: their clock.
        failing: requests that fail, each once: their names, and whether they have their effect all the same.
    """

    def __init__(self):
        self.nodes, self.watches, self.sessions = {}, [], []
        self.now_ms = 1_800_000_000_000
        self.failing = []
        self._sequence = 0

    def open_session(self, settings):
        session = FakeSession(self, len(self.sessions) + 1)
        self.sessions.append(session)
        return session

    def end(self, session):
        """The session has ended: its nodes go."""
        for path in [path for path, node in self.nodes.items() if node.session == session.number]:
            self.remove(path)
        session.is_over = True

    def remove(self, path):
        del self.nodes[path]
        told = [changed for watched, changed in self.watches if watched == path]
        self.watches = [pair for pair in self.watches if pair[0] != path]
        for changed in told:
            changed()


class FakeSession:
    def __init__(self, servers, number):
        self._servers, self.number = servers, number
        self.is_over = False

    def _asked(self, what, effect):
        if self.is_over:
            raise StorageError("the session is over")
        failing = self._servers.failing
        if failing and failing[0][0] == what:
            _, had_effect = failing.pop(0)
            if had_effect:
                effect()
            raise StorageError(f"{what}: no answer")
        return effect()

    def ensure(self, path):
        self._asked("ensure", lambda: None)

    def join_line(self, path, name, data):
        servers = self._servers

        def make():
            made = f"{name}{servers._sequence:010d}"
            servers._sequence += 1
            servers.nodes[f"{path}/{made}"] = FoundNode(data, servers.now_ms, self.number, 0)
            return made

        return self._asked("join_line", make)

    def line(self, path):
        return self._asked("line", lambda: [node.rpartition("/")[2] for node in self._servers.nodes])

    def watch(self, path, changed):
        def watch():
            self._servers.watches.append((path, changed))
            return path in self._servers.nodes

        return self._asked("watch", watch)

    def look(self, path):
        return self._asked("look", lambda: self._servers.nodes.get(path))

    def delete(self, path):
        def delete():
            if path not in self._servers.nodes:
                return False
            self._servers.remove(path)
            return True

        return self._asked("delete", delete)

    def close(self):
        if not self.is_over:
            self._servers.end(self)

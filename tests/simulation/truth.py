"""What the table must hold: for each owner of keys the state it acknowledged, or the one it is about to.

Keys begin with their owner's letter. An owner has one batch under way at most; while it is, and after
a crash in the middle of it, the table holds the state before it or the state after it, whole.
"""

from collections import Counter, defaultdict

from .reader import UnreadableError, read_rows, visible_files


class Truth:
    """Listens to the disk and compares after each change that a reader could notice."""

    def __init__(self, world, disk):
        self.world, self.disk = world, disk
        self.states = defaultdict(lambda: [{}])  # owner -> what is allowed; the first is what was acknowledged
        self.held = []
        disk.listeners.append(self.on_change)

    # -- what writers tell

    def open(self, owner, after):
        """A batch begins, or a service that may change what the owner sees."""
        self.states[owner].append(after)

    def acknowledge(self, owner, after):
        """From now on this is what is there."""
        self.states[owner] = [after]
        self.check("acknowledged")

    def refuse(self, owner):
        """The batch was refused: nothing of it is there."""
        del self.states[owner][1:]
        self.check("refused")

    def state(self, owner):
        """What was acknowledged last."""
        return self.states[owner][0]

    # -- what readers see

    def on_change(self, path):
        if path.startswith(".hoodie/"):
            if path.count("/") > 1 or not path.endswith("commit"):
                return
        elif not path.endswith((".parquet", ".hoodie_partition_metadata")):
            return
        self.check(path)

    def check(self, why):
        """Compares what a reader sees now."""
        world = self.world
        if world.violation is not None:
            return
        files = self.disk.files
        try:
            rows = read_rows(files, visible_files(files))
        except UnreadableError as error:
            world.violate(f"after {why}: {error}")
            return
        seen = defaultdict(dict)
        counts = Counter(key for key, _ in rows)
        doubled = [key for key, count in counts.items() if count > 1]
        if doubled:
            world.violate(f"after {why}: {len(doubled)} keys doubled, such as {doubled[0]}")
            return
        for key, value in rows:
            seen[key[0]][key] = value
        for owner in set(seen) | set(self.states):
            if seen[owner] not in self.states[owner]:
                world.violate(f"after {why}: owner {owner}: {self._difference(seen[owner], self.states[owner])}")
                return

    @staticmethod
    def _difference(seen, allowed):
        said = []
        for number, state in enumerate(allowed):
            lost = sorted(set(state) - set(seen))
            more = sorted(set(seen) - set(state))
            other = sorted(key for key in set(seen) & set(state) if seen[key] != state[key])
            said.append(f"against state {number}: lost {lost[:4]}, too many {more[:4]}, other values {other[:4]}")
        return "; ".join(said)

"""What the table must hold: for each owner of keys the state it acknowledged, or the one it is about to.

Keys begin with their owner's letter. An owner has one batch under way at most; while it is, and after
a crash in the middle of it, the table holds the state before it or the state after it, whole.
"""

import json
from collections import Counter, defaultdict

from .lists_reader import check_lists
from .reader import UnreadableError, read_visible

CALLS_TO_TAKE_BACK = 60  # a look at the inflight file, the timeline and the archive, and the deletion


def with_rows(state, rows):
    """A state behind a batch; None is the value of a key that the batch deletes."""
    return {key: value for key, value in {**state, **rows}.items() if value is not None}


class Truth:
    """Listens to the disk and compares after each change that a reader could notice."""

    def __init__(self, world, disk):
        self.world, self.disk = world, disk
        self.bases = defaultdict(lambda: [{}])  # owner -> what was acknowledged; and what a replacement would leave
        self.overlays = {}  # owner -> rows of the batch that is under way, or in doubt
        self.history = defaultdict(lambda: [{}])  # owner -> every state that it ever acknowledged
        self.doubtful = set()  # owners whose batch was open while commits were undone: it may be one of them
        self.undecided = False  # somebody died while commits were undone: any state of the past may be there
        self.savepoints = {}  # instant time -> paths that it holds, once it was acknowledged
        self.releasing = set()  # times of savepoints that an operator is deleting
        self.renewed_ms, self.owners = {}, {}  # owner of a lease -> its last attempt to renew, its process
        self.changing = 0  # services under way that undo commits one by one
        self.streams, self.batches = {}, []
        self.replacements = []  # partitions that are being deleted, or in doubt
        self.taken = defaultdict(set)  # owner -> keys of its batch under way that a replacement may have taken since
        self.may_lack_lists = False  # whether a metadata table may be gone for a moment: readers then ask the store
        self.may_undo = False  # whether an operator undoes commits in this world
        self.came_back = {}  # completed file of a retired commit -> who made it, and its calls until it is to be gone
        disk.listeners.append(self.on_change)
        disk.watchers.append(self.on_call)

    # -- what writers tell

    def open(self, owner, rows):
        """A batch begins: its rows may be there from now on, all or none."""
        self.overlays[owner] = rows

    def is_open(self, owner):
        """Whether a batch is under way, or in doubt."""
        return owner in self.overlays

    def acknowledge(self, owner):
        """The batch is there from now on, unless it was undone by hand before its writer was told."""
        rows = self._without_taken(owner, self.overlays.pop(owner))
        if owner in self.doubtful:
            self.doubtful.discard(owner)
            seen = self.rows_of(owner)
            if any(seen.get(key) != value for key, value in rows.items()):
                self.check("acknowledged, and undone before")
                return
        self._settle_by_looking(rows)
        if self.undecided:
            self.undecided = False
            self.take_over_what_is_there({owner: rows})
        else:
            if self.changing:  # what is being undone may be undone already, and the batch come after it
                self.history[owner] += [with_rows(state, rows) for state in self.history[owner]]
            self.bases[owner] = [with_rows(base, rows) for base in self.bases[owner]]
        self.history[owner] += self.bases[owner]
        self.check("acknowledged")

    def refuse(self, owner):
        """The batch was refused: nothing of it is there."""
        self.overlays.pop(owner, None)
        self.taken.pop(owner, None)
        self.check("refused")

    def _without_taken(self, owner, rows):
        """The rows of a batch, without those that a replacement took between their commit and its answer."""
        taken, seen = self.taken.pop(owner, set()), self.rows_of(owner)
        return {key: value for key, value in rows.items() if key not in taken or key in seen}

    def open_replacement(self, gone, process):
        """Keys of everybody may go from now on, as long as the process lives. Returns what settles it."""
        replacement = {"gone": gone, "done": None, "undoing": False, "process": process, "unclear": False}
        self.replacements.append(replacement)

        def settle(done):
            was_undoing = done and replacement["undoing"]  # it may have been undone before its writer was told
            if replacement["done"] is None:
                if was_undoing:
                    done = not self._is_seen(key for owner in self.bases for key in self.state(owner) if key in gone)
                if replacement["unclear"]:  # keys may have been written again behind it
                    replacement["gone"] = {key for key in gone if not self._is_seen([key])}
                self._settle(replacement, done)
                self.check("replaced" if done else "not replaced")
            elif replacement["done"] not in (done, "either") and not was_undoing:  # keys may be there again
                self.world.violate("a replacement is not what its writer was told")

        return settle

    def _settle(self, replacement, done):
        replacement["done"] = done
        self.replacements.remove(replacement)
        if done:
            for owner, rows in self.overlays.items():
                self.taken[owner] |= rows.keys() & replacement["gone"]
            for owner in list(self.bases):
                # while an undoing is under way or in doubt, the keys may be deleted from any state of the past
                in_doubt = self.undecided or self.changing
                before = [*self.history[owner], *self.bases[owner]] if in_doubt else self.bases[owner]
                self.history[owner] += [self._without(state, replacement["gone"]) for state in before]
                self.bases[owner] = [self._without(base, replacement["gone"]) for base in self.bases[owner]]

    @staticmethod
    def _without(base, gone):
        return {key: value for key, value in base.items() if key not in gone}

    def _settle_by_looking(self, newer):
        """Somebody else's batch is there: whatever was in doubt before it is decided.

        What a living process has not begun yet may still come: it may have been paused before it took the table.

        A key that a newer batch, or one in doubt, may have written again behind the replacement tells nothing when it
        is seen with the value of that batch.
        """
        for replacement in list(self.replacements):
            told = self._kept(replacement["gone"], [newer, *self.overlays.values()])
            if not replacement["process"].killed and (any(told) or not told):
                replacement["unclear"] |= not told
                continue
            self._settle(replacement, not any(told))
            if not told:
                replacement["done"] = "either"  # nothing shows which

    def _kept(self, gone, written):
        """For each key that tells whether its replacement happened: whether it is there as it was before."""
        told = []
        for owner in list(self.bases):
            before, seen = self.state(owner), self.rows_of(owner)
            for key in gone & set(before):
                again = {rows[key] for rows in written if key in rows}
                if None in again:
                    continue
                if key not in seen or seen[key] not in again:
                    told.append(key in seen)
        return told

    def _is_seen(self, keys):
        seen = {key for owner in self.bases for key in self.rows_of(owner)}
        return any(key in seen for key in keys)

    def note_undoing(self):
        """Commits were undone by hand: whoever has not been told of his commit may be told of one that is undone."""
        self.doubtful |= set(self.overlays)
        for replacement in self.replacements:
            replacement["undoing"] = True

    def take_over_what_is_there(self, added=None):
        """Commits were undone: what is left of each owner must be a state of its past, whole."""
        if self.world.violation is not None:
            return
        added = added or {}
        for owner in {*self.bases, *self.history, *self.overlays, *added}:
            seen = self.rows_of(owner)
            rows = self.overlays.get(owner)
            past = [with_rows(state, added.get(owner, {})) for state in [*self.history[owner], *self.bases[owner]]]
            past += [with_rows(state, rows) for state in past] if rows is not None else []
            if seen not in past:
                told = self._difference(seen, past[-2:])
                self.world.violate(f"owner {owner} is left with no state of its past: {told}")
                return
            self.bases[owner] = [seen]
            self.history[owner].append(seen)

    def state(self, owner):
        """What was acknowledged last."""
        return self.bases[owner][0]

    def allowed(self, owner):
        """Every state that a reader may see."""
        bases, rows = self.bases[owner], self.overlays.get(owner)
        bases = bases if rows is None else [*bases, *(with_rows(base, rows) for base in bases)]
        gone = [replacement["gone"] for replacement in self.replacements]
        for keys in [*gone, *([self.taken[owner]] if self.taken.get(owner) else [])]:
            bases = [*bases, *(self._without(base, keys) for base in bases)]
        if rows is not None and gone:  # the batch may be committed after the replacement, too
            bases = [*bases, *(with_rows(base, rows) for base in bases)]
        return bases

    def release(self, time):
        """A savepoint is about to be deleted."""
        self.releasing.add(time)
        self.savepoints.pop(time, None)

    def hold(self, time, paths):
        """A savepoint was acknowledged: its files stay."""
        if time in self.releasing:
            return  # another operator is deleting it: to create what is there changes nothing about that
        self.savepoints[time] = frozenset(paths)
        missing = [path for path in paths if path not in self.disk.files]
        if missing:
            self.world.violate(f"the savepoint {time} holds {missing[0]}, which is not there")

    def rows_of(self, owner, until=None):
        """What a reader sees of an owner's keys."""
        files = self.disk.files
        rows = read_visible(files, until)
        return {key: value for key, value in rows if key[0] == owner}

    # -- what happens

    def on_call(self, verb, path, process):
        """Who tries to renew a lease is alive; who takes one over must not find its holder so."""
        for made, (by, left) in list(self.came_back.items()):
            if by is process:
                self.came_back[made] = (by, left - 1)
        if verb == "put" and path.startswith(".hoodie/.hudistream/alive/"):
            owner = path.rsplit("/", 1)[-1]
            self.renewed_ms[owner], self.owners[owner] = self.world.now_ms, process

    def _check_takeover(self, path):
        number = int(path.rsplit("/", 1)[-1])
        before = self.disk.files.get(f".hoodie/.hudistream/lease/{number - 1}")
        new = json.loads(self.disk.files[path][0])["identity"]
        old = json.loads(before[0])["identity"] if before else None
        if old is None or new is None or old["owner"] == new["owner"]:
            return
        same_stream = old["query_id"] is not None and old["query_id"] == new["query_id"]
        process = self.owners.get(old["owner"])
        if same_stream or process is None or process.killed or process.paused_until > self.world.now_ms - 700:
            return
        if not any(a.process is process and "/lease" in a.name and not a.done for a in self.world.actors):
            return  # the writer is not there any more, only its process is
        if self.world.now_ms - self.renewed_ms[old["owner"]] > 450:
            self.world.violate(f"{process.name} lives, and gave no sign of it: its table was taken over")

    # -- what readers see

    def on_change(self, path):
        if path not in self.disk.files:
            for time, held in self.savepoints.items():
                if path in held:
                    self.world.violate(f"{path} is deleted, which the savepoint {time} holds")
        elif path.startswith(".hoodie/.hudistream/lease/"):
            self._check_takeover(path)
        if path.startswith(".hoodie/"):
            is_lists = path.startswith((".hoodie/metadata/", ".hoodie/hoodie.properties"))
            if is_lists and path.endswith(("deltacommit", ".commit", "properties")):
                self.check_lists(path)
            if path == ".hoodie/hoodie.properties" and path in self.disk.files:
                self.check(path)  # a conversion switches the timeline by it
            if path.rpartition("/")[0] not in (".hoodie", ".hoodie/timeline") or not path.endswith("commit"):
                return
            if path in self.disk.files and self._is_begun_no_more(path):
                self.came_back[path] = (self.world.current.process, CALLS_TO_TAKE_BACK)
        elif ".log." not in path and not path.endswith((".parquet", ".hoodie_partition_metadata")):
            return
        self.check(path)

    def _is_begun_no_more(self, path):
        """Whether a completed file has neither request nor inflight file: a writer that stood still has made it."""
        start = path.rsplit("/", 1)[0] + "/" + path.rsplit("/", 1)[-1][:17]
        return not any(name.startswith(start) and name.endswith(("requested", "inflight")) for name in self.disk.files)

    def check(self, why):
        """Compares what a reader sees now."""
        world = self.world
        if world.violation is not None or self.changing or self.undecided:
            return
        files = self.disk.files
        if any(made in files and left > 0 for made, (_, left) in self.came_back.items()) and why != "the end":
            return
        try:
            rows = read_visible(files)
        except UnreadableError as error:
            world.violate(f"after {why}: {error}")
            return
        self.check_lists(why)
        seen = defaultdict(dict)
        counts = Counter(key for key, _ in rows)
        doubled = [key for key, count in counts.items() if count > 1]
        if doubled:
            world.violate(f"after {why}: {len(doubled)} keys doubled, such as {doubled[0]}")
            return
        for key, value in rows:
            seen[key[0]][key] = value
        for owner in {*seen, *self.bases, *self.overlays}:
            if seen[owner] not in self.allowed(owner):
                world.violate(f"after {why}: owner {owner}: {self._difference(seen[owner], self.allowed(owner))}")
                return

    def check_lists(self, why):
        """Compares what a reader sees by the lists of files with what it sees by the store."""
        is_gone = self.may_lack_lists and ".hoodie/metadata/.hoodie/hoodie.properties" not in self.disk.files
        if self.world.violation is None and not (self.changing or self.undecided or is_gone):
            try:
                check_lists(self.disk.files)
            except UnreadableError as error:
                self.world.violate(f"after {why}: {error}")

    @staticmethod
    def _difference(seen, allowed):
        said = []
        for number, state in enumerate(allowed):
            lost = sorted(set(state) - set(seen))
            more = sorted(set(seen) - set(state))
            other = sorted(key for key in set(seen) & set(state) if seen[key] != state[key])
            said.append(f"against state {number}: lost {lost[:4]}, too many {more[:4]}, other values {other[:4]}")
        return "; ".join(said)

"""Worlds: from a seed to actors, faults and a verdict."""

import random
from dataclasses import dataclass, replace
from unittest import mock

from engine import OPTIONS, SCHEMA

from table import clock
from table.errors import HudiError
from table.hudi_table import create_table
from table.metadata_table.make import WantedIndexes, make_lists
from table.options.agreement import new_table_config
from table.options.write_options import parse_options

from .actors import BASE, PARTITIONS, Backfill, Operator, Reader, Stream
from .change_files import ON, check_change_files
from .disk import Disk, SimStorage
from .following_reader import FollowingReader
from .forked import Forked
from .living import Living
from .operators import (
    COMPACTING,
    CROWDED,
    UNDOING,
    do_archive,
    do_carry_out_clustering,
    do_clean,
    do_cluster,
    do_cluster_beside,
    do_cluster_under_lock,
    do_compact,
    do_compact_requested,
    do_convert,
    do_execute_all_clusterings,
    do_execute_clusterings,
    do_execute_clusterings_beside,
    do_finish_clusterings,
    do_plan_beside_writes,
    do_plan_clustering,
    do_restore,
    do_savepoint,
    do_schedule_clustering,
    do_schedule_clustering_beside,
    do_schedule_compaction,
    finish_restore,
    random_jobs,
)
from .pinned_reader import PinnedReader
from .reopening import Reopening
from .routers import build_routed  # noqa: F401 a kind of world as those here
from .truth import Truth
from .world import ViolationError, World

# calls around which windows are: in some worlds processes die and pause there above all
FOCI = ("ends/", ".commit", ".inflight", "publish", ".rollback", ".clean", "lease", ".temp", "is_open", "read")


@dataclass
class Luck:
    """How much goes wrong, by kind: shares of the occasions."""

    world: World
    rate: float = 0.0
    kill: float = 0.0
    pause: float = 0.0
    late_task: float = 0.0
    lost_task: float = 0.0
    speculative: float = 0.0
    failed_job: float = 0.0
    skewed: bool = False
    most_skew_ms: int = 30_000
    empties: float = 0.0
    foreign: float = 0.0
    by_listing: float = 0.0
    rests: float = 0.0
    focus: str = ""
    longest_pause_ms: int = 2_500
    stop_shell: float = 0.0

    def skew(self):
        """Milliseconds by which a machine's clock is off."""
        return self.world.random.randrange(-self.most_skew_ms, self.most_skew_ms) if self.skewed else 0


def choose_luck(world):
    """Some worlds are rough in one way, some in many."""
    r = world.random
    luck = Luck(world)
    if r.random() < 0.5:
        luck.rate = r.choice((0.002, 0.01, 0.03))
    if r.random() < 0.6:
        luck.kill = r.choice((0.0005, 0.002, 0.006))
    if r.random() < 0.3:
        luck.pause = r.choice((0.0005, 0.002))
    if r.random() < 0.6:
        luck.late_task, luck.lost_task = r.choice((0.05, 0.3)), r.choice((0.0, 0.2))
        luck.speculative, luck.failed_job = r.choice((0.0, 0.3)), r.choice((0.0, 0.5))
    luck.skewed = r.random() < 0.2
    luck.empties = r.choice((0.0, 0.0, 0.15, 0.4))
    luck.foreign = r.choice((0.0, 0.0, 0.0, 0.1))
    if r.random() < 0.5:
        luck.focus = r.choice(FOCI)
    return luck


class Faults:
    """Kills and pauses processes at points.

    Args:
        luck: how often.
        most: faults in all.
        whom: what the names of the processes begin with.
    """

    def __init__(self, luck, most=12, whom=("driver", "shell", "executors", "backfill")):
        self.luck, self.left, self.whom = luck, most, whom

    def __call__(self, world, actor, label):
        luck, process = self.luck, actor.process
        if world.calm or self.left <= 0 or not process.name.startswith(self.whom):
            return
        if process.name.startswith(("shell-", "backfill")):
            return
        if process.name.startswith("shell"):
            self._stop_shell(world, process, label)
            return
        here = 30 if luck.focus and luck.focus in label else 1
        if world.random.random() < luck.kill * here:
            self.left -= 1
            process.killed = True
            world.tell(f"{process.name} is killed at {label}")
        elif world.random.random() < luck.pause * here:
            self.left -= 1
            self._pause(world, process, label)

    def _stop_shell(self, world, process, label):
        """An operator's command is stopped, never killed: what it undid and did not say is another world's matter."""
        if world.random.random() < self.luck.stop_shell:
            self.left -= 1
            self._pause(world, process, label)

    def _pause(self, world, process, label):
        process.paused_until = world.now_ms + world.random.randrange(20, self.luck.longest_pause_ms)
        world.tell(f"{process.name} is paused at {label} until {process.paused_until - world.now_ms} ms from now")


def insert_batches(world, owner, count):
    """Batches of new keys."""
    made, number = [], 0
    for batch in range(count):
        rows = {}
        for _ in range(world.random.randrange(1, 8)):
            rows[f"{owner}{number:04d}"] = (world.random.choice(PARTITIONS), str(batch))
            number += 1
        made.append(rows)
    return made


def upsert_batches(world, owner, count):
    """Batches that change the same few accounts again and again; a key stays in its partition."""
    accounts = {f"{owner}{number:04d}": PARTITIONS[number % len(PARTITIONS)] for number in range(6)}
    made = []
    for batch in range(count):
        chosen = sorted(accounts)[:] if batch == 0 else world.random.sample(sorted(accounts), 3)
        made.append({key: (accounts[key], str(batch)) for key in chosen})
    return made


def deleting_batches(world, owner, count):
    """As `upsert_batches`, and some of the records delete their keys, which come back later."""
    made = upsert_batches(world, owner, count)
    chance = world.random.random
    return [
        {key: (*row, number > 0 and chance() < 0.35) for key, row in rows.items()} for number, rows in enumerate(made)
    ]


def build(seed):
    """The world of a seed."""
    world = World(seed)
    r = world.random
    disk = Disk(world, r.choice(("folders", "tickets")))
    truth = Truth(world, disk)
    luck = choose_luck(world)
    world.faults.append(Faults(luck))
    truth.may_undo = luck.foreign > 0
    options, retained = _choose_cleaning(world, luck)
    _stream(world, disk, truth, "a", r.randrange(6, 22), luck, options)
    if r.random() < 0.4:
        _stream(world, disk, truth, "b", r.randrange(2, 10), luck, options)
    for owner in "cd":
        if r.random() < 0.3:
            Backfill(world, disk, truth, owner, insert_batches(world, owner, r.randrange(1, 4)), luck, options)
    if retained and r.random() < 0.5:
        Reader(world, disk, retained)
    if r.random() < 0.5:
        jobs = random_jobs(world)
        truth.may_undo |= any(job in UNDOING for job in jobs)
        Operator(world, disk, truth, luck, jobs, finish_restore)
    # a die of its own: the other worlds stay what they were
    if not truth.may_undo and random.Random(seed).random() < 0.3:
        PinnedReader(world, disk, luck.rate)
    return world, truth


def build_late_readers(seed):
    """Readers stand still between the timeline and the folders, while cleaning and archival keep next to nothing."""
    keeps = {
        "hoodie.clean.commits.retained": "1",
        "hoodie.keep.min.commits": "2",
        "hoodie.keep.max.commits": "3",
        "hudistream.clean.grace.ms": "0",
        "hoodie.parquet.small.file.limit": "0",
    }
    world, truth = build_readers(seed, keeps, 30)
    slow = Luck(world, pause=0.01, longest_pause_ms=200, focus="list ")
    world.faults.append(Faults(slow, 60, ("reader-",)))
    return world, truth


def build_readers(seed, more=(), most=14):
    """A world of one stream, cleaned after each batch, and of readers that pin what is about to be cleaned."""
    world = World(seed)
    r = world.random
    disk = Disk(world, r.choice(("folders", "tickets")))
    truth = Truth(world, disk)
    luck = Luck(world)
    upserts = {"hoodie.datasource.write.operation": "upsert", **dict(more)}
    batches = upsert_batches(world, "a", r.randrange(6, most))
    Stream(world, disk, truth, "a", batches, luck, upserts)
    for name in ("reader-a", "reader-b"):
        PinnedReader(world, disk, luck.rate, name, pause_s=0.02, keys=set(batches[0]))
    return world, truth


def build_slow_readers(seed):
    """The same world, in which readers stand still before they pin, and cleans once they have looked at the pins."""
    world, truth = build_readers(seed)
    for focus, whom in (("pins", "reader-"), (".clean", "driver")):
        world.faults.append(Faults(Luck(world, pause=0.01, longest_pause_ms=120, focus=focus), 60, (whom,)))
    return world, truth


def build_followers(seed):
    """A world of one stream of upserts and deletes, compacted and cleaned, and of readers that follow its changes."""
    world = World(seed)
    r = world.random
    disk = Disk(world, r.choice(("folders", "tickets")))
    truth = Truth(world, disk)
    luck = Luck(world, kill=r.choice((0.0, 0.002)))
    world.faults.append(Faults(luck))
    options = {
        "hoodie.datasource.write.operation": "upsert",
        "hoodie.datasource.write.table.type": r.choice(("COPY_ON_WRITE", "MERGE_ON_READ")),
        "hoodie.write.table.version": r.choice(("6", "8")),
        "hoodie.clean.commits.retained": r.choice(("1", "3")),
        "hoodie.compact.inline": "true",
        "hoodie.compact.inline.max.delta.commits": r.choice(("1", "3")),
    }
    Stream(world, disk, truth, "a", deleting_batches(world, "a", r.randrange(6, 14)), luck, options)
    world.followers = [FollowingReader(world, disk, luck.rate, name) for name in ("follower-a", "follower-b")]
    return world, truth


class SlowCommands:
    """Commands stand still at calls of a file, for longer than their lease lasts: others take the table over."""

    def __init__(self, luck, path, share):
        self.luck, self.path, self.share, self.left = luck, path, share, 12

    def __call__(self, world, actor, label):
        process = actor.process
        if world.calm or not self.left or not process.name.startswith("shell") or not label.endswith(f" {self.path}"):
            return
        if world.random.random() < self.share:
            self.left -= 1
            process.paused_until = world.now_ms + world.random.randrange(300, self.luck.longest_pause_ms)
            actor.delay_next = 1  # before this call, and not behind it
            world.tell(f"{process.name} stands still at {label}")


def build_converted(seed):
    """A world of streams whose table gets the other version again and again, while its queries rest.

    Commands that convert stand still, some before the switch, and streams take the table over from them. A metadata
    table may have no properties for a moment, as in `build_dropped`.
    """
    world = World(seed)
    r = world.random
    disk = Disk(world, r.choice(("folders", "tickets")))
    truth = Truth(world, disk)
    luck = choose_luck(world)
    luck.most_skew_ms = 400  # a commit waits until the store's clock has reached its time
    luck.foreign = luck.empties = 0.0
    luck.rests = r.choice((0.2, 0.5))
    luck.longest_pause_ms = r.choice((1_500, 4_000))
    luck.stop_shell = r.choice((0.0, 0.005))
    slow = SlowCommands(luck, ".hoodie/hoodie.properties", r.choice((0.1, 0.4)))
    truth.may_lack_lists = True
    world.faults += [Faults(luck), slow]
    options = {
        "hoodie.datasource.write.operation": "upsert",
        "hoodie.metadata.enable": r.choice(("true", "false")),
        "hoodie.archive.automatic": r.choice(("true", "true", "false")),
    }
    if r.random() < 0.4:
        options |= _draw_logs(r)
    Stream(world, disk, truth, "a", upsert_batches(world, "a", r.randrange(6, 18)), luck, options)
    for owner in "cd":
        if r.random() < 0.3:
            Backfill(world, disk, truth, owner, insert_batches(world, owner, r.randrange(1, 4)), luck, options)
    jobs = [r.choice((do_convert, do_convert, do_convert, do_archive, do_clean)) for _ in range(r.randrange(3, 10))]
    Operator(world, disk, truth, luck, jobs, finish_restore)
    return world, truth


def build_merge_on_read(seed):
    """A world of streams onto one merge-on-read table, and of services, operators and readers beside them."""
    world = World(seed)
    r = world.random
    disk = Disk(world, r.choice(("folders", "tickets")))
    truth = Truth(world, disk)
    luck = choose_luck(world)
    luck.rests = r.choice((0.0, 0.1, 0.3))
    luck.most_skew_ms = 400  # a commit waits until the store's clock has reached its time
    luck.foreign = 0.0  # another engine knows how to undo commits of copy-on-write tables
    world.faults.append(Faults(luck))
    options = {
        "hoodie.datasource.write.table.type": "MERGE_ON_READ",
        "hoodie.datasource.write.operation": "upsert",
        "hoodie.parquet.small.file.limit": r.choice(("0", "104857600")),
        "hoodie.compact.inline": r.choice(("true", "false")),
        "hoodie.compact.inline.max.delta.commits": r.choice(("1", "2", "3")),
        "hoodie.clean.automatic": r.choice(("true", "true", "false")),
        "hoodie.index.type": r.choice(("BLOOM", "SIMPLE", "BUCKET")),
        "hoodie.bucket.index.num.buckets": "1",
        "hoodie.archive.automatic": r.choice(("true", "false")),
    }
    for owner, share, most in (("a", 1.0, 18), ("b", 0.4, 8)):
        if r.random() < share:
            count = r.randrange(2, most)
            made = upsert_batches if r.random() < 0.7 else insert_batches
            Stream(world, disk, truth, owner, made(world, owner, count), luck, options)
    if r.random() < 0.5:
        Reader(world, disk, 2)
    if r.random() < 0.6:
        jobs = random_jobs(world, COMPACTING)
        truth.may_undo |= any(job in UNDOING for job in jobs)
        Operator(world, disk, truth, luck, jobs, finish_restore)
    if not truth.may_undo and r.random() < 0.3:
        PinnedReader(world, disk, luck.rate)
    return world, truth


def build_several_writers(seed):
    """A world of streams and backfills that write one table at the same time, into the same partitions.

    There is no lock: what keeps ours apart holds without one, so it holds where a lock expired, too.
    """
    world = World(seed)
    r = world.random
    disk = Disk(world, r.choice(("folders", "tickets")))
    truth = Truth(world, disk)
    luck = choose_luck(world)
    luck.empties = luck.foreign = 0.0  # whoever takes rows of others away beside them is not promised an order
    luck.rests = r.choice((0.0, 0.1))
    world.faults.append(Faults(luck))
    Living(world, disk)
    options = {
        "hoodie.write.concurrency.mode": "optimistic_concurrency_control",
        "hoodie.write.num.retries.on.conflict.failures": r.choice(("0", "1", "4")),
        "hoodie.parquet.small.file.limit": r.choice(("0", "104857600")),
    }
    if r.random() < 0.3:
        luck.most_skew_ms = 400  # a commit waits until the store's clock has reached its time
        options |= _draw_logs(r)
    upserts = {**options, "hoodie.datasource.write.operation": "upsert"}
    for owner, share in (("a", 1.0), ("b", 1.0), ("e", 0.4)):
        if r.random() < share:
            count = r.randrange(4, 14)
            if r.random() < 0.5:
                Stream(world, disk, truth, owner, upsert_batches(world, owner, count), luck, upserts)
            else:
                Stream(world, disk, truth, owner, insert_batches(world, owner, count), luck, options)
    for owner in "cd":
        if r.random() < 0.3:
            Backfill(world, disk, truth, owner, insert_batches(world, owner, r.randrange(1, 4)), luck, options)
    if r.random() < 0.3:
        jobs = random_jobs(world)
        truth.may_undo |= any(job in UNDOING for job in jobs)
        Operator(world, disk, truth, luck, jobs, finish_restore)
    if r.random() < 0.3:
        Reader(world, disk, 2)
    return world, truth


def build_forked(seed):
    """A world of several writers of which one forks, after its first batch or later: the child has its sink.

    Another engine undoes what dead drivers left, and looks for files by names that tell the commit.
    """
    world = World(seed)
    r = world.random
    disk = Disk(world, r.choice(("folders", "tickets")))
    truth = Truth(world, disk)
    luck = choose_luck(world)
    luck.empties = luck.foreign = 0.0
    luck.most_skew_ms = 400  # a commit waits until the store's clock has reached its time
    luck.longest_pause_ms = r.choice((2_500, 10_000))
    world.faults.append(Faults(luck))
    options = {
        "hoodie.write.concurrency.mode": "optimistic_concurrency_control",
        "hoodie.keep.min.commits": "3",
        "hoodie.keep.max.commits": "4",
        "hoodie.datasource.write.operation": "upsert",
    }
    if r.random() < 0.5:
        luck.by_listing = r.choice((0.3, 1.0))
        options |= _draw_logs(r)
    parent = Stream(world, disk, truth, "a", upsert_batches(world, "a", r.randrange(6, 18)), luck, options)
    for owner in "bc"[: r.randrange(1, 3)]:
        Forked(parent, world, disk, truth, owner, upsert_batches(world, owner, r.randrange(4, 14)), luck, options)
    if r.random() < 0.3:
        Reader(world, disk, 2)
    return world, truth


def build_crowd(seed):
    """A world of services and operators that run at once, and of pauses that outlast retention.

    Each stream cleans and archives for itself, and two or three operators do so beside them. An actor that is paused
    comes back to a timeline of which all that it has seen is archived.
    """
    world = World(seed)
    r = world.random
    disk = Disk(world, r.choice(("folders", "tickets")))
    truth = Truth(world, disk)
    luck = Luck(world, pause=r.choice((0.002, 0.006, 0.02)), longest_pause_ms=r.choice((2_500, 10_000, 30_000)))
    luck.stop_shell = r.choice((0.01, 0.05))
    luck.kill = r.choice((0.0, 0.0, 0.001))
    luck.focus = r.choice(("", *FOCI))
    world.faults.append(Faults(luck, 40))
    options = {
        "hoodie.keep.min.commits": "3",
        "hoodie.keep.max.commits": "4",
        "hoodie.clean.commits.retained": r.choice(("1", "2")),
        "hoodie.parquet.small.file.limit": r.choice(("0", "104857600")),
        "hoodie.datasource.write.operation": "upsert",
    }
    several = r.random() < 0.7
    if several:
        options["hoodie.write.concurrency.mode"] = "optimistic_concurrency_control"
    if r.random() < 0.4:
        luck.by_listing = 0.0 if several else r.choice((0.0, 0.5))
        options |= _draw_logs(r)
    for owner in "ab"[: 2 if several else 1]:
        made = upsert_batches if r.random() < 0.7 else insert_batches
        Stream(world, disk, truth, owner, made(world, owner, r.randrange(10, 24)), luck, options)
    for number in range(r.randrange(2, 4)):
        jobs = [r.choice(CROWDED) for _ in range(r.randrange(4, 14))]
        if number == 0 and r.random() < 0.2:
            jobs += [do_savepoint, do_restore]
        truth.may_undo |= any(job in UNDOING for job in jobs)
        Operator(world, disk, truth, luck, jobs, finish_restore, name=f"operator{number}")
    return world, truth


def build_slow_begin(seed):
    """A world of two streams of which one often stands still as its batch begins, for longer than retention.

    It has looked at the timeline, and claims a time. Meanwhile the other one commits, cleans and archives: what the
    first has looked at is gone when it requests its commit, and so is the record of what became of it.
    """
    world, disk, truth, luck, options = _beside_a_slow_one(seed, (".heartbeat/", "unseen", ".inflight", ".requested"))
    r = world.random
    if r.random() < 0.5:
        options |= _draw_logs(r, ("1", "2"))
    for owner, least in (("a", 20), ("b", 6)):
        Stream(world, disk, truth, owner, upsert_batches(world, owner, r.randrange(least, 2 * least)), luck, options)
    Operator(world, disk, truth, luck, [r.choice(CROWDED) for _ in range(r.randrange(4, 14))], finish_restore)
    return world, truth


def build_reopened(seed):
    """A world of two streams of which one stands still as it opens its instant, and is rolled back meanwhile.

    It goes on while the other one rolls it back, and dies with a file published.
    """
    world, disk, truth, luck, options = _beside_a_slow_one(seed, ("ends/",))
    luck.kill, luck.pause = 0.0005, 0.0
    world.faults.append(Reopening("driver-b", "executors-b", "driver-a"))
    r = world.random
    for owner, least, most in (("a", 50, 80), ("b", 3, 7)):
        Stream(world, disk, truth, owner, upsert_batches(world, owner, r.randrange(least, most)), luck, options)
    return world, truth


def build_slow_batch(seed):
    """A world of two streams of which one often stands still while its batch runs, for longer than retention.

    As its batch began, a commit of the other one was under way. That one is completed, and archived. The batch must not
    take the place of what it wrote. Both fill the files of one partition path; the other one mostly writes elsewhere.
    """
    foci = (".inflight", ".temp", "list p", "ends/", "publish", "is_open", ".commit", ".commit")
    world, disk, truth, luck, options = _beside_a_slow_one(seed, foci, ("driver-b", "executors-b"))
    r = world.random
    luck.kill = r.choice((0.0, 0.0, 0.001))
    elsewhere = [path for path in PARTITIONS if path != "p"]
    made = [{"a0000": ("p", "0")}]
    for batch in range(1, r.randrange(24, 48)):
        paths = ("p",) if r.random() < 0.25 else r.sample(elsewhere, 2)
        made.append({f"a{PARTITIONS.index(path):04d}": (path, str(batch)) for path in paths})
    Stream(world, disk, truth, "a", made, luck, options)
    slow = [{f"b{batch % 5:04d}": ("p", str(batch))} for batch in range(r.randrange(8, 16))]
    Stream(world, disk, truth, "b", slow, luck, options)
    return world, truth


def build_overtaken(seed):
    """A world of two quick streams and of one whose tasks often stand still, while its driver's heart beats.

    As the slow batch began, two commits were under way. Both are completed, and the earlier one is archived: the later
    one is what archival keeps for every pending write. The earlier one may have written what the slow batch continues.
    """
    world, disk, truth, luck, options = _beside_a_slow_one(seed, ("list p", "read p", "publish p"), ("executors-b",))
    r = world.random
    luck.pause, luck.longest_pause_ms = r.choice((0.002, 0.005)), r.choice((2_000, 4_000))
    halts = replace(luck, pause=0.02, longest_pause_ms=300, focus="publish p")
    world.faults.append(Faults(halts, 60, ("executors-a",)))
    # one file group a partition path: otherwise each writer fills files of its own
    options |= {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "1"}
    often = r.choice((0.3, 0.5))
    made = [{"a0000": ("p", "0")}]
    for batch in range(1, r.randrange(24, 60)):
        path = "p" if r.random() < often else "r"
        made.append({f"a{PARTITIONS.index(path):04d}": (path, str(batch))})
    Stream(world, disk, truth, "a", made, luck, options)
    others = [{f"c{batch % 5:04d}": ("s", str(batch))} for batch in range(r.randrange(40, 80))]
    Stream(world, disk, truth, "c", others, luck, options)
    # every other batch is elsewhere: a change of the shared file group would end the commit that is to be overtaken
    slow = [{f"b{batch % 4:04d}": (("t", "p")[batch % 2], str(batch))} for batch in range(r.randrange(12, 24))]
    Stream(world, disk, truth, "b", slow, luck, options)
    return world, truth


def _beside_a_slow_one(seed, foci, slow=("driver-b",)):
    """A world whose faults hit the processes of one writer alone: the other one goes on, cleans and archives."""
    world = World(seed)
    r = world.random
    disk = Disk(world, r.choice(("folders", "tickets")))
    truth = Truth(world, disk)
    luck = Luck(world, pause=r.choice((0.005, 0.01)), longest_pause_ms=r.choice((400, 1_000)))
    luck.focus = r.choice(foci)
    world.faults.append(Faults(luck, 40, slow))
    options = {
        "hoodie.write.concurrency.mode": "optimistic_concurrency_control",
        "hoodie.clean.automatic": r.choice(("true", "true", "false")),
        "hoodie.clean.async": "false",
        "hoodie.archive.automatic": "true",
        "hoodie.keep.min.commits": "2",
        "hoodie.keep.max.commits": "3",
        "hoodie.clean.commits.retained": "1",
        "hoodie.parquet.small.file.limit": r.choice(("0", "104857600")),
        "hoodie.datasource.write.operation": "upsert",
    }
    return world, disk, truth, luck, options


def build_clustered(seed):
    """A world of streams whose file groups are clustered, between their batches and by operators beside them."""
    world = World(seed)
    r = world.random
    disk = Disk(world, r.choice(("folders", "tickets")))
    truth = Truth(world, disk)
    luck = choose_luck(world)
    luck.empties = luck.foreign = 0.0
    luck.rests = r.choice((0.0, 0.2))
    luck.most_skew_ms = 400  # a commit waits until the store's clock has reached its time
    luck.longest_pause_ms = r.choice((2_500, 10_000))
    world.faults.append(Faults(luck))
    options = {
        "hoodie.clustering.inline": r.choice(("true", "false")),
        "hoodie.clustering.inline.max.commits": r.choice(("1", "2", "3")),
        "hoodie.clustering.plan.strategy.sort.columns": "v",
        "hoodie.keep.min.commits": "3",
        "hoodie.keep.max.commits": "4",
        "hoodie.clean.commits.retained": r.choice(("1", "2")),
        "hoodie.parquet.small.file.limit": r.choice(("0", "104857600")),
        "hoodie.write.table.version": r.choice(("6", "6", "8")),
    }
    several = r.random() < 0.6
    if several:
        options["hoodie.write.concurrency.mode"] = "optimistic_concurrency_control"
        options["hoodie.write.num.retries.on.conflict.failures"] = r.choice(("0", "4"))
    if r.random() < 0.5:
        options |= {
            "hoodie.datasource.write.table.type": "MERGE_ON_READ",
            "hoodie.index.type": r.choice(("BLOOM", "SIMPLE")),
            "hoodie.compact.inline.max.delta.commits": r.choice(("1", "2", "3")),
        }
    upserts = {**options, "hoodie.datasource.write.operation": "upsert"}
    for owner in "ab"[: 2 if several else 1]:
        made, given = (upsert_batches, upserts) if r.random() < 0.7 else (insert_batches, options)
        Stream(world, disk, truth, owner, made(world, owner, r.randrange(6, 18)), luck, given)
    for number in range(r.randrange(1, 3)):
        clusters = do_cluster_beside if several else do_cluster
        jobs = [r.choice((clusters, clusters, do_clean, do_archive)) for _ in range(r.randrange(3, 10))]
        Operator(world, disk, truth, luck, jobs, finish_restore, name=f"operator{number}")
    if r.random() < 0.4:
        Reader(world, disk, 2)
    return world, truth


def build_undone_clusterings(seed):
    """The same, where an operator makes savepoints, rolls back and restores: what was clustered is undone."""
    return build_clustered_beside(seed, undoes=True)


def build_clustered_beside(seed, *, undoes=False):
    """A world of streams that cluster beside their batches, and of operators that plan or carry out clusterings."""
    world = World(seed)
    r = world.random
    disk = Disk(world, r.choice(("folders", "tickets")))
    truth = Truth(world, disk)
    luck = choose_luck(world)
    luck.empties = luck.foreign = 0.0
    luck.rests = r.choice((0.0, 0.2))
    luck.most_skew_ms = 400  # a commit waits until the store's clock has reached its time
    luck.longest_pause_ms = r.choice((2_500, 10_000, 60_000))
    luck.stop_shell = r.choice((0.0, 0.01))
    world.faults.append(Faults(luck, 20))
    options = {
        "hoodie.clustering.async.enabled": r.choice(("true", "true", "true", "false")),
        "hoodie.clustering.inline.max.commits": r.choice(("1", "2", "3")),
        "hoodie.clustering.plan.strategy.sort.columns": "v",
        "hoodie.clustering.plan.strategy.max.num.groups": r.choice(("1", "30")),
        "hoodie.write.num.retries.on.conflict.failures": r.choice(("0", "4")),
        "hoodie.keep.min.commits": "3",
        "hoodie.keep.max.commits": "4",
        "hoodie.clean.commits.retained": r.choice(("1", "2")),
        "hoodie.parquet.small.file.limit": r.choice(("0", "104857600")),
        "hoodie.write.table.version": r.choice(("6", "6", "8", "9")),
    }
    if undoes:
        options["hoodie.write.table.version"] = r.choice(("6", "8", "9"))
    if r.random() < 0.5:
        options |= {
            "hoodie.datasource.write.table.type": "MERGE_ON_READ",
            "hoodie.index.type": r.choice(("BLOOM", "SIMPLE")),
            "hoodie.compact.inline.max.delta.commits": r.choice(("1", "2", "3")),
        }
    several = r.random() < 0.25
    if several:
        options["hoodie.write.concurrency.mode"] = "optimistic_concurrency_control"
    upserts = {**options, "hoodie.datasource.write.operation": "upsert"}
    changes = [r.random() < 0.6 for _ in range(2 if several else 1)]
    for owner, upserting in zip("ab", changes, strict=False):
        made, given = (upsert_batches, upserts) if upserting else (insert_batches, options)
        Stream(world, disk, truth, owner, made(world, owner, r.randrange(8, 20)), luck, given)
    chosen, last = [do_execute_clusterings, do_clean, do_archive], []
    if several:
        chosen += [do_schedule_clustering_beside, do_execute_clusterings_beside]
        last = [do_execute_all_clusterings]
    elif not any(changes):  # a stream that holds the table alone would wait for ever for a plan that is not its own
        chosen.append(do_schedule_clustering)
    for number in range(max(r.randrange(0, 3), undoes)):
        jobs = [r.choice(chosen) for _ in range(r.randrange(3, 10))] + last
        if undoes and number == 0:
            ends = [do_execute_clusterings, do_clean]
            jobs = [do_savepoint, *jobs, *(job for _ in range(4) for job in (r.choice(UNDOING), *ends)), *last]
            truth.may_undo = True
        Operator(world, disk, truth, luck, jobs, finish_restore, name=f"operator{number}")
    if r.random() < 0.4:
        Reader(world, disk, 2)
    return world, truth


# writers of several engines share a lock
UNDER_LOCK = {
    "hoodie.write.concurrency.mode": "optimistic_concurrency_control",
    "hoodie.write.lock.provider": "org.apache.hudi.client.transaction.lock.InProcessLockProvider",
}


def _beside_an_engine(seed):
    """A world in which another engine plans services, and undoes nothing: the world, its disk, truth and luck."""
    world = World(seed)
    disk = Disk(world, world.random.choice(("folders", "tickets")))
    truth = Truth(world, disk)
    luck = choose_luck(world)
    luck.empties = luck.foreign = 0.0
    luck.most_skew_ms = 400
    luck.longest_pause_ms = world.random.choice((2_500, 10_000))
    return world, disk, truth, luck


def build_planned_clusterings(seed):
    """A world of streams beside an engine that plans clusterings, and carries them out later, maybe after its death.

    All share a lock. The engine does not look at what was written since its plan.
    """
    world, disk, truth, luck = _beside_an_engine(seed)
    r = world.random
    luck.stop_shell = r.choice((0.0, 0.01))
    world.faults.append(Faults(luck, 20))
    options = {
        **UNDER_LOCK,
        "hoodie.write.num.retries.on.conflict.failures": r.choice(("0", "4")),
        "hoodie.keep.min.commits": "3",
        "hoodie.keep.max.commits": "4",
        "hoodie.clean.commits.retained": r.choice(("1", "2")),
        "hoodie.parquet.small.file.limit": r.choice(("0", "104857600", "104857600")),
        "hoodie.write.table.version": r.choice(("6", "6", "8", "9")),
    }
    if r.random() < 0.5:
        options |= {
            "hoodie.datasource.write.table.type": "MERGE_ON_READ",
            "hoodie.index.type": r.choice(("BLOOM", "SIMPLE")),
            "hoodie.compact.inline.max.delta.commits": r.choice(("1", "2", "3")),
        }
    upserts = {**options, "hoodie.datasource.write.operation": "upsert"}
    for owner in "ab"[: r.randrange(1, 3)]:
        made, given = (upsert_batches, upserts) if r.random() < 0.5 else (insert_batches, options)
        Stream(world, disk, truth, owner, made(world, owner, r.randrange(8, 20)), luck, given)
    engine = (do_plan_clustering, do_plan_clustering, do_carry_out_clustering)
    jobs = [r.choice(engine) for _ in range(r.randrange(6, 16))] + [do_finish_clusterings] * 3
    Operator(world, disk, truth, luck, jobs, finish_restore, name="operator0")
    jobs = [r.choice((do_clean, do_archive, do_cluster_under_lock)) for _ in range(r.randrange(3, 10))]
    Operator(world, disk, truth, luck, jobs, finish_restore, name="operator1")
    if r.random() < 0.3:
        Reader(world, disk, 1)
    return world, truth


def build_later_version(seed):
    """A world of a table of version 8 or 9: one stream or several, services of each, and operators beside them.

    What is its own: a completed file's name holds the time of completion, so that create-if-absent does not decide
    which of two processes completes an instant. In merge-on-read tables that time says which slice a log file belongs
    to.
    """
    world = World(seed)
    r = world.random
    disk = Disk(world, r.choice(("folders", "tickets")))
    truth = Truth(world, disk)
    luck = choose_luck(world)
    luck.foreign = 0.0  # the engine that undoes commits beside us speaks layout 1
    luck.longest_pause_ms = r.choice((2_500, 10_000))
    luck.stop_shell = r.choice((0.0, 0.01))
    world.faults.append(Faults(luck, 20))
    several = r.random() < 0.5
    if several:
        luck.empties = 0.0
    options = {
        "hoodie.write.table.version": r.choice(("8", "9")),
        "hoodie.keep.min.commits": "3",
        "hoodie.keep.max.commits": "4",
        "hoodie.clean.commits.retained": r.choice(("1", "2")),
        "hoodie.parquet.small.file.limit": r.choice(("0", "104857600")),
    }
    if several:
        options["hoodie.write.concurrency.mode"] = "optimistic_concurrency_control"
    upserts = {**options, "hoodie.datasource.write.operation": "upsert"}
    if r.random() < 0.5:
        logs = _draw_logs(r)
        options, upserts = {**options, **logs}, {**upserts, **logs}
    for owner in "ab"[: 2 if several else 1]:
        if r.random() < 0.7:
            Stream(world, disk, truth, owner, upsert_batches(world, owner, r.randrange(6, 18)), luck, upserts)
        else:
            Stream(world, disk, truth, owner, insert_batches(world, owner, r.randrange(6, 18)), luck, options)
    for number in range(r.randrange(0, 3)):
        jobs = random_jobs(world) if number == 0 else [r.choice(CROWDED) for _ in range(r.randrange(2, 8))]
        truth.may_undo |= any(job in UNDOING for job in jobs)
        Operator(world, disk, truth, luck, jobs, finish_restore, name=f"operator{number}")
    if not several and r.random() < 0.3:
        Reader(world, disk, 1)
    return world, truth


def build_planned_beside(seed):
    """A world of a merge-on-read table of version 8 or 9 for which another engine plans compactions beside our batches.

    Writers of both engines share a lock, as they must. A compaction may be requested, and completed, while a batch
    runs that began before it: the log files of the batch lie above what the compaction makes.
    """
    world, disk, truth, luck = _beside_an_engine(seed)
    r = world.random
    world.faults.append(Faults(luck, 20))
    options = {
        "hoodie.write.table.version": r.choice(("8", "9")),
        **UNDER_LOCK,
        "hoodie.write.num.retries.on.conflict.failures": r.choice(("0", "4")),
        "hoodie.keep.min.commits": "3",
        "hoodie.keep.max.commits": "4",
        "hoodie.clean.commits.retained": r.choice(("1", "2")),
        "hoodie.parquet.small.file.limit": r.choice(("0", "104857600")),
        **_draw_logs(r),
        "hoodie.compact.inline": r.choice(("false", "false", "true")),
    }
    upserts = {**options, "hoodie.datasource.write.operation": "upsert"}
    for owner in "ab"[: r.randrange(1, 3)]:
        made, given = (upsert_batches, upserts) if r.random() < 0.7 else (insert_batches, options)
        Stream(world, disk, truth, owner, made(world, owner, r.randrange(8, 20)), luck, given)
    beside = (do_plan_beside_writes, do_plan_beside_writes, do_compact_requested, do_clean, do_archive)
    for number in range(2):
        jobs = [r.choice(beside) for _ in range(r.randrange(6, 14))]
        Operator(world, disk, truth, luck, jobs, finish_restore, name=f"operator{number}")
    if r.random() < 0.3:
        Reader(world, disk, 1)
    return world, truth


def build_scheduled(seed):
    """A world of two streams onto a merge-on-read table whose compactions operators plan and execute beside them.

    A command that plans often stands still between its look at the table and its request.
    """
    world = World(seed)
    r = world.random
    disk = Disk(world, r.choice(("folders", "tickets")))
    truth = Truth(world, disk)
    luck = Luck(world, stop_shell=0.05, longest_pause_ms=300)
    world.faults.append(Faults(luck, 60))
    options = {
        "hoodie.write.concurrency.mode": "optimistic_concurrency_control",
        "hoodie.write.num.retries.on.conflict.failures": "4",
        "hoodie.datasource.write.table.type": "MERGE_ON_READ",
        "hoodie.index.type": "BUCKET",
        "hoodie.bucket.index.num.buckets": "1",
        "hoodie.compact.inline": "false",
        "compaction.async.enabled": "false",
        "hoodie.datasource.write.operation": "upsert",
    }
    for owner in "ab":
        Stream(world, disk, truth, owner, upsert_batches(world, owner, r.randrange(12, 24)), luck, options)
    for number in range(2):
        jobs = [
            r.choice((do_schedule_compaction, do_schedule_compaction, do_compact)) for _ in range(r.randrange(6, 14))
        ]
        Operator(world, disk, truth, luck, jobs, finish_restore, name=f"operator{number}")
    return world, truth


def build_bounded(seed):
    """As `build_listed`, and the table has statistics of columns, too."""
    return build_listed(seed, has_statistics=True)


def build_indexed(seed):
    """As `build_listed`, and the table has a record index, too."""
    return build_listed(seed, has_record_index=True)


def build_indexed_logs(seed):
    """A merge-on-read table with a record index: updates and deletes in log files, keys that come back elsewhere.

    Batches look keys up by the index, or in base files. A dead process costs the index, so that few die.
    """
    return build_listed(seed, has_record_index=True, is_of_logs=True)


def build_joined_logs(seed):
    """As `build_indexed_logs`, and new rows join log files: their keys lie in no base file until a compaction."""
    return build_listed(seed, has_record_index=True, is_of_logs=True, joins_logs=True)


def build_dropped(seed):
    """As `build_indexed`, and each query that is started has other indexes: those that it does not want are dropped.

    Two queries take turns. One that stands still for longer than its lease, as in the middle of a drop, goes on beside
    the other one. A metadata table may have no properties for a moment: a process that went on with a deletion then
    drops it, and readers take it for none.
    """
    world, truth = build_listed(seed, has_statistics=True, has_record_index=True, stream=ChangingIndexes)
    slow = Luck(
        world,
        pause=0.0005,
        longest_pause_ms=6_000,
        focus=world.random.choice(("metadata", "properties", "delete .hoodie/metadata")),
    )
    truth.may_lack_lists = True
    world.faults.append(Faults(slow, 12, ("driver",)))
    return world, truth


class ChangingIndexes(Stream):
    """A stream whose query is stopped often, and started again with other options for indexes."""

    KINDS = (
        {},
        {"hoodie.metadata.record.index.enable": "false", "hoodie.index.type": "BLOOM"},
        {"hoodie.metadata.index.column.stats.enable": "false"},
        {"hoodie.metadata.enable": "false", "hoodie.index.type": "BLOOM"},
    )

    def __init__(self, world, *given):
        super().__init__(world, *given)
        self.luck.rests = 0.3

    def _options(self):
        if self.options.get("hoodie.datasource.write.table.type") == "MERGE_ON_READ":
            return super()._options()  # its index is the table's
        return {**super()._options(), **self.world.random.choice(self.KINDS)}


def build_listed(
    seed, *, has_statistics=False, has_record_index=False, is_of_logs=False, joins_logs=False, stream=Stream
):
    """A world of a table with a metadata table, in each version: readers may trust the lists of files at any moment.

    The streams make the lists anew where they were dropped. Services and operators tell them of their changes.
    """
    world = World(seed)
    r = world.random
    disk = Disk(world, r.choice(("folders", "tickets")))
    truth = Truth(world, disk)
    luck = choose_luck(world)
    luck.foreign = 0.0  # the engine that undoes commits beside us knows no metadata table
    luck.most_skew_ms = 400
    luck.longest_pause_ms = r.choice((2_500, 10_000))
    luck.stop_shell = r.choice((0.0, 0.01))
    world.faults.append(Faults(luck, 20))
    options = {
        "hoodie.metadata.enable": "true",
        "hoodie.metadata.compact.max.delta.commits": r.choice(("2", "4")),
        "hoodie.write.table.version": r.choice(("6", "8", "9")),
        "hoodie.keep.min.commits": "3",
        "hoodie.keep.max.commits": "4",
        "hoodie.clean.commits.retained": r.choice(("1", "2")),
        "hoodie.parquet.small.file.limit": r.choice(("0", "104857600")),
        "hoodie.datasource.write.operation": "upsert",
    }
    several = r.random() < (0.2 if is_of_logs else 0.4)
    luck.empties = 0.0 if several or is_of_logs else r.choice((0.0, 0.3))
    if has_statistics:
        options["hoodie.metadata.index.column.stats.enable"] = "true"
    if has_record_index:
        options["hoodie.metadata.record.index.enable"] = "true"
        options["hoodie.index.type"] = r.choice(("RECORD_INDEX", "RECORD_INDEX", "BLOOM"))
        options["hoodie.metadata.compact.max.delta.commits"] = r.choice(("2", "4", "12"))
    if several:
        options["hoodie.write.concurrency.mode"] = "optimistic_concurrency_control"
    if is_of_logs:
        luck.kill, luck.rate = r.choice((0.0, 0.0005)), r.choice((0.0, 0.002))
        options |= _draw_logs(r, ("2", "5", "50")) | {
            "hoodie.index.type": r.choice(("RECORD_INDEX", "RECORD_INDEX", "GLOBAL_BLOOM")),
            "hoodie.bloom.index.update.partition.path": "false",
        }
    elif r.random() < 0.5:
        options |= _draw_logs(r)
    if joins_logs:
        options |= {"hoodie.index.type": "RECORD_INDEX", "hudistream.new.rows.join.logs": "true"}
    config = new_table_config(parse_options({**OPTIONS, **BASE, **options}).options, "t")
    with mock.patch.object(clock, "now_ms", return_value=world.now_ms):
        table = create_table(SimStorage(disk), config)
        # several writers make none
        wanted = WantedIndexes(SCHEMA if has_statistics else None, (lambda _: ()) if has_record_index else None)
        make_lists(table.storage, table.config, table.load_timeline(), table.store_listing, wanted)
    for owner in "ab"[: 2 if several or stream is not Stream else 1]:
        made = upsert_batches if r.random() < 0.7 else insert_batches
        if has_record_index and (is_of_logs or (made is upsert_batches and r.random() < 0.6)):
            made = deleting_batches
        stream(world, disk, truth, owner, made(world, owner, r.randrange(8, 20)), luck, options)
    for number in range(r.randrange(0, 3)):
        jobs = random_jobs(world) if number == 0 else [r.choice(CROWDED) for _ in range(r.randrange(2, 8))]
        if number == 0 and not several and r.random() < 0.5:
            jobs += [do_savepoint, do_restore, do_archive, do_archive]
        truth.may_undo |= any(job in UNDOING for job in jobs)
        Operator(world, disk, truth, luck, jobs, finish_restore, name=f"operator{number}")
    return world, truth


def _draw_logs(r, delta_commits=("1", "2", "3")):
    """Options of a merge-on-read table; the choices of how many delta commits make a compaction due."""
    index = r.choice(("BLOOM", "BUCKET"))
    return {
        "hoodie.datasource.write.table.type": "MERGE_ON_READ",
        "hoodie.index.type": index,
        "hoodie.bucket.index.num.buckets": "1",
        # inserts that could come twice are refused there
        "hoodie.merge.allow.duplicate.on.inserts": str(index != "BUCKET").lower(),
        "hoodie.compact.inline.max.delta.commits": r.choice(delta_commits),
    }


def _choose_cleaning(world, luck):
    """Options, and how many commits a reader's files stay; None: readers are not promised any."""
    if luck.empties and world.random.random() < 0.5:
        # what was replaced goes at once, so that partitions are empty while the next batch writes into them
        return {
            "hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS",
            "hoodie.clean.fileversions.retained": "1",
        }, None
    if luck.empties and world.random.random() < 0.4:
        return {"hudistream.clean.grace.ms": "100000000"}, 2  # nothing is old enough to go before archival comes
    return {}, 2


def _stream(world, disk, truth, owner, count, luck, cleaning):
    if world.random.random() < 0.5:
        options = {**cleaning, "hoodie.datasource.write.operation": "upsert"}
        return Stream(world, disk, truth, owner, upsert_batches(world, owner, count), luck, options)
    options = cleaning if world.random.random() < 0.7 else {**cleaning, "hoodie.parquet.small.file.limit": "0"}
    return Stream(world, disk, truth, owner, insert_batches(world, owner, count), luck, options)


def run(seed, build=build, version="6", *, has_change_files=False):
    """Runs the world of a seed.

    Args:
        seed: of the world.
        build: makes it.
        version: of its table, where the world does not choose one itself.
        has_change_files: whether its table has change files. They are looked at when the world is over.

    Returns:
        None, or (violation, story).
    """
    world, truth = build(seed)
    try:
        more = ON if has_change_files else {}
        with mock.patch.dict(BASE, {"hoodie.write.table.version": version, **more}):
            world.run()
        truth.check("the end")
        if has_change_files and world.violation is None:
            world.change_files = check_change_files(world, truth.disk)
        if world.violation is not None:
            raise world.violation
    except ViolationError as violation:
        return str(violation), world.story
    except HudiError as error:
        return f"{type(error).__name__}: {error}", world.story
    return None

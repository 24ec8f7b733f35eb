"""What a seed draws: the world, its options, and the batches of its writers."""

import random
from dataclasses import asdict, dataclass

WRITERS = ("A", "B")
GUEST = "C"
PARTITIONS = 3
OWN_KEYS = 30
SHARED_KEYS = 8
GUEST_KEYS = 12
CLUSTERS = ("none", "inline", "beside")
LOCKS = {
    "filesystem": {"hoodie.write.lock.provider": "filesystem"},
    "storage": {
        "hoodie.write.lock.provider": "storage",
        "hoodie.write.lock.storage.validity.timeout.secs": "10",
        "hoodie.write.lock.storage.renew.interval.secs": "1",
    },
}


@dataclass(frozen=True)
class Drawn:
    """A world. Its processes get it as JSON."""

    seed: int
    seconds: float
    path: str
    journals: str
    storage: dict | None
    mor: bool
    version: int
    index: str
    several: bool
    lock: str
    retained: int
    keep_least: int
    keep_most: int
    compaction_after: int
    inline: bool
    background: bool
    misses: int
    small_files: bool
    operators: int
    readers: int
    clusters: str
    vandal: bool = False
    toxic: bool = False

    def describe(self):
        """One line for the story."""
        return ", ".join(
            [
                f"{'merge-on-read' if self.mor else 'copy-on-write'} of version {self.version}",
                self.index,
                "several writers" if self.several else "one writer at a time",
                f"lock {self.lock}",
                f"retained {self.retained}, archive {self.keep_least} to {self.keep_most}",
                f"compaction after {self.compaction_after} {'inline' if self.inline else 'beside'}",
                f"clusterings {self.clusters}",
                f"{self.operators} operators",
                *(["a vandal"] if self.vandal else []),
                *(["toxics"] if self.toxic else []),
                "s3" if self.storage else "disk",
            ]
        )

    def to_json(self):
        """What `Drawn(**…)` takes."""
        return asdict(self)


def draw(seed, path, journals, storage=None, seconds=None, **fixed):
    """The world of a seed; `fixed` overrides what was drawn."""
    luck = random.Random(f"world {seed}")
    drawn = {
        "mor": luck.random() < 0.5,
        "index": luck.choice(["BLOOM", "BLOOM", "SIMPLE", "BUCKET", "GLOBAL_BLOOM", "GLOBAL_SIMPLE"]),
        "several": luck.random() < 0.7,
        "lock": luck.choice(["none", "none", "filesystem", "storage"]),
        "retained": luck.choice([1, 2]),
        "keep_least": luck.choice([1, 2]),  # beyond what is retained
        "compaction_after": luck.choice([1, 2, 3]),
        "inline": luck.random() < 0.5,
        "background": luck.random() < 0.5,
        "misses": luck.choice([2, 3, 4]),
        "small_files": luck.random() < 0.4,
        "operators": luck.choice([1, 2]),
        "readers": 1,
    }
    # a die of its own: the other worlds stay what they were
    drawn["version"] = random.Random(f"version {seed}").choice([6, 8, 9])
    may_cluster = drawn["index"] != "BUCKET"  # the key of a row decides in which file group it lies
    drawn["clusters"] = random.Random(f"clusters {seed}").choice(CLUSTERS) if may_cluster else "none"
    drawn["keep_least"] += drawn["retained"]
    if storage and drawn["lock"] == "filesystem":
        drawn["lock"] = "none"  # its provider takes folders alone
    drawn["keep_most"] = drawn["keep_least"] + luck.choice([1, 2])
    seconds = luck.uniform(14, 20) if seconds is None else seconds
    return Drawn(seed=seed, seconds=seconds, path=path, journals=journals, storage=storage, **{**drawn, **fixed})


def options(drawn, writer):
    """Options of a writer's sink."""
    return {
        "hoodie.datasource.write.table.type": "MERGE_ON_READ" if drawn.mor else "COPY_ON_WRITE",
        "hoodie.write.table.version": str(drawn.version),
        "hoodie.index.type": drawn.index,
        "hoodie.bucket.index.num.buckets": "2",
        # inserts that could come twice are refused in the logs of buckets
        "hoodie.merge.allow.duplicate.on.inserts": str(not (drawn.mor and drawn.index == "BUCKET")).lower(),
        "hoodie.bloom.index.update.partition.path": "false",
        "hoodie.simple.index.update.partition.path": "false",
        "hoodie.datasource.write.streaming.checkpoint.identifier": f"stream-{writer}",
        "hoodie.client.heartbeat.interval_in_ms": "500",
        "hoodie.client.heartbeat.tolerable.misses": str(drawn.misses),
        "hoodie.clean.commits.retained": str(drawn.retained),
        "hoodie.clean.async.enabled": str(drawn.background).lower(),
        "hudistream.clean.grace.ms": "0",
        "hoodie.keep.min.commits": str(drawn.keep_least),
        "hoodie.keep.max.commits": str(drawn.keep_most),
        "hoodie.compact.inline": str(drawn.inline and drawn.mor).lower(),
        "hoodie.datasource.compaction.async.enable": str(not drawn.inline and drawn.mor).lower(),
        "hoodie.compact.inline.max.delta.commits": str(drawn.compaction_after),
        "hoodie.clustering.inline": str(drawn.clusters == "inline").lower(),
        "hoodie.clustering.async.enabled": str(drawn.clusters == "beside").lower(),
        "hoodie.clustering.inline.max.commits": str(min(3, drawn.keep_least)),
        "hoodie.parquet.small.file.limit": "104857600" if drawn.small_files else "0",
        "hoodie.write.lock.client.wait_time_ms_between_retry": "200",
        **({"hoodie.write.concurrency.mode": "optimistic_concurrency_control"} if drawn.several else {}),
        **LOCKS.get(drawn.lock, {}),
    }


def partition_of(key):
    """A key stays where it is."""
    return f"p{sum(key.encode()) % PARTITIONS}"


def shared_keys():
    """Keys that both writers upsert."""
    return [f"shared-{number}" for number in range(SHARED_KEYS)]


def guest_keys():
    """Keys that the guest upserts."""
    return [f"{GUEST}-{number}" for number in range(GUEST_KEYS)]


def first_rows():
    """What the table holds before its first batch: key -> (ts, value)."""
    return dict.fromkeys([*shared_keys(), *guest_keys()], (0, "first"))


def batch(drawn, writer, number):
    """(operation, {key: whether it is deleted}) of one batch, the same whenever it is asked for."""
    luck = random.Random(f"batch {drawn.seed} {writer} {number}")
    if luck.random() < 0.25:  # new keys alone
        return "insert", {f"{writer}-new-{number}-{each}": False for each in range(3)}
    keys = {f"{writer}-{key}": luck.random() < 0.25 for key in luck.sample(range(OWN_KEYS), 6)}
    keys[f"{writer}-count"] = False  # each batch changes something
    old = [n for n in range(max(0, number - 12), number) if luck.random() < 0.08]
    for n in old:  # rows of earlier inserts go
        if batch_kind(drawn, writer, n) == "insert":
            keys[f"{writer}-new-{n}-0"] = True
    if luck.random() < 0.5:
        keys.update(dict.fromkeys(luck.sample(shared_keys(), 2), False))
    return "upsert", keys


def guest_batch(drawn, number):
    """{key: whether it is deleted} of a write of the guest.

    Among several writers none is deleted: a write whose outcome is unknown may be completed beside the next one, and
    two writes that insert one new key at once double it.
    """
    luck = random.Random(f"guest {drawn.seed} {number}")
    chosen = luck.sample(guest_keys(), luck.randint(1, 4))
    return {key: not drawn.several and luck.random() < 0.25 for key in chosen}


def batch_kind(drawn, writer, number):
    """The operation of a batch."""
    return "insert" if random.Random(f"batch {drawn.seed} {writer} {number}").random() < 0.25 else "upsert"

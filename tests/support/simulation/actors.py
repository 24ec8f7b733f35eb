"""Who acts: streams whose drivers die and are started again, backfills, operators, readers."""

import random
import re
from dataclasses import replace

import pyarrow as pa
from engine import SCHEMA, Engine

from streaming.batch.micro_batch import MicroBatchWriter
from streaming.batch.workers import Batch
from streaming.task.run import run_task
from table.errors import CommitOutcomeUnknownError, HudiError, TaskFailedError
from table.hudi_table import HudiTable
from table.options.write_groups import OverwriteSettings
from table.schema.avro_schema import DELETE_MARKER
from table.storage.interface import join
from table.timeline.metadata.commit import decode_commit
from table.timeline.metadata.rollback import RollbackMetadata, encode_rollback_metadata
from table.view.store_listing import StorageListing

from .disk import SimStorage
from .reader import needed_files
from .world import Killed, Process

PARTITIONS = ("p", "p/q", "r", "s", "t")

BASE = {
    "hoodie.parquet.max.file.size": "6000",
    "hoodie.client.heartbeat.interval_in_ms": "300",
    "hoodie.clean.automatic": "true",
    "hoodie.clean.commits.retained": "2",
    "hudistream.clean.readers.max.share": "1000",
    "hoodie.keep.min.commits": "4",
    "hoodie.keep.max.commits": "6",
}
EXPIRY_MS = 900  # Hudi's: the interval times one more than may be missed


def to_table(rows):
    """Rows for a batch: key -> (partition, value), or (partition, value, whether the key is deleted)."""
    made = pa.table(
        {
            "id": list(rows),
            "p": [row[0] for row in rows.values()],
            "ts": pa.array([int(row[1]) for row in rows.values()], pa.int64()),
            "v": [row[1] for row in rows.values()],
        },
        schema=SCHEMA,
    )
    if not any(len(row) > 2 for row in rows.values()):
        return made
    return made.append_column(DELETE_MARKER, pa.array([row[2] for row in rows.values()]))


class SimEngine(Engine):
    """A sink whose tasks are actors of their own, some of which fail, repeat themselves or come late."""

    def __init__(self, world, disk, process, executors, options, query_id, luck):
        storage = SimStorage(disk, process, luck.rate)
        super().__init__(storage, {**BASE, **options}, query_id=query_id)
        self.world, self.luck, self.process = world, luck, process
        self.use_executors(executors)

    truth = None

    def use_executors(self, executors):
        """Other executors come in the place of dead ones."""
        self.executors = executors
        self._task_storage = SimStorage(self.writer._storage.disk, executors, self.luck.rate)

    def distribute(self, plan, table):
        is_disturbed = self.truth is not None and self.world.random.random() < self.luck.foreign
        # a die of its own: the other worlds stay what they were
        after_tasks = is_disturbed and random.Random(f"{self.world.seed} {self.world.steps}").random() < 0.5
        if is_disturbed and not after_tasks:
            undo_as_others_do(self.world, self.truth, self.writer._storage.disk)
        context = replace(plan.context, storage=self._task_storage)
        plan = replace(plan, context=context, listing=StorageListing(self._task_storage))
        job = _Job(self, plan)
        for task, batches in enumerate(self.route(plan, table)):
            if batches:
                job.begin(task, batches)
        results = job.wait()
        if after_tasks:  # what was written continues what is undone: the look before the completion alone can tell
            undo_as_others_do(self.world, self.truth, self.writer._storage.disk)
        return [result for result in results if result.stats or result.bad_rows]


def undo_as_others_do(world, truth, disk):
    """Another engine rolls the newest commit back, past our lease and our end records, all at once."""
    done = sorted(name for name in disk.files if re.fullmatch(r"\.hoodie/\d+\.commit", name))  # it speaks layout 1
    if not done or truth.savepoints or any(".replacecommit" in name for name in disk.files):
        return
    time = done[-1].rsplit("/", 1)[-1].partition(".")[0]
    stats = decode_commit(disk.files[done[-1]][0], done[-1]).stats
    if any(s.prev_base_file and join(s.partition_path, s.prev_base_file) not in disk.files for s in stats):
        return
    truth.changing += 1
    undone = str(int(time) + 1)  # any later instant
    for name in (done[-1], f".hoodie/{time}.inflight", f".hoodie/{time}.commit.requested", *(s.path for s in stats)):
        disk.remove(name)
    metadata = RollbackMetadata(undone, 1, time, "commit", {})
    disk.set(f".hoodie/{undone}.rollback.requested", b"")
    disk.set(f".hoodie/{undone}.rollback.inflight", b"")
    disk.set(f".hoodie/{undone}.rollback", encode_rollback_metadata(metadata))
    truth.changing -= 1
    truth.take_over_what_is_there()
    world.tell(f"another engine undoes {time}")


def roll_back_by_listing(world, disk):
    """Another engine undoes what a dead driver left, and looks for files by names that tell the commit.

    Those of log files tell another one, so they stay, and no rollback block is written. A commit whose end is decided
    is left to its own engine, and so is a writer whose heartbeat is young.
    """
    started = sorted(name for name in disk.files if re.fullmatch(r"\.hoodie/\d+\.deltacommit\.inflight", name))
    for name in started:
        time = name.rsplit("/", 1)[-1].partition(".")[0]
        if f".hoodie/{time}.deltacommit" in disk.files or f".hoodie/.hudistream/ends/{time}.deltacommit" in disk.files:
            continue
        _, beaten_ms = disk.files.get(f".hoodie/.heartbeat/{time}", (b"", 0))
        if world.now_ms - beaten_ms < EXPIRY_MS:
            continue
        for path in [path for path in disk.files if path.endswith(f"_{time}.parquet")]:
            disk.remove(path)
        undone = str(int(time) + 1)  # any later instant
        for state in (".deltacommit.inflight", ".deltacommit.requested"):
            disk.remove(f".hoodie/{time}{state}")
        disk.set(f".hoodie/{undone}.rollback.requested", b"")
        disk.set(f".hoodie/{undone}.rollback.inflight", b"")
        done = encode_rollback_metadata(RollbackMetadata(undone, 1, time, "deltacommit", {}))
        disk.set(f".hoodie/{undone}.rollback", done)
        world.tell(f"another engine undoes {time} by listing")


class _Job:
    def __init__(self, engine, plan):
        self.engine, self.plan, self.world = engine, plan, engine.world
        self.results, self.open, self.failed, self.todo = {}, {}, 0, {}

    def begin(self, task, batches):
        self.todo[task] = batches
        self._attempt(task)
        if self.world.random.random() < self.engine.luck.speculative:
            self._attempt(task)

    def _attempt(self, task):
        engine, world = self.engine, self.world
        engine.attempts += 1
        token = f"{task}-0-{engine.attempts}"
        self.open[task] = self.open.get(task, 0) + 1

        def run():
            try:
                if world.random.random() < engine.luck.late_task and not world.calm:
                    world.current.delay_next = world.random.randrange(50, 4000)
                result = run_task(self.plan, token, self.todo[task])
                if world.random.random() < engine.luck.lost_task and not world.calm:
                    raise ConnectionError("the executor is taken for lost")
                self.results.setdefault(task, result)
            except Exception as error:
                world.tell(f"task {token} fails: {error}"[:140])
                self.failed += 1
            finally:
                self.open[task] -= 1

        world.start(engine.executors, f"{engine.executors.name}/task{token}", run, daemon=True)

    def wait(self):
        """Until each task has a result; a task that failed is tried again, three times at most."""
        again, world = 0, self.world
        while True:
            world.wait(self._is_settled, "job")
            lacking = [task for task in self.todo if task not in self.results and not self.open[task]]
            if not lacking and len(self.results) == len(self.todo):
                return list(self.results.values())
            if again >= 3 or world.random.random() < self.engine.luck.failed_job:
                raise TaskFailedError("the job failed; other tasks of it may still run")
            again += 1
            for task in lacking:
                self._attempt(task)

    def _is_settled(self):
        return len(self.results) == len(self.todo) or any(
            not self.open[task] and task not in self.results for task in self.todo
        )


class Stream:
    """A streaming query: its driver is started again when it dies, and replays what it does not know to be done."""

    def __init__(self, world, disk, truth, owner, batches, luck, options=None, query_id=None):
        self.world, self.disk, self.truth, self.owner, self.luck = world, disk, truth, owner, luck
        self.batches, self.options = batches, options or {}
        self.query_id, self.committed, self.incarnation = query_id or f"query-{owner}", 0, 0
        self.drivers = []
        self.rests = False  # its query was stopped, and is started again later: operators have the table meanwhile
        self.engine = None  # of the driver that lives
        truth.streams[owner] = self
        truth.batches += batches
        world.start(Process(f"cluster-{owner}"), f"supervisor-{owner}", self._supervise)

    def _supervise(self):
        world = self.world
        while self.committed < len(self.batches):
            self.incarnation += 1
            world.wait(lambda: not self.truth.changing, "operator")
            process = Process(f"driver-{self.owner}{self.incarnation}", skew_ms=self.luck.skew())
            executors = Process(f"executors-{self.owner}{self.incarnation}")
            self.drivers.append((process, executors))
            actor = world.start(process, process.name, lambda p=process, e=executors: self._drive(p, e), daemon=True)
            world.wait(lambda a=actor, p=process: a.done or p.killed, "driver")
            if self.rests:
                world.sleep_s(world.random.random() * 2)
                self.rests = False
            if process.killed:
                world.tell(f"{process.name} is dead")
                if world.random.random() < 0.5:
                    executors.killed = True
                world.sleep_s(world.random.random() * 0.4)
                if self.luck.by_listing and world.random.random() < self.luck.by_listing:
                    roll_back_by_listing(world, self.disk)
            if actor.error is not None and not isinstance(actor.error, HudiError):
                raise actor.error

    def _drive(self, process, executors):
        world = self.world
        engine = SimEngine(world, self.disk, process, executors, self._options(), self.query_id, self.luck)
        engine.truth = self.truth if len(self.truth.batches) == len(self.batches) else None
        self.engine = engine
        self._started(engine)
        if self.committed and not self.truth.may_undo and world.random.random() < 0.5:
            # Spark's checkpoint may be one batch behind
            self._write(engine, self.committed - 1)
        while self.committed < len(self.batches) and not process.killed:
            if engine.executors.killed:
                engine.use_executors(Process(engine.executors.name + "'"))
            if world.random.random() < self.luck.empties:
                self._delete_partition(engine)
            if self.luck.rests and world.random.random() < self.luck.rests:
                self.rests = True
                break
            if self._write(engine, self.committed):
                self.committed += 1
            elif not process.killed:
                world.sleep_s(world.random.random() * 0.3)
        if not process.killed:
            process.writes_on = False
            engine.writer.services.wait()
            close(engine)

    def _started(self, engine):
        """What a driver does with its sink before the first batch."""

    def _refused(self, engine):
        """What a driver does with its sink after a batch that was refused."""

    def holds_table(self):
        """Whether its driver lives and has the table."""
        return self.engine is not None and not self.engine.process.killed and self.engine.writer.lease.is_held

    def is_done(self):
        """Whether all its batches are there."""
        return self.committed >= len(self.batches)

    def _delete_partition(self, engine):
        """`sink.write(rows, operation="delete_partition")`, between two batches: everybody's rows there go."""
        world, truth = self.world, self.truth
        if truth.overlays or truth.replacements:
            return  # somebody is in doubt
        path = world.random.choice(PARTITIONS)
        gone = {key for rows in truth.batches for key, row in rows.items() if row[0] == path}
        settle = truth.open_replacement(gone, engine.process)
        writer = engine.writer
        options = replace(writer._options, operation="delete_partition", overwrite=OverwriteSettings((path,)))
        replacer = MicroBatchWriter(writer._storage, options, "t")
        replacer.services, replacer.lease = writer.services, writer.lease
        try:
            replacer.write(Batch(engine.workers(SCHEMA.empty_table()), None, self.query_id))
        except CommitOutcomeUnknownError:
            return
        except HudiError as error:
            world.tell(f"delete_partition {path} refused: {error}"[:160])
            settle(done=False)
            return
        if engine.process.killed:
            raise Killed
        world.tell(f"partition {path} deleted")
        settle(done=True)

    def _options(self):
        return {"hoodie.datasource.write.streaming.checkpoint.identifier": self.owner, **self.options}

    def _write(self, engine, number):
        batch, truth = self.batches[number], self.truth
        replays = number < self.committed
        doubtful = truth.is_open(self.owner)  # an earlier attempt may yet turn out to be there
        if not replays and not doubtful:
            truth.open(self.owner, {key: None if row[2:] == (True,) else row[1] for key, row in batch.items()})
        try:
            summary = engine.write(number, to_table(batch), parallelism=2)
        except CommitOutcomeUnknownError as error:
            self.world.tell(f"batch {number} in doubt: {error}"[:160])
            return False
        except Killed:
            raise
        except Exception as error:
            self.world.tell(f"batch {number} refused: {type(error).__name__} {error}"[:200])
            self._refused(engine)
            if not replays and not doubtful:
                truth.refuse(self.owner)
            missing = re.search(r"which was undone by hand .* delete commits/(\d+), ", str(error))
            if missing:
                # what the message advises: the checkpoint is set back, and the batches come again
                self.committed = int(missing[1])
                truth.refuse(self.owner)  # what was in doubt was ended before this was found
            return False
        if engine.process.killed:
            raise Killed
        self.world.tell(f"batch {number} {'skipped' if summary.skipped else summary.instant_time}")
        if replays and not summary.skipped and summary.instant_time is not None:  # else it had nothing to change again
            self.world.violate(f"batch {number} of {self.owner} was written twice")
        if not replays:
            truth.acknowledge(self.owner)
        return True


def close(engine):
    """Lets go of what the engine holds, as the end of a driver does."""
    stop = getattr(engine.writer, "stop", None)
    if stop is not None:
        stop()
    else:
        engine.writer.services.stop()


class Backfill:
    """`sink.write` calls outside of a stream: not remembered, so that each is made once unless it was refused."""

    def __init__(self, world, disk, truth, owner, batches, luck, options=None):
        self.world, self.disk, self.truth, self.owner, self.luck = world, disk, truth, owner, luck
        self.batches, self.options = batches, options or {}
        self.drivers = []
        truth.batches += batches
        world.start(Process(f"shell-{owner}"), f"shell-{owner}", self._run)

    def _run(self):
        world, truth = self.world, self.truth
        for number, batch in enumerate(self.batches):
            executors = Process(f"executors-{self.owner}{number}")
            while True:
                process = Process(f"backfill-{self.owner}{number}")
                truth.open(self.owner, {key: value for key, (_, value) in batch.items()})
                if executors.killed:
                    executors = Process(executors.name + "'")
                engine = SimEngine(world, self.disk, process, executors, self.options, None, self.luck)
                try:
                    engine.write(None, to_table(batch), parallelism=2)
                except CommitOutcomeUnknownError:
                    return  # whoever writes such a batch again may double it: the owner stays in doubt
                except HudiError as error:
                    process.writes_on = False  # others may end what a refused call left
                    world.tell(f"backfill {number} refused: {error}"[:160])
                    truth.refuse(self.owner)
                    world.sleep_s(world.random.random() * 0.5)
                    continue
                finally:
                    if not process.killed:
                        process.writes_on = False
                        close(engine)
                truth.acknowledge(self.owner)
                break


class Reader:
    """Chooses the newest instant, holds its files for a while, and then reads them."""

    def __init__(self, world, disk, retained):
        self.world, self.disk, self.retained = world, disk, retained
        world.start(Process("reader"), "reader", self._run, daemon=True)

    def _run(self):
        world, disk = self.world, self.disk
        while True:
            world.sleep_s(world.random.random() * 0.2)
            held, done = needed_files(disk.files), self._completed()
            for _ in range(world.random.randrange(30)):
                world.point("reads")
                if len(self._completed() - done) >= self.retained:
                    break
                if done and max(done) not in disk.files:
                    break  # its instant was undone by hand, which no reader outlives
                missing = [path for path in held if path not in disk.files]
                if missing:
                    world.violate(f"a reader lost {missing[0]} after {len(self._completed() - done)} commits")

    def _completed(self):
        folders = (".hoodie", ".hoodie/timeline")
        return {name for name in self.disk.files if name.rpartition("/")[0] in folders and name.endswith("commit")}


class Operator:
    """Savepoints, cleans, archival, rollbacks and restores from a shell of its own."""

    def __init__(self, world, disk, truth, luck, jobs, finish=None, name="operator"):
        self.world, self.disk, self.truth, self.luck, self.jobs = world, disk, truth, luck, jobs
        self.finish, self.name = finish, name
        self.count = 0
        world.start(Process(name), name, self._run)

    def _run(self):
        world = self.world
        for job in self.jobs:
            world.sleep_s(world.random.random() * 0.6)
            self._in_shell(job)
            while self._has_pending_restore():
                world.sleep_s(0.2)
                self._in_shell(self.finish)  # a restore that died blocks writers until somebody finishes it

    def _has_pending_restore(self):
        found = [re.fullmatch(r"\.hoodie/(?:timeline/)?(\d+)(?:_\d+)?\.restore(\.\w+)?", n) for n in self.disk.files]
        begun = {one[1] for one in found if one and one[2]}
        return bool(begun - {one[1] for one in found if one and not one[2]})

    def _in_shell(self, job):
        world = self.world
        process = Process(f"shell{self.name.removeprefix('operator')}{self.count}")
        self.count += 1
        actor = world.start(process, process.name, lambda: self._do(job, process), daemon=True)
        world.wait(lambda: actor.done or process.killed, "operator")
        if actor.error is not None and not isinstance(actor.error, HudiError):
            raise actor.error

    def _do(self, job, process):
        from table.config.table_config import load_table_config

        storage = SimStorage(self.disk, process, self.luck.rate)
        try:
            config = load_table_config(storage)
            if config is not None:
                job(self, HudiTable(storage, config))
        except HudiError as error:
            self.world.tell(f"{getattr(job, '__name__', job)}: {type(error).__name__} {error}"[:200])

"""A fault that is made for one window: a writer opens its instant while another one rolls it back."""


class Reopening:
    """Stops a writer where it opens its instant, and wakes it inside of its rollback (rule 5).

    The other writer stands still in its rollback, behind the fence. Once a task of the first one has published a file,
    the first one is killed, and the rollback goes on. A file that lies there afterwards is known to no instant.

    Args:
        slow: what the names of the first writer's drivers begin with.
        tasks: what the names of its executors begin with.
        by: what the names of the other writer's drivers begin with.
    """

    def __init__(self, slow, tasks, by):
        self._slow_name, self._tasks_name, self._by_name = slow, tasks, by
        self._step, self._time, self._slow, self._by = "away", None, None, None

    def __call__(self, world, actor, label):
        process = actor.process
        if world.calm:
            return
        if process.name.startswith(self._slow_name) and self._is_free(world):
            self._stop(world, actor, label)
        elif process.name.startswith(self._by_name) and self._step == "waits" and self._closes(label):
            self._step = "fenced"
        elif process.name.startswith(self._by_name) and self._step == "fenced":
            self._wake(world, actor, label)
        elif self._step == "wakes" and label.startswith("publish") and self._time in label:
            self._step = "published"
        elif self._step == "published" and process.name.startswith((self._slow_name, self._tasks_name)):
            self._kill(world, label)
        elif self._step in ("wakes", "published") and (self._slow.killed or self._by.paused_until <= world.now_ms):
            self._step = "away"

    def _is_free(self, world):
        if self._step == "waits":
            return self._slow.killed or self._slow.paused_until <= world.now_ms
        return self._step == "away"

    def _stop(self, world, actor, label):
        opens = label.startswith(("open_staging ", "create .hoodie/.hudistream/open/"))
        if opens and world.random.random() < 0.7:
            self._step, self._slow, self._time = "waits", actor.process, label.replace("/", " ").split()[-1]
            self._halt(world, actor, 2_500, label)

    def _closes(self, label):
        return label in (f"fence {self._time}", f"delete .hoodie/.hudistream/open/{self._time}")

    def _wake(self, world, actor, label):
        self._step, self._by = "wakes", actor.process
        self._slow.paused_until = world.now_ms
        self._halt(world, actor, 1_000, label)

    def _kill(self, world, label):
        self._step = "away"
        self._slow.killed = True
        self._by.paused_until = world.now_ms
        world.tell(f"{self._slow.name} is killed at {label}: a file of {self._time} is published")

    @staticmethod
    def _halt(world, actor, ms, label):
        actor.process.paused_until = world.now_ms + ms
        actor.delay_next = 1  # the pause begins here
        world.tell(f"{actor.process.name} is paused at {label} until {ms} ms from now")

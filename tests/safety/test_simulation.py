"""Worlds of a fixed set of seeds; a seed replays; each rule taken out is found. More: `make torture`."""

import gc
import time
import weakref

import pytest
from simulation import worlds
from simulation.rules import BUILDS, RULES, patched
from simulation.world import Process, World
from tiers import quick, slow

from table import clock

# worlds looked at before a rule counts as not missed; found within twenty on the day this was written
QUICK = {"1", "4", "5", "6", "7", "8", "18"}
# looked at first
FOUND_AT = {
    "1: deletion names files": 3,
    "5: the fence": 14,
    "5: an instant is open before it is requested": 2,
    "7: one writer means one": 1,
    "7: a conversion switches the table that it holds": 50,
    "7: who takes the table withdraws its conversion": 31,
    "8: renewals do nothing else": 4,
    "17: a plan that lacks a decided commit is withdrawn": 3,
    "18: the lists know what a clean deletes": 5,
    "18: who ends the commit of another process reads its files": 2,
    "18: archival waits until the lists are compacted": 85,
    "18: a batch finds keys by the index of its snapshot": 7,
    "18: a record index that lacks keys is dropped": 3,
}


@pytest.fixture(autouse=True)
def _no_log():
    import logging

    import structlog

    before = structlog.get_config()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    yield
    structlog.configure(**before)


# kind of worlds: (what builds them, how many run in `make test`, their first seeds, more arguments of `worlds.run`).
# `make test-all` runs the seeds below `MORE`, too, and `make torture` many others. Seeds at which something was found:
# 17 to 1580: two writers with one log file, compactions that missed a write or each other, a view that a clean emptied,
#   a dead writer that was waited for, a compaction that ended as a batch began
# 54, 154: a batch decided and not visible, log files of a batch that gave way: a plan lacked the one, named the others
# 3, 253: two processes completed one instant, each at its own time; archival left a write behind one that it retired
# 18, 36, 59, 67: rows of live commits were deleted, or a batch was opened again after its rollback
# 28: a forked child joined the writers with the identity of its parent, whose rows it took for leftovers of its own
# 7147: a compaction ended while a process stood still before it named the metadata table that it had made
MORE = 5
V8, CHANGES = {"version": "8"}, {"version": "6", "has_change_files": True}
KINDS = {
    "one writer": (worlds.build, 1, (*range(4), 100663, 100693, 101126), {}),
    "one writer, version 8": (worlds.build, 0, (0,), V8),
    "one writer, change files": (worlds.build, 1, (0, 2), CHANGES),
    "one writer, change files, version 8": (worlds.build, 0, (1,), V8 | CHANGES),
    "merge-on-read": (worlds.build_merge_on_read, 1, (0,), {}),
    "merge-on-read, version 8": (worlds.build_merge_on_read, 0, (0,), V8),
    "merge-on-read, change files": (worlds.build_merge_on_read, 0, (0,), CHANGES),
    "several writers": (worlds.build_several_writers, 1, (0, 1, 17, 144, 1580, 72, 207, 3523, 5553), {}),
    "several writers, version 8": (worlds.build_several_writers, 0, (0,), V8),
    "several writers, change files": (worlds.build_several_writers, 0, (0,), CHANGES),
    "several writers, change files, version 8": (worlds.build_several_writers, 0, (1,), V8 | CHANGES),
    "clusterings": (worlds.build_clustered, 0, (0,), {}),
    "clusterings beside batches": (worlds.build_clustered_beside, 1, (0,), {}),
    "clusterings that are undone": (worlds.build_undone_clusterings, 1, (0,), {}),
    "clusterings that another engine plans": (worlds.build_planned_clusterings, 0, (54, 154, 122, 175), {}),
    "conversions": (worlds.build_converted, 1, (1, 30), {}),
    "lists of files": (worlds.build_listed, 0, (0,), {}),
    "statistics": (worlds.build_bounded, 0, (0,), {}),
    "record index": (worlds.build_indexed, 1, (0,), {}),
    "record index of log files": (worlds.build_indexed_logs, 1, (0,), {}),
    "new rows in log files": (worlds.build_joined_logs, 1, (0,), {}),
    "indexes that are dropped": (worlds.build_dropped, 0, (7147,), {}),
    "router": (worlds.build_routed, 1, (0, 1, 2), {}),
    "a later version": (worlds.build_later_version, 1, (0, 3, 253), {}),
    "a slow begin": (worlds.build_slow_begin, 0, (0,), {}),
    "a slow batch": (worlds.build_slow_batch, 0, (), {}),
    "a batch that archival passes": (worlds.build_overtaken, 0, (), {}),
    "a table that is opened again": (worlds.build_reopened, 0, (), {}),
    "compactions planned beside streams": (worlds.build_scheduled, 1, (0,), {}),
    "compactions that another engine plans": (worlds.build_planned_beside, 0, (0,), {}),
    "a crowd that outlasts retention": (worlds.build_crowd, 1, (0, 18, 59, 36, 67), {}),
    "a process that forks": (worlds.build_forked, 1, (0, 28), {}),
    "readers of changes": (worlds.build_followers, 0, (0,), CHANGES),
    "readers of changes, version 8": (worlds.build_followers, 0, (1,), V8 | CHANGES),
    "readers with pins": (worlds.build_readers, 0, (0,), {}),
    "readers with pins, version 8": (worlds.build_readers, 0, (0,), V8),
    "slow readers": (worlds.build_slow_readers, 0, (0,), {}),
    "late readers": (worlds.build_late_readers, 1, (0,), {}),
}


@pytest.mark.parametrize(
    ("kind", "seed"),
    [
        case
        for kind, (_, count, seeds, _) in KINDS.items()
        for case in quick(count, ((kind, seed) for seed in dict.fromkeys((*seeds, *range(MORE)))))
    ],
)
def test_nothing_is_lost_doubled_resurrected_or_hidden(kind, seed):
    build, _, _, more = KINDS[kind]
    found = worlds.run(seed, build, **more)
    assert found is None, "\n".join([found[0], *found[1][-60:]])


@pytest.mark.parametrize("seed", quick(1, range(12)))
def test_a_reader_that_follows_the_changes_holds_the_rows_of_the_table(seed):
    made = []
    found = worlds.run(seed, lambda given: made.append(worlds.build_followers(given)) or made[-1])
    assert found is None, "\n".join([found[0], *found[1][-60:]])
    assert sum(follower.applied for world, _ in made for follower in world.followers)


@pytest.mark.parametrize("seed", [3, pytest.param(8, marks=pytest.mark.slow)])
def test_a_seed_replays_its_world(seed):
    def story():
        world, _ = worlds.build(seed)
        world.run()
        return world.steps, world.now_ms, world.story

    assert story() == story()


@pytest.mark.slow
def test_garbage_of_an_earlier_test_does_not_change_a_world():
    def draw():
        clock.jitter()

    def story(garbage):
        world, _ = worlds.build(3)
        for _ in range(garbage):
            leftover = _Leftover()
            leftover.itself = leftover
            weakref.finalize(leftover, draw)
        del leftover
        world.run()
        return world.steps, world.now_ms

    before = gc.get_threshold()
    gc.set_threshold(10, 1, 1)
    try:
        assert story(100) == story(1)
    finally:
        gc.set_threshold(*before)


class _Leftover:
    """What an earlier test dropped: in a cycle, so that only the collector frees it."""


def test_an_actor_that_never_ran_is_not_started_while_its_world_ends():
    """The actors that ended chose the next one, and the world joined a thread that was about to be started."""
    world = World(0)
    process = Process("daemons")
    waits = [world.start(process, name, lambda: world.sleep_s(1000), daemon=True) for name in "ab"]
    world.start(Process("main"), "main", lambda: world.wait(lambda: all(a.wake_ms for a in waits), "both sleep"))
    late = world.start(process, "late", lambda: None, daemon=True)
    late.wake_ms = world.now_ms + 1_000_000
    start, release = late._thread.start, waits[1]._turn.release
    late._thread.start = lambda: (time.sleep(0.3), start())
    waits[1]._turn.release = lambda: (release(), time.sleep(0.1))
    world.run()
    assert [actor.done for actor in waits] == [True, True]
    assert not late._started


# a loss that was reported once -> the rule that ended it, the worlds and a seed that found it without the rule, and the
# version of the table where it is not the first one
BY_SEED = {
    "a live writer that is undone": ("14: the living are left alone", worlds.build_several_writers, 0),
    "a savepoint beside a clean, layout 2": ("10: services and operators take turns", worlds.build, 282, "8"),
    "a compaction that missed a write, layout 2": (
        "14: a compaction knows every write before it", worlds.build_scheduled, 3, "8",
    ),
    "a pin that a clean did not see, layout 2": (
        "10: a reader looks for cleans behind its pin", worlds.build_slow_readers, 77, "8",
    ),
    "two ends, layout 2": ("3: one object decides how an instant ends", worlds.build_crowd, 7, "8"),
    "a pinned file, layout 2": ("10: cleaning reads the pins", worlds.build_readers, 15, "8"),
    "an update that archival forgot, layout 2": (
        "15: archival keeps what a batch has not seen", worlds.build_overtaken, 78, "8",
    ),
    "keys in two file groups": (
        "15: a batch is planned from the timeline behind its request", worlds.build_slow_begin, 15, "8",
    ),
    "archivals at once, layout 2": ("15: what is retired was read", worlds.build_later_version, 111),
    "leftovers, layout 2": ("6: leftovers go before the line moves", worlds.build_later_version, 90),
    "rows that waited, twice": ("20: what waits keeps its query and number", worlds.build_routed, 7),
    "rows that waited, swept": ("20: a sweep keeps what waits", worlds.build_routed, 1),
}  # fmt: skip


# the same rules are found in tables of version 6, or these worlds take long
LONG = {
    "an update that archival forgot, layout 2", "archivals at once, layout 2", "leftovers, layout 2",
    "a savepoint beside a clean, layout 2", "a pin that a clean did not see, layout 2", "keys in two file groups",
    "a compaction that missed a write, layout 2", "two ends, layout 2",
}  # fmt: skip


@pytest.mark.parametrize("loss", [slow(loss) if loss in LONG else loss for loss in BY_SEED])
def test_a_loss_comes_back_by_its_seed_when_its_rule_is_taken_out(loss):
    """A change of the code moves seeds: then others are tried."""
    name, build, first, *version = BY_SEED[loss]
    for seed in dict.fromkeys([first, *range(120)]):
        with patched(*RULES[name]):
            is_lost = worlds.run(seed, build, *version) is not None
        if is_lost:
            assert worlds.run(seed, build, *version) is None
            return
    pytest.fail(f"rule {name!r} can be taken out")


@pytest.mark.parametrize("name", RULES)
def test_each_rule_can_be_taken_out(name):
    """What is replaced to take a rule out still has the name that the rules know."""
    with patched(*RULES[name]):
        pass


# found after many worlds
LATE = {
    "18: a key that lies in a log alone is known",
    "4: a completed file does not come back", "18: changes go where a key has its row",
    "18: a log tells which keys come and go",
}  # fmt: skip
BY_NUMBER = [
    name
    for name in RULES
    if name.split(":")[0] in QUICK and name not in {*LATE, *(case[0] for case in BY_SEED.values())}
]


@pytest.mark.parametrize("name", BY_NUMBER)
def test_a_rule_taken_out_is_found(name):
    seeds = dict.fromkeys([FOUND_AT.get(name, 0), *range(80)])
    with patched(*RULES[name]):
        assert any(worlds.run(seed, BUILDS.get(name, worlds.build)) for seed in seeds)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in RULES if name not in BY_NUMBER])
def test_a_rule_taken_out_is_found_in_time(name):
    with patched(*RULES[name]):
        assert any(worlds.run(seed, BUILDS.get(name, worlds.build)) for seed in range(2000))

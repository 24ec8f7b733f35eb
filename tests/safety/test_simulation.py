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

# and worlds in which something was found
SEEDS = quick(3, (*range(4), 100663, 100693, 101126, *range(4, 36)))
# worlds looked at before a rule counts as not missed; found within twenty on the day this was written
QUICK = {"1", "4", "5", "6", "7", "8", "18"}
# looked at first
FOUND_AT = {
    "1: deletion names files": 3,
    "5: the fence": 14,
    "5: an instant is open before it is requested": 2,
    "7: one writer means one": 1,
    "7: a conversion switches the table that it holds": 50,
    "7: who takes the table withdraws its conversion": 24,
    "8: renewals do nothing else": 4,
    "17: a plan that lacks a decided commit is withdrawn": 3,
    "18: the lists know what a clean deletes": 5,
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


@pytest.mark.parametrize("seed", SEEDS)
def test_nothing_is_lost_doubled_resurrected_or_hidden(seed):
    found = worlds.run(seed)
    assert found is None, "\n".join([found[0], *found[1][-60:]])


# kinds of worlds whose tables have change files, too
CHANGED = [
    (worlds.build, *range(3)), (worlds.build_several_writers, *range(2)), (worlds.build_merge_on_read, 0),
    (worlds.build_followers, *range(2)),
]  # fmt: skip


@pytest.mark.parametrize(
    ("build", "seed"),
    [*((build, seed) for build, *seeds in CHANGED for seed in seeds),
     *(pytest.param(build, seed, marks=pytest.mark.slow) for build, *_ in CHANGED for seed in range(3, 40))],
    ids=lambda value: value if isinstance(value, int) else value.__name__,
)  # fmt: skip
def test_change_files_are_with_the_base_files_beside_them(build, seed):
    found = worlds.run(seed, build, version="8" if seed % 2 else "6", has_change_files=True)
    assert found is None, "\n".join([found[0], *found[1][-60:]])


ON_LOGS = quick(1, range(60))


@pytest.mark.parametrize("seed", ON_LOGS)
def test_nothing_is_lost_doubled_resurrected_or_hidden_on_merge_on_read(seed):
    found = worlds.run(seed, worlds.build_merge_on_read)
    assert found is None, "\n".join([found[0], *found[1][-60:]])


# 17 to 1580: two writers with one log file, compactions that missed a write or each other, a view that a clean emptied,
# a dead writer that was waited for, a compaction that ended as a batch began
SHARED = quick(2, (0, 1, 17, 144, 1580, 72, 207, 3523, 5553, *range(2, 17), *range(18, 60)))


@pytest.mark.parametrize("seed", SHARED)
def test_nothing_is_lost_doubled_resurrected_or_hidden_by_several_writers_at_once(seed):
    found = worlds.run(seed, worlds.build_several_writers)
    assert found is None, "\n".join([found[0], *found[1][-60:]])


CLUSTERED = quick(1, range(60))


@pytest.mark.parametrize("seed", CLUSTERED)
def test_nothing_is_lost_doubled_resurrected_or_hidden_by_clusterings(seed):
    found = worlds.run(seed, worlds.build_clustered)
    assert found is None, "\n".join([found[0], *found[1][-60:]])


BESIDE = quick(1, range(60))


@pytest.mark.parametrize("seed", BESIDE)
def test_nothing_is_lost_doubled_resurrected_or_hidden_by_clusterings_beside_batches(seed):
    found = worlds.run(seed, worlds.build_clustered_beside)
    assert found is None, "\n".join([found[0], *found[1][-60:]])


# a batch decided and not visible, log files of a batch that gave way: a plan lacked the one and named the others
PLANNED = quick(2, (54, 154, *range(54), 122, 175))


@pytest.mark.parametrize("seed", PLANNED)
def test_nothing_is_lost_doubled_resurrected_or_hidden_beside_clusterings_that_another_engine_plans(seed):
    found = worlds.run(seed, worlds.build_planned_clusterings)
    assert found is None, "\n".join([found[0], *found[1][-60:]])


CONVERTED = quick(2, (1, 30, 0, *range(2, 30), *range(31, 60)))


@pytest.mark.parametrize("seed", CONVERTED)
def test_nothing_is_lost_doubled_resurrected_or_hidden_by_conversions_that_stand_still(seed):
    found = worlds.run(seed, worlds.build_converted)
    assert found is None, "\n".join([found[0], *found[1][-60:]])


LISTED = quick(1, range(60))


@pytest.mark.parametrize("seed", LISTED)
def test_nothing_is_missed_by_who_trusts_the_lists_of_files(seed):
    found = worlds.run(seed, worlds.build_listed)
    assert found is None, "\n".join([found[0], *found[1][-60:]])


BOUNDED = quick(1, range(60))


@pytest.mark.parametrize("seed", BOUNDED)
def test_nothing_is_missed_by_who_trusts_the_statistics(seed):
    found = worlds.run(seed, worlds.build_bounded)
    assert found is None, "\n".join([found[0], *found[1][-60:]])


INDEXED = quick(1, range(60))


@pytest.mark.parametrize("seed", INDEXED)
def test_nothing_is_missed_by_who_trusts_the_record_index(seed):
    found = worlds.run(seed, worlds.build_indexed)
    assert found is None, "\n".join([found[0], *found[1][-60:]])


INDEXED_LOGS = quick(1, range(60))


@pytest.mark.parametrize("seed", INDEXED_LOGS)
def test_nothing_is_missed_by_who_trusts_the_record_index_of_log_files(seed):
    found = worlds.run(seed, worlds.build_indexed_logs)
    assert found is None, "\n".join([found[0], *found[1][-60:]])


@pytest.mark.parametrize("seed", quick(1, range(60)))
def test_nothing_is_doubled_where_new_rows_join_log_files(seed):
    found = worlds.run(seed, worlds.build_joined_logs)
    assert found is None, "\n".join([found[0], *found[1][-60:]])


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(60))
def test_nothing_is_missed_where_indexes_are_dropped_and_made_anew(seed):
    found = worlds.run(seed, worlds.build_dropped)
    assert found is None, "\n".join([found[0], *found[1][-60:]])


@pytest.mark.parametrize("seed", quick(3, range(100)))
def test_a_router_writes_each_row_once_and_in_order(seed):
    found = worlds.run(seed, worlds.build_routed)
    assert found is None, "\n".join([found[0], *found[1][-60:]])


# 3: two processes completed one instant, each at its own time; 253: archival left a write behind one that it retired
LATER = quick(1, (0, 3, 253, 1, 2, *range(4, 60)))


@pytest.mark.parametrize("seed", LATER)
def test_nothing_is_lost_doubled_resurrected_or_hidden_in_a_table_of_a_later_version(seed):
    found = worlds.run(seed, worlds.build_later_version)
    assert found is None, "\n".join([found[0], *found[1][-60:]])


LATER_TOO = quick(1, range(40))


@pytest.mark.parametrize("seed", LATER_TOO)
@pytest.mark.parametrize(
    "build", [worlds.build, worlds.build_readers, worlds.build_several_writers, worlds.build_merge_on_read]
)
def test_nothing_is_lost_doubled_resurrected_or_hidden_in_the_same_worlds_of_version_8(build, seed):
    found = worlds.run(seed, build, "8")
    assert found is None, "\n".join([found[0], *found[1][-60:]])


SLOW = quick(1, range(40))


@pytest.mark.parametrize("seed", SLOW)
@pytest.mark.parametrize(
    "build", quick(1, [worlds.build_slow_begin, worlds.build_slow_batch, worlds.build_overtaken, worlds.build_reopened])
)
def test_nothing_is_lost_doubled_resurrected_or_hidden_by_a_batch_that_outlasts_retention(build, seed):
    found = worlds.run(seed, build)
    assert found is None, "\n".join([found[0], *found[1][-60:]])


SCHEDULED = quick(1, range(60))


@pytest.mark.parametrize("seed", SCHEDULED)
def test_nothing_is_lost_doubled_resurrected_or_hidden_by_compactions_planned_beside_streams(seed):
    found = worlds.run(seed, worlds.build_scheduled)
    assert found is None, "\n".join([found[0], *found[1][-60:]])


PLANNED = quick(1, range(60))


@pytest.mark.parametrize("seed", PLANNED)
def test_nothing_is_lost_doubled_resurrected_or_hidden_by_compactions_that_another_engine_plans(seed):
    found = worlds.run(seed, worlds.build_planned_beside)
    assert found is None, "\n".join([found[0], *found[1][-60:]])


# 18, 36, 59, 67: rows of live commits were deleted, or a batch was opened again after its rollback
CROWDS = quick(1, (0, 18, 59, 36, 67, *range(1, 18), *range(100, 160)))


@pytest.mark.parametrize("seed", CROWDS)
def test_nothing_is_lost_doubled_resurrected_or_hidden_in_a_crowd_that_outlasts_retention(seed):
    found = worlds.run(seed, worlds.build_crowd)
    assert found is None, "\n".join([found[0], *found[1][-60:]])


# 28: a forked child joined the writers with the identity of its parent, whose rows it took for leftovers of its own
FORKED = quick(1, (0, 28, *range(1, 28)))


@pytest.mark.parametrize("seed", FORKED)
def test_nothing_is_lost_doubled_resurrected_or_hidden_beside_a_process_that_forks(seed):
    found = worlds.run(seed, worlds.build_forked)
    assert found is None, "\n".join([found[0], *found[1][-60:]])


@pytest.mark.parametrize("seed", quick(1, range(3)))
@pytest.mark.parametrize("build", [worlds.build_readers, worlds.build_slow_readers, worlds.build_late_readers])
def test_no_reader_loses_what_it_has_pinned(build, seed):
    found = worlds.run(seed, build)
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


# a loss that was reported once -> the rule that ended it, the worlds and the seed that find it without the rule, and
# the version of the table where it is not the first one
BY_SEED = {
    "a live writer that is undone": ("14: the living are left alone", worlds.build_several_writers, 0),
    "a savepoint beside a clean, layout 2": ("10: services and operators take turns", worlds.build, 282, "8"),
    "a compaction that missed a write, layout 2": (
        "14: a compaction knows every write before it", worlds.build_scheduled, 3, "8",
    ),
    "a pin that a clean did not see, layout 2": (
        "10: a reader looks for cleans behind its pin", worlds.build_slow_readers, 77, "8",
    ),
    "two ends, layout 2": ("3: one object decides how an instant ends", worlds.build_crowd, 5, "8"),
    "a pinned file, layout 2": ("10: cleaning reads the pins", worlds.build_readers, 15, "8"),
    "an update that archival forgot, layout 2": (
        "15: archival keeps what a batch has not seen", worlds.build_overtaken, 78, "8",
    ),
    "archivals at once": ("15: what is retired was read", worlds.build_crowd, 55),
    "an update that archival forgot": (
        "15: archival keeps what a batch has not seen", worlds.build_overtaken, 31,
    ),
    "keys in two file groups": (
        "15: a batch is planned from the timeline behind its request", worlds.build_slow_begin, 15, "8",
    ),
    "a view that a clean emptied": (
        "14: a commit looks at what cleans took from its view", worlds.build_clustered, 9,
    ),
    "a completed file that comes back": ("4: a completed file does not come back", worlds.build_slow_batch, 27),
    "a process that forks": ("14: a forked child is another writer", worlds.build_forked, 23),
    "a rollback that names no file": ("6: leftovers go before the line moves", worlds.build, 11),
    "archivals at once, layout 2": ("15: what is retired was read", worlds.build_later_version, 111),
    "leftovers, layout 2": ("6: leftovers go before the line moves", worlds.build_later_version, 90),
    "files of a second attempt": ("17: an attempt deletes nothing before its end", worlds.build_clustered_beside, 13),
    "keys that come back": ("18: changes go where a key has its row", worlds.build_indexed_logs, 28),
    "keys of logs": ("18: a log tells which keys come and go", worlds.build_indexed_logs, 1),
    "a folder that was listed too late": (
        "10: a reader looks for cleans before its listing", worlds.build_late_readers, 1,
    ),
    "rows that overtake those that wait": ("20: what waits is written before what comes", worlds.build_routed, 1),
    "rows that waited, twice": ("20: what waits keeps its query and number", worlds.build_routed, 7),
    "rows that waited, swept": ("20: a sweep keeps what waits", worlds.build_routed, 1),
    "a late end": ("16: what began before a compaction ends behind its request", worlds.build_planned_beside, 292),
}  # fmt: skip


# the same rules are found in tables of version 6
TWICE = {"an update that archival forgot, layout 2", "archivals at once, layout 2", "leftovers, layout 2"}
# worlds that take long
LONG = {
    "a view that a clean emptied", "keys in two file groups", "a compaction that missed a write, layout 2",
    "an update that archival forgot", "archivals at once", "a late end", "two ends, layout 2",
    "a completed file that comes back", "rows that overtake those that wait", "a process that forks",
    "keys that come back", "keys of logs",
}  # fmt: skip


@pytest.mark.parametrize("loss", [slow(loss) if loss in TWICE | LONG else loss for loss in BY_SEED])
def test_a_loss_comes_back_by_its_seed_when_its_rule_is_taken_out(loss):
    name, build, seed, *version = BY_SEED[loss]
    assert worlds.run(seed, build, *version) is None
    with patched(*RULES[name]):
        assert worlds.run(seed, build, *version) is not None


@pytest.mark.parametrize("name", RULES)
def test_each_rule_can_be_taken_out(name):
    """What is replaced to take a rule out still has the name that the rules know."""
    with patched(*RULES[name]):
        pass


BY_NUMBER = [
    name for name in RULES if name.split(":")[0] in QUICK and name not in {case[0] for case in BY_SEED.values()}
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

"""Change feeds: inserts, updates and deletes with old values, of a range or of each commit; what is refused."""

import pickle
import random
import re
from collections import Counter
from itertools import pairwise

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from engine import Engine, form_of, rows

from hudistream import HudiTable
from streaming import ArrowSink, as_upserts
from table import CleanSettings, InvalidConfigError, read_table
from table.columns.same_values import same_rows
from table.scan.feed.choices import CHANGE_COLUMNS
from table.scan.feed.compare import KEY, NUMBER, TIME, Rules, compare_rows, pair_up

FORMS = [(version, kind) for version in (6, 8, 9) for kind in ("COPY_ON_WRITE", "MERGE_ON_READ")]
OPERATION, INDEX = "hoodie.datasource.write.operation", "hoodie.index.type"
COLUMNS = ["id", "p", "ts", "v"]


def _form(form, is_quick):
    return pytest.param(form, id=f"{form[0]}-{form[1][:1]}", marks=[] if is_quick else [pytest.mark.slow])


def plain(row):
    return None if row is None else tuple(row[name] for name in COLUMNS)


def shown(feed):
    """Changes as a multiset: operation, row after, row before."""
    return Counter(
        (row["_change_operation"], plain(row), plain(row.get("_change_before"))) for row in feed.to_arrow().to_pylist()
    )


def short(feed):
    """Operation, number of the key, value."""
    return sorted((op, row[0], row[3]) for op, row, _ in shown(feed).elements())


def put(path, options, batch):
    return Engine(path, options).write(None, batch).instant_time


# -- pure


def held(*entries):
    """Rows ``(key, time, number, value)`` as they are compared."""
    names = ("v", KEY, TIME, NUMBER)
    return pa.table({name: pa.array([one[at] for one in entries], pa.string()) for at, name in enumerate(names)})


@pytest.mark.parametrize(("before", "after", "unchanged", "expected"), [
    ("a1k", "a1k", True, ([], [], [])),
    ("a1k", "a2k", True, (["aa"], [], [])),
    ("a1k", "a2k", False, ([], [], [])),
    ("a1k", "b2k", False, (["ab"], [], [])),
    ("a1k a1l", "b2k", True, (["ab"], ["a"], [])),
    ("", "a2k a2k", True, ([], [], ["a", "a"])),
    ("a1k a1k", "a1k b2k", True, (["ab"], [], [])),
    ("a1k", "a1k b2k", True, ([], [], ["b"])),
    ("a1k", "a0k", True, ([], [], [])),  # a clustering that gave the row another time
    ("a1k", "", True, ([], ["a"], [])),
])  # fmt: skip
def test_rows_are_paired(before, after, unchanged, expected):
    # value, time and key of each row
    first, second = (
        held(*[(one[0], one[2], one[1], f"{one[1]}_{at}") for at, one in enumerate(text.split())])
        for text in (before, after)
    )
    found = compare_rows(first, second, Rules(("v",), frozenset({"2"}), unchanged))
    updates = [a + b for a, b in zip(found.old["v"].to_pylist(), found.new["v"].to_pylist(), strict=True)]
    assert (updates, found.deleted["v"].to_pylist(), found.inserted["v"].to_pylist()) == expected


def test_pairs_of_many_numbers():
    rng = random.Random(5)
    for _ in range(20):
        first, second = (
            pa.array([rng.randrange(6) for _ in range(rng.randrange(9))], pa.int64()).to_numpy() for _ in "ab"
        )
        at, there = pair_up(first, second)
        assert first[at].tolist() == second[there].tolist()
        assert Counter(first[at].tolist()) == Counter(first.tolist()) & Counter(second.tolist())


@pytest.mark.parametrize(("kind", "first", "second", "expected"), [
    (pa.int64(), [1, None, 2], [1, None, None], [True, True, False]),
    (pa.float64(), [0.0, float("nan"), None], [-0.0, float("nan"), 0.0], [False, True, False]),
    (pa.list_(pa.int32()), [[1], [], [1, 2], None, [3]], [[1], [], [1, 3], [], [3, 4]], [True, True] + [False] * 3),
    (pa.struct([("a", pa.string())]), [{"a": "x"}, None, {"a": None}], [{"a": "y"}, None, None], [False, True, False]),
    (pa.map_(pa.string(), pa.int32()), [[("k", 1)], []], [[("k", 2)], []], [False, True]),
])  # fmt: skip
def test_rows_with_the_same_values(kind, first, second, expected):
    one, other = (pa.table({"c": pa.array(values, kind)}) for values in (first, second))
    assert same_rows(one, other).tolist() == expected


# -- a table of each kind


@pytest.fixture(scope="module", params=[_form(form, FORMS.index(form) in (0, 1, 5)) for form in FORMS])
def story(request, tmp_path_factory):
    """A table, and where each step ended: rows 0-5; 0 and 1 updated; 2 deleted; 3 as it was; 2 again; 4 moved."""
    path = str(tmp_path_factory.mktemp("feed") / "t")
    # a compaction in the background would be the newest instant now and then
    form = {**form_of(*request.param), "hoodie.datasource.compaction.async.enable": "false"}
    steps = [
        (form, rows(range(6), v="a")),
        (form, rows([0, 1], ts=1, v="b")),
        ({**form, OPERATION: "delete"}, rows([2], ts=2)),
        (form, rows([3], v="a")),
        (form, rows([2, 9], ts=3, v="c")),
    ]
    table, seen = None, []
    for options, batch in steps:
        put(path, options, batch)
        table = table or HudiTable.open(path)
        seen.append(table.newest_instant)
    moved = rows([4], lambda _: "p2", ts=4, v="moved")
    if request.param[1] == "COPY_ON_WRITE":
        put(path, {**form, INDEX: "GLOBAL_SIMPLE"}, moved)
    else:  # no index of ours moves rows there
        put(path, {**form, OPERATION: "delete"}, rows([4]))
        put(path, form, moved)
    return table, [*seen, table.newest_instant]


def test_what_each_commit_did(story):
    table, seen = story

    def feed(first, last, **how):
        return short(table.changes(seen[first], seen[last], deletes=True, **how))

    assert short(table.changes(None, seen[0], deletes=True)) == [("i", f"k{n}", "a") for n in range(6)]
    assert feed(0, 1) == [("u", "k0", "b"), ("u", "k1", "b")]
    assert feed(1, 2) == [("d", "k2", "a")]
    assert feed(2, 3) == [("u", "k3", "a")]
    assert feed(2, 3, unchanged=False) == []
    assert feed(3, 4) == [("i", "k2", "c"), ("i", "k9", "c")]
    assert feed(4, 5, moves="delete_insert") == [("d", "k4", "a"), ("i", "k4", "moved")]
    assert feed(4, 5) == [("u", "k4", "moved")]
    moved = shown(table.changes(seen[4], seen[5], before=True))
    assert moved == Counter({("u", ("k4", "p2", 4, "moved"), ("k4", "p1", 0, "a")): 1})


def test_a_range_is_net_and_each_commit_can_be_had(story):
    table, seen = story
    net = short(table.changes(seen[0], seen[4], deletes=True))
    assert net == [("i", "k9", "c"), ("u", "k0", "b"), ("u", "k1", "b"), ("u", "k2", "c"), ("u", "k3", "a")]
    # what came and went between, is not there
    assert short(table.changes(seen[1], seen[3], deletes=True)) == [("d", "k2", "a"), ("u", "k3", "a")]
    each = table.changes(seen[0], seen[4], deletes=True, each_commit=True).to_arrow().to_pylist()
    told = [(row["_change_operation"], row["id"]) for row in each]
    assert told[:4] == [("u", "k0"), ("u", "k1"), ("d", "k2"), ("u", "k3")]
    assert sorted(told[4:]) == [("i", "k2"), ("i", "k9")]
    instants = table.history().sort_by("instant")["instant"].to_pylist()
    assert [row["_change_instant"] for row in each] == [instants[1]] * 2 + [instants[2], instants[3]] + [
        instants[4]
    ] * 2


def test_what_is_shown_can_be_chosen(story):
    table, seen = story
    assert short(table.changes(seen[0], seen[2], deletes=False)) == [("u", "k0", "b"), ("u", "k1", "b")]
    found = table.changes(seen[1], seen[2], ["v", "id"], deletes=True, before=True)
    assert found.schema == found.to_arrow().schema
    assert found.schema.names == ["_change_operation", "_change_instant", "v", "id", "_change_before"]
    assert found.to_arrow()["_change_before"].to_pylist() == [{"v": "a", "id": "k2"}]
    assert len(table.changes(limit=3, deletes=True).to_arrow()) == 3
    # the changes of the rows with a value: one that no longer has it goes
    assert short(table.changes(seen[0], seen[1], where=[("v", "=", "a")], deletes=True)) == [
        ("d", "k0", "a"), ("d", "k1", "a")
    ]  # fmt: skip
    assert short(table.changes(seen[0], seen[1], where=pc.field("v") == "b", deletes=True)) == [
        ("i", "k0", "b"), ("i", "k1", "b")
    ]  # fmt: skip


def test_parts_are_read_apart(story):
    table, seen = story
    feed = table.changes(seen[0], deletes=True, before=True)
    parts = pickle.loads(pickle.dumps(feed.splits()))
    apart = pa.concat_tables([part.to_batches().read_all() for part in parts])
    assert sorted(map(str, apart.to_pylist())) == sorted(map(str, feed.to_arrow().to_pylist()))


def test_following_goes_on_from_where_it_was_left(story):
    table, seen = story
    batches = list(table.follow(seen[0], most_commits=2, wait_s=None))
    ranges = [(seen[0], seen[2]), (seen[2], seen[4]), (seen[4], seen[5])]
    assert [(batch.since, batch.until) for batch in batches] == ranges
    assert [len(batch.to_arrow()) for batch in batches] == [3, 3, 1]
    assert [batch.since for batch in table.follow(batches[1].until, wait_s=None)] == [seen[4]]
    first = next(table.follow())
    assert first.until == seen[5]
    assert set(first.to_arrow()["_change_operation"].to_pylist()) == {"i"}
    assert list(table.follow(seen[5], wait_s=None)) == []


@pytest.mark.parametrize("story", [FORMS[0], FORMS[5]], indirect=True)
def test_a_chain_of_three_tables_is_equal(story, tmp_path):
    table, seen = story
    one, two = str(tmp_path / "one"), str(tmp_path / "two")
    position = None
    with ArrowSink(one, key="id", partition_by="p") as first, ArrowSink(two, key="id", partition_by="v") as second:
        for since, until in pairwise([None, *seen]):
            first.write(as_upserts(table.changes(since, until, before=True).to_arrow(), moved_by="p"))
            for batch in HudiTable.open(one).follow(position, before=True, wait_s=None):
                second.write(as_upserts(batch.to_arrow(), moved_by=["v"]))
                position = batch.until
            held = [sorted(map(str, read_table(path, COLUMNS).to_pylist())) for path in (one, two)]
            assert held[0] == held[1]
    assert held[0] == sorted(map(str, table.scan(COLUMNS).to_arrow().to_pylist()))


# -- histories


def upserted(state, batch):
    for row in batch.to_pylist():
        old = state.get((row["p"], row["id"]))
        if old is None or row["ts"] >= old[2]:
            state[row["p"], row["id"]] = plain(row)


def a_history(path, form, rng, steps=7):
    """A table, and its positions with the rows that stand there, commit by commit."""
    put(path, form, rows([0, 1]))
    table = HudiTable.open(path)
    states = [
        (None, {}),
        (table.newest_instant, {("p0", "k0"): ("k0", "p0", 0, "v"), ("p1", "k1"): ("k1", "p1", 0, "v")}),
    ]
    for number in range(1, steps + 1):
        state = dict(states[-1][1])
        live = sorted(state)
        kinds = ["upsert"] * 4 + ["delete", "same", "overwrite", "drop", "service", "service"]
        what = rng.choice(kinds) if live else "upsert"
        if what == "upsert":
            chosen = rng.sample(range(24), rng.randint(1, 8))
            late = {n: number - 3 for n in chosen if rng.random() < 0.2 and state.get((f"p{n % 3}", f"k{n}"))}
            batch = pa.concat_tables([rows([n], ts=late.get(n, number), v=rng.choice("abc")) for n in chosen])
            put(path, form, batch)
            upserted(state, batch)
        elif what in ("delete", "same"):
            gone = rng.sample(live, min(len(live), rng.randint(1, 3)))
            batch = pa.Table.from_pylist([dict(zip(COLUMNS, state[key], strict=True)) for key in gone], rows([]).schema)
            put(path, {**form, OPERATION: "delete" if what == "delete" else "upsert"}, batch)
            for key in gone if what == "delete" else ():
                del state[key]
        elif what in ("overwrite", "drop"):
            part = rng.choice(live)[0]
            batch = rows([int(part[1]), int(part[1]) + 3], ts=number, v="o")
            put(path, {**form, OPERATION: "insert_overwrite" if what == "overwrite" else "delete_partition"}, batch)
            state = {key: row for key, row in state.items() if key[0] != part}
            if what == "overwrite":
                upserted(state, batch)
        elif form["hoodie.datasource.write.table.type"] == "MERGE_ON_READ" and rng.random() < 0.7:
            table.compact()
        else:
            table.cluster("v")
        if table.newest_instant != states[-1][0]:
            states.append((table.newest_instant, state))
    return table, states


def expected(before, after, written):
    """Changes between two states; a row written again with equal values is an update."""
    found = Counter()
    for key in before.keys() | after.keys():
        old, new = before.get(key), after.get(key)
        if old is None or new is None:
            found["d" if new is None else "i", new or old, old] += 1
        elif old != new or key in written:
            found["u", new, old] += 1
    return found


@pytest.mark.parametrize("form", [_form(form, FORMS.index(form) in (1, 4)) for form in FORMS])
def test_the_changes_of_any_range_lead_from_one_snapshot_to_the_next(form, tmp_path):
    seed = random.randrange(10**6)
    print("seed", seed)
    rng = random.Random(seed)
    form = {**form_of(*form), "hoodie.compact.inline": "false", "hoodie.clustering.inline": "false"}
    table, states = a_history(str(tmp_path / "t"), form, rng)
    for first in rng.sample(range(len(states)), min(3, len(states))):
        last = rng.randrange(first, len(states))
        (since, before), (until, after) = states[first], states[last]
        if until is None:
            continue
        moves = rng.choice(["update", "delete_insert"])
        found = shown(table.changes(since, until, before=True, moves=moves, unchanged=False))
        assert found == expected(before, after, ()), (seed, first, last)
        every = shown(table.changes(since, until, before=True))
        rewritten = every - found
        assert all(op == "u" and new == old for op, new, old in rewritten.elements()), (seed, first, last)
        state = Counter(before.values())
        for op, new, old in shown(table.changes(since, until, before=True, each_commit=True)).elements():
            state[new] += op != "d"
            state[old] -= op != "i"
        assert +state == Counter(after.values()), (seed, first, last)


# -- kinds of tables, and what is refused


def test_rows_with_virtual_keys_are_compared_by_value(tmp_path):
    path = str(tmp_path / "t")
    form = {"hoodie.populate.meta.fields": "false", OPERATION: "upsert"}
    put(path, form, rows(range(6), v="a"))
    table = HudiTable.open(path)
    first = table.newest_instant
    put(path, form, rows([0, 1], ts=1, v="b"))
    put(path, form, rows([2], v="a"))
    put(path, {**form, OPERATION: "delete"}, rows([3]))
    changes = table.changes(first, deletes=True, before=True)
    assert short(changes) == [("d", "k3", "a"), ("u", "k0", "b"), ("u", "k1", "b")]
    assert len(table.changes(deletes=True).to_arrow()) == 5


def test_rows_that_share_a_key_are_counted(tmp_path):
    path = str(tmp_path / "t")
    options = {OPERATION: "insert"}
    put(path, options, rows([0, 0, 3], v="a"))
    table = HudiTable.open(path)
    first = table.newest_instant
    put(path, options, rows([0], v="b"))
    second = table.newest_instant
    assert short(table.changes(first, deletes=True)) == [("i", "k0", "b")]
    put(path, {OPERATION: "delete"}, rows([0]))
    assert short(table.changes(second, deletes=True)) == [("d", "k0", "a"), ("d", "k0", "a"), ("d", "k0", "b")]
    assert short(table.changes(first, deletes=True)) == [("d", "k0", "a"), ("d", "k0", "a")]


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_columns_are_those_at_the_end(tmp_path, kind):
    path = str(tmp_path / "t")
    put(path, form_of(6, kind), rows(range(3), v="a"))
    table = HudiTable.open(path)
    first = table.newest_instant
    wider = rows([0], ts=1, v="b").append_column("more", pa.array([7], pa.int64()))
    put(path, form_of(6, kind), wider)
    found = table.changes(first, before=True).to_arrow().to_pylist()
    assert [(row["more"], row["_change_before"]["more"]) for row in found] == [(7, None)]
    put(path, {**form_of(6, kind), OPERATION: "delete"}, rows([1]))
    assert table.changes(first, columns=["id", "more"], deletes=True).to_arrow().num_rows == 2


def test_only_touched_groups_are_read_and_files_are_pinned(tmp_path):
    path = str(tmp_path / "t")
    put(path, form_of(6, "COPY_ON_WRITE"), rows(range(9), v="a"))
    table = HudiTable.open(path)
    first = table.newest_instant
    put(path, form_of(6, "COPY_ON_WRITE"), rows([3], ts=1, v="b"))
    feed = table.changes(first, deletes=True)
    plan, pin = feed.plan_pinned()
    assert {found.partition_path for found in plan.slices} == {"p0"}
    assert len(plan.slices) == 2
    put(path, form_of(6, "COPY_ON_WRITE"), rows([3], ts=2, v="c"))
    table.clean(CleanSettings(commits_retained=1, grace_ms=0))
    assert [row["v"] for part in plan.parts for row in part.to_batches().read_all().to_pylist()] == ["b"]
    pin.release()
    table.clean(CleanSettings(commits_retained=1, grace_ms=0))


def test_a_range_that_cleaning_took_is_refused_and_the_first_instant_is_named(tmp_path):
    path = str(tmp_path / "t")
    times = [put(path, form_of(6, "COPY_ON_WRITE"), rows(range(3), ts=n, v=f"v{n}")) for n in range(5)]
    table = HudiTable.open(path)
    assert table.clean(CleanSettings(commits_retained=2, grace_ms=0))
    with pytest.raises(InvalidConfigError, match=f"may have been cleaned; ask for a time from {times[3]}"):
        table.changes(times[1], deletes=True).to_arrow()
    with pytest.raises(InvalidConfigError, match="may have been cleaned"):
        table.changes("earliest", each_commit=True).to_arrow()
    assert len(table.changes("earliest", deletes=True).to_arrow()) == 3
    assert len(table.changes("2020-01-01", deletes=True).to_arrow()) == 3
    assert short(table.changes(times[3], deletes=True)) == [("u", f"k{n}", "v4") for n in range(3)]


@pytest.mark.parametrize("version", [6, 8])
def test_commits_that_were_undone_behind_a_reader_are_named(tmp_path, version):
    path = str(tmp_path / "t")
    form = form_of(version, "COPY_ON_WRITE")
    put(path, form, rows(range(3), v="a"))
    table = HudiTable.open(path)
    kept = table.newest_instant
    undone = put(path, form, rows([0], ts=1, v="b"))
    seen = table.newest_instant
    table.roll_back(undone)
    put(path, form, rows([1], ts=2, v="c"))
    with pytest.raises(InvalidConfigError, match=f"the rollback .* undid the commit {undone}.*give since='{kept}'"):
        table.changes(seen, deletes=True).to_arrow()
    assert short(table.changes(kept, deletes=True)) == [("u", "k1", "c")]  # undone within the range: it never was
    savepoint = table.create_savepoint()
    later = put(path, form, rows([2], ts=3, v="d"))
    seen = table.newest_instant
    table.restore_to_savepoint(savepoint)
    with pytest.raises(InvalidConfigError, match=f"the restore .* undid the commit {later}"):
        table.changes(seen, deletes=True).to_arrow()


@pytest.mark.parametrize("version", [6, 8])
def test_the_only_commit_that_was_undone_behind_a_reader_is_named(tmp_path, version):
    path = str(tmp_path / "t")
    form = form_of(version, "COPY_ON_WRITE")
    undone = put(path, form, rows(range(3), v="a"))
    table = HudiTable.open(path)
    seen = table.newest_instant
    table.roll_back(undone)
    put(path, form, rows([5], v="b"))
    with pytest.raises(InvalidConfigError, match=f"the rollback .* undid the commit {undone}.*give since='earliest'"):
        table.changes(seen, deletes=True).to_arrow()
    assert short(table.changes("2020-01-01", deletes=True)) == [("i", "k5", "b")]


@pytest.mark.parametrize("version", [6, 8, 9])
def test_a_restore_may_undo_what_was_completed_before_its_savepoint(tmp_path, version):
    """A savepoint is of a commit, and restores go by the times of requests."""
    path = str(tmp_path / "t")
    several = {"hoodie.write.concurrency.mode": "optimistic_concurrency_control"}
    form = {**form_of(version, "COPY_ON_WRITE"), **several}
    put(path, form, rows([0], v="a"))

    def put_beside(_batch):
        put(path, form, rows([1], v="b"))

    with ArrowSink(path, form, key="id", partition_by="p", order_by="ts", validators=[put_beside]) as sink:
        slow = sink.write(rows([2], v="c")).instant_time
    table = HudiTable.open(path)
    seen, savepoint = table.newest_instant, table.create_savepoint(slow)
    table.restore_to_savepoint(savepoint)
    assert sorted(read_table(path)["id"].to_pylist()) == ["k0", "k2"]
    with pytest.raises(InvalidConfigError, match="the restore .* undid the commit") as refused:
        table.changes(seen, deletes=True).to_arrow()
    kept = re.search("give since='([^']*)'", str(refused.value))[1]
    assert kept < seen
    assert (("i", "k2", "c") in short(table.changes(kept, deletes=True))) is (version != 6)


def test_what_cannot_be_asked(tmp_path):
    path = str(tmp_path / "t")
    put(path, form_of(6, "COPY_ON_WRITE"), rows(range(2)).rename_columns(["id", "p", "ts", "_change_instant"]))
    table = HudiTable.open(path)
    for ask, said in [
        (lambda: table.changes(moves="upd"), "moves"),
        (lambda: table.changes(deletes=True).to_arrow(), "column '_change_instant'"),
        (lambda: table.changes(deletes=True, columns=["nope"]).to_arrow(), "no column 'nope'"),
        (lambda: table.changes(deletes=True, limit=-1), "limit=-1"),
        (lambda: table.follow(wait_s=0), "wait_s=0"),
        (lambda: table.follow(most_commits=0), "most_commits=0"),
        (lambda: as_upserts(rows([1]), moved_by=()), "_change_operation"),
        (lambda: as_upserts(table.changes(deletes=True, columns=["id"]).to_arrow(), moved_by=["p"]), "before=True"),
    ]:
        with pytest.raises(InvalidConfigError, match=said):
            ask()
    assert table.changes(deletes=True, columns=["id"]).to_arrow().column_names == [*CHANGE_COLUMNS[:2], "id"]


@pytest.mark.parametrize(("before", "after", "last"), [
    (pa.int32(), pa.int64(), 2**40), (pa.float32(), pa.float64(), 1e300), (pa.int32(), pa.float64(), 0.5),
], ids=str)  # fmt: skip
@pytest.mark.parametrize(("version", "kind"), FORMS)
def test_a_range_over_a_widened_column_has_the_wider_type_for_old_values_too(
    tmp_path, version, kind, before, after, last
):
    path = str(tmp_path / "t")
    options = {**form_of(version, kind), INDEX: "BUCKET", "hoodie.bucket.index.num.buckets": "1"}
    options["hudistream.schema.integers.to.floats"] = "true"

    def batch(ids, ts, value, kind):
        values = {"ts": pa.array([ts] * len(ids), pa.int64()), "v": pa.array([value] * len(ids), kind)}
        return pa.table({"id": list(ids), **values})

    with ArrowSink(path, options, key="id", order_by="ts") as sink:
        sink.write(batch("abc", 1, 1, before))
        since = HudiTable.open(path).newest_instant
        sink.write(batch("a", 2, 2, before))
        sink.write(batch("b", 3, last, after))
        sink.write(batch("c", 4, last, after), operation="delete")
    feed = HudiTable.open(path).changes(since=since, deletes=True, before=True).to_arrow()
    assert feed.schema.field("v").type == feed.schema.field("_change_before").type.field("v").type == after
    found = {row["id"]: (row["_change_operation"], row["v"], row["_change_before"]["v"]) for row in feed.to_pylist()}
    assert found == {"a": ("u", 2, 1), "b": ("u", last, 1), "c": ("d", 1, 1)}

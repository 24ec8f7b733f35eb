"""When the metadata table is compacted, at which time, and what has to wait for it."""

import pytest
from engine import Engine, form_of, key_set, rows

from table import UnsupportedTableError, read_table
from table.hudi_table import HudiTable
from table.metadata_table import compact
from table.metadata_table.compact import Compaction, choose_time, find_unmerged
from table.metadata_table.drop import drop_present_metadata_table
from table.metadata_table.file_lists import load_file_lists
from table.metadata_table.metadata_table import METADATA_FOLDER
from table.options.groups import ArchiveSettings, CompactionSettings
from table.services.archival.archival import archive
from table.services.compaction.due import first_that_counts
from table.services.metadata_table_service import keep_metadata_table_small
from table.storage.local import LocalStorage
from table.timeline.instant import Action, Instant, State
from table.timeline.layout import LAYOUT_1, LAYOUT_2, name_instant
from table.timeline.timeline import build_timeline

TIMES = [f"20260528202640{number:03}" for number in range(1000)]


def own_timeline(layout, *deltas):
    """Delta commits of the metadata table: request time and milliseconds until completion."""
    completed_at = [TIMES[at + took] if layout is LAYOUT_2 else None for at, took in deltas]
    pairs = zip(deltas, completed_at, strict=True)
    done = [Instant(TIMES[at], Action.DELTA_COMMIT, State.COMPLETED, end) for (at, _), end in pairs]
    return build_timeline(done, layout)


@pytest.mark.parametrize(
    ("layout", "pending", "time"),
    [
        (LAYOUT_1, [], TIMES[50] + "001"),
        (LAYOUT_1, [30], TIMES[29] + "001"),
        (LAYOUT_1, [30, 20], TIMES[19] + "001"),
        (LAYOUT_1, [60], TIMES[50] + "001"),
        (LAYOUT_2, [], TIMES[60]),
        (LAYOUT_2, [30], TIMES[60]),
    ],
)
def test_the_time_of_a_compaction(layout, pending, time):
    """In layout 1 it lies before what may still tell the metadata table something."""
    begun = [Instant(TIMES[at], Action.COMMIT, State.INFLIGHT) for at in pending]
    assert choose_time(own_timeline(layout, (10, 20), (50, 10)), build_timeline(begun, layout)) == time


@pytest.mark.parametrize("version", [6, 8])
def test_what_no_compaction_has_merged_stays_on_the_timeline(tmp_path, version):
    """Cleans, too: a block that tells what a clean has deleted counts only while the clean is on the timeline."""
    path = str(tmp_path / "t")
    engine = Engine(
        path,
        {
            **form_of(version, "COPY_ON_WRITE"),
            "hoodie.metadata.enable": "true",
            "hoodie.clean.automatic": "true",
            "hoodie.clean.async": "false",
            "hoodie.clean.commits.retained": "1",
        },
    )
    bounds = ArchiveSettings(min_commits=2, max_commits=3)

    def write(numbers):
        for number in numbers:
            engine.write(number, rows([number % 4], ts=number))
        return HudiTable.open(path)

    def on_timeline(table):
        return {instant.time for instant in table.load_timeline() if instant.is_completed}

    table = write(range(8))
    engine.writer.stop()
    before = on_timeline(table)
    archive(table, bounds)
    assert on_timeline(table) == before
    assert find_unmerged(table.storage, table.config) >= before - {min(before)}
    assert keep_metadata_table_small(table, delta_commits=2) is Compaction.DONE
    assert len(find_unmerged(table.storage, table.config)) == (version > 6)  # the last delta commit
    archive(table, bounds)
    assert len(on_timeline(table)) < len(before)
    left = on_timeline(write(range(8, 14))) - on_timeline(table)
    engine.writer.stop()
    archive(table, bounds)
    assert on_timeline(table) >= left
    assert find_unmerged(table.storage, table.config) >= left


def test_without_a_metadata_table_nothing_has_to_wait(tmp_path):
    path = str(tmp_path / "t")
    Engine(path, form_of(8, "COPY_ON_WRITE")).write(0, rows([1]))
    assert find_unmerged(LocalStorage(path), HudiTable.open(path).config) == frozenset()


def listed(path, version, batches=5):
    engine = Engine(path, {**form_of(version, "COPY_ON_WRITE"), "hoodie.metadata.enable": "true"})
    for number in range(batches):
        engine.write(number, rows([number], ts=number))
    engine.writer.stop()
    return engine


@pytest.mark.parametrize("moment", ["before it is looked for", "just before its end"])
@pytest.mark.parametrize("version", [6, 8])
def test_a_compaction_that_paused_until_the_metadata_table_was_made_anew_hides_nothing(
    tmp_path, monkeypatch, version, moment
):
    path = str(tmp_path / "t")
    engine, done = listed(path, version), []

    def anew():
        if not done:
            done.append(True)
            drop_present_metadata_table(LocalStorage(path))
            engine.write(5, rows(range(20), ts=5))
            engine.writer.stop()

    def paused(name, *, is_before):
        real = getattr(compact, name)

        def call(*given, **named):
            if is_before(*given):
                anew()
            return real(*given, **named)

        monkeypatch.setattr(compact, name, call)

    if moment.startswith("before"):
        paused("_compact_group", is_before=lambda *_: True)
    else:
        paused("create_settled", is_before=lambda _, path, *__: path.endswith(".commit"))
    keep_metadata_table_small(HudiTable.open(path), delta_commits=2)
    assert done
    assert key_set(read_table(path)) == sorted(f"k{number}" for number in range(20))
    engine.write(6, rows([30], ts=6))
    assert key_set(read_table(path)) == sorted([*(f"k{number}" for number in range(20)), "k30"])


def test_a_compaction_that_was_not_requested_there_is_not_believed(tmp_path):
    path = str(tmp_path / "t")
    listed(path, 8)
    table = HudiTable.open(path)
    assert keep_metadata_table_small(table, delta_commits=2) is Compaction.DONE
    known = table.load_timeline().committed_times
    assert load_file_lists(table.storage, known).partition_paths()
    [request] = (tmp_path / "t" / METADATA_FOLDER).rglob("*.compaction.requested")
    request.unlink()
    with pytest.raises(UnsupportedTableError, match="was not requested there"):
        load_file_lists(table.storage, known)
    assert len(read_table(path)) == 5


def test_lists_that_an_old_action_keeps_from_being_compacted_are_dropped_in_the_end(tmp_path, monkeypatch):
    """Layout 1: each compaction has to lie before it."""
    path = str(tmp_path / "t")
    engine = listed(path, 6)
    table = HudiTable.open(path)
    old = min(table.load_timeline().committed_times)
    pending = name_instant(table.layout, clock_behind(old), Action.CLEAN, State.REQUESTED)
    table.storage.create_exclusive(pending.path, b"")
    assert keep_metadata_table_small(table, delta_commits=2) is Compaction.DONE
    for number in range(5, 8):
        engine.write(number, rows([9], ts=number))
    engine.writer.stop()
    assert keep_metadata_table_small(table, delta_commits=2) is Compaction.HINDERED
    assert HudiTable.open(path).config.metadata_partitions == "files"
    monkeypatch.setattr(compact, "_MOST", 1)
    assert keep_metadata_table_small(table, delta_commits=2) is Compaction.HINDERED
    assert HudiTable.open(path).config.metadata_partitions == ""


def clock_behind(time):
    return f"{int(time) + 1}"


def test_a_savepoint_that_was_not_finished_hinders_no_compaction(tmp_path):
    path = str(tmp_path / "t")
    listed(path, 6)
    table = HudiTable.open(path)
    old = min(table.load_timeline().committed_times)
    table.storage.create_exclusive(name_instant(table.layout, old, Action.SAVEPOINT, State.INFLIGHT).path, b"")
    assert keep_metadata_table_small(table, delta_commits=2) is Compaction.DONE


def test_instants_that_make_a_metadata_table_have_no_time():
    """A compaction that is older than they are does not make them an error."""
    commits = [Instant(time, Action.DELTA_COMMIT, State.COMPLETED) for time in ("0" * 17, TIMES[1], TIMES[2])]
    assert first_that_counts(build_timeline(commits), CompactionSettings(delta_commits=2)) == TIMES[1]


@pytest.mark.parametrize("has_clean", [True, False])
def test_a_replace_commit_stays_while_a_clean_has_not_told_the_lists(tmp_path, has_clean):
    """The clean has deleted what was replaced, and the lists still name it (seed 30018)."""
    path = str(tmp_path / "t")
    engine = listed(path, 8, batches=2)
    replaced = [str(file.relative_to(path)) for file in (tmp_path / "t" / "p0").glob("*.parquet")]
    overwrite = {**form_of(8, "COPY_ON_WRITE"), "hoodie.datasource.write.operation": "insert_overwrite"}
    Engine(path, overwrite).write(None, rows([3], ts=9))
    for number in range(2, 8):
        engine.write(number, rows([1], ts=number))
    engine.writer.stop()
    table = HudiTable.open(path)
    assert keep_metadata_table_small(table, delta_commits=2) is Compaction.DONE
    [commit] = table.load_timeline().completed_of(Action.REPLACE_COMMIT)
    if has_clean:
        now = max(table.load_timeline().committed_times)
        pending = name_instant(table.layout, clock_behind(now), Action.CLEAN, State.REQUESTED)
        table.storage.create_exclusive(pending.path, b"")
    for file in replaced:
        table.storage.delete(file)
    archive(table, ArchiveSettings(min_commits=2, max_commits=3))
    assert (commit in table.load_timeline().completed_writes) is has_clean

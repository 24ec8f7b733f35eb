"""When the metadata table is compacted, at which time, and what has to wait for it."""

import pytest
from engine import Engine, form_of, rows

from table.hudi_table import HudiTable
from table.metadata_table.compact import Compaction, choose_time, find_unmerged
from table.options.groups import ArchiveSettings
from table.services.archival.archival import archive
from table.services.lists_service import keep_lists_small
from table.storage.local import LocalStorage
from table.timeline.instant import Action, Instant, State
from table.timeline.layout import LAYOUT_1, LAYOUT_2
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
    assert keep_lists_small(table, delta_commits=2) is Compaction.DONE
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

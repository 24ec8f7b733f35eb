"""What is not well in a table, by the facts."""

from dataclasses import replace

import pytest

from table.inspect.health_facts import Backlog, Code, Health, PendingInstant, Verdict
from table.inspect.judge_health import judged
from table.options.groups import ArchiveSettings, CleanSettings, CompactionSettings

WELL = Health(
    "/t", 6, "COPY_ON_WRITE", "20260101000000001", 5.0, 60.0, "sink 's'", True, 10, 1000, 1, 0, 0,
    Backlog(1, 3, 300, None, 0, 12),
)  # fmt: skip
SETTINGS = (CleanSettings(), ArchiveSettings(), CompactionSettings())
OLD = Backlog(None, 90, 5000, None, 0, 34)
YOUNG = replace(OLD, active_instants=33)  # no clean is late yet

RESTORE = PendingInstant("2", "restore", 9.0, "it is pending: no batch until then")
LATE = PendingInstant("2", "commit", 9e3, "the next batch rolls it back")


def levels(facts):
    found = judged(facts, *SETTINGS)
    return found.verdict, [(one.code, one.text) for one in found.findings]


def test_a_table_that_is_well_has_no_finding():
    assert levels(WELL) == (Verdict.WELL, [])


LOOK, BROKEN = Verdict.LOOK, Verdict.BROKEN
COMMITS = WELL.backlog


@pytest.mark.parametrize(
    ("changed", "verdict", "code", "said"),
    [
        ({"lost": ("p/a is not there", "x")}, BROKEN, Code.LOST_FILE, "p/a is not there (and 1 more files)"),
        ({"clock": "it is behind"}, BROKEN, Code.CLOCK_AHEAD, "batches are refused: it is behind"),
        ({"pending": (RESTORE,)}, BROKEN, Code.RESTORE_PENDING, "no batch until then"),
        ({"damaged_commits": ("2",)}, LOOK, Code.DAMAGED_COMMIT, "the completed file of 2 is empty or torn"),
        ({"metadata_table": "it is gone"}, LOOK, Code.METADATA_TABLE, "promise a metadata table, and it is gone"),
        ({"damaged_index": "files/x is gone"}, BROKEN, Code.METADATA_TABLE, "files/x is gone: Hudi's readers"),
        ({"writer_lives": False}, LOOK, Code.DEAD_WRITER, "holds the table and is dead"),
        (
            {
                "pending": (LATE,),
                "writer": None,
                "writer_lives": None,
            },
            LOOK,
            Code.WRITE_PENDING,
            "more than an hour",
        ),
        ({"backlog": OLD}, LOOK, Code.NOT_CLEANED, "old versions hold 5.0 times"),
        ({"backlog": replace(OLD, commits_since_clean=99)}, LOOK, Code.NOT_CLEANED, "nothing cleans"),
        (
            {"backlog": replace(COMMITS, commits_since_compaction=16), "log_files": 1},
            LOOK,
            Code.NOT_COMPACTED,
            "16 delta commits wait",
        ),
        (
            {"backlog": replace(COMMITS, active_instants=91)},
            LOOK,
            Code.NOT_ARCHIVED,
            "archival keeps 30",
        ),
        (
            # early: as soon as archival would go past it
            {"backlog": replace(COMMITS, active_instants=31, commits_since_savepoint=31), "savepoints": ("7",)},
            LOOK,
            Code.SAVEPOINT_HOLDS_ARCHIVAL,
            "the savepoint 7 holds archival): delete it",
        ),
        (
            {"backlog": replace(COMMITS, active_instants=91, commits_since_savepoint=2), "savepoints": ("7",)},
            LOOK,
            Code.NOT_ARCHIVED,
            "run `hudistream archive`",
        ),
        (
            {"live_files": 40, "small_files": 30},
            LOOK,
            Code.SMALL_FILES,
            "30 of 40 live files are small: each is",
        ),
        (
            {"live_files": 40, "small_files": 30, "small_beside": 20},
            LOOK,
            Code.SMALL_FILES,
            "20 lie beside others in their partition paths, and `hudistream cluster`",
        ),
        ({"not_writable": "/t/p"}, LOOK, Code.NOT_WRITABLE, "this user may not write in '/t/p'"),
        ({"not_writable": "/t", "is_read_only": True}, BROKEN, Code.NOT_WRITABLE, "'/t' is read-only: batches fail"),
        ({"free_bytes": 1000, "batch_bytes": 5}, BROKEN, Code.DISK_FULL, "1,000 bytes are free"),
        ({"free_bytes": 5 << 20, "batch_bytes": 6 << 20}, BROKEN, Code.DISK_FULL, "which works on a full disk"),
        ({"free_bytes": 50 << 20, "batch_bytes": 6 << 20}, LOOK, Code.DISK_NEARLY_FULL, "commits wrote 6,291,456"),
    ],
)
def test_what_is_not_well_is_said_with_its_code_and_the_way_out(changed, verdict, code, said):
    found, told = levels(replace(WELL, **changed))
    assert found is verdict
    assert [text for known, text in told if known is code and said in text], told


@pytest.mark.parametrize(
    ("age_s", "after_s", "said"),
    [
        (1801.0, 1800.0, "no commit with rows for 30 min"),
        (1800.0, 1800.0, None),
        (1e9, None, None),
        (None, 1800.0, "no commit with rows among the newest ten commits"),
        (None, None, None),
    ],
)
def test_a_table_without_new_commits_is_worth_a_look_only_where_somebody_says_so(age_s, after_s, said):
    found = judged(replace(WELL, last_rows_age_s=age_s), *SETTINGS, after_s)
    assert [(one.code, one.text.split(":")[0]) for one in found.findings] == ([(Code.STALE, said)] if said else [])
    assert found.verdict is (LOOK if said else Verdict.WELL)


def test_the_codes_of_findings_stay():
    """Alerts are written for them: a code is added here, and none is renamed."""
    assert {one.value for one in Code} == {
        "lost_file", "clock_ahead", "restore_pending", "disk_full", "not_writable", "unreadable", "damaged_commit",
        "metadata_table", "write_pending", "dead_writer", "not_cleaned", "not_compacted", "not_archived",
        "savepoint_holds_archival", "small_files", "disk_nearly_full", "stale",
    }  # fmt: skip


@pytest.mark.parametrize(
    "changed",
    [
        {"pending": (LATE,)},  # its writer lives
        {"pending": (LATE._replace(age_s=9.0),), "writer": None, "writer_lives": None},
        {"backlog": replace(OLD, commits_since_clean=5)},
        {"backlog": replace(OLD, superseded_bytes=500)},
        {"backlog": YOUNG},
        {"backlog": replace(WELL.backlog, commits_since_compaction=15), "log_files": 1},
        {"backlog": replace(WELL.backlog, commits_since_compaction=99), "log_files": 0},  # all went into base files
        {"backlog": replace(WELL.backlog, active_instants=30, commits_since_savepoint=30), "savepoints": ("7",)},
        {"live_files": 19, "small_files": 19},
        {"free_bytes": 60 << 20, "batch_bytes": 6 << 20},
    ],
)
def test_what_is_no_reason_to_look(changed):
    assert levels(replace(WELL, **changed)) == (Verdict.WELL, [])

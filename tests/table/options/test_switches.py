"""Switches of services and of the index: what they do to a table."""

import pytest
from command_line import said
from engine import Engine, rows

from table import InvalidConfigError, parse_options, read_table
from table.hudi_table import HudiTable
from table.options.choices import IndexType
from table.options.write_groups import IndexSettings
from table.timeline.instant import Action

MERGE_ON_READ = {
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.datasource.write.operation": "upsert",
    "hoodie.parquet.small.file.limit": "0",
    "hoodie.compact.inline.max.delta.commits": "2",
}
CLEANS = {"hoodie.clean.automatic": "true", "hoodie.clean.commits.retained": "1"}
ARCHIVES = {"hoodie.archive.automatic": "true", "hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3"}


def written(path, options, batches=6, keys=range(3), first=0):
    """The timeline after so many batches, each with its services done."""
    engine = Engine(path, options)
    for number in range(first, first + batches):
        engine.write(number, rows(keys, lambda _: "p", ts=number))
        engine.writer.services.wait()
    return HudiTable.open(path).load_timeline()


def compactions(timeline):
    """How many are completed, and how many pending."""
    return len(timeline.completed_of(Action.COMMIT)), len(timeline.pending_of(Action.COMPACTION))


@pytest.mark.parametrize(("enabled", "runs"), [("true", True), ("false", False)])
def test_without_table_services_nothing_is_cleaned_archived_or_compacted(tmp_path, enabled, runs):
    path = str(tmp_path / "t")
    options = {**MERGE_ON_READ, **CLEANS, **ARCHIVES, "hoodie.table.services.enabled": enabled}
    timeline = written(path, options, 12)
    assert bool(timeline.completed_of(Action.CLEAN)) is runs
    assert bool(timeline.completed_of(Action.COMMIT)) is runs
    assert (len(timeline.completed_of(Action.DELTA_COMMIT)) < 12) is runs
    assert not timeline.pending_of(Action.COMPACTION, Action.CLEAN)


@pytest.mark.parametrize(
    ("options", "done", "pending"),
    [
        ({}, True, False),
        ({"hoodie.compact.inline": "true"}, True, False),
        ({"hoodie.datasource.compaction.async.enable": "false"}, False, False),
        ({"hoodie.datasource.write.streaming.disable.compaction": "true"}, False, False),
        ({"compaction.schedule.enabled": "false"}, False, False),
        ({"compaction.async.enabled": "false", "compaction.schedule.enabled": "true"}, False, True),
        ({"compaction.async.enabled": "false", "hoodie.compact.schedule.inline": "true"}, False, True),
        (
            {
                "hoodie.datasource.write.streaming.disable.compaction": "true",
                "hoodie.compact.schedule.inline": "true",
            },
            False,
            True,
        ),
        ({"hoodie.compact.schedule.inline": "true"}, True, False),
    ],
)
def test_a_sink_requests_and_executes_compactions_as_its_switches_say(tmp_path, options, done, pending):
    completed, open_ones = compactions(written(str(tmp_path / "t"), {**MERGE_ON_READ, **options}))
    assert (completed > 0, open_ones > 0) == (done, pending)


def test_a_job_executes_what_a_sink_requested_and_the_sink_requests_the_next(tmp_path, capsys):
    path = str(tmp_path / "t")
    options = {**MERGE_ON_READ, "compaction.async.enabled": "false", "compaction.schedule.enabled": "true"}
    engine = Engine(path, options)
    for number in range(8):
        engine.write(number, rows(range(3), lambda _: "p", ts=number, v=str(number)))
        engine.writer.services.wait()
        if number in (4, 7):
            assert "completed" in said(capsys, "compact", path, "--execute")
    assert compactions(HudiTable.open(path).load_timeline()) == (2, 0)
    assert set(read_table(path).column("v").to_pylist()) == {"7"}


def test_a_sink_that_requests_no_compaction_executes_those_of_others(tmp_path, capsys):
    path = str(tmp_path / "t")
    options = {**MERGE_ON_READ, "compaction.schedule.enabled": "false"}
    assert compactions(written(path, options, 2)) == (0, 0)
    assert "requested" in said(capsys, "compact", path, "--schedule-only")
    assert compactions(written(path, options, 3, first=2)) == (1, 0)


@pytest.mark.parametrize(
    "options",
    [
        {"hoodie.datasource.write.streaming.disable.compaction": "true", "hoodie.compact.inline": "true"},
        {"compaction.schedule.enabled": "false", "hoodie.compact.schedule.inline": "true"},
    ],
)
def test_switches_of_compaction_that_contradict_each_other_are_refused(options):
    with pytest.raises(InvalidConfigError, match="keep one") as error:
        parse_options(options)
    assert all(key in str(error.value) for key in options)


def test_a_sink_requests_cleans_and_a_job_executes_them(tmp_path, capsys):
    path = str(tmp_path / "t")
    timeline = written(path, {**CLEANS, "hudistream.clean.execute": "false"}, 4)
    assert not timeline.completed_of(Action.CLEAN)
    assert len(timeline.pending_of(Action.CLEAN)) == 1
    before = read_table(path)
    assert "deleted" in said(capsys, "clean", path, "--execute")
    timeline = HudiTable.open(path).load_timeline()
    assert (len(timeline.completed_of(Action.CLEAN)), timeline.pending_of(Action.CLEAN)) == (1, ())
    assert read_table(path).equals(before)


def test_a_clean_is_requested_by_one_job_and_executed_by_another(tmp_path, capsys):
    path = str(tmp_path / "t")
    written(path, {}, 4)
    settings = ("--set", "hoodie.clean.commits.retained=1", "--set", "hudistream.clean.grace.ms=0")
    assert "nothing to clean" in said(capsys, "clean", path, "--execute", *settings)
    assert "requested clean" in said(capsys, "clean", path, "--schedule-only", *settings)
    assert not HudiTable.open(path).load_timeline().completed_of(Action.CLEAN)
    assert "deleted" in said(capsys, "clean", path, "--execute", *settings)


@pytest.mark.parametrize(
    ("given", "switch", "meant"),
    [
        ("FLINK_STATE", None, "GLOBAL_BLOOM"),
        ("INMEMORY", None, "GLOBAL_BLOOM"),
        ("FLINK_STATE", "true", "GLOBAL_BLOOM"),
        ("FLINK_STATE", "false", "BLOOM"),
        (None, "true", "GLOBAL_BLOOM"),
        ("SIMPLE", "true", "GLOBAL_SIMPLE"),
        ("GLOBAL_SIMPLE", "true", "GLOBAL_SIMPLE"),
        ("BLOOM", "false", "BLOOM"),
        ("BUCKET", "false", "BUCKET"),
    ],
)
def test_flinks_switch_of_global_keys_decides_whether_a_key_may_be_in_two_paths(tmp_path, given, switch, meant):
    options = {"index.type": given, "index.global.enabled": switch}
    assert parse_options(options).options.index.type is IndexType(meant)
    path = str(tmp_path / "t")
    engine = Engine(path, {"hoodie.datasource.write.operation": "upsert", **options})
    engine.write(0, rows([1], lambda _: "a", ts=1))
    engine.write(1, rows([1], lambda _: "b", ts=2))
    assert read_table(path).column("p").to_pylist() == (["b"] if meant.startswith("GLOBAL") else ["a", "b"])


@pytest.mark.parametrize(("given", "switch"), [("BUCKET", "true"), ("GLOBAL_BLOOM", "false")])
def test_a_switch_of_global_keys_that_the_index_cannot_follow_is_refused(given, switch):
    with pytest.raises(InvalidConfigError, match=rf"index.global.enabled={switch}.*{given}"):
        parse_options({"index.type": given, "index.global.enabled": switch})


def test_an_index_that_was_resolved_stays_so_in_a_copy():
    settings = IndexSettings(type="flink_state", global_keys=False)
    assert IndexSettings(type=settings.type, global_keys=settings.global_keys) == settings


def test_another_name_for_the_folder_of_rows_without_a_partition_value_is_refused():
    with pytest.raises(InvalidConfigError, match="partition.default_name=none is refused"):
        parse_options({"partition.default_name": "none"})
    parse_options({"partition.default_name": "__HIVE_DEFAULT_PARTITION__"})

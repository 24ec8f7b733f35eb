"""The lists of files are kept up by every action, and by none after the fact."""

import os
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from engine import Engine, form_of, key_set, leave_a_dead_batch, rows
from faults import FaultyStorage, Fuse
from tiers import quick

from hudistream import HudiTable as UserTable
from hudistream import write_hudi
from table import CommitConflictError, StorageError, UnsupportedTableError, read_table
from table.clock import InstantClock
from table.config.held_change import MARK
from table.config.table_config import load_table_config, update_properties
from table.hudi_table import HudiTable
from table.metadata_table import drop, keep, make
from table.metadata_table.changes import FileChanges
from table.metadata_table.compact import Compaction
from table.metadata_table.file_lists import load_file_lists
from table.metadata_table.known_lists import KnownLists
from table.metadata_table.metadata_table import MetadataTable, find_slice, unfinished_times
from table.options.groups import ArchiveSettings, BaseFileSettings, CleanSettings, CompactionSettings
from table.references.strays import delete_stray_files
from table.schema.avro_schema import META_COLUMNS
from table.services import metadata_table_service
from table.services.archival.archival import archive
from table.services.check import check as check_module
from table.services.check.check import check
from table.services.clean.clean import clean
from table.services.compaction.compaction import compact, schedule_compaction
from table.services.compaction.execution import carry_out_compactions
from table.services.metadata_table_service import MetadataTableService, keep_metadata_table_small
from table.services.service import Trigger
from table.snapshot import Snapshot
from table.storage.local import LocalStorage
from table.timeline.active_timeline import request_instant
from table.timeline.instant import Action, State
from table.timeline.layout import LAYOUT_1, name_instant
from table.timeline.timeline import build_timeline
from table.transaction import commit
from table.transaction.lease import hold_table
from table.view.file_group import committed_instants
from table.view.store_listing import StorageListing

TIMES = [f"2026112600000{n}000" for n in range(10)]
FORMS = [(6, "COPY_ON_WRITE"), (6, "MERGE_ON_READ"), (8, "COPY_ON_WRITE"), (9, "MERGE_ON_READ")]


def engine_of(path, version, table_type, **more):
    return Engine(path, {**form_of(version, table_type), "hoodie.metadata.enable": "true", **more})


def sizes_by_store(storage):
    found = {}
    for path, entries in StorageListing(storage).walk():
        found[path] = {e.name: e.size_bytes for e in entries if not e.is_dir and not e.name.startswith(".hoodie")}
    return {path: names for path, names in found.items() if names}


def sizes_by_lists(storage):
    table = HudiTable(storage, load_table_config(storage))
    known = [instant.time for instant in Snapshot.load(table).timeline.completed_writes]
    lists = load_file_lists(storage, known)
    found = {path: lists.files(path) for path in lists.partition_paths()}
    return {path: names for path, names in found.items() if names}


def assert_lists_are_right(path):
    table = HudiTable.open(path)
    assert table.config.metadata_partitions == "files"
    assert sizes_by_lists(table.storage) == sizes_by_store(table.storage)
    assert check(table).is_sound


@pytest.mark.parametrize(("version", "table_type"), quick(2, FORMS))
def test_the_lists_follow_batches_cleans_compactions_and_archival(tmp_path, version, table_type):
    path = str(tmp_path / "t")
    engine = engine_of(path, version, table_type)
    for number in range(14):
        engine.write(number, rows(range(3 * number % 12, 3 * number % 12 + 9), ts=number))
        assert_lists_are_right(path)
        table = HudiTable.open(path)
        if table_type == "MERGE_ON_READ" and number % 4 == 3:
            compact(table, CompactionSettings(delta_commits=1), BaseFileSettings())
            assert_lists_are_right(path)
        if number % 5 == 4:
            engine.writer.stop()
            assert clean(table, CleanSettings(commits_retained=1, grace_ms=0))
            assert_lists_are_right(path)
            archive(table, ArchiveSettings(min_commits=3, max_commits=4), CleanSettings(commits_retained=1))
            assert_lists_are_right(path)
        keep_metadata_table_small(table, delta_commits=4)
        assert_lists_are_right(path)
    own = MetadataTable.open(table.storage)
    assert len([e for e in own.list_files() if e.name.endswith(".hfile")]) > 2
    assert len(key_set(read_table(path))) == 18


@pytest.mark.slow
@pytest.mark.parametrize("version", [pytest.param(6, marks=pytest.mark.slow), 8])
def test_the_metadata_table_does_not_grow(tmp_path, version, monkeypatch):
    path = str(tmp_path / "t")
    monkeypatch.setattr(metadata_table_service, "_CLEAN", replace(metadata_table_service._CLEAN, grace_ms=0))
    engine = engine_of(
        path,
        version,
        "COPY_ON_WRITE",
        **{
            "hoodie.clean.automatic": "true",
            "hoodie.archive.automatic": "true",
            "hoodie.clean.async": "false",
            "hoodie.clean.commits.retained": "2",
        },
    )
    counts = []
    for number in range(90):
        engine.write(number, rows([number % 12], ts=number))
        engine.writer.services.wait()
        own = MetadataTable.open(LocalStorage(path))
        counts.append((len(own.list_files()), len(own.load_timeline().files)))
    assert_lists_are_right(path)
    assert max(counts[45:]) <= max(counts[:45])


def test_batches_without_a_pause_leave_room_for_compactions(tmp_path, logs):
    path = str(tmp_path / "t")
    options = {"hoodie.metadata.compact.max.delta.commits": "4", "hoodie.clean.automatic": "true"}
    engine, most = engine_of(path, 8, "COPY_ON_WRITE", **options), 0
    for number in range(60):
        engine.write(number, rows([number % 12], ts=number))
        own = MetadataTable.open(LocalStorage(path))
        found = find_slice(own.list_files(), committed_instants(own.load_timeline(), {}))
        most = max(most, len(found.log_files))
    # a look that finds a batch at its end is taken again, so the exact number depends on threads; 80 end the lists
    assert most <= 40
    assert not [entry for entry in logs if entry["event"] == "metadata_table_dropped"]
    engine.writer.stop()
    assert_lists_are_right(path)


@pytest.mark.parametrize("outcome", [Compaction.DONE, Compaction.NOT_DUE])
def test_a_look_comes_before_the_next_batch_until_nothing_hinders_a_compaction(tmp_path, monkeypatch, outcome):
    """A thread that still runs takes no look between batches: so one such look that is due is not enough."""
    table, service, done = listed_table(str(tmp_path / "t")), MetadataTableService(4), []
    monkeypatch.setattr(
        metadata_table_service, "keep_metadata_table_small", lambda *_: done[0] if done else Compaction.HINDERED
    )
    snapshot = Snapshot.load(table)

    def commit():
        service.note_commit(snapshot)
        when = service.trigger(table.config)
        assert service.trigger(table.config) is when  # a question changes no answer
        if when is not Trigger.NOT_NOW:
            service.plan(table)
        return when

    triggers = [commit() for _ in range(16)]
    assert [one.name for one in triggers if one is not Trigger.NOT_NOW] == ["BACKGROUND"] * 4 + ["INLINE"] * 4
    service.execute(table, 4)
    assert [commit() for _ in range(2)][1] is Trigger.INLINE
    done.append(outcome)
    service.execute(table, 4)
    assert [commit() for _ in range(2)][1] is Trigger.BACKGROUND


def listed_table(path, version=8):
    engine = engine_of(path, version, "COPY_ON_WRITE")
    for number in range(3):
        engine.write(number, rows(range(number, number + 4), ts=number))
    engine.writer.stop()
    return HudiTable.open(path)


def partitions(path):
    return HudiTable.open(path).config.metadata_partitions


@pytest.mark.parametrize("version", [6, 8])
def test_lists_with_the_files_of_a_commit_that_is_undone_are_dropped(tmp_path, version):
    path = str(tmp_path / "t")
    table = listed_table(path, version)
    UserTable.open(path).roll_back(table.load_timeline().completed_writes[-1].time, force=True)
    assert partitions(path) == ""
    assert not (tmp_path / "t/.hoodie/metadata").exists()


def test_lists_without_the_files_of_a_dead_batch_are_kept(tmp_path):
    path = str(tmp_path / "t")
    listed_table(path)
    leave_a_dead_batch(engine_of(path, 8, "COPY_ON_WRITE"), 3, rows([99]))
    Engine(path).write(4, rows([5], ts=9))
    assert_lists_are_right(path)
    assert HudiTable.open(path).load_timeline().completed_of(Action.ROLLBACK)


def test_no_lists_are_made_beside_an_action_that_begins(tmp_path, monkeypatch):
    path = str(tmp_path / "t")
    Engine(path).write(0, rows(range(4)))
    table, write = HudiTable.open(path), make._write

    def begins(*given):
        write(*given)
        request_instant(table.storage, table.load_timeline(), Action.CLEAN, InstantClock())

    monkeypatch.setattr(make, "_write", begins)
    config = make.make_lists(
        table.storage, table.config, table.load_timeline(), table.store_listing, make.WantedIndexes()
    )
    assert (config.metadata_partitions, partitions(path)) == ("", "")
    # nor beside one that is pending
    config = make.make_lists(
        table.storage, table.config, table.load_timeline(), table.store_listing, make.WantedIndexes()
    )
    assert config.metadata_partitions == ""


@pytest.mark.parametrize("step", ["delete_metadata_files", "_write", "_name"])
def test_no_lists_are_named_beside_an_action_that_others_complete(tmp_path, monkeypatch, step):
    """A compaction of the writer before, which needs no lease, comes while this process stands still."""
    path = str(tmp_path / "t")
    engine = Engine(path, form_of(8, "MERGE_ON_READ"))
    for number in range(2):
        engine.write(number, rows(range(4), ts=number))
    engine.writer.stop()
    table, real = HudiTable.open(path), getattr(make, step)
    table.storage.put(".hoodie/metadata/left", b"")  # by a metadata table from before: else nothing is deleted

    def after_a_compaction(*given):
        monkeypatch.setattr(make, step, real)
        plan = schedule_compaction(HudiTable.open(path), CompactionSettings(delta_commits=1))
        assert carry_out_compactions(plan, BaseFileSettings())
        assert partitions(path) == ""
        return real(*given)

    wanted = make.WantedIndexes()
    with hold_table(table.storage, "hudistream test") as lease:
        timeline = table.load_timeline()
        monkeypatch.setattr(make, step, after_a_compaction)
        seen = []
        change = make.change_held
        monkeypatch.setattr(make, "change_held", lambda *given: seen.append(given) or change(*given))
        config = make.make_lists(table.storage, table.config, timeline, table.store_listing, wanted, lease)
        assert (config.metadata_partitions, partitions(path), len(seen)) == ("", "", 1)
        # and once more, with nothing beside it
        listing = table.store_listing
        make.make_lists(table.storage, table.config, table.load_timeline(), listing, wanted, lease)
    assert partitions(path) == "files"
    assert_lists_are_right(path)


def test_no_lists_are_made_beside_an_action_that_came_before_the_mark(tmp_path, monkeypatch):
    path = str(tmp_path / "t")
    Engine(path).write(0, rows(range(4)))
    table, mark = HudiTable.open(path), make.mark_change

    def late(storage, holding, *beside):
        request_instant(table.storage, table.load_timeline(), Action.CLEAN, InstantClock())
        return mark(storage, holding, *beside)

    monkeypatch.setattr(make, "mark_change", late)
    monkeypatch.setattr(make, "_write", None)  # nothing is written
    with hold_table(table.storage, "hudistream test") as lease:
        timeline = table.load_timeline()
        config = make.make_lists(
            table.storage, table.config, timeline, table.store_listing, make.WantedIndexes(), lease
        )
    assert (config.metadata_partitions, partitions(path)) == ("", "")
    assert MARK not in load_table_config(table.storage).extra


@pytest.mark.parametrize("version", [6, 8])
def test_lists_that_a_compaction_of_them_passed_are_dropped(tmp_path, version, monkeypatch):
    """It was requested after the delta commit looked for compactions, and may have left it out."""
    path = str(tmp_path / "t")
    listed_table(path, version)
    write = keep._Delta.write

    def passed(delta, *given):
        write(delta, *given)
        request = name_instant(delta._own.layout, "20990101000000000", Action.COMPACTION, State.REQUESTED)
        delta._own.storage.create_exclusive(request.path, b"")

    monkeypatch.setattr(keep._Delta, "write", passed)
    Engine(path).write(3, rows([5], ts=9))
    assert partitions(path) == ""
    assert len(read_table(path)) == 7


def test_a_process_that_tells_the_lists_too_late_drops_them(tmp_path):
    """Others completed the commit, and cleaned its files since: its delta commit would list them again."""
    path = str(tmp_path / "t")
    table = listed_table(path)
    last = table.load_timeline().completed_writes[-1]
    own = MetadataTable.open(table.storage)
    for instant in own.load_timeline().files:
        if instant.time == last.time:  # the metadata table has archived it
            own.storage.delete_metafile(instant.path)
    keep.keep_lists(table.storage, last.time, last.completion_time, FileChanges({"p0": {"gone": 1}}), KnownLists())
    assert partitions(path) == ""


def test_statistics_of_chosen_columns_are_dropped_and_the_lists_are_kept(golden, utc, logs):
    path, _ = golden("v8_cow_defaults")
    assert partitions(path) == "column_stats,files,partition_stats"
    chosen = Path(path, ".hoodie/.index_defs/index.json")
    chosen.write_text(chosen.read_text().replace('"qty", ', ""))
    rows_before = read_table(path, meta_columns=True)
    write_hudi(path, rows_before.drop_columns(list(META_COLUMNS)).slice(0, 1), operation="upsert")
    assert partitions(path) == "files"
    assert sorted(os.listdir(f"{path}/.hoodie/metadata")) == [".hoodie", "files"]
    [told] = [entry for entry in logs if entry["event"] == "metadata_indexes_dropped"]
    assert (told["log_level"], told["indexes"]) == ("warning", ["column_stats", "partition_stats"])


def test_other_indexes_are_refused_by_the_sink_and_dropped_by_services(golden, utc):
    path, _ = golden("v9_cow_indexes")
    row = read_table(path).slice(0, 1)
    with pytest.raises(UnsupportedTableError, match="of these, bloom_filters cannot be maintained"):
        write_hudi(path, row, operation="upsert")
    write_hudi(path, row, operation="upsert", options={"hoodie.metadata.enable": "false"})
    assert partitions(path) == ""


@pytest.mark.parametrize("version", [6, 8])
def test_a_batch_makes_at_most_twelve_calls_more(tmp_path, version):
    counts = []
    for wanted in ("false", "true"):
        fuse = Fuse()
        storage = FaultyStorage(LocalStorage(str(tmp_path / wanted)), fuse)
        engine = engine_of(storage, version, "COPY_ON_WRITE", **{"hoodie.metadata.enable": wanted})
        for number in range(4):
            fuse.calls.clear()
            engine.write(number, rows(range(4), ts=number))
        counts.append(len(fuse.calls))
    assert counts[0] < counts[1] <= counts[0] + 12


@pytest.mark.parametrize("version", [6, 8])
def test_the_lists_know_writes_that_replace_and_leave_no_file(tmp_path, version):
    path = str(tmp_path / "t")
    engine_of(path, version, "COPY_ON_WRITE").write(0, rows(range(12)))
    for number, operation in enumerate(["insert_overwrite", "delete_partition", "insert_overwrite_table"], 1):
        more = {"hoodie.datasource.write.operation": operation, "hudistream.overwrite.in.stream": "true"}
        engine_of(path, version, "COPY_ON_WRITE", **more).write(number, rows(range(number, 12, 3), ts=number))
        assert_lists_are_right(path)
        table = HudiTable.open(path)
        clean(table, CleanSettings(commits_retained=1, grace_ms=0))
        assert_lists_are_right(path)


@pytest.mark.parametrize("version", [6, 8])
def test_lists_are_made_when_what_failed_writes_left_is_gone(tmp_path, version):
    """A late task left a file beside a completed commit: the batch that makes the lists deletes it first."""
    path = str(tmp_path / "t")
    engine_of(path, version, "COPY_ON_WRITE", **{"hoodie.metadata.enable": "false"}).write(0, rows(range(6)))
    [time] = HudiTable.open(path).load_timeline().committed_times
    folder = tmp_path / "t/p0"
    late = f"deadbeef-0000-0000-0000-000000000000-0_7-7-7_{time}.parquet"
    [source] = folder.glob("*.parquet")
    (folder / late).write_bytes(source.read_bytes())
    marker = tmp_path / f"t/.hoodie/.temp/{time}/p0/{late}.marker.CREATE"
    marker.parent.mkdir(parents=True, exist_ok=True)
    marker.write_bytes(b"")
    engine_of(path, version, "COPY_ON_WRITE").write(1, rows(range(6), ts=1))
    assert not (folder / late).exists()
    assert_lists_are_right(path)


@pytest.mark.parametrize("version", [6, 8])
def test_a_partition_path_with_the_name_of_the_list_of_paths_has_no_lists(tmp_path, version):
    path = str(tmp_path / "t")
    engine_of(path, version, "COPY_ON_WRITE").write(0, rows(range(3)))
    named = rows(range(3, 5), partition=lambda _: "__all_partitions__")
    engine_of(path, version, "COPY_ON_WRITE").write(1, named)
    assert partitions(path) == ""
    engine_of(path, version, "COPY_ON_WRITE").write(2, rows([7]))
    assert partitions(path) == ""
    assert len(read_table(path)) == 6


@pytest.mark.parametrize("version", [6, 8])
def test_lists_that_were_made_late_are_compacted(tmp_path, version):
    path = str(tmp_path / "t")
    engine_of(path, version, "COPY_ON_WRITE", **{"hoodie.metadata.enable": "false"}).write(0, rows(range(6)))
    engine = engine_of(path, version, "COPY_ON_WRITE")
    for number in range(1, 8):
        engine.write(number, rows([number], ts=number))
        keep_metadata_table_small(HudiTable.open(path), delta_commits=4)
        assert_lists_are_right(path)
    own = MetadataTable.open(LocalStorage(path))
    assert len([entry for entry in own.list_files() if entry.name.endswith(".hfile")]) == 2


def test_damaged_properties_of_the_metadata_table_stop_no_batch(tmp_path):
    path = str(tmp_path / "t")
    listed_table(path)
    file = tmp_path / "t/.hoodie/metadata/.hoodie/hoodie.properties"
    file.write_text(file.read_text().replace("layout.version=2", "layout.version=x"))
    assert len(read_table(path)) == 6
    Engine(path).write(3, rows([9], ts=9))
    assert partitions(path) == ""
    assert len(read_table(path)) == 7


def with_a_stray_in_the_lists(path):
    """Hudi's lists name a file that no commit does: it has the instant of a commit, and lay there as they were made."""
    table = listed_table(path, 6)
    time = table.load_timeline().completed_writes[0].time
    source = next((Path(path) / "p0").glob(f"*_{time}.parquet"))
    stray = source.with_name(f"deadbeef-0000-0000-0000-000000000000-0_7-7-7_{time}.parquet")
    stray.write_bytes(source.read_bytes())
    return table, stray


def test_a_repair_drops_the_lists_before_it_deletes_strays(tmp_path, monkeypatch):
    path = str(tmp_path / "t")
    table, stray = with_a_stray_in_the_lists(path)
    seen, mend = [], check_module.mend

    def looked(*given):
        seen.append((partitions(path), stray.exists()))
        return mend(*given)

    monkeypatch.setattr(check_module, "mend", looked)
    check(table, repair=True)
    assert (seen, stray.exists()) == ([("", True)], False)


def test_archival_drops_the_lists_before_it_deletes_strays(tmp_path, monkeypatch):
    path = str(tmp_path / "t")
    table, stray = with_a_stray_in_the_lists(path)
    seen, delete_many = [], LocalStorage.delete_many

    def looked(storage, paths, pool):
        seen.append(partitions(path))
        return delete_many(storage, paths, pool)

    monkeypatch.setattr(LocalStorage, "delete_many", looked)
    delete_stray_files(table, [f"p0/{stray.name}"], 1)
    assert (seen, stray.exists()) == ([""], False)


@pytest.mark.parametrize(
    ("actions", "final"),
    [
        ([("1", Action.ROLLBACK, "c"), ("5", Action.COMMIT, "c")], True),  # archival leaves rollbacks, and takes writes
        ([("1", Action.CLEAN, "r"), ("5", Action.COMMIT, "c")], False),  # its delta commit may still be taken back
        ([("2", Action.COMMIT, "r"), ("5", Action.COMMIT, "c")], False),
        ([("5", Action.COMMIT, "c")], True),
        ([("0", Action.COMMIT, "c"), ("5", Action.COMMIT, "c")], False),  # 1 and 2 were undone
    ],
)
def test_delta_commits_are_final_when_their_actions_are_completed_or_archived(actions, final):
    states = {"c": State.COMPLETED, "r": State.REQUESTED}
    line = build_timeline(name_instant(LAYOUT_1, TIMES[int(n)], action, states[s]) for n, action, s in actions)
    own = [name_instant(LAYOUT_1, TIMES[n], Action.DELTA_COMMIT, State.COMPLETED) for n in (1, 2, 5)]
    own.append(name_instant(LAYOUT_1, TIMES[3] + "010", Action.DELTA_COMMIT, State.COMPLETED))  # made the lists
    assert (not unfinished_times(build_timeline(own), line)) is final


def test_a_file_whose_deletion_was_not_answered_is_not_in_the_lists(tmp_path, monkeypatch):
    path = str(tmp_path / "t")
    engine = engine_of(path, 8, "COPY_ON_WRITE")
    for number in range(4):
        engine.write(number, rows(range(3), ts=number))
    engine.writer.stop()
    real, lost = LocalStorage._delete, []

    def unanswered(self, file):
        done = real(self, file)
        if file.endswith(".parquet") and not lost:
            lost.append(file)
            raise StorageError("no answer")
        return done

    monkeypatch.setattr(LocalStorage, "_delete", unanswered)
    [outcome] = clean(HudiTable.open(path), CleanSettings(commits_retained=1, grace_ms=0))
    assert lost
    assert not outcome.failed
    assert_lists_are_right(path)


@pytest.mark.parametrize("version", [6, 8])
def test_two_actions_of_one_time_end_the_lists(tmp_path, monkeypatch, logs, version):
    """A delta commit has the time of its action, so one cannot tell both."""
    path = str(tmp_path / "t")
    engine, real = engine_of(path, version, "COPY_ON_WRITE"), commit.keep_lists
    for number in range(2):
        engine.write(number, rows(range(3), ts=number))

    def beside(storage, time, *given):
        requested = name_instant(HudiTable.open(path).layout, time, Action.CLEAN, State.REQUESTED)
        storage.create_exclusive(requested.path, b"")
        real(storage, time, *given)

    with monkeypatch.context() as patch:
        patch.setattr(commit, "keep_lists", beside)
        with suppress(CommitConflictError):
            engine.write(2, rows(range(6), ts=2))
    assert partitions(path) == ""
    assert [one for one in logs if one["event"] == "metadata_table_not_kept" and "have the time" in one["why"]]


@pytest.mark.parametrize("version", [6, 8])
@pytest.mark.parametrize("stands_still_in", ["making", "dropping"])
def test_a_deletion_that_comes_late_takes_no_file_of_a_metadata_table_made_meanwhile(
    tmp_path, monkeypatch, version, stands_still_in
):
    """The process stood still between its last look and the deletion. It may delete properties: readers list then."""
    path = str(tmp_path / "t")
    table, module = listed_table(path, version), make if stands_still_in == "making" else drop
    real, names_then = module.delete_metadata_files, []
    if module is make:  # what another process left
        update_properties(table.storage, {"hoodie.table.metadata.partitions": ""})
        table = HudiTable.open(path)

    def late(storage, names):
        monkeypatch.setattr(module, "delete_metadata_files", real)
        now = HudiTable.open(path)
        make.make_lists(now.storage, now.config, now.load_timeline(), now.store_listing, make.WantedIndexes())
        assert_lists_are_right(path)
        made = drop.list_metadata_files(storage)
        real(storage, names)
        names_then.append(made - drop.list_metadata_files(storage))
        assert sorted(read_table(path, ["id"]).column("id").to_pylist()) == rows_before
        raise KeyboardInterrupt

    rows_before = sorted(read_table(path, ["id"]).column("id").to_pylist())
    monkeypatch.setattr(module, "delete_metadata_files", late)
    with suppress(KeyboardInterrupt):
        if module is make:
            given = (table.load_timeline(), table.store_listing, make.WantedIndexes())
            make.make_lists(table.storage, table.config, *given)
        else:
            drop.drop_metadata_table(table.storage, table.config)
    [deleted] = names_then
    kept_by_name = {name for name in deleted if name.rpartition("/")[2] != ".hoodie_partition_metadata"}
    assert kept_by_name == {".hoodie/hoodie.properties"}
    assert sorted(read_table(path, ["id"]).column("id").to_pylist()) == rows_before


@pytest.mark.parametrize("is_before", [True, False], ids=["before the deletion", "beside the deletion"])
def test_a_metadata_table_that_another_process_makes_beside_a_drop_stays_or_goes_as_a_whole(
    tmp_path, monkeypatch, is_before
):
    path = str(tmp_path / "t")
    for number in range(2):
        engine_of(path, 8, "COPY_ON_WRITE").write(number, rows(range(6)))
    table = HudiTable.open(path)
    assert table.config.metadata_indexes
    update, delete, made = drop.update_properties, drop.delete_metadata_files, []

    def name(then):
        """Another process names a metadata table, once."""
        if not made:
            made.append(update_properties(table.storage, {"hoodie.table.metadata.partitions": "files"}))
        return then

    where, what = ("update_properties", update) if is_before else ("delete_metadata_files", delete)
    monkeypatch.setattr(drop, where, lambda *given: name(what(*given)))
    drop.drop_metadata_table(table.storage, table.config)
    assert len(made) == 1
    there = os.path.isdir(os.path.join(path, ".hoodie", "metadata", ".hoodie"))
    assert there is is_before
    assert load_table_config(table.storage).metadata_partitions == ("files" if is_before else "")

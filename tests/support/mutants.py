"""Faults put into the code one at a time, and the tests that must fail then: `make mutants`.

python tests/support/mutants.py [--first NAME] [NAME …]     results: benchmarks/results/mutants.json

Each mutant replaces one text in one file of a copy of this checkout. It is found if one of its tests fails. A mutant
whose text is gone is an error: the code moved, and the mutant has to follow.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
RESULT = ROOT / "benchmarks" / "results" / "mutants.json"
LIMIT_S = 900


@dataclass(frozen=True)
class Mutant:
    """One fault.

    Attributes:
        name: what is wrong then.
        file: where.
        old: the text that is replaced; it stands there once.
        new: the text in its place.
        tests: what must fail: files, or tests in them.
    """

    name: str
    file: str
    old: str
    new: str
    tests: tuple


_CONVERT, _CONVERSION = "table/services/conversion/convert.py", "tests/table/services/test_conversion.py"
_PINNED, _STANDS_STILL = "table/scan/pinned.py", "tests/table/scan/test_reader_stands_still.py"
_FIND_KEYS, _FOUND_KEYS = "table/metadata_table/find_keys.py", "tests/table/metadata_table/test_find_keys.py"
_LOST_FILES = "tests/table/metadata_table/test_lost_files.py"
_KEYS_IN_LOGS = "tests/streaming/task/test_keys_in_logs.py"
_UNDONE_CLUSTERING = "tests/table/services/test_undone_clustering.py"
_LOCK_FILE = "table/transaction/locks/filesystem_lock.py"
_LOCKS = "tests/table/transaction/locks/test_filesystem_lock.py"
MUTANTS = (
    Mutant(
        "a conversion that lost the table switches it all the same", _CONVERT,
        "lease.confirm()  # a writer of an earlier version", "pass  # a writer of an earlier version", (_CONVERSION,),
    ),
    Mutant(
        "a metadata table is named that lacks an action which was completed meanwhile", "table/config/held_change.py",
        "return update_properties(storage, {}, {MARK}) if MARK in config.extra else config", "return config",
        ("tests/table/metadata_table/test_keep.py", _CONVERSION),
    ),
    Mutant(
        "who makes a metadata table does not look for actions that came before its mark",
        "table/metadata_table/make.py",
        "        if _has_begun(timeline, load_timeline(storage, timeline.layout)):\n            withdraw_change",
        "        if False:\n            withdraw_change", ("tests/table/metadata_table/test_keep.py",),
    ),
    Mutant(
        "the metadata table survives a conversion", _CONVERT,
        "        table = replace(table, config=drop_metadata_table(table.storage, table.config))\n", "",
        (_CONVERSION,),
    ),
    Mutant(
        "a conversion copies an archived instant twice", _CONVERT,
        "if file.instant not in seen]", "]", (_CONVERSION,),
    ),
    Mutant(
        "a conversion forgets an archive folder of the table's own", _CONVERT,
        'table.config.extra.get("hoodie.archivelog.folder") or "archived"', '"archived"', (_CONVERSION,),
    ),
    Mutant(
        "a conversion copies the archive into the default folder", _CONVERT,
        "copy = target.open_archive(table.storage, folder)",
        'copy = target.open_archive(table.storage, "history" if target.version > 1 else "archived")', (_CONVERSION,),
    ),
    Mutant(
        "of two creators of a table each goes on by its own properties", "table/hudi_table.py",
        "    return HudiTable(storage, created)", "    return HudiTable(storage, config)",
        ("tests/table/config/test_config.py",),
    ),
    Mutant(
        "an archive folder that contradicts the table is ignored", "table/options/agreement.py",
        '        ("hoodie.archivelog.folder", archive_folder, config.archive_folder),\n', "",
        ("tests/table/options",),
    ),
    Mutant(
        "a key generator that contradicts the table is ignored", "table/options/agreement.py",
        '        ("hoodie.datasource.write.keygenerator.type", options.keys.keygen_type, config.keygen_type),\n', "",
        ("tests/table/options",),
    ),
    Mutant(
        "a clustering that was decided is carried out a second time", "table/services/clustering/execution.py",
        "    if end is not None:  # an earlier attempt had decided it", "    if end is not None and not end.is_commit:",
        ("tests/table/services/test_clustering.py", "tests/table/services/test_clustering_elsewhere.py"),
    ),
    Mutant(
        "half a record index is taken for a whole one", "table/metadata_table/metadata_table.py",
        "    if differing:", "    if False:", ("tests/table/metadata_table/test_read_record_index.py",),
    ),
    Mutant(
        "a record index whose file groups lack their first file is taken for a whole one",
        "table/metadata_table/read_record_index.py",
        "if sorted(by_number) != list(range(count)) or not all(map(is_whole, slices)):",
        "if sorted(by_number) != list(range(count)):", ("tests/table/metadata_table",),
    ),
    Mutant(
        "the metadata table is compacted beside an action that is decided and not visible",
        "table/metadata_table/compact.py", " or _has_decided(storage, timeline)", "",
        ("tests/table/metadata_table/test_compact_beside.py",),
    ),
    Mutant(
        "the metadata table is compacted beside an action that goes on", "table/metadata_table/compact.py",
        " or unfinished_times(now, timeline)", "", ("tests/table/metadata_table/test_compact_beside.py",),
    ),
    Mutant(
        "the metadata table is compacted though a delta commit came after the request",
        "table/metadata_table/compact.py",
        "    if made and own.load_timeline().pending_of(Action.DELTA_COMMIT):", "    if made and False:",
        ("tests/table/metadata_table/test_compact_beside.py",),
    ),
    Mutant(
        "an erasure does not look into change files", "table/services/erasure/traces.py",
        "                    changed, unread = changed + counted.rows,", "                    changed, unread = 0,",
        ("tests/streaming/test_change_files.py",),
    ),
    Mutant(
        "a base file that is written once more tells its changes twice", "table/write/merge_bucket.py",
        "            self._file.changes.restart()\n", "            pass\n", ("tests/streaming/test_change_files.py",),
    ),
    Mutant(
        "a clean leaves the change files of what it deletes", "table/view/file_group.py",
        "        return (*self.files, *self.change_files)", "        return self.files",
        ("tests/streaming/test_change_files.py",),
    ),
    Mutant(
        "the metadata table does not list change files", "table/metadata_table/changes.py",
        '            files.update((path.rpartition("/")[2], size) for path, size in stat.change_files.items())\n', "",
        ("tests/streaming/test_change_files.py",),
    ),
    Mutant(
        "change files are announced as in another layout", "streaming/plan/plan_tasks.py",
        "APPEND if config.layout_version == 1 else CREATE)", "CREATE)", ("tests/streaming/test_change_files.py",),
    ),
    Mutant(
        "rows that fill a small file are in no change file", "table/write/write_bucket.py",
        "            self._file.changes.inserted(stamped)\n", "            pass\n",
        ("tests/streaming/test_change_files.py",),
    ),
    Mutant(
        "a patched row group is in no change file", "table/write/merge_bucket.py",
        "            self._note_patched(self._file.changes, group, outcome)\n", "            pass\n",
        ("tests/streaming/test_change_files.py",),
    ),
    Mutant(
        "a file group with change files takes no new rows", "table/view/file_group.py",
        "        if log.suffix:  # its name", "        if False:  # its name",
        ("tests/streaming/test_change_files.py",),
    ),
    Mutant(
        "an empty batch leaves a commit", "streaming/batch/commit_batch.py",
        " or is_kept):", " or True):",
        ("tests/streaming/test_arrow_sink.py", "tests/table/options/test_switches.py"),
    ),
    Mutant(
        "a manifest names what cleaning deletes after a compaction", "table/services/after_commit.py",
        "        *after_compaction,\n", "", ("tests/table/catalog", "tests/streaming/batch/test_table_services.py"),
    ),
    Mutant(
        "an inline compaction runs beside the next batch", "table/services/compaction/service.py",
        "            return Trigger.INLINE", "            return Trigger.BACKGROUND",
        ("tests/table/services/test_merge_on_read_upkeep.py", "tests/streaming/batch/test_table_services.py"),
    ),
    Mutant(
        "an undone write counts as archived", "table/timeline/change.py",
        "archived = frozenset(time for time in gone if time < first)", "archived = gone",
        ("tests/table/timeline/test_change.py",),
    ),
    Mutant(
        "a look after which all was archived counts as gapless", "table/timeline/change.py",
        "newest in there)", "bool(then & there) or not gone)", ("tests/table/timeline/test_change.py",),
    ),
    Mutant(
        "a sign of life never expires", "table/transaction/signs.py",
        "age_ms is not None and age_ms <= expiry_ms + granularity_ms", "age_ms is not None",
        ("tests/table/transaction",),
    ),
    Mutant(
        "a cut hoodie.properties counts as whole", "table/config/table_config.py",
        'if fault is None and not data.endswith((b"\\n", b"\\r")):', "if False:",
        ("tests/table/services/test_damaged_records.py",),
    ),
    Mutant(
        "a page with another name keeps its checksum", "table/files/parquet/page_checksums.py",
        "signed_checksum(stored))}, STORED_BYTES)", "signed_checksum(self.stored))}, STORED_BYTES)",
        ("tests/table/files/test_page_checksums.py",),
    ),
    Mutant(
        "a batch is completed beside a decided commit that nobody sees", "table/transaction/commit_facts.py",
        "if end is not None and end.is_commit)", "if False)", ("tests/streaming/batch/test_several_writers.py",),
    ),
    Mutant(
        "a reader does not look whether cleans passed its listing", _PINNED,
        "return _has_lost_files(plan, timeline, cleans) or (", "return (", (_STANDS_STILL,),
    ),
    Mutant(
        "a reader does not notice that archival passed its listing", _PINNED,
        "    if not Change.between(before.committed_times, now.committed_times).is_gapless:\n        return True\n", "",
        (_STANDS_STILL,),
    ),
    Mutant(
        "a file group that a clean emptied counts as none", "table/scan/cleaned_meanwhile.py",
        "if found is None:\n            return is_shown", "if found is None:\n            return False",
        ("tests/table/scan/test_cleaned_meanwhile.py", _STANDS_STILL),
    ),
    Mutant(
        "a lock file is not released once more", _LOCK_FILE, "_RELEASES_AGAIN_S = 3,", "_RELEASES_AGAIN_S = 1,",
        (_LOCKS,),
    ),
    Mutant(
        "a lock file that could not be released is forgotten", _LOCK_FILE,
        "_LEFT.setdefault(self._lock.place, []).append(self)", "pass", (_LOCKS,),
    ),
    Mutant(
        "an upload on a dead connection is given up at once", "table/storage/backend.py",
        'for is_last in (name not in _REPEATED and args[:1] != ("upload_part",), True):', "for is_last in (True,):",
        ("tests/table/storage/test_dead_connections.py",),
    ),
    Mutant(
        "a metadata table that lost files beside a drop stays", "table/metadata_table/drop.py",
        "    if now is not None:  # its properties may have been deleted\n", "    if False:\n",
        ("tests/table/metadata_table/test_keep.py",),
    ),
    Mutant(
        "two metadata tables of a table have files of the same names", "table/metadata_table/numbering.py",
        "number = (count - 1) % _NUMBERS", "number = 0", ("tests/table/metadata_table/test_keep.py",),
    ),
    Mutant(
        "a late deletion takes what is there now, and not what it listed", "table/metadata_table/drop.py",
        "storage.delete_metafiles(METADATA_FOLDER, sorted({*names} - {PROPERTIES_FILE}))",
        "storage.delete_metafolder(METADATA_FOLDER)", ("tests/table/metadata_table/test_keep.py",),
    ),
    Mutant(
        "a log file of the record index is remembered before all its blocks count", _FIND_KEYS,
        "if log.is_whole else log.layers", "if log else log.layers", (_FOUND_KEYS,),
    ),
    Mutant(
        "blocks that a snapshot does not have are remembered for it", _FIND_KEYS,
        "if known is None or not all(map(committed.includes_block, known.times)):", "if known is None:",
        (_FOUND_KEYS,),
    ),
    Mutant(
        "an index that was made anew is taken for the one before", _FIND_KEYS,
        " or base.instant_time.startswith(MADE)", "", (_FOUND_KEYS,),
    ),
    Mutant(
        "of two records of a key the older one is left", "table/metadata_table/known_layers.py",
        "stays[:-1] &= pc.not_equal(every[:-1], every[1:])", "stays[1:] &= pc.not_equal(every[:-1], every[1:])",
        (_FOUND_KEYS,),
    ),
    Mutant(
        "what the record index says of a log file is believed", "streaming/task/locate_keys.py",
        "if len(hit.logged) and not log_has(hit.file, keys.take(pa.array(hit.logged))):", "if False:",
        (_KEYS_IN_LOGS,),
    ),
    Mutant(
        "log files are not looked into where the index cannot be used", "streaming/task/tag.py",
        "if self._plan.looks_into_logs:", "if False:", (_KEYS_IN_LOGS,),
    ),
    Mutant(
        "an index that looks into base files doubles keys of log files", "streaming/task/log_only_keys.py",
        "(is_of_bucket(group.file_id) or joins_logs)", "is_of_bucket(group.file_id)", (_KEYS_IN_LOGS,),
    ),
    Mutant(
        "properties from before others' commits tell whether rows joined logs", "streaming/batch/begin_batch.py",
        "snapshot.config if is_alone else load_table_config(self._storage) or snapshot.config", "snapshot.config",
        (_KEYS_IN_LOGS,),
    ),
    Mutant(
        "a deleted row in a base file hides the row in a log file", "streaming/task/log_lookup.py",
        "stays = np.isin(held, keys) | ~lives[held]", "stays = np.isin(held, held)", (_KEYS_IN_LOGS,),
    ),
    Mutant(
        "the index does not hear of new rows in log files", "streaming/task/log_keys.py",
        "slice(len(incoming) - joined)", "slice(len(incoming))",
        ("tests/streaming/task/test_new_rows_join_logs.py",),
    ),
    Mutant(
        "a path whose list does not contain a file counts as listed", "streaming/batch/profile_cache.py",
        "except LostDataError:\n                continue", "except LostDataError:\n                groups = ()",
        ("tests/streaming/plan/test_known_files.py",),
    ),
    Mutant(
        "a router sweeps rows that wait", "streaming/router/aside.py",
        "        if path not in named:\n", "        if path:\n", ("tests/streaming/router/test_aside.py",),
    ),
    Mutant(
        "the lists of files may have lost a log file", "table/metadata_table/file_lists.py",
        "    check_all_seen(own, timeline, found, records.times)\n", "", (_LOST_FILES,),
    ),
    Mutant(
        "a record index may have lost a file", "table/metadata_table/read_record_index.py",
        "            check_whole(one, self.named, there)\n", "            pass\n", (_LOST_FILES,),
    ),
    Mutant(
        "a compaction of the metadata table makes a loss permanent", "table/metadata_table/compact.py",
        "    check_whole(found, named, there)\n", "", (_LOST_FILES,),
    ),
    Mutant(
        "a file that an earlier index lost counts against the one that was made anew",
        "table/metadata_table/lost_files.py",
        "_visible_at(named.instant) >= made and ", "", (_LOST_FILES,),
    ),
    Mutant(
        "a new key is not looked for again before the commit", "table/transaction/commit.py",
        "                _check_keys(table, facts, written)\n", "                pass\n",
        ("tests/streaming/batch/test_several_writers.py",),
    ),
    Mutant(
        "a delete by a condition asks the index of the options alone", "streaming/arrow_sink.py",
        "            index = IndexType.RECORD_INDEX\n", "            pass\n", ("tests/streaming/test_erasure.py",),
    ),
    Mutant(
        "statistics judge values that paths show", "table/scan/plan.py",
        "predicate.columns - columns_shown_by_path(table.config)", "predicate.columns",
        ("tests/table/scan/test_rows_of_other_folders.py",),
    ),
    Mutant(
        "the end record of an undone clustering says commit under its other name",
        "table/services/rollback/rollback.py",
        "    if action in (Action.CLUSTERING, Action.REPLACE_COMMIT):", "    if not action:", (_UNDONE_CLUSTERING,),
    ),
    Mutant(
        "the last commit before an archive is rolled back", "table/services/rollback/undo_checks.py",
        "if is_last and any(table.archived_timeline.read_files()):", "if False:",
        ("tests/table/services/test_undone_last_commit.py",),
    ),
    Mutant(
        "a table whose archive has commits counts as new", "table/references/strays.py",
        "        if any(table.archived_timeline.read_files()):", "        if False:",
        ("tests/table/services/test_undone_last_commit.py",),
    ),
    Mutant(
        "time travel is bounded by the last clean alone", "table/timeline/kept_from.py",
        "        if plan.kept_from:\n", "        if found:\n", ("tests/table/scan/test_as_of.py",),
    ),
    Mutant(
        "a clean forgets the bound of those before it", "table/services/clean/judgement.py",
        'kept_from=max(plan.bound, before or "")', "kept_from=plan.bound", ("tests/table/scan/test_as_of.py",),
    ),
    Mutant(
        "another index adds rows to a table of buckets", "streaming/batch/opening.py",
        "        check_buckets(options, config)\n", "", ("tests/streaming/test_where_keys_lie.py",),
    ),
    Mutant(
        "rows fill a bucket by its size", "streaming/plan/bucket_assigner.py",
        " and not is_of_bucket(file.file_id)", "", ("tests/streaming/test_where_keys_lie.py",),
    ),
    Mutant(
        "a compaction writes the types of a widening that came later", "table/services/compaction/execution.py",
        ", as_requested=True", "", ("tests/table/services/test_compaction_behind_a_widening.py",),
    ),
    Mutant(
        "a record that deletes its key is inserted", "streaming/task/append.py",
        "        if deletes.any():", "        if False:", ("tests/streaming/task/test_delete_marker.py",),
    ),
    Mutant(
        "a new column does not reach the partitions of Glue", "table/catalog/glue.py",
        "        if cascades and wanted.partition_keys:", "        if False:", ("tests/table/catalog/test_sync.py",),
    ),
    Mutant(
        "the Delta log follows a type over files that it missed", "table/catalog/delta/delta_log.py",
        "            elif changed:", "            elif False:",
        ("tests/table/catalog/test_delta_log.py",),
    ),
    Mutant(
        "rows in the path of nulls show what the file holds", "table/keys/folder_values.py",
        "schema, path), **nulls}", "schema, path)}", ("tests/table/scan/test_rows_of_other_folders.py",),
    ),
    Mutant(
        "decimals of JSON go through a float", "streaming/router/table_rows.py", ", parse_float=_Number", "",
        ("tests/streaming/router/test_table_rows.py",),
    ),
    Mutant(
        "a bulk insert that is to combine keeps all records of a key", "table/options/write_options.py",
        "        check_combines(self.effective_operation, self.duplicates)\n", "",
        ("tests/table/options/test_options.py",),
    ),
    Mutant(
        "Hudi's names in capitals are columns", "table/schema/evolution.py",
        "not column.name.lower().startswith(META_PREFIX)", "not column.name.startswith(META_PREFIX)",
        ("tests/table/schema/test_schema_evolution.py",),
    ),
    Mutant(
        "a number beyond the range of times makes a path", "table/keys/arrow_times.py",
        "        numbers, good = _numbers(column, MOST[unit])", "        numbers, good = _numbers(column, 2**63 - 1)",
        ("tests/table/keys/test_arrow_keys.py",),
    ),
    Mutant(
        "bad rows are finished by the timeline from before their listing", "streaming/batch/quarantine.py",
        "    now = snapshot.again()\n", "    now = snapshot\n", ("tests/streaming/batch/test_bad_rows.py",),
    ),
    Mutant(
        "bad rows of two tables have one name", "streaming/plan/quarantine.py", "_{table:08x}", "",
        ("tests/streaming/plan/test_quarantine.py",),
    ),
    Mutant(
        "a query that continues another one leaves no commit without rows", "streaming/batch/commit_batch.py",
        " or job.turn.continues", "", ("tests/streaming/batch/test_positions.py",),
    ),
    Mutant(
        "the place of a sink is that of another one", "table/transaction/last_batch.py",
        "() if OUR_KEY in extra else ", "", ("tests/streaming/batch/test_positions.py",),
    ),
    Mutant(
        "a range has the columns of its end", "table/scan/plan.py",
        "load_read_schema(newest)", "load_read_schema(snapshot)", ("tests/table/scan/test_changes.py",),
    ),
    Mutant(
        "a feed passes over what was undone where nothing older is left", "table/scan/feed/steps.py",
        "    if chosen.since != EARLIEST:", "    if start != EARLIEST:", ("tests/table/scan/test_feed.py",),
    ),
    Mutant(
        "archived commits stay in memory", "table/timeline/commit_cache.py",
        "        if first is not None and first != self._first:", "        if False:",
        ("tests/table/timeline/test_commit_cache.py",),
    ),
    Mutant(
        "the operation of a repeat is not looked at", "streaming/batch/frames.py",
        "self.operation == other.operation and ", "", ("tests/streaming/batch/test_frames.py",),
    ),
    Mutant(
        "a sink finds its table by the working directory of today", "streaming/table_sink.py",
        "        self._path = self._storage.base_uri", "        pass", ("tests/streaming/test_arrow_sink.py",),
    ),
    Mutant(
        "files of a renamed table are not found", "table/storage/interface.py",
        '            if theirs.endswith(f"/{inside}"):', "            if False:",
        ("tests/table/storage/test_storage.py",),
    ),
    Mutant(
        "a child of a fork waits for its parent's threads", "table/transaction/locks/in_process.py",
        "    _GATES.clear()", "    pass", ("tests/table/transaction/locks/test_in_process.py",),
    ),
    Mutant(
        "a thread of a pool does not know its query", "streaming/spark/engine.py",
        "return by_worker or find_only_query(spark)", "return by_worker",
        ("tests/streaming/spark/test_ways_to_call.py",),
    ),
    Mutant(
        "tasks that know no query write for the one that was known", "streaming/batch/exactly_once.py",
        "query_id is None and has_rows and", "False and", ("tests/streaming/spark/test_ways_to_call.py",),
    ),
    Mutant(
        "one of several queries is taken for a batch's", "streaming/spark/environment.py",
        "    if len(active) > 1:", "    if False:", ("tests/streaming/spark/test_ways_to_call.py",),
    ),
    Mutant(
        "a delete by a table cleans", "hudistream/user_table.py",
        '{"hoodie.table.services.enabled": "false", **(options or {})}', "{**(options or {})}",
        ("tests/table/test_looks_at_other_forms.py",),
    ),
    Mutant(
        "a scan confirms by the metadata table", "table/snapshot.py",
        "self.table.store_listing if confirms else self.listing", "self.listing",
        ("tests/table/test_looks_at_other_forms.py",),
    ),
    Mutant(
        "a validator reads log files as base files", "streaming/validators.py",
        "(self._read_log if is_log else self._read_base)", "self._read_base",
        ("tests/streaming/batch/test_bad_rows.py",),
    ),
    Mutant(
        "a batch of another query is written under Spark Connect", "streaming/spark/checkpoint.py",
        'if self._has(f"offsets/{batch_id}") and not self._has(f"commits/{batch_id}"):', "if True:",
        ("tests/streaming/spark/test_query_checkpoint.py",),
    ),
    Mutant(
        "a confirmed scan counts accepted losses", "table/scan/plan.py",
        "        leave_out_accepted(snapshot)", "        pass", ("tests/table/services/test_accept_losses.py",),
    ),
    Mutant(
        "a router drops the marker of deletes where columns are named", "streaming/router/table_rows.py",
        "    if DELETE_MARKER in available and", "    if False and", ("tests/streaming/router/test_table_rows.py",),
    ),
    Mutant(
        "a pool that its own worker closed takes no work at the end", "table/threads.py",
        'if self._is_closed or "new futures after" not in str(error):', 'if "interpreter" not in str(error):',
        ("tests/table/test_threads.py",),
    ),
    Mutant(
        "a sink whose number was refused keeps the table from its retry", "streaming/batch/micro_batch.py",
        "                keeps_table = held  #", "                pass  #",
        ("tests/streaming/batch/test_failed_batches.py",),
    ),
    Mutant(
        "a writer of the future is decided before its clock is compared", "table/transaction/commit.py",
        "    check_not_ahead(snapshot.table, lease.ahead_ms)", "    pass", ("tests/safety/test_clock_ahead.py",),
    ),
    Mutant(
        "a disk that gives no answer has no file", "table/storage/local_surroundings.py",
        '        raise failed("look for", full, error) from error', "        return None",
        ("tests/table/storage/test_storage.py",),
    ),
)  # fmt: skip


def copy_checkout(folder):
    """The files that git knows, as they are here."""
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in listed.splitlines():
        if (ROOT / name).exists():
            target = Path(folder, name)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, target)


def try_mutant(mutant, folder):
    """What became of a mutant: ``found``, or ``survives``.

    Raises:
        ValueError: its text does not stand in the file once.
    """
    path = Path(folder, mutant.file)
    whole = path.read_text()
    if whole.count(mutant.old) != 1:
        raise ValueError(f"{mutant.name}: {mutant.file} has its text {whole.count(mutant.old)} times")
    path.write_text(whole.replace(mutant.old, mutant.new))
    try:
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-x",
            "-q",
            "-m",
            "not spark and not hudi and not slow",
            *mutant.tests,
        ]
        ways = {**os.environ, "PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
        done = subprocess.run(
            command, cwd=folder, env=ways, capture_output=True, text=True, check=False, timeout=LIMIT_S
        )
    except subprocess.TimeoutExpired:
        return "found"  # it hangs
    finally:
        path.write_text(whole)
    if done.returncode not in (0, 1):
        raise ValueError(f"{mutant.name}: pytest ended with {done.returncode}: {done.stdout[-2000:]}")
    return "found" if done.returncode else "survives"


def main():
    """Tries mutants, and says which survive."""
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*", help="parts of names; none: all mutants")
    given = parser.parse_args()
    chosen = [one for one in MUTANTS if not given.names or any(name in one.name for name in given.names)]
    outcomes = {}
    with tempfile.TemporaryDirectory() as folder:
        copy_checkout(folder)
        for mutant in chosen:
            started = time.monotonic()
            outcomes[mutant.name] = try_mutant(mutant, folder)
            print(f"{outcomes[mutant.name]:9} {time.monotonic() - started:5.0f} s  {mutant.name}", flush=True)
    if not given.names:
        commit = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False)
        RESULT.write_text(json.dumps({"commit": commit.stdout.strip(), "mutants": outcomes}, indent=1) + "\n")
    return 1 if "survives" in outcomes.values() else 0


if __name__ == "__main__":
    sys.exit(main())

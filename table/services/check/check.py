"""Check: looks at a table twice, reports what both looks found, and repairs what is safe to repair.

Without ``repair`` nothing is written, and writers may be at work: a finding of only one look comes from their work.
With ``repair`` the check holds the table, so that no writer that knows leases is at work.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from table.config.properties_copy import read_whole
from table.config.table_config import PROPERTIES_FILE
from table.config.writable import check_can_write, check_version_written
from table.errors import CorruptFileError, HudiError
from table.hudi_table import HudiTable
from table.log import get_logger
from table.metadata_table.drop import drop_present_metadata_table
from table.options.groups import HeartbeatSettings
from table.scan.read_slice import SliceContext
from table.services.check.checksums import count_checksums
from table.services.check.contents import check_contents, choose_files
from table.services.check.file_lists import check_file_lists
from table.services.check.finding import CheckReport, Finding, Kind, Repair, found_by_both, in_order
from table.services.check.judge_files import judge_files
from table.services.check.judge_timeline import judge_timeline
from table.services.check.log_contents import check_log_contents, ordering_of
from table.services.check.look import Look, take_look
from table.services.check.properties import has_source, mend_properties
from table.services.check.record_index import check_record_index
from table.services.check.repair import Problems, end_instants, mend
from table.services.check.statistics import check_statistics
from table.snapshot import Snapshot
from table.storage.interface import METAFOLDER, Storage
from table.storage.opening import open_storage
from table.timeline.lost_properties import open_config
from table.transaction.holder import Holder, find_standing_holder
from table.transaction.lease import Lease, hold_table
from table.view.file_group import BaseFile, DataFile, LogFile

DEFAULT_SAMPLE = 20

log = get_logger("hudistream.check")


def check(
    table: HudiTable | str | os.PathLike[str],
    *,
    repair: bool = False,
    sample: int | None = DEFAULT_SAMPLE,
    storage_options: Mapping[str, Any] | None = None,
) -> CheckReport:
    """Looks at a whole table.

    Args:
        table: the table, or its path. A table that lost its properties can only be named by its path.
        repair: repair what is safe to repair. The table is held meanwhile.
        sample: how many files of the snapshot are read; None means all.
        storage_options: for fsspec, where `table` is a path.

    Returns:
        What was found, and what became of it.

    Raises:
        TableNotFoundError: there is no table.
        CorruptFileError: the table lost its properties, and they cannot be made again.
        UnsupportedTableError: the table is of another version.
        CommitConflictError: a live writer holds the table, and `repair` is wanted.
        HudiError: the store fails.
    """
    made_again: list[Finding] = []
    if repair:
        storage = table.storage if isinstance(table, HudiTable) else open_storage(table, storage_options)
        made_again = _mend_properties(storage)
    if not isinstance(table, HudiTable):
        table = HudiTable.open(table, storage_options)
    elif made_again:
        table = replace(table, config=open_config(table.storage) or table.config)
    return _check(table, made_again, repair=repair, sample=sample)


def _check(table: HudiTable, made_again: Sequence[Finding], *, repair: bool, sample: int | None) -> CheckReport:
    check_version_written(table.config, "check")
    settings = HeartbeatSettings()
    holder = find_standing_holder(table.storage, settings)
    if repair:
        check_can_write(replace(table.config, metadata_partitions=""))
        with hold_table(table.storage, "hudistream check --repair") as lease:
            look, found = _repair(table, lease, replace(holder, is_alive=False), settings)
            lists = _check_metadata_table(table, look, sample)
            if lists:
                drop_present_metadata_table(table.storage)
            found = [*found, *(replace(one, repair=Repair.DONE) for one in lists)]
    else:
        look, found = _find(table, holder, settings)
        found = [*found, *_check_metadata_table(table, look, sample)]
    chosen = choose_files(look, sample)
    found = [*found, *_check_contents(table, look, chosen)]
    files = sum(len(folder.paths) for folder in look.folders.values())
    sums = count_checksums(table.storage, [file for file in chosen if isinstance(file, BaseFile)])
    report = CheckReport(table.storage.base_uri, in_order([*made_again, *found]), files, len(chosen), *sums)
    log.info("table_checked", table=report.table, sound=report.is_sound, findings=len(report.findings), files=files)
    return report


def _mend_properties(storage: Storage) -> list[Finding]:
    if read_whole(storage, PROPERTIES_FILE) is not None or not has_source(storage):
        return []
    with hold_table(storage, "hudistream check --repair"):
        return mend_properties(storage)


def _check_metadata_table(table: HudiTable, look: Look, sample: int | None) -> list[Finding]:
    found, schema = check_file_lists(table, look.timeline), _load_schema(table, look)
    if found or schema is None:
        return found
    files = choose_files(look, sample)
    bases = [file for file in files if isinstance(file, BaseFile)]
    context = SliceContext(table, look.committed, schema)
    return check_statistics(table, schema, bases) + check_record_index(
        context, look.timeline, files, look.merged_slices, is_sampled=sample is not None
    )


def _load_schema(table: HudiTable, look: Look) -> pa.Schema | None:
    """The table's columns; None where the commit that holds them is damaged, which the timeline's findings say."""
    try:
        return Snapshot(table, look.timeline).load_schema()
    except CorruptFileError:
        return None


def _judge(look: Look) -> list[Finding]:
    return [*judge_files(look), *judge_timeline(look)]


def _find(table: HudiTable, holder: Holder, settings: HeartbeatSettings) -> tuple[Look, Sequence[Finding]]:
    """The last look, and what both looks found. One look is enough if it finds nothing."""
    look = take_look(table, holder, settings)
    found: Sequence[Finding] = _judge(look)
    if found:
        look = take_look(table, holder, settings)
        found = found_by_both(found, _judge(look))
    return look, found


def _repair(
    table: HudiTable, lease: Lease, holder: Holder, settings: HeartbeatSettings
) -> tuple[Look, Sequence[Finding]]:
    look, found = _find(table, holder, settings)
    if look.unreadable:
        why = "the timeline cannot be read whole: nothing is deleted"
        return look, [replace(f, repair=Repair.REFUSED, why=f.why or why) for f in found]
    problems = end_instants(table, lease, found, settings)
    if problems or any(f.repair is Repair.POSSIBLE for f in found):
        look, now = _find(table, holder, settings)
        if not look.unreadable:
            if any(f.repair is Repair.POSSIBLE and not f.key[1].startswith(METAFOLDER) for f in now):
                drop_present_metadata_table(table.storage)  # property first: its lists may name what is deleted
            problems |= mend(table, lease, look, now, settings)
        look = take_look(table, Holder(), settings)
        found = settle(found, [*now, *_judge(look)], _judge(look), problems)
    return look, found


def settle(
    before: Sequence[Finding], between: Sequence[Finding], after: Sequence[Finding], problems: Problems
) -> list[Finding]:
    """What became of each finding (pure): a finding is repaired if the last look does not find it any more.

    Args:
        before: what was found first.
        between: what was found during the repair.
        after: what the last look found.
        problems: why something was not repaired.
    """
    remaining = {finding.key for finding in after}
    every: Mapping[tuple[Kind, str], Finding] = {f.key: f for f in (*between, *before)}
    settled = []
    for finding in every.values():
        if finding.key not in remaining:
            settled.append(replace(finding, repair=Repair.DONE, why=""))
        elif finding.repair is Repair.POSSIBLE and finding.key in problems:
            settled.append(replace(finding, repair=Repair.REFUSED, why=problems[finding.key]))
        else:
            settled.append(finding)
    return settled


def _check_contents(table: HudiTable, look: Look, chosen: Sequence[DataFile]) -> list[Finding]:
    try:
        schema = Snapshot(table, look.timeline).load_schema()
    except HudiError as error:
        if not isinstance(error, CorruptFileError):
            raise
        return []
    bases = [file for file in chosen if isinstance(file, BaseFile)]
    logs = [file for file in chosen if isinstance(file, LogFile)]
    found = check_contents(table.storage, bases, schema, has_meta_fields=table.config.populate_meta_fields)
    return [*found, *check_log_contents(table.storage, logs, look.log_instants, ordering_of(table.config, schema))]

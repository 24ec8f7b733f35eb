"""Checks whether a sink may write to a path, and what the user would have to change. Changes nothing."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from table.config.metadata_indexes import RECORD_INDEX, STATISTICS
from table.config.table_config import BACKUP_FILE, PROPERTIES_FILE, TABLE_VERSION, TableConfig
from table.config.writable import check_can_write, check_path_is_free
from table.errors import HudiError
from table.hudi_table import HudiTable
from table.inspect.health import load_health
from table.inspect.health_facts import Code, Health, Verdict
from table.keys.keygen import doubled_by
from table.metadata_table.index_definitions import load_statistics
from table.metadata_table.statistics import agree_columns
from table.options.agreement import check_buckets, check_options_agree, new_table_config
from table.options.choices import ConcurrencyMode, IndexType, TableType
from table.options.write_options import WriteOptions
from table.scan.stored_key import with_key_encoding
from table.services.rollback.fate import Fate
from table.services.rollback.outlook import load_outlook
from table.snapshot import Snapshot
from table.storage.interface import Storage
from table.storage.opening import open_storage
from table.timeline.lost_properties import open_config
from table.transaction.holder import Holder, find_standing_holder
from table.transaction.lease_record import describe_holder
from table.transaction.membership import is_open

_KEEPS_VERSION = ("hoodie.write.table.version=6", "hoodie.write.auto.upgrade=false")
# pending instants and the lease are looked at more closely here
_OF_BATCHES = {
    Code.LOST_FILE, Code.CLOCK_AHEAD, Code.DISK_FULL, Code.NOT_WRITABLE, Code.DAMAGED_COMMIT, Code.METADATA_TABLE,
    Code.DISK_NEARLY_FULL,
}  # fmt: skip
_IN_LOGS = (
    "rows may lie in log files alone (hudistream.new.rows.join.logs=true in an earlier sink): a batch that meets one "
    "is refused; set hoodie.index.type=RECORD_INDEX, or run `hudistream compact PATH` first"
)
_AT_ONCE = "a JVM writer that works at the same time must have a lock in common, and set hoodie.metadata.enable=false"


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check.

    Attributes:
        level: ``ok``, ``note``, or ``stop``: a sink cannot write until the fault is repaired.
        text: the finding, and the way out if there is one.
    """

    level: str
    text: str


@dataclass(frozen=True)
class Diagnosis:
    """The findings at a path."""

    path: str
    findings: tuple[Finding, ...]

    @property
    def may_write(self) -> bool:
        """Whether a sink with these options would write there."""
        return all(finding.level != "stop" for finding in self.findings)


def examine(
    path: str | os.PathLike[str],
    options: WriteOptions | None = None,
    storage_options: Mapping[str, Any] | None = None,
) -> Diagnosis:
    """Looks at a path as a sink with these options would.

    Args:
        path: path of a table, or of a table to be created.
        options: options of the sink; None checks the table alone.
        storage_options: options for fsspec.

    Returns:
        Findings, in the order in which a sink would meet them.
    """
    storage = open_storage(path, storage_options)
    findings: list[Finding] = []
    try:
        config = open_config(storage)
    except HudiError as error:
        return Diagnosis(storage.base_uri, (Finding("stop", str(error)),))
    if config is None:
        findings += _examine_free_place(storage, options)
    else:
        findings += _examine_table(HudiTable(storage, config), options)
    return Diagnosis(storage.base_uri, (*findings, Finding("note", _not_examined(options))))


def _not_examined(options: WriteOptions | None) -> str:
    """What the diagnosis says nothing of (pure)."""
    skipped = [
        "the contents of data files (`hudistream check` reads them)",
        "Spark and its workers (the first batch asks them)",
        *([] if options is None else ["the lock, the catalog and the folder of bad rows"]),
        *(["the options of a sink (--options)"] if options is None else []),
    ]
    return "not looked at: " + "; ".join(skipped)


def _examine_free_place(storage: Storage, options: WriteOptions | None) -> list[Finding]:
    try:
        check_path_is_free(storage)
        findings = [Finding("ok", "there is no table; the first batch creates one")]
        if options is not None:
            config = new_table_config(options, "new")
            findings.append(Finding("ok", f"the options make a table with key {', '.join(config.record_key_fields)}"))
    except HudiError as error:
        return [Finding("stop", str(error))]
    return findings


def _examine_statistics(table: HudiTable, options: WriteOptions | None) -> list[Finding]:
    """Whether the next batch maintains the statistics of the metadata table, or drops them."""
    named = ", ".join(sorted(table.config.metadata_indexes & STATISTICS))
    why = "the options say so" if STATISTICS in (options.table.dropped_indexes.values() if options else ()) else ""
    try:
        schema = Snapshot.load(table).load_schema()
        agree_columns(load_statistics(table.storage, table.config), schema or pa.schema([]), None)
    except HudiError as error:
        why = why or str(error)
    if not why:
        return [Finding("ok", f"{named} of its metadata table will be maintained")]
    return [Finding("note", f"of its metadata table, {named} will be dropped, and the lists of files kept: {why}")]


def _examine_table(table: HudiTable, options: WriteOptions | None) -> list[Finding]:
    config = table.config
    kind = f"table {config.name!r}: version {config.version}, {config.table_type}, keys by {config.keygen_type}"
    findings = [Finding("ok", kind)]
    drops = options is not None and options.table.metadata_enabled is False
    dropped = frozenset[str]().union(*(options.table.dropped_indexes.values() if options is not None else ()))
    indexes = frozenset() if drops else config.metadata_indexes - (dropped - STATISTICS)
    checked = replace(config, metadata_partitions=",".join(sorted(indexes)))
    if drops and config.metadata_partitions.strip():
        findings.append(Finding("note", f"the metadata table ({config.metadata_partitions}) will be dropped"))
    findings += _tried(lambda: check_can_write(checked), "its properties fit")
    if checked.metadata_indexes & STATISTICS:
        findings += _examine_statistics(table, options)
    if options is not None:
        findings += _tried(lambda: _check_agreement(options, config), "the options agree with the table")
        findings += _examine_new_rows(options, config, indexes)
    if not table.storage.exists(PROPERTIES_FILE):
        findings.append(
            Finding("note", f"{PROPERTIES_FILE} is missing or was being changed; {BACKUP_FILE} is in force")
        )
    if any(finding.level == "stop" for finding in findings):
        return findings
    snapshot = Snapshot.load(table)
    facts = load_health(table)
    findings += _examine_probes(facts)
    findings += _examine_keys(snapshot)
    findings += _examine_pending(snapshot, options or WriteOptions())
    findings += _examine_readers(facts, config)
    return findings


def _examine_new_rows(options: WriteOptions, config: TableConfig, indexes: frozenset[str]) -> list[Finding]:
    """Who else must not write while new rows join log files (pure).

    Args:
        options: of the sink.
        config: of the table.
        indexes: of the metadata table, as the sink leaves them.
    """
    if not options.sizes.joins_logs:
        looks_into_files = (
            options.index.type is not IndexType.RECORD_INDEX and options.effective_operation.looks_for_keys
        )
        return [Finding("note", _IN_LOGS)] if config.has_rows_in_logs and looks_into_files else []
    if RECORD_INDEX not in indexes:
        text = "new rows will go to base files (hudistream.new.rows.join.logs=true): the table has no record index"
        return [Finding("note", f"{text}; set hoodie.metadata.record.index.enable=true")]
    text = (
        "new rows join log files (hudistream.new.rows.join.logs=true): Hudi's writers with another index than "
        "RECORD_INDEX would write their keys twice, and sinks with another index are refused; run `hudistream compact "
        "PATH` before one of them writes"
    )
    return [Finding("note", text)]


def _examine_keys(snapshot: Snapshot) -> list[Finding]:
    """Whether another engine would find the record keys."""
    try:
        why = doubled_by(with_key_encoding(snapshot).config)
    except HudiError as error:
        return [Finding("stop", str(error))]
    return [Finding("ok", "Hudi spells record keys as here") if why is None else Finding("note", why)]


def _check_agreement(options: WriteOptions, config: TableConfig) -> None:
    check_options_agree(options, config)
    check_buckets(options, config)


def _tried(check: Any, fine: str) -> list[Finding]:
    try:
        check()
    except HudiError as error:
        return [Finding("stop", str(error))]
    return [Finding("ok", fine)]


def _examine_pending(snapshot: Snapshot, options: WriteOptions) -> list[Finding]:
    holder = find_standing_holder(snapshot.storage, options.heartbeat)
    found = load_outlook(snapshot, holder, options.heartbeat, may_live=options.concurrency.is_shared)
    pending = [Finding("stop" if one.fate is Fate.REFUSED else "note", str(one)) for one in found]
    return _examine_lease(holder, options) + pending


def _examine_lease(standing: Holder, options: WriteOptions) -> list[Finding]:
    holder = standing.record
    if holder is None or holder.is_released:
        return []
    text = f"{describe_holder(holder)} holds the table"
    if not standing.is_alive:
        return [Finding("ok", f"{text}, but is dead: the next writer takes over")]
    left_s = max(0.0, (options.heartbeat.expiry_ms - (standing.age_ms or 0)) / 1000)
    if is_open(holder):
        text = "several writers share the table"
        if options.concurrency.is_shared:
            return [Finding("ok", f"{text}: the sink joins them")]
        way_in = f"set hoodie.write.concurrency.mode={ConcurrencyMode.OPTIMISTIC} to join them"
        return [Finding("stop", f"{text}: {way_in}, or wait {left_s:.0f} s after the last one has stopped")]
    if holder.identity is None or holder.identity.query_id is None:
        return [Finding("stop", f"{text}: others may write after it has ended, or in {left_s:.0f} s if it is dead")]
    until = f"if it is dead, the same query may start again at once, and others in {left_s:.0f} s"
    return [Finding("note", f"{text}: {until}; while it lives, others are refused")]


def _examine_probes(facts: Health) -> list[Finding]:
    """What health finds broken stops a sink; what the next batch mends is a note (pure)."""
    fine = Finding("ok", "the files that commits name are there, and clock and timeline agree")
    of_batches = [one for one in facts.findings if one.code in _OF_BATCHES]
    stops = [Finding("stop" if one.level is Verdict.BROKEN else "note", one.text) for one in of_batches]
    return stops or [fine]


def _examine_readers(facts: Health, config: TableConfig) -> list[Finding]:
    logs = f", {facts.log_files} of them log files" if facts.log_files else ""
    is_first = config.version == TABLE_VERSION
    readers = "Hudi, hudi-rs, Trino, Athena and others read version 6; docs/guides/engines.md says which were tried"
    if not is_first:
        since = "1.0" if config.version == 8 else "1.1"
        readers = f"Hudi from {since} on and hudi-rs read version {config.version}; other engines read version 6 alone"
    findings = [
        Finding(
            "ok", f"{facts.live_files + facts.log_files} live files{logs}, {facts.live_bytes + facts.log_bytes} bytes"
        ),
        Finding("note", _AT_ONCE),
        Finding("note", readers),
    ]
    if is_first:
        text = f"a JVM writer must set {', '.join(_KEEPS_VERSION)} to share the table in its version"
        findings.append(Finding("note", text))
    if config.table_type == TableType.MERGE_ON_READ:
        text = "a JVM that reads it must run in the zone of its instants (-Duser.timezone), to tell its log files apart"
        findings.append(Finding("note", text))
    if config.timezone != "UTC":
        text = "instants are in the writer's local zone: all writers must run in the same one"
        findings.append(Finding("note", text))
    return findings

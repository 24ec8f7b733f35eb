"""A list of the files that a table's newest snapshot is made of, for engines that read no Hudi table themselves.

::

    .hoodie/absolute-path-manifest/latest-snapshot.csv    BigQuery: an address a line (Hudi's ManifestFileWriter)
    .hoodie/redshift-manifest/latest-snapshot.manifest    Redshift: {"entries": [{"url": …, "meta": …}]}
    _delta_log/                                           engines that read Delta: `table.catalog.delta.delta_log`
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from table.catalog.delta.delta_log import DeltaLog
from table.hudi_table import HudiTable
from table.options.catalog_settings import ManifestFor
from table.snapshot import Snapshot
from table.storage.interface import METAFOLDER, join
from table.timeline.change import Change
from table.view.file_group import BaseFile

_TRIES = 5


_PLACES = {
    ManifestFor.BIGQUERY: join(METAFOLDER, "absolute-path-manifest", "latest-snapshot.csv"),
    ManifestFor.REDSHIFT: join(METAFOLDER, "redshift-manifest", "latest-snapshot.manifest"),
}


@dataclass(frozen=True)
class Manifest:
    """A manifest that was written.

    Attributes:
        address: of the manifest, for the engine's statement.
        files: how many files it names.
        as_of: instant time of the snapshot; None: the table has no commit.
        files_with_logs: base files whose newest rows are in log files, which the engine does not see.
    """

    address: str
    files: int
    as_of: str | None
    files_with_logs: int


def encode_manifest(reader: ManifestFor, files: Sequence[tuple[str, int]]) -> bytes:
    """The content of a manifest (pure).

    Args:
        reader: who reads it.
        files: addresses and sizes in bytes.
    """
    if reader is ManifestFor.BIGQUERY:
        return "".join(f"{address}\n" for address, _ in files).encode()
    entries = [{"url": address, "mandatory": True, "meta": {"content_length": size}} for address, size in files]
    return json.dumps({"entries": entries}, indent=1).encode()


def engine_address(address: str) -> str:
    """A file's address as engines outside of Hadoop spell it: ``s3://`` (pure)."""
    scheme, mark, rest = address.partition("://")
    return f"s3://{rest}" if mark and scheme in ("s3a", "s3n") else address


def write_manifest(table: HudiTable, reader: ManifestFor, log: DeltaLog | None = None) -> Manifest:
    """Writes the manifest of the newest snapshot over the one before.

    If the table was committed to meanwhile, it is written again: of two writers, the later one names the newer files.
    A query that has read an older manifest goes on for as long as cleaning keeps the files.

    Args:
        table: of any type; of log files nothing is named.
        reader: who reads it.
        log: the table's Delta log, if the caller keeps one.

    Raises:
        StorageError: the store fails.
        HudiError: for ``delta``, as `DeltaLog.bring_up_to_date`.
    """
    log = log or DeltaLog(table)
    for _ in range(_TRIES):
        snapshot = Snapshot.load(table)
        done = _write_delta(snapshot, log) if reader is ManifestFor.DELTA else _write(snapshot, reader)
        if Change.between(snapshot.timeline.committed_times, Snapshot.load(table).timeline.committed_times).is_none:
            break
    return done


def _write_delta(snapshot: Snapshot, log: DeltaLog) -> Manifest:
    found, behind = _live_files(snapshot)
    state = log.bring_up_to_date(snapshot, found)
    as_of = max(snapshot.timeline.committed_times, default=None)
    return Manifest(engine_address(snapshot.storage.base_uri), len(state.files), as_of, behind)


def _write(snapshot: Snapshot, reader: ManifestFor) -> Manifest:
    storage, (found, behind) = snapshot.storage, _live_files(snapshot)
    files = sorted((engine_address(storage.absolute(file.path)), file.size_bytes) for file in found)
    place = _PLACES[reader]
    storage.put(place, encode_manifest(reader, files))
    as_of = max(snapshot.timeline.committed_times, default=None)
    return Manifest(engine_address(storage.absolute(place)), len(files), as_of, behind)


def _live_files(snapshot: Snapshot) -> tuple[list[BaseFile], int]:
    """The base files that readers open, and how many of them have newer rows in log files."""
    found, behind = list[BaseFile](), 0
    for _, groups in snapshot.walk_file_groups():
        slices = [group.merged_slice for group in groups]
        found += [each.base_file for each in slices if each.base_file is not None]
        behind += sum(bool(each.log_files) for each in slices)
    return found, behind

"""The files of a slice that a plan names, as they are on the store."""

from collections.abc import Sequence

from table.errors import StorageError
from table.storage.interface import Storage, join
from table.view.file_group import BaseFile, FileSlice, parse_data_files


def find_planned_slice(
    storage: Storage,
    path: str,
    file_id: str,
    base_instant_time: str,
    base_file: str | None,
    log_files: Sequence[str],
    reader: str,
) -> FileSlice:
    """The slice: the planned files and no others.

    Args:
        storage: the table's.
        path: partition path.
        file_id: file group.
        base_instant_time: of the slice.
        base_file: name; None where the slice has only log files.
        log_files: names.
        reader: who reads it, for the error, such as ``the compaction 20260101000000000``.

    Raises:
        StorageError: a planned file is not there.
    """
    wanted = {*log_files, *([base_file] if base_file is not None else [])}
    entries = [entry for entry in storage.list_dir(path) if entry.name in wanted]
    missing = sorted(wanted - {entry.name for entry in entries})
    if missing:
        raise StorageError(f"{join(path, missing[0])}, which {reader} reads, is not there")
    bases, logs = parse_data_files(path, entries)
    base: BaseFile | None = bases[0] if bases else None
    return FileSlice(path, file_id, base_instant_time, base, tuple(sorted(logs, key=lambda log: log.order)))

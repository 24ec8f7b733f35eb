"""The lists of files and their fates by `clean --dry-run` and `explain`: text for people, JSON for programs."""

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Any

from table.cli.output import plural
from table.inspect.explain import FileExplanation
from table.inspect.words import size_text
from table.services.clean.judgement import PartitionFates
from table.services.clean.plan import FileFate
from table.view.file_group import BaseFile, DataFile


def fates_lines(partitions: Iterable[PartitionFates], *, every: bool = False) -> list[str]:
    """What a clean would delete: for each partition path a heading and its files, then a summary.

    Args:
        partitions: all that were judged.
        every: names the files that stay, too.
    """
    lines: list[str] = []
    fates: list[FileFate] = []
    for partition in partitions:
        fates += partition.fates
        if not every and not partition.deleted:
            continue
        heading = _heading(partition.partition_path, [fate.file for fate in partition.fates])
        lines.append(f"{heading}; {_deleted([fate.file for fate in partition.deleted])}")
        lines += [
            f"  {'delete' if fate.deleted else 'keep':6}  {_sized(fate.file)}  {fate.file.path}  ({fate.rule})"
            for fate in partition.fates
            if every or fate.deleted
        ]
    gone = [fate.file for fate in fates if fate.deleted]
    seen = size_text(_bytes(fate.file for fate in fates))
    return [
        *lines,
        f"{len(gone)} of {plural(len(fates), 'file')} would be deleted: {size_text(_bytes(gone))} of {seen}",
    ]


def fates_json(partitions: Iterable[PartitionFates], *, every: bool = False) -> dict[str, Any]:
    """What a clean would delete: ``files``, then ``summary``; the arguments are those of `fates_lines`."""
    fates = [fate for partition in partitions for fate in partition.fates]
    gone = [fate.file for fate in fates if fate.deleted]
    return {
        "files": [
            {**_file_json(fate.file), "deleted": fate.deleted, "rule": fate.rule}
            for fate in fates
            if every or fate.deleted
        ],
        "summary": {
            "files": len(fates),
            "bytes": _bytes(fate.file for fate in fates),
            "files_deleted": len(gone),
            "bytes_deleted": _bytes(gone),
        },
    }


def explanation_lines(files: Sequence[FileExplanation]) -> list[str]:
    """The fate of each file: for each partition path a heading and its files, then a summary."""
    lines = []
    for path, group in groupby(files, lambda one: one.file.partition_path):
        here = list(group)
        lines.append(f"{_heading(path, [one.file for one in here])}; {_verdicts(here)}")
        for one in here:
            lines.append(f"  {_sized(one.file)}  {one.file.path}")
            lines.append(f"    cleaning: {'deletes it' if one.is_deleted else 'keeps it'}: {one.rule}")
            if one.packing:
                lines.append(f"    packing:  {one.packing}")
            if one.compaction:
                lines.append(f"    compaction: {one.compaction}")
    return [*lines, f"{plural(len(files), 'file')}, {size_text(_bytes(one.file for one in files))}; {_verdicts(files)}"]


def explanation_json(files: Sequence[FileExplanation]) -> dict[str, Any]:
    """The fate of each file: ``files``, then ``summary``."""
    gone = [one.file for one in files if one.is_deleted]
    return {
        "files": [
            {
                **_file_json(one.file),
                "deleted": one.is_deleted,
                "rule": one.rule,
                "takes_rows": one.takes_rows,
                "packing": one.packing or None,
                "compaction": one.compaction or None,
            }
            for one in files
        ],
        "summary": {
            "files": len(files),
            "bytes": _bytes(one.file for one in files),
            "files_deleted": len(gone),
            "bytes_deleted": _bytes(gone),
            "files_that_take_rows": sum(one.takes_rows for one in files),
        },
    }


def _verdicts(files: Sequence[FileExplanation]) -> str:
    gone = [one.file for one in files if one.is_deleted]
    taking = sum(one.takes_rows for one in files)
    return f"{_deleted(gone)}, {taking} would take rows"


def _deleted(files: Sequence[DataFile]) -> str:
    return f"{len(files)} would be deleted ({size_text(_bytes(files))})"


def _heading(path: str, files: Sequence[DataFile]) -> str:
    return f"{path or '(no partition path)'}: {plural(len(files), 'file')}, {size_text(_bytes(files))}"


def _sized(file: DataFile) -> str:
    return f"{size_text(file.size_bytes):>10}"


def _bytes(files: Iterable[DataFile]) -> int:
    return sum(file.size_bytes for file in files)


def _file_json(file: DataFile) -> dict[str, Any]:
    return {
        "path": file.path,
        "partition_path": file.partition_path,
        "file_id": file.file_id,
        "instant_time": file.instant_time if isinstance(file, BaseFile) else file.base_instant_time,
        "size_bytes": file.size_bytes,
    }

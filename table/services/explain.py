"""Why a file stays or goes, why it takes rows or not: values first; `table.cli` prints them."""

from collections.abc import Iterator
from dataclasses import dataclass

from table.hudi_table import HudiTable
from table.options import WriteOptions
from table.services.clean import judge_files
from table.timeline.active_timeline import load_timeline
from table.view.file_group import BaseFile
from table.view.file_system_view import list_latest_base_files, list_partition_paths


@dataclass(frozen=True)
class FileExplanation:
    """One base file and what becomes of it.

    Attributes:
        file: the file.
        cleaning: what the next clean does with it, and by which rule.
        packing: what the next batch does with it; "" for older versions.
    """

    file: BaseFile
    cleaning: str
    packing: str


def explain_packing(file: BaseFile, options: WriteOptions) -> str:
    """Whether the next insert tops the file up, and why (pure).

    Args:
        file: the newest version of a file group.
        options: sizes.
    """
    limit, most = options.small_file_limit_bytes, options.max_file_size_bytes
    if limit <= 0:
        return "packing is off (hoodie.parquet.small.file.limit)"
    if file.size_bytes >= limit:
        return f"full enough: {file.size_bytes} bytes, the limit of small files is {limit}"
    if file.size_bytes >= most:
        return f"full: {file.size_bytes} bytes of {most}"
    return f"small: takes rows first when a batch has some for this partition ({most - file.size_bytes} bytes left)"


def explain_files(table: HudiTable, options: WriteOptions) -> Iterator[FileExplanation]:
    """Every committed base file of the table, partition by partition."""
    committed = table.load_committed(load_timeline(table.storage))
    live = {
        file.path
        for path in list_partition_paths(table.storage)
        for file in list_latest_base_files(table.storage, path, committed)
    }
    for partition in judge_files(table, options.clean):
        for fate in partition.fates:
            verdict = "goes" if fate.deleted else "stays"
            packing = explain_packing(fate.file, options) if fate.file.path in live else ""
            yield FileExplanation(fate.file, f"{verdict}: {fate.rule}", packing)

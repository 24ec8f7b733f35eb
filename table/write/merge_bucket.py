"""The next version of a file group in which records change (HoodieMergeHandle).

Row groups without a touched record are copied. The others are decoded, merged and encoded a batch of rows
at a time, so that memory does not grow with the file.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from table.files.base_file import file_schema, restamp_carried_rows
from table.files.base_file_writer import NEW, BaseFileSummary, BaseFileWriter, why_encoded_anew
from table.files.hudi_footer import filter_of_footer
from table.files.stored_file import StoredBaseFile
from table.timeline.commit_metadata import WriteStat
from table.write.bucket_file import BucketFile
from table.write.context import Bucket, WriteContext
from table.write.merge import merge_rows

Positions = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Changes:
    """Records of keys that a base file holds.

    Attributes:
        incoming: table columns and ``_hoodie_record_key``, no key twice.
        rows: positions in the file of the rows that hold these keys, ascending.
        matches: for each the position of its record in `incoming`.
        gone: incoming records that remove their key whatever the order.
    """

    incoming: pa.Table
    rows: Positions
    matches: Positions
    gone: npt.NDArray[np.bool_]


def merge_bucket(
    context: WriteContext,
    bucket: Bucket,
    write_token: str,
    changes: Changes,
    inserts: pa.Table,
) -> tuple[WriteStat, BaseFileSummary]:
    """Writes the next version of a file group.

    Args:
        context: the commit's.
        bucket: an UPDATE bucket.
        write_token: this attempt's.
        changes: records of keys that the file holds.
        inserts: records that are new to the table.

    Returns:
        The stat, and how the file was written.
    """
    file = BucketFile(context, bucket, write_token)
    assert file.stored is not None
    writer = None
    try:
        starts = np.cumsum([0, *file.stored.group_rows])
        touched = np.unique(np.searchsorted(starts, changes.rows, side="right") - 1)
        reason = why_encoded_anew(file.stored, file.schema, context.settings)
        if reason is not None:
            touched = np.arange(len(starts) - 1)
        writer = _open_writer(file, touched, len(starts) - 1)
        stamped = file.stamp(changes.incoming, 0)
        updated = deleted = 0
        for chunk, found in _chunks(file.stored, file.schema, touched, starts, changes):
            merged = merge_rows(restamp_carried_rows(chunk, file.name), stamped, found, context.merge, changes.gone)
            writer.write(merged.rows, carried=True)
            updated, deleted = updated + merged.updated, deleted + merged.deleted
        writer.write(file.stamp(inserts, len(changes.incoming)))
        summary = writer.close()
        if reason is not None and summary.way == NEW:
            summary = replace(summary, way=reason)
        return file.report(summary, inserted=len(inserts), updated=updated, deleted=deleted), summary
    except BaseException:
        if writer is not None:
            writer.abandon()
        file.close()
        raise


def _open_writer(file: BucketFile, touched: Positions, groups: int) -> BaseFileWriter:
    assert file.stored is not None
    context = file.context
    whole = len(touched) == groups  # nothing is left to be copied; else the writer takes the filter over itself
    return BaseFileWriter(
        context.storage,
        file.path,
        file.schema,
        context.avro_schema,
        context.settings,
        stored=None if whole else file.stored,
        carried_filter=filter_of_footer(file.stored.footer, context.settings.bloom_max_entries) if whole else None,
        replaced=touched.tolist(),
    )


def _chunks(
    stored: StoredBaseFile, schema: pa.Schema, touched: Positions, starts: Positions, changes: Changes
) -> Iterator[tuple[pa.Table, Positions]]:
    """The rows of the touched row groups, batch by batch, and for each row the record that matches it, or -1."""
    for group in touched.tolist():
        at = int(starts[group])
        for chunk in stored.read_batches(file_schema(schema), [group]):
            found = np.full(len(chunk), -1, np.int64)
            low, high = np.searchsorted(changes.rows, (at, at + len(chunk)))
            found[changes.rows[low:high] - at] = changes.matches[low:high]
            at += len(chunk)
            yield chunk, found

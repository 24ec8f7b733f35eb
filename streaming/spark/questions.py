"""Makes the scan and its plan from a reader's options."""

from collections.abc import Sequence
from dataclasses import replace

from table.errors import InvalidConfigError
from table.hudi_table import HudiTable
from table.options.read_options import BEGIN, QueryType, ReadOptions
from table.scan.change_range import EARLIEST
from table.scan.plan import ScanPlan
from table.scan.predicate import Where
from table.scan.scan import Scan, make_range, make_scan

_INCLUDES_BEGIN = 8  # from this table version on, Hudi's begin instant belongs to the range


def scan_of(
    table: HudiTable, asked: ReadOptions, columns: Sequence[str] | None = None, where: Where | None = None
) -> Scan:
    """The scan for a reader's options.

    Args:
        asked: which rows by time.
        columns: the columns wanted, in order; None means all.
        where: which rows; None means all.

    Raises:
        InvalidConfigError: the options use Hudi's key for the begin of the range, which means another range in this
            table version.
    """
    scan = _scan_of(table, asked, columns, where)
    return scan.confirmed() if asked.confirms else scan


def _scan_of(table: HudiTable, asked: ReadOptions, columns: Sequence[str] | None, where: Where | None) -> Scan:
    if asked.query_type is not QueryType.INCREMENTAL:
        return make_scan(table, columns, where, asked.as_of, meta_columns=True)
    if asked.names_hudis_begin and table.config.version >= _INCLUDES_BEGIN:
        raise InvalidConfigError(
            f"{BEGIN}={asked.since}: the table has version {table.config.version}, for which Hudi counts the begin as "
            "part of the range; give since=, which does not belong to it"
        )
    return make_range(table, asked.since if asked.since is not None else EARLIEST, asked.until, columns, where)


def plan_of(scan: Scan, asked: ReadOptions) -> ScanPlan:
    """The plan of a scan, pinned. A ``read_optimized`` query reads only base files, so its plan has no log files.

    Args:
        scan: the scan.
        asked: which rows.

    Raises:
        HudiError: as `Scan.plan_pinned`.
    """
    plan = scan.plan_pinned()
    if asked.query_type is not QueryType.READ_OPTIMIZED:
        return plan
    based = [found for found in plan.slices if found.base_file is not None]
    return replace(plan, slices=tuple(replace(found, log_files=()) for found in based))

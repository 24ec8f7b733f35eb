"""The record index of the table, for a batch that looks up its keys by it (hoodie.index.type=RECORD_INDEX)."""

from streaming.plan.plan_tasks import looks_everywhere
from table.config.metadata_indexes import RECORD_INDEX
from table.hudi_table import HudiTable
from table.metadata_table.file_lists import Failures, tell_not_used
from table.metadata_table.read_record_index import RecordIndex, SeenRecordIndex, see_record_index
from table.options.choices import IndexType
from table.options.write_options import WriteOptions
from table.timeline.timeline import Timeline


def see_index(table: HudiTable, options: WriteOptions) -> SeenRecordIndex | None:
    """Looks at the record index, before the batch's commit is requested.

    Returns:
        What lies in the store; None where the batch looks up no keys by it, or cannot: then it asks the files.
    """
    is_asked = options.index.type is IndexType.RECORD_INDEX and looks_everywhere(options)
    if not is_asked or RECORD_INDEX not in table.config.metadata_indexes:
        return None
    try:
        return see_record_index(table.storage, table.config, table.known_lists)
    except Failures as error:
        _tell(table, error)
        return None


def index_as_of(table: HudiTable, seen: SeenRecordIndex | None, timeline: Timeline) -> RecordIndex | None:
    """The index of the keys that the batch meets; None: it asks the files.

    Args:
        table: the table.
        seen: of `see_index`.
        timeline: from which the batch is planned, listed later.
    """
    if seen is None:
        return None
    try:
        return seen.as_of(timeline)
    except Failures as error:
        _tell(table, error)
        return None


def _tell(table: HudiTable, error: Exception) -> None:
    tell_not_used("record_index_not_used", table.storage.base_uri, error)

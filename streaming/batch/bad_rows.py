"""May a batch with bad rows be committed? (pure)"""

from streaming.plan.task_result import TaskResult
from table.config.table_config import TableConfig
from table.errors import InvalidRecordError
from table.options.write_groups import BadRowSettings


def check_bad_rows(result: TaskResult, config: TableConfig, settings: BadRowSettings) -> None:
    """Refuses a batch whose bad rows are not put aside, or are too many.

    Args:
        result: of all tasks.
        config: the table's properties.
        settings: the sink's options for bad rows.

    Raises:
        InvalidRecordError: the message shows some of the rows and a remedy.
    """
    if not result.bad_rows:
        return
    keys, some = ", ".join(config.record_key_fields), "; ".join(dict.fromkeys(result.examples))
    if not result.quarantined:
        raise InvalidRecordError(
            f"{result.bad_rows} rows cannot be stored (record key {keys}), for example {some}: filter them out, "
            "correct them, or set hudistream.bad.rows=quarantine; nothing of the batch was written"
        )
    stored = sum(stat.num_inserts + stat.num_update_writes + stat.num_deletes for stat in result.stats)
    share, most = result.bad_rows / (result.bad_rows + stored), settings.max_share
    if most is not None and share > most:
        raise InvalidRecordError(
            f"{result.bad_rows} of {result.bad_rows + stored} rows cannot be stored (record key {keys}), a share of "
            f"{share:.3f}, and hudistream.bad.rows.max.share={most:g}: nothing of the batch was written, and no row "
            f"was put aside; for example {some}. Look at the source, or allow a greater share"
        )

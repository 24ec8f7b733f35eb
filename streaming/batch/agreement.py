"""What a batch and its table agree about before anything is requested: schema, keys, what is known of the table."""

from dataclasses import dataclass

import pyarrow as pa

from streaming.batch.opening import build_keys, choose_schema
from streaming.batch.profile_cache import ProfileCache
from streaming.plan.plan_tasks import check_ordering
from streaming.plan.write_profile import WriteProfile
from table.hudi_table import HudiTable
from table.keys.keygen import KeyExpressions
from table.options.write_options import WriteOptions
from table.schema.changes import describe_changes
from table.timeline.commit_cache import CommitCache
from table.timeline.timeline import Timeline


@dataclass(frozen=True)
class Agreement:
    """All as of one timeline.

    Attributes:
        schema: table columns (Arrow) as the commit will have them.
        schema_changes: how they differ from those of the table, in words.
        keys: record key and partition path of the rows.
        profile: what the table's past says.
    """

    schema: pa.Schema
    schema_changes: tuple[str, ...]
    keys: KeyExpressions
    profile: WriteProfile


def agree(
    options: WriteOptions,
    table: HudiTable,
    timeline: Timeline,
    columns: pa.Schema,
    commits: CommitCache,
    profiles: ProfileCache,
) -> Agreement:
    """What a batch and its table agree about.

    Args:
        options: how to write.
        table: the table.
        timeline: of the table.
        columns: the batch's (Arrow).
        commits: of the table.
        profiles: of the table.

    Raises:
        InvalidConfigError, SchemaMismatchError: they do not agree; names column or option.
        HudiError: the table cannot be read.
    """
    before = table.load_schema(timeline, commits)
    schema = choose_schema(options, table.config, columns, before)
    keys = build_keys(options, table.config, columns)
    check_ordering(options, table.config, schema)
    return Agreement(schema, describe_changes(before, schema), keys, profiles.load(table, timeline))

"""What a batch and its table agree about before anything is requested: schema, keys, what is known of the table."""

from dataclasses import dataclass

import pyarrow as pa

from streaming.batch.opening import build_keys, choose_schema
from streaming.batch.profile_cache import ProfileCache
from streaming.plan.plan_tasks import check_ordering
from streaming.plan.write_profile import WriteProfile
from table.keys.keygen import KeyExpressions
from table.options.write_options import WriteOptions
from table.schema.changes import describe_changes
from table.snapshot import Snapshot


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
    snapshot: Snapshot,
    columns: pa.Schema,
    profiles: ProfileCache,
) -> Agreement:
    """What a batch and its table agree about.

    Args:
        options: how to write.
        snapshot: the table as it is now.
        columns: the batch's (Arrow).
        profiles: of the table.

    Raises:
        InvalidConfigError, SchemaMismatchError: they do not agree; names column or option.
        HudiError: the table cannot be read.
    """
    before = snapshot.load_schema()
    schema = choose_schema(options, snapshot.config, columns, before)
    keys = build_keys(options, snapshot.config, columns)
    check_ordering(options, snapshot.config, schema)
    return Agreement(schema, describe_changes(before, schema), keys, profiles.load(snapshot))

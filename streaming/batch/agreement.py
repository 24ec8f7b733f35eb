"""Reconciles a batch with its table before anything is requested: schema, keys, and the write profile."""

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from streaming.batch.opening import build_keys, choose_schema
from streaming.batch.profile_cache import ProfileCache
from streaming.plan.plan_tasks import check_ordering
from streaming.plan.write_profile import WriteProfile
from table.keys.keygen import KeyExpressions
from table.options.write_options import WriteOptions
from table.schema.changes import describe_changes
from table.schema.evolution import widened_columns
from table.snapshot import Snapshot


@dataclass(frozen=True)
class Agreement:
    """The schema, keys and profile for one batch, all taken from the same timeline.

    Attributes:
        schema: table columns (Arrow) as the commit will have them.
        schema_changes: how these columns differ from the table's present columns, in words.
        keys: record key and partition path of the rows.
        profile: the write profile, from the table's earlier commits.
        widened: the ordering columns that get another type, as they were and as they will be.
    """

    schema: pa.Schema
    schema_changes: tuple[str, ...]
    keys: KeyExpressions
    profile: WriteProfile
    widened: Sequence[tuple[pa.Field, pa.Field]] = ()

    @property
    def widens(self) -> bool:
        """Whether an ordering column gets another type."""
        return bool(self.widened)


def agree(
    options: WriteOptions,
    snapshot: Snapshot,
    columns: pa.Schema,
    profiles: ProfileCache,
) -> Agreement:
    """Decides the schema and the keys of a batch, and loads the write profile of its table.

    Args:
        options: how to write.
        snapshot: the table as it is now.
        columns: the batch's columns (Arrow).
        profiles: the cache of the table's write profile.

    Raises:
        InvalidConfigError, SchemaMismatchError: batch and table do not agree; the message names column or option.
        HudiError: the table cannot be read.
    """
    before = snapshot.load_schema()
    schema = choose_schema(options, snapshot.config, columns, before)
    keys = build_keys(options, snapshot.config, columns)
    check_ordering(options, snapshot.config, schema)
    widened = widened_columns(before, schema, snapshot.config.ordering_fields)
    return Agreement(schema, describe_changes(before, schema), keys, profiles.load(snapshot), widened)

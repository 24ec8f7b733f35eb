"""Everything that a service needs to read whole slices of a table and to write their rows into new base files."""

from dataclasses import dataclass, replace

from table.config.metadata_indexes import RECORD_INDEX
from table.errors import UnsupportedTableError
from table.keys.keygen import find_key_column
from table.metadata_table.statistics import ranged_columns
from table.options.groups import BaseFileSettings
from table.scan.merge_slice import SliceReading, rules_of
from table.schema.avro_schema import relaxed, schema_json, with_meta_columns
from table.services.compaction.compacted_file import SAME_IN_ALL_ROWS
from table.snapshot import Snapshot
from table.write.context import WriteContext


@dataclass(frozen=True)
class Rewriting:
    """How the rows of a commit are read and written.

    Attributes:
        context: of the files that are written.
        reading: of the slices: all columns but those that are the same in all rows of a file.
        schema: the table's Avro schema without meta columns (JSON), for the commit.
    """

    context: WriteContext
    reading: SliceReading
    schema: str

    @classmethod
    def of(
        cls,
        snapshot: Snapshot,
        instant_time: str,
        base_file: BaseFileSettings,
        verb: str,
        *,
        as_requested: bool = False,
    ) -> "Rewriting":
        """What a commit of the table needs.

        Args:
            snapshot: the table; its visible commits are read.
            instant_time: of the commit.
            base_file: how base files are encoded.
            verb: what is done to the table, for the error, such as ``compacted``.
            as_requested: rows keep the types of the time at which the commit was requested: earlier snapshots, and a
                restore, show them with these.

        Raises:
            UnsupportedTableError: the table has no schema.
        """
        config, schema = snapshot.config, snapshot.load_schema(instant_time) if as_requested else None
        schema = schema or snapshot.load_schema()
        if schema is None:
            raise UnsupportedTableError(f"the table {config.name!r} has no schema: it cannot be {verb}")
        stored = with_meta_columns(schema)
        rules = rules_of(config, stored)
        context = WriteContext(
            snapshot.storage,
            instant_time,
            relaxed(schema),
            schema_json(stored, config.name),
            replace(base_file, has_meta_fields=config.populate_meta_fields),
            merge=rules,
            key_column=find_key_column(config, schema),
            ranged=ranged_columns(config, schema),
            tells_keys=RECORD_INDEX in config.metadata_indexes and config.tells_keys,
        )
        names = tuple(name for name in stored.names if name not in SAME_IN_ALL_ROWS)
        reading = SliceReading(relaxed(stored), names, rules, snapshot.committed)
        return cls(context, reading, schema_json(schema, config.name))

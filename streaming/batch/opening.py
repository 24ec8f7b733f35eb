"""Opens or creates the table, and checks its properties, schema and keys before anything is written."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import pyarrow as pa

from streaming.batch.coarse_times import CoarseTimesAdvice
from streaming.batch.partition_advice import tell_time_fields
from streaming.plan.plan_tasks import plan_changes
from table.columns.cast import is_coarser
from table.config.metadata_indexes import check_maintained
from table.config.table_config import TableConfig
from table.config.writable import check_can_write
from table.errors import InvalidConfigError, SchemaMismatchError, TableNotFoundError
from table.files.log.delete_block import may_be_too_long
from table.hudi_table import HudiTable, create_table
from table.keys.keygen import KeyExpressions, build_key_expressions, check_keys_keep_their_types
from table.log import get_logger
from table.metadata_table.drop import drop_metadata_table
from table.metadata_table.keep import drop_indexes
from table.metadata_table.make import WantedIndexes, make_lists
from table.metadata_table.make_record_index import GroupKeys
from table.options.agreement import check_buckets, check_options_agree, new_table_config
from table.options.choices import TableCreation, TableType
from table.options.write_options import WriteOptions
from table.scan.read_slice import SliceContext
from table.scan.slice_keys import read_slice_keys
from table.schema.avro_schema import check_batch_columns, find_untyped, from_avro, relaxed, schema_json
from table.schema.evolution import evolve_schema
from table.services.conversion.convert import convert_table
from table.snapshot import Snapshot
from table.storage.interface import Storage
from table.timeline.lost_properties import open_config
from table.timeline.timeline import Timeline
from table.transaction.lease import Lease

log = get_logger("hudistream.sink")


class TableOpener:
    """Opens the table of one writer before each batch, or creates it for the first.

    Args:
        default_name: name of the table if it has to be created.

    Attributes:
        coarse_times: warns of a table with milliseconds.
    """

    def __init__(self, storage: Storage, default_name: str) -> None:
        self._storage, self._default_name = storage, default_name
        self.coarse_times = CoarseTimesAdvice()
        self._version: int | None = None  # of the table when it was opened last

    def open(self, options: WriteOptions, schema: pa.Schema, batch_id: int | None) -> HudiTable:
        """Opens the table, or creates it, and checks that the options fit it.

        If this writer has opened the table before and the table is gone, it is not created anew: the committed batches
        would be missing, and the operator would not learn of it.

        Args:
            options: how to write.
            schema: the batch's columns (Arrow).
            batch_id: the stream's batch id; None outside a stream.

        Raises:
            TableNotFoundError: there is no table, and none may be created.
            CorruptFileError: there was a table, and its properties are gone or damaged.
            InvalidConfigError, UnsupportedTableError, SchemaMismatchError: nothing was created.
        """
        storage = self._storage
        config = open_config(storage)
        if config is None:
            self._check_may_create(options, batch_id)
            if options.effective_operation.takes_keys_alone:
                raise _has_no_rows(options)
            config = new_table_config(options, self._default_name)
            evolve_schema(schema, None)
            build_keys(options, config, schema)
            self._check(options, config)  # a table whose properties are refused would stay
            table = create_table(storage, config)
            self._tell_created(config, batch_id)
            tell_time_fields(storage.base_uri, config, schema)
        else:
            table = self._upgraded(HudiTable(storage, config), options)
        self._check(options, table.config)
        if self._version is None:
            _tell_long_decimals(storage.base_uri, table.config, schema)
        self._tell_version(table.config)
        return table

    @staticmethod
    def _check(options: WriteOptions, config: TableConfig) -> None:
        check_options_agree(options, config)
        check_buckets(options, config)
        check_can_write(_as_settled(config, options))
        plan_changes(options, config)

    def reopen(self) -> HudiTable | None:
        """The table as its properties are now; None where there is none."""
        config = open_config(self._storage)
        return HudiTable(self._storage, config) if config is not None else None

    def _upgraded(self, table: HudiTable, options: WriteOptions) -> HudiTable:
        """Upgrades the table if the options ask for it: once, before the first batch.

        Raises:
            CommitConflictError: another writer lives.
            UnsupportedTableError: the version cannot hold the table.
        """
        wanted = options.table
        if not wanted.auto_upgrade or wanted.version is None or self._version is not None:
            return table
        return convert_table(table, wanted.version) if table.config.version < wanted.version else table

    def _tell_version(self, config: TableConfig) -> None:
        if self._version not in (None, config.version):
            log.warning(
                "table_version_changed",
                table=self._storage.base_uri,
                before=self._version,
                now=config.version,
                hint="the table was converted: by `hudistream upgrade` or `downgrade`, or by a job of Hudi 1.x, which "
                "upgrades tables by default. This sink goes on in the new version. Engines that read version 6 alone "
                "do not read later ones; to prevent upgrades by Hudi's jobs, set hoodie.write.table.version=6 and "
                "hoodie.write.auto.upgrade=false there",
            )
        self._version = config.version

    def _check_may_create(self, options: WriteOptions, batch_id: int | None) -> None:
        address = self._storage.base_uri
        if self._version is not None:
            raise TableNotFoundError(
                f"the table at {address!r} is gone (no .hoodie/hoodie.properties), which this sink has opened before: "
                "nothing was created. Bring the table back. To make a new one, make a new sink, and give a stream an "
                "empty checkpoint, so that the rows of the earlier batches come again"
            )
        if options.table.creation is TableCreation.NEVER:
            at = f" for batch {batch_id}" if batch_id is not None else ""
            anew = "set hudistream.table.create=if_absent"
            if batch_id:
                anew = f"{anew} and give the stream an empty checkpoint, so that batches 0 to {batch_id - 1} come again"
            raise TableNotFoundError(
                f"there is no Hudi table at {address!r}{at} (no .hoodie/hoodie.properties), and "
                f"hudistream.table.create=never: nothing was created. Correct the path, bring the table back, or {anew}"
            )

    def _tell_created(self, config: TableConfig, batch_id: int | None) -> None:
        address = self._storage.base_uri
        log.info("table_created", table=address, name=config.name, keygen=config.keygen_type)
        if batch_id:
            log.warning(
                "table_created_in_the_middle",
                table=address,
                batch_id=batch_id,
                lacking=f"batches 0 to {batch_id - 1}",
                hint="the stream has written before, and there was no table: rows of earlier batches are not in it. To "
                "have them, stop the stream, delete this table and the checkpoint, and start again, if the source "
                "still has them. To be refused instead, set hudistream.table.create=never",
            )


def _tell_long_decimals(address: str, config: TableConfig, schema: pa.Schema) -> None:
    """Warns once per sink about an ordering column with values that a delete in a log file could not hold."""
    if config.table_type != TableType.MERGE_ON_READ:
        return
    for field in schema:
        if field.name in config.ordering_fields and may_be_too_long(field.type):
            log.warning(
                "ordering_by_long_decimal",
                table=address,
                column=field.name,
                type=str(field.type),
                hint="a delete in a log file holds decimal(30,15). A row with a longer value is refused: cast the "
                "column to a type within decimal(30,15), order by another one, or make the table copy-on-write",
            )


def settle_metadata_table(table: HudiTable, options: WriteOptions) -> HudiTable:
    """Drops or keeps the metadata table of a table, before a batch. The writer holds the table.

    Hudi's own writers make one by default, so this is looked at before every batch.

    Raises:
        UnsupportedTableError: the metadata table has indexes that are not maintained here.
    """
    if options.table.metadata_enabled is False:
        return replace(table, config=drop_metadata_table(table.storage, table.config))
    for key, indexes in options.table.dropped_indexes.items():
        if table.config.metadata_indexes & indexes:
            table = replace(table, config=drop_indexes(table.storage, table.config, indexes, f"{key}=false"))
    check_maintained(table.config.metadata_indexes, tells_keys=table.config.tells_keys)
    return table


def _as_settled(config: TableConfig, options: WriteOptions) -> TableConfig:
    """The properties that `settle_metadata_table` will leave."""
    if options.table.metadata_enabled is False:
        return replace(config, metadata_partitions="")
    dropped = frozenset[str]().union(*options.table.dropped_indexes.values())
    return replace(config, metadata_partitions=",".join(sorted(config.metadata_indexes - dropped)))


def with_lists(snapshot: Snapshot, options: WriteOptions, lease: Lease) -> Snapshot:
    """Makes the lists of files of a table that has none, if the options ask for them.

    What failed writes left was deleted before: else the lists would name it. With several writers none are made:
    another batch may be under way that does not know of them.

    Args:
        snapshot: the table, after failed writes were rolled back.
        options: how to write.
        lease: the writer's hold on the table.

    Raises:
        CommitConflictError: another writer has taken the table over.
    """
    table = snapshot.table
    is_wanted = options.table.metadata_enabled and options.table.metadata_made
    if not is_wanted or table.config.metadata_indexes or options.concurrency.is_shared:
        return snapshot
    schema = snapshot.load_schema() if options.table.column_stats_enabled else None
    if options.table.column_stats_enabled and schema is None:
        return snapshot  # the second batch makes them: a table without a commit has no columns
    load_keys = partial(_load_keys, snapshot) if options.table.record_index_enabled else None
    of_partitions = options.table.partition_stats_enabled is not False
    wanted = WantedIndexes(schema, load_keys, options.table.count_record_index_groups, of_partitions=of_partitions)
    timeline = table.load_timeline()
    config = make_lists(table.storage, table.config, timeline, table.store_listing, wanted, lease)
    return Snapshot(replace(table, config=config), snapshot.timeline, commits=snapshot.commits)


def _load_keys(snapshot: Snapshot, timeline: Timeline) -> Iterator[GroupKeys]:
    """The keys of each file group at a timeline."""
    now = snapshot.at(timeline)
    context = SliceContext(now.table, now.slicing, now.load_schema())
    for _, groups in now.walk_file_groups():
        for found in (group.merged_slice for group in groups):
            keys = read_slice_keys(context, found)
            yield GroupKeys(found.partition_path, found.file_id, found.base_instant_time, keys)


def _has_no_rows(options: WriteOptions) -> InvalidConfigError:
    return InvalidConfigError(
        f"hoodie.datasource.write.operation={options.effective_operation}: the table has no rows yet, hence no "
        "columns: write rows first"
    )


def choose_schema(options: WriteOptions, config: TableConfig, batch: pa.Schema, table: pa.Schema | None) -> pa.Schema:
    """Chooses the schema of a commit.

    Args:
        options: how to write.
        config: the table's properties.
        batch: the batch's columns (Arrow).
        table: the table's columns (Arrow), or None for one without commits.

    Raises:
        SchemaMismatchError, InvalidConfigError: the two cannot be reconciled.
    """
    if not options.effective_operation.takes_keys_alone:
        check_expected(options.schema.expected, batch)
        evolved = evolve_schema(
            batch,
            table,
            options.schema.mode,
            fill_missing=options.schema.fill_missing,
            key_fields=config.record_key_fields,
            ordering_fields=config.ordering_fields,
            numbers_to_text=options.schema.numbers_to_text,
            integers_to_floats=options.schema.integers_to_floats,
        )
        check_keys_keep_their_types(config, batch, table)
        return evolved
    if table is None:
        raise _has_no_rows(options)
    check_batch_columns(batch)
    check_keys_keep_their_types(config, batch, table)
    return table


def check_expected(expected: str | None, batch: pa.Schema) -> None:
    """Refuses a batch whose columns differ from the schema in the options (``hoodie.avro.schema``).

    Args:
        expected: Avro schema; None: the options have none. Whether a column may be null is not compared.
        batch: the batch's columns (Arrow).

    Raises:
        SchemaMismatchError: names the columns that differ.
    """
    if expected is None:
        return
    announced = {each.name: each.type for each in relaxed(from_avro(expected))}
    untyped = {each.name for each in batch if find_untyped(each.type, each.name)} & set(announced)
    typed = pa.schema([each for each in batch if each.name not in untyped])
    found = {each.name: each.type for each in relaxed(from_avro(schema_json(typed, "batch")))}
    found |= {name: announced[name] for name in untyped}
    differences = [
        f"{name!r} is {found.get(name, 'missing')} in the batch and {announced.get(name, 'missing')} in the schema"
        for name in dict.fromkeys((*announced, *found))
        if announced.get(name) != found.get(name) and not _is_coarser(found.get(name), announced.get(name))
    ]
    if differences:
        raise SchemaMismatchError(
            f"hoodie.avro.schema does not describe the batch: {'; '.join(differences)}; correct the schema, or leave "
            "it out: the batch's own columns are written"
        )


def _is_coarser(found: pa.DataType | None, announced: pa.DataType | None) -> bool:
    """Whether microseconds come where the schema has milliseconds, as tables of Flink have."""
    return found is not None and announced is not None and is_coarser(found, announced)


def build_keys(options: WriteOptions, config: TableConfig, schema: pa.Schema) -> KeyExpressions:
    """Record key and partition path of a batch's rows, as SQL."""
    if options.effective_operation.takes_keys_alone:
        config = replace(config, ordering_fields=())  # a delete needs only its key
    return build_key_expressions(config, schema, options.keys.partition_kinds, dict(options.keys.timebased))

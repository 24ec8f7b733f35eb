"""Checks that a table may be written, or created at a path, before anything is written."""

import os

from table.config.change_images import CDC_KEY
from table.config.key_generator import KeyGenerator
from table.config.merge_mode import merge_mode_in
from table.config.metadata_indexes import check_maintained
from table.config.readable import to_a_known_version
from table.config.table_config import LAYOUTS, MERGER_VERSION, NATIVE_FORMAT, TABLE_VERSION, TableConfig
from table.errors import TableExistsError, UnsupportedTableError
from table.storage.interface import METAFOLDER, Storage


def check_path_is_free(storage: Storage) -> None:
    """Refuses a path where a new table would lie among other things.

    Raises:
        TableExistsError: names the files in the way.
    """
    entries = storage.list_dir("")
    strangers = sorted(entry.name for entry in entries if entry.name != METAFOLDER)
    if strangers:
        raise TableExistsError(
            f"{storage.base_uri!r} holds {', '.join(strangers[:3])} and no Hudi table: choose an empty folder"
        )
    if not entries and os.path.isfile(storage.base_uri):
        raise TableExistsError(f"{storage.base_uri!r} is a file: choose a folder")


def check_version_written(config: TableConfig, verb: str) -> None:
    """Refuses tables of a version, or of a kind within a version, that this project does not write.

    Args:
        config: the table's properties.
        verb: the intended action, for the error.

    Raises:
        UnsupportedTableError: names the version and the way out.
    """
    if LAYOUTS.get(config.version) != config.layout_version:
        known = ", ".join(f"{version} (timeline layout {layout})" for version, layout in LAYOUTS.items())
        raise UnsupportedTableError(
            f"cannot {verb} the table {config.name!r}: it has hoodie.table.version={config.version} (timeline layout "
            f"{config.layout_version}), and written here are {known}: {to_a_known_version(config.version)}"
        )
    if config.version == TABLE_VERSION:
        return
    ways = (
        "It can be read (HudiTable.scan). Let Hudi write it, or downgrade it with Hudi's CLI, and keep its writers at "
        "hoodie.write.table.version=6 and hoodie.write.auto.upgrade=false"
    )
    if config.table_format != NATIVE_FORMAT:
        raise UnsupportedTableError(
            f"cannot {verb} the table {config.name!r}: it has hoodie.table.version={config.version} and "
            f"hoodie.table.format={config.table_format}, which is not written here. {ways}"
        )


def check_has_meta_fields(config: TableConfig, verb: str) -> None:
    """Refuses tables whose rows have null meta columns (virtual keys), for what needs these columns.

    Args:
        config: the table's properties.
        verb: what the table cannot be, such as ``clustered``.

    Raises:
        UnsupportedTableError: names the property.
    """
    if not config.populate_meta_fields:
        raise UnsupportedTableError(
            f"the table {config.name!r} has hoodie.populate.meta.fields=false and cannot be {verb}: its rows do not "
            "hold their record keys, nor which commit wrote them"
        )


def check_can_write(config: TableConfig) -> None:
    """Refuses tables that this project would harm by writing to them.

    Raises:
        UnsupportedTableError: names the property, its value, and the way out.
    """
    check_version_written(config, "write")
    check_maintained(config.metadata_indexes, tells_keys=config.tells_keys)
    if config.version != TABLE_VERSION:
        merge_mode_in(config.extra)
    refusals = (
        (
            config.table_type not in ("COPY_ON_WRITE", "MERGE_ON_READ"),
            "hoodie.table.type",
            config.table_type,
            "COPY_ON_WRITE and MERGE_ON_READ are known",
        ),
        (config.base_file_format != "PARQUET", "hoodie.table.base.file.format", config.base_file_format, "use PARQUET"),
        (
            not config.populate_meta_fields and config.table_type == "MERGE_ON_READ",
            "hoodie.populate.meta.fields",
            "false",
            "records of log files are found by their meta columns",
        ),
        (
            config.version < MERGER_VERSION and len(config.ordering_fields) > 1,
            "hoodie.table.precombine.field",
            ",".join(config.ordering_fields),
            f"several fields order records from version {MERGER_VERSION} on: upgrade the table",
        ),
        (
            config.drop_partition_columns,
            "hoodie.datasource.write.drop.partition.columns",
            "true",
            "base files would lack columns of the schema",
        ),
        (
            config.change_images is not None and not config.populate_meta_fields,
            CDC_KEY,
            "true",
            "change files are not written where rows do not hold their keys (hoodie.populate.meta.fields=false)",
        ),
        (
            config.keygen_type not in {*KeyGenerator},
            "hoodie.table.keygenerator.type",
            config.keygen_type,
            f"supported are {', '.join(KeyGenerator)}",
        ),
    )
    for refused, key, value, reason in refusals:
        if refused:
            raise UnsupportedTableError(f"the table has {key}={value}: {reason}")

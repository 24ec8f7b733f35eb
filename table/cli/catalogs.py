"""Commands that make a table known to query engines: sync, ddl, manifest. They need no Spark."""

import argparse
import json
from dataclasses import asdict, replace

from table.catalog.connect import connect
from table.catalog.ddl import Dialect, add_statement, create_statement
from table.catalog.glue import partition_input, table_input
from table.catalog.manifest import write_manifest
from table.catalog.sync import describe_registration, sync_table
from table.cli.arguments import add_command, add_format, add_options, load_options, open_table
from table.cli.output import UsageError, plural, say, say_json
from table.errors import InvalidConfigError
from table.options.catalog_settings import CatalogKind, CatalogSettings, ManifestFor, check_names_catalog

_GLUE, _TRINO = "glue", "trino"


def add_commands(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Declares the commands."""
    sync = add_command(
        commands,
        "sync",
        "register a table in a Hive metastore or in AWS Glue, and bring its registration up to date",
        [
            "hudistream sync s3://bucket/lake/orders --to glue --database lake",
            "hudistream sync /data/lake/orders --to thrift://metastore:9083 --database lake --everything",
        ],
        _sync,
    )
    sync.add_argument("--to", metavar="CATALOG", help="glue, or the address of a metastore: thrift://host:9083")
    sync.add_argument(
        "--everything", action="store_true", help="compare all partitions, not only those written since the last sync"
    )
    _add_names(sync)
    add_format(sync)
    ddl = add_command(
        commands,
        "ddl",
        "print what registers a table: statements for Hive and Athena, the input of AWS Glue's API",
        ["hudistream ddl s3://bucket/lake/orders --for athena --database lake"],
        _print_ddl,
    )
    ddl.add_argument("--for", dest="reader", choices=(*Dialect, _GLUE, _TRINO), required=True, help="who reads it")
    _add_names(ddl)
    listed = add_command(
        commands,
        "manifest",
        "write the list of the newest snapshot's files, for engines that read no Hudi table themselves",
        ["hudistream manifest gs://lake/orders --for bigquery", "hudistream manifest s3://lake/orders --for redshift"],
        _write_manifest,
    )
    listed.add_argument("--for", dest="reader", choices=tuple(ManifestFor), required=True, help="who reads it")
    add_format(listed)


def _add_names(command: argparse.ArgumentParser) -> None:
    command.add_argument("--database", help="the database there; created where it is absent (default: default)")
    command.add_argument("--table", help="the name there (default: the table's own)")
    add_options(command)


def _settings(given: argparse.Namespace) -> CatalogSettings:
    """The settings from options and arguments; the arguments win."""
    settings = load_options(given).catalog
    named = {name: value for name in ("database", "table") if (value := getattr(given, name)) is not None}
    return replace(settings, **named)


def _sync(given: argparse.Namespace) -> int:
    settings = _settings(given)
    if given.to == _GLUE:
        settings = replace(settings, mode=CatalogKind.GLUE)
    elif given.to is not None:
        if ":" not in given.to:  # a host alone would be an address, and so would the name of any other catalog
            raise UsageError(f"--to {given.to}: is no catalog; give glue, or a metastore as thrift://host:9083")
        settings = replace(settings, mode=CatalogKind.HMS, uris=(given.to,))
    try:
        check_names_catalog(settings)
    except InvalidConfigError as error:
        raise UsageError(f"{error}; or --to glue, --to thrift://host:9083") from error
    catalog = connect(settings)
    try:
        done = sync_table(open_table(given), catalog, settings, everything=given.everything)
    finally:
        catalog.close()
    if given.format == "json":
        say_json(asdict(done))
        return 0
    if not done.tables:
        say(["not registered: the table has no commit yet, and so no columns"])
        return 0
    what = f"{', '.join(done.tables)}: registered up to {done.synced_until or 'no write yet'}"
    changes = [
        f"{plural(len(done.created), 'table')} created" if done.created else "",
        "columns changed" if done.changed else "",
        *(
            f"{plural(count, 'partition')} {verb}"
            for count, verb in (
                (done.partitions_added, "added"),
                (done.partitions_dropped, "dropped"),
                (done.partitions_moved, "moved"),
            )
            if count
        ),
    ]
    say([what, ", ".join(change for change in changes if change) or "the catalog was as the table is"])
    return 0


def _print_ddl(given: argparse.Namespace) -> int:
    if given.reader == _TRINO:
        raise UsageError(
            "Trino's Hudi connector creates no tables. It reads what a metastore or Glue knows: run `hudistream sync`, "
            "or the statements of --for hive in Hive"
        )
    settings = replace(_settings(given), mode=CatalogKind.GLUE if given.reader in (_GLUE, "athena") else None)
    for one, partitions in describe_registration(open_table(given), settings):
        if given.reader == _GLUE:
            inputs = [partition_input(one, values, location) for values, location in partitions.items()]
            text = {"DatabaseName": one.database, "TableInput": table_input(one), "PartitionInputList": inputs}
            say([json.dumps(text, indent=2)])
            continue
        statements = [create_statement(one, Dialect(given.reader))]
        if partitions:
            statements.append(add_statement(one, list(partitions.items())))
        say([f"{statement};" for statement in statements])
    return 0


def _write_manifest(given: argparse.Namespace) -> int:
    done = write_manifest(open_table(given), ManifestFor(given.reader))
    if given.format == "json":
        say_json(asdict(done))
        return 0
    say([f"{done.address}: {plural(done.files, 'file')} as of {done.as_of or '(no commit)'}"])
    if done.files_with_logs:
        say([f"{plural(done.files_with_logs, 'file')} with newer rows in log files, which the engine does not see"])
    return 0

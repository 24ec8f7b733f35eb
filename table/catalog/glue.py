"""AWS Glue as a catalog, by boto3 (AWSGlueCatalogSyncClient)."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

from table.catalog.catalog import Partitions
from table.catalog.in_parts import act_in_parts
from table.catalog.registration import OUTPUT_FORMAT, SERDE, CatalogColumn, Registration, others_parameters
from table.errors import CatalogError
from table.extras import needs_extra
from table.options.catalog_settings import CatalogSettings

_ADDED_AT_ONCE = 100  # the limits of BatchCreatePartition, BatchUpdatePartition and BatchDeletePartition
_DROPPED_AT_ONCE = 25
_OF_OTHERS = ("Description", "Owner", "Retention", "TargetTable")
# Athena lists the store: a table may lose its metadata table at any time
_OWN_PARAMETERS = {"hudi.metadata-listing-enabled": "FALSE"}


class GlueCatalog:
    """AWS Glue. Region, identity and endpoint come from boto3's environment and profiles.

    Args:
        settings: how many partitions a call carries.
        client: a client of boto3; None: a new one is made.

    Raises:
        CatalogError: boto3 is not installed, or has no region.
    """

    def __init__(self, settings: CatalogSettings, client: Any = None) -> None:
        self._settings, self._client = settings, client if client is not None else _make_client()

    def create_database(self, name: str) -> None:  # noqa: D102 as `Catalog`
        with _named(f"database {name!r}"):
            try:
                self._client.get_database(Name=name)
            except self._client.exceptions.EntityNotFoundException:
                with _already_there(self._client):
                    self._client.create_database(DatabaseInput={"Name": name})

    def find_table(self, database: str, name: str) -> Registration | None:  # noqa: D102
        with _named(f"table {database}.{name}"):
            try:
                found = self._client.get_table(DatabaseName=database, Name=name)["Table"]
            except self._client.exceptions.EntityNotFoundException:
                return None
        storage = found.get("StorageDescriptor", {})
        serde = storage.get("SerdeInfo", {}).get("Parameters", {})
        return Registration(
            database,
            name,
            storage.get("Location", ""),
            _columns_of(storage.get("Columns", ())),
            _columns_of(found.get("PartitionKeys", ())),
            storage.get("InputFormat", ""),
            serde.get("hoodie.query.as.ro.table") == "true",
            {key: value for key, value in found.get("Parameters", {}).items() if key not in _OWN_PARAMETERS},
        )

    def create_table(self, wanted: Registration) -> None:  # noqa: D102
        with _named(f"table {wanted.database}.{wanted.name}"), _already_there(self._client):
            self._client.create_table(DatabaseName=wanted.database, TableInput=table_input(wanted))

    def change_table(self, wanted: Registration, *, cascades: bool) -> None:  # noqa: D102
        # the table last: its columns tell the next sync whether this one came to its end
        if cascades and wanted.partition_keys:
            self.move_partitions(wanted, self.list_partitions(wanted))
        with _named(f"table {wanted.database}.{wanted.name}"):
            stored = self._client.get_table(DatabaseName=wanted.database, Name=wanted.name)["Table"]
            changed = table_input(wanted)
            changed["Parameters"] = {**others_parameters(stored.get("Parameters")), **changed["Parameters"]}
            changed |= {name: stored[name] for name in _OF_OTHERS if name in stored}
            _keep_comments(changed, stored)
            self._client.update_table(DatabaseName=wanted.database, TableInput=changed, SkipArchive=True)

    def list_partitions(self, of: Registration) -> Partitions:  # noqa: D102
        found: dict[tuple[str, ...], str] = {}
        with _named(f"partitions of {of.database}.{of.name}"):
            pages = self._client.get_paginator("get_partitions").paginate(
                DatabaseName=of.database, TableName=of.name, ExcludeColumnSchema=True
            )
            for page in pages:
                for one in page["Partitions"]:
                    found[tuple(one["Values"])] = one.get("StorageDescriptor", {}).get("Location", "")
        return found

    def add_partitions(self, of: Registration, added: Partitions) -> int:  # noqa: D102
        there = act_in_parts(added.items(), self._most(_ADDED_AT_ONCE), partial(self._add, of))
        return len(added) - sum(there)

    def _add(self, of: Registration, part: Sequence[tuple[tuple[str, ...], str]]) -> int:
        """Adds a part of the partitions. Returns how many of them existed."""
        inputs = [partition_input(of, values, location) for values, location in part]
        with _named(f"partitions of {of.database}.{of.name}"):
            answer = self._client.batch_create_partition(
                DatabaseName=of.database, TableName=of.name, PartitionInputList=inputs
            )
        return _check_errors(answer, of, ignored="AlreadyExistsException")

    def move_partitions(self, of: Registration, moved: Partitions) -> None:  # noqa: D102
        act_in_parts(moved.items(), self._most(_ADDED_AT_ONCE), partial(self._move, of))

    def _move(self, of: Registration, part: Sequence[tuple[tuple[str, ...], str]]) -> int:
        entries = [
            {"PartitionValueList": list(values), "PartitionInput": partition_input(of, values, location)}
            for values, location in part
        ]
        with _named(f"partitions of {of.database}.{of.name}"):
            answer = self._client.batch_update_partition(DatabaseName=of.database, TableName=of.name, Entries=entries)
        return _check_errors(answer, of, ignored="EntityNotFoundException")

    def drop_partitions(self, of: Registration, dropped: Sequence[tuple[str, ...]]) -> None:  # noqa: D102
        act_in_parts(dropped, self._most(_DROPPED_AT_ONCE), partial(self._drop, of))

    def _drop(self, of: Registration, part: Sequence[tuple[str, ...]]) -> int:
        with _named(f"partitions of {of.database}.{of.name}"):
            answer = self._client.batch_delete_partition(
                DatabaseName=of.database,
                TableName=of.name,
                PartitionsToDelete=[{"Values": list(values)} for values in part],
            )
        return _check_errors(answer, of, ignored="EntityNotFoundException")

    def _most(self, limit: int) -> int:
        return min(limit, self._settings.batch)

    def close(self) -> None:
        """Does nothing: requests by HTTP keep no connection that has to be ended."""


def _make_client() -> Any:
    try:
        import boto3  # noqa: PLC0415 an extra
        from botocore.exceptions import BotoCoreError  # noqa: PLC0415 an extra
    except ImportError as error:
        raise CatalogError(needs_extra("AWS Glue", "glue")) from error
    try:
        return boto3.client("glue")
    except BotoCoreError as error:
        raise CatalogError(
            f"AWS Glue cannot be reached: {error}; set AWS_REGION, or the region of the profile in use"
        ) from error


def table_input(wanted: Registration) -> dict[str, Any]:
    """A table as Glue's API takes it (``TableInput``)."""
    return {
        "Name": wanted.name,
        "TableType": "EXTERNAL_TABLE",
        "Parameters": {**wanted.parameters, **_OWN_PARAMETERS},
        "PartitionKeys": _as_columns(wanted.partition_keys),
        "StorageDescriptor": _storage(wanted, wanted.location),
    }


def _keep_comments(changed: dict[str, Any], stored: Mapping[str, Any]) -> None:
    """Keeps the column comments of users and their tools in Glue: a sync itself registers no comments."""
    columns = [*stored.get("StorageDescriptor", {}).get("Columns", ()), *stored.get("PartitionKeys", ())]
    comments = {one["Name"]: one["Comment"] for one in columns if one.get("Comment")}
    for column in (*changed["StorageDescriptor"]["Columns"], *changed["PartitionKeys"]):
        column["Comment"] = comments.get(column["Name"], "")


def partition_input(of: Registration, values: tuple[str, ...], location: str) -> dict[str, Any]:
    """A partition as Glue's API takes it (``PartitionInput``)."""
    return {"Values": list(values), "StorageDescriptor": _storage(of, location)}


def _storage(of: Registration, location: str) -> dict[str, Any]:
    return {
        "Columns": _as_columns(of.columns),
        "Location": location,
        "InputFormat": of.input_format,
        "OutputFormat": OUTPUT_FORMAT,
        "SerdeInfo": {"SerializationLibrary": SERDE, "Parameters": of.serde_parameters},
    }


def _as_columns(columns: Sequence[CatalogColumn]) -> list[dict[str, str]]:
    return [{"Name": one.name, "Type": one.type, "Comment": ""} for one in columns]


def _columns_of(columns: Iterable[Mapping[str, str]]) -> tuple[CatalogColumn, ...]:
    return tuple(CatalogColumn(one["Name"], one.get("Type", "")) for one in columns)


def _check_errors(answer: Mapping[str, Any], of: Registration, ignored: str) -> int:
    """Raises if the answer has an error other than `ignored`. Returns the number of ignored errors."""
    errors = [one.get("ErrorDetail", {}) for one in answer.get("Errors", ())]
    bad = next((one for one in errors if one.get("ErrorCode") != ignored), None)
    if bad is not None:
        raise CatalogError(
            f"AWS Glue refused a partition of {of.database}.{of.name}: {bad.get('ErrorCode')}: "
            f"{bad.get('ErrorMessage')}"
        )
    return len(errors)


@contextmanager
def _named(what: str) -> Iterator[None]:
    """Adds to an error of boto3 what the request was about."""
    from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415 an extra

    try:
        yield
    except (BotoCoreError, ClientError) as error:
        raise CatalogError(f"AWS Glue did not do its part for the {what}: {error}") from error


@contextmanager
def _already_there(client: Any) -> Iterator[None]:
    try:
        yield
    except client.exceptions.AlreadyExistsException:
        return

"""The requests of a lock to its table in DynamoDB, through boto3."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from table import clock
from table.errors import InvalidConfigError, StorageError
from table.extras import needs_extra
from table.options.lock_settings import BillingMode, LockSettings
from table.transaction.locks.dynamodb_row import KEY, LEASE, NUMBER, OWNER, RELEASED, LockRow, decode_row

_DEFAULT_REGION = "us-east-1"
_LOOKS_AGAIN_S = 1.0
_NAMES = {"#key": KEY, "#owner": OWNER, "#lease": LEASE, "#number": NUMBER, "#released": RELEASED}
_CHANGED = "ConditionalCheckFailedException"
_NO_TABLE = "ResourceNotFoundException"
_TABLE_EXISTS = "ResourceInUseException"


def check_boto3() -> None:
    """Checks that boto3 is installed.

    Raises:
        InvalidConfigError: boto3 is not installed.
    """
    try:
        import boto3  # noqa: F401, PLC0415 an extra
    except ImportError as error:
        raise InvalidConfigError(needs_extra("hoodie.write.lock.provider=dynamodb", "dynamodb")) from error


class LockTable:
    """One row of the lock table. boto3 finds the credentials.

    Args:
        settings: table, region, address.
        key: key of the row.
    """

    def __init__(self, settings: LockSettings, key: str) -> None:
        import boto3  # noqa: PLC0415 an extra

        self._settings, self._key = settings, key
        self._name = settings.dynamodb_table or ""
        with _told("connect"):
            self._client: Any = boto3.client(
                "dynamodb",
                region_name=settings.dynamodb_region or os.environ.get("AWS_REGION") or _DEFAULT_REGION,
                endpoint_url=settings.dynamodb_endpoint_url,
            )

    def ensure(self) -> None:
        """Creates the table unless it exists, and waits until it can be used.

        Raises:
            StorageError: DynamoDB gave no answer or refused, or the table cannot be used within the time it is given.
        """
        until_s = clock.monotonic_s() + self._settings.dynamodb_creation_ms / 1000
        status = self._status()
        if not status:
            self._create()
        while status not in ("ACTIVE", "UPDATING"):
            if clock.monotonic_s() > until_s:
                raise StorageError(
                    f"the DynamoDB table {self._name!r} cannot be used yet, after "
                    f"{self._settings.dynamodb_creation_ms / 1000:g} s: it is {status or 'not there'}"
                )
            status = self._status()
            if status not in ("ACTIVE", "UPDATING"):
                clock.sleep_s(_LOOKS_AGAIN_S)

    def _status(self) -> str:
        with _told(f"describe the table {self._name!r}"):
            try:
                return str(self._client.describe_table(TableName=self._name)["Table"]["TableStatus"])
            except self._client.exceptions.ResourceNotFoundException:
                return ""

    def _create(self) -> None:
        settings = self._settings
        given: dict[str, Any] = {}
        if settings.dynamodb_billing_mode is BillingMode.PROVISIONED:
            given["ProvisionedThroughput"] = {
                "ReadCapacityUnits": settings.dynamodb_read_capacity,
                "WriteCapacityUnits": settings.dynamodb_write_capacity,
            }
        with _told(f"make the table {self._name!r}"):
            try:
                self._client.create_table(
                    TableName=self._name,
                    KeySchema=[{"AttributeName": KEY, "KeyType": "HASH"}],
                    AttributeDefinitions=[{"AttributeName": KEY, "AttributeType": "S"}],
                    BillingMode=str(settings.dynamodb_billing_mode),
                    **given,
                )
            except self._client.exceptions.ResourceInUseException:
                return  # another writer was faster

    def read(self) -> LockRow | None:
        """The present row; None if there is none.

        Raises:
            StorageError: DynamoDB gave no answer or refused, or the row is not that of a lock.
        """
        with _told("read the lock"):
            try:
                found = self._client.get_item(TableName=self._name, Key=self._row_key, ConsistentRead=True)
            except self._client.exceptions.ResourceNotFoundException:
                return None
        return decode_row(found["Item"]) if found.get("Item") else None

    @property
    def _row_key(self) -> dict[str, Any]:
        return {KEY: {"S": self._key}}

    def take(self, row: LockRow, seen: LockRow | None) -> bool:
        """Replaces the row that was seen. Returns False if the table now holds another row.

        Raises:
            StorageError: as `renew`.
        """
        item = row.encode(self._key)
        if seen is None:
            return self._put(row, item, "attribute_not_exists(#key)", {})
        released = " AND attribute_exists(#released)" if seen.is_released else ""
        return self._put(
            row, item, f"attribute_exists(#key) AND #number = :seen{released}", {":seen": {"S": seen.number}}
        )

    def _put(self, row: LockRow, item: dict[str, Any], condition: str, values: dict[str, Any]) -> bool:
        given = {"ExpressionAttributeValues": values} if values else {}

        def put() -> None:
            self._client.put_item(
                TableName=self._name,
                Item=item,
                ConditionExpression=condition,
                ExpressionAttributeNames=_used(condition),
                **given,
            )

        return self._settled("take the lock", put, row)

    def renew(self, held: LockRow, number: str) -> bool:
        """Gives our row another version number. Returns False if the row is no longer ours.

        Raises:
            StorageError: DynamoDB gave no answer or refused; nothing was written, as far as is known.
        """
        values = {":new": {"S": number}, ":lease": {"S": str(held.lease_ms)}}
        return self._update("SET #lease = :lease, #number = :new", values, held, replace(held, number=number))

    def release(self, held: LockRow) -> bool:
        """Marks our row as released. Returns and raises as `renew`."""
        return self._update("SET #released = :one", {":one": {"S": "1"}}, held, replace(held, is_released=True))

    def _update(self, expression: str, values: dict[str, Any], held: LockRow, then: LockRow) -> bool:
        # the lock client can also renew a released row; here that fails, so the holder learns that its lock was broken
        condition = (
            "attribute_exists(#key) AND #number = :number AND #owner = :owner AND attribute_not_exists(#released)"
        )

        def update() -> None:
            self._client.update_item(
                TableName=self._name,
                Key=self._row_key,
                UpdateExpression=expression,
                ConditionExpression=condition,
                ExpressionAttributeNames=_used(expression + condition),
                ExpressionAttributeValues={**values, ":number": {"S": held.number}, ":owner": {"S": held.owner}},
            )

        return self._settled("write the lock", update, then)

    def _settled(self, verb: str, write: Any, then: LockRow) -> bool:
        """Sends a write. If its answer was lost, or came from a retry of the client, reads the row for the outcome."""
        failure: Exception | None = None
        try:
            write()
        except Exception as error:  # noqa: BLE001 what botocore raises has no common root
            if _code(error) != _CHANGED:
                failure = error
        else:
            return True
        if self.read() == then:
            return True
        if failure is not None:
            with _told(verb):
                raise failure
        return False


def _used(expression: str) -> dict[str, str]:
    """The names that an expression uses, because DynamoDB refuses unused ones."""
    return {short: name for short, name in _NAMES.items() if short in expression}


def _code(error: Exception) -> str:
    response = getattr(error, "response", None)
    return str(response.get("Error", {}).get("Code", "")) if isinstance(response, dict) else ""


@contextmanager
def _told(verb: str) -> Iterator[None]:
    """Turns every error of boto3 into one of hudistream."""
    try:
        yield
    except StorageError:
        raise
    except Exception as error:
        raise StorageError(f"DynamoDB could not {verb}: {error}") from error

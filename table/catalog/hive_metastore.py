"""A Hive metastore as a catalog, by thrift and without a JVM (HoodieHiveSyncClient, HMSDDLExecutor)."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any
from urllib.parse import urlsplit

from table import clock
from table.catalog.catalog import Partitions
from table.catalog.in_parts import CONNECTIONS, act_in_parts
from table.catalog.registration import OUTPUT_FORMAT, SERDE, CatalogColumn, Registration, others_parameters
from table.errors import CatalogError
from table.extras import needs_extra
from table.options.catalog_settings import CatalogSettings
from table.threads import make_lock

_PORT = 9083
_TIMEOUT_MS = 30_000
_LISTED_AT_ONCE = 1000


class HiveMetastore:
    """A Hive metastore.

    Args:
        settings: addresses of the metastore, and how many partitions a call carries.

    Raises:
        CatalogError: the client is not installed.
    """

    def __init__(self, settings: CatalogSettings) -> None:
        try:
            from pymetastore.hive_metastore import ttypes  # noqa: PLC0415 an extra
        except ImportError as error:
            raise CatalogError(needs_extra("a Hive metastore", "hms")) from error
        self._uris, self._batch, self._types = settings.uris or (), settings.batch, ttypes
        self._idle: list[Any] = []
        self._lock = make_lock()

    def create_database(self, name: str) -> None:  # noqa: D102 as `Catalog`
        types = self._types
        with self._asking(f"database {name!r}") as client:
            try:
                client.get_database(name)
            except types.NoSuchObjectException:
                with suppress(types.AlreadyExistsException):
                    client.create_database(types.Database(name=name, description="created by hudistream"))

    def find_table(self, database: str, name: str) -> Registration | None:  # noqa: D102
        with self._asking(f"table {database}.{name}") as client:
            try:
                found = client.get_table(database, name)
            except self._types.NoSuchObjectException:
                return None
        serde = found.sd.serdeInfo.parameters or {}
        return Registration(
            database,
            name,
            found.sd.location or "",
            _columns_of(found.sd.cols or ()),
            _columns_of(found.partitionKeys or ()),
            found.sd.inputFormat or "",
            serde.get("hoodie.query.as.ro.table") == "true",
            dict(found.parameters or {}),
        )

    def create_table(self, wanted: Registration) -> None:  # noqa: D102
        what, there = f"table {wanted.database}.{wanted.name}", self._types.AlreadyExistsException
        with self._asking(what) as client, suppress(there):
            client.create_table(self._table(wanted))

    def change_table(self, wanted: Registration, *, cascades: bool) -> None:  # noqa: D102
        types = self._types
        with self._asking(f"table {wanted.database}.{wanted.name}") as client:
            stored = client.get_table(wanted.database, wanted.name)
            table = self._table(wanted)
            # properties that other tools set stay: statistics, owners, the table's comment
            table.parameters = {**others_parameters(stored.parameters), **table.parameters}
            table.owner, table.createTime = stored.owner, stored.createTime
            _keep_comments(table, stored)
            context = types.EnvironmentContext({"CASCADE": "true" if cascades else "false"})
            client.alter_table_with_environment_context(wanted.database, wanted.name, table, context)

    def list_partitions(self, of: Registration) -> Partitions:  # noqa: D102
        with self._asking(f"partitions of {of.database}.{of.name}") as client:
            names = client.get_partition_names(of.database, of.name, -1)
            found: dict[tuple[str, ...], str] = {}
            for start in range(0, len(names), _LISTED_AT_ONCE):
                part = client.get_partitions_by_names(of.database, of.name, names[start : start + _LISTED_AT_ONCE])
                found |= {tuple(one.values): one.sd.location or "" for one in part}
        return found

    def add_partitions(self, of: Registration, added: Partitions) -> int:  # noqa: D102
        return sum(act_in_parts(added.items(), self._batch, partial(self._add, of)))

    def _add(self, of: Registration, part: Sequence[tuple[tuple[str, ...], str]]) -> int:
        types, partitions = self._types, [self._partition(of, values, location) for values, location in part]
        with self._asking(f"partitions of {of.database}.{of.name}") as client:
            request = types.AddPartitionsRequest(of.database, of.name, partitions, ifNotExists=True, needResult=True)
            return len(client.add_partitions_req(request).partitions or ())

    def move_partitions(self, of: Registration, moved: Partitions) -> None:  # noqa: D102
        act_in_parts(moved.items(), self._batch, partial(self._move, of))

    def _move(self, of: Registration, part: Sequence[tuple[tuple[str, ...], str]]) -> None:
        partitions = [self._partition(of, values, location) for values, location in part]
        with self._asking(f"partitions of {of.database}.{of.name}") as client:
            client.alter_partitions(of.database, of.name, partitions)

    def drop_partitions(self, of: Registration, dropped: Sequence[tuple[str, ...]]) -> None:  # noqa: D102
        with self._asking(f"partitions of {of.database}.{of.name}") as client:
            for values in dropped:
                with suppress(self._types.NoSuchObjectException):
                    client.drop_partition(of.database, of.name, list(values), False)

    def close(self) -> None:  # noqa: D102
        with self._lock:
            idle, self._idle = self._idle, []
        for client in idle:
            _close(client)

    @contextmanager
    def _asking(self, what: str) -> Iterator[Any]:
        """A connection. It is used again only after an answer: half a message in it would mislead the next call."""
        with self._lock:
            client = self._idle.pop() if self._idle else None
        try:
            client = client or self._connect()
            yield client
        except Exception as error:
            where, is_answer = ", ".join(self._uris), type(error).__module__ == self._types.__name__
            if is_answer:
                self._keep(client)
                reason = getattr(error, "message", None) or error
                raise CatalogError(
                    f"the Hive metastore at {where} refused the {what}: {type(error).__name__}: {reason}"
                ) from error
            _close(client)
            raise CatalogError(f"the Hive metastore at {where} did not answer for the {what}: {error}") from error
        except BaseException:
            _close(client)
            raise
        self._keep(client)

    def _keep(self, client: Any) -> None:
        with self._lock:
            if len(self._idle) < CONNECTIONS:
                self._idle.append(client)
                return
        _close(client)

    def _connect(self) -> Any:
        """A connection to the first address that answers."""
        from pymetastore.hive_metastore import ThriftHiveMetastore  # noqa: PLC0415 an extra
        from thrift.protocol import TBinaryProtocol  # noqa: PLC0415 an extra
        from thrift.transport import TSocket, TTransport  # noqa: PLC0415 an extra

        for number, uri in enumerate(self._uris):
            address = urlsplit(uri if "://" in uri else f"thrift://{uri}")
            socket = TSocket.TSocket(address.hostname, address.port or _PORT)
            socket.setTimeout(_TIMEOUT_MS)
            transport = TTransport.TBufferedTransport(socket)
            try:
                transport.open()
            except TTransport.TTransportException:
                if number + 1 == len(self._uris):
                    raise
                continue
            return ThriftHiveMetastore.Client(TBinaryProtocol.TBinaryProtocol(transport))
        raise AssertionError("there is an address")

    def _table(self, wanted: Registration) -> Any:
        now_s = clock.now_ms() // 1000
        return self._types.Table(
            tableName=wanted.name,
            dbName=wanted.database,
            owner="hudistream",
            createTime=now_s,
            lastAccessTime=0,
            retention=0,
            sd=self._storage(wanted, wanted.location),
            partitionKeys=self._as_fields(wanted.partition_keys),
            parameters=dict(wanted.parameters),
            tableType="EXTERNAL_TABLE",
        )

    def _partition(self, of: Registration, values: tuple[str, ...], location: str) -> Any:
        return self._types.Partition(
            values=list(values),
            dbName=of.database,
            tableName=of.name,
            createTime=clock.now_ms() // 1000,
            lastAccessTime=0,
            sd=self._storage(of, location),
            parameters={},
        )

    def _storage(self, of: Registration, location: str) -> Any:
        types = self._types
        return types.StorageDescriptor(
            cols=self._as_fields(of.columns),
            location=location,
            inputFormat=of.input_format,
            outputFormat=OUTPUT_FORMAT,
            compressed=False,
            numBuckets=0,
            serdeInfo=types.SerDeInfo(serializationLib=SERDE, parameters=of.serde_parameters),
            bucketCols=[],
            sortCols=[],
            parameters={},
        )

    def _as_fields(self, columns: Sequence[CatalogColumn]) -> list[Any]:
        return [self._types.FieldSchema(one.name, one.type, "") for one in columns]


def _keep_comments(table: Any, stored: Any) -> None:
    """Keeps the column comments of users and their tools: a sync itself registers none."""
    comments = {one.name: one.comment for one in (*(stored.sd.cols or ()), *(stored.partitionKeys or ()))}
    for column in (*table.sd.cols, *table.partitionKeys):
        column.comment = comments.get(column.name) or ""


def _columns_of(fields: Iterable[Any]) -> tuple[CatalogColumn, ...]:
    return tuple(CatalogColumn(field.name, field.type) for field in fields)


def _close(client: Any) -> None:
    with suppress(OSError, AttributeError):  # there may be no connection
        client._iprot.trans.close()  # noqa: SLF001 thrift's clients have no other way

"""OpenLineage events of the batches of a sink: which table a job wrote, from what, and how many rows.

Copy this file into your project. `OpenLineageEvents` is a callback:

    lineage = OpenLineageEvents("http://marquez:5000", job="orders", inputs=["kafka://broker:9092/orders"])
    sink = HudiSink(path, options, callbacks=[lineage], on_failure=[lineage])

The events were checked with a stand-in of the service, and not with Marquez or DataHub themselves.
"""

import json
import uuid
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any
from urllib.request import Request, urlopen

import pyarrow as pa

from hudistream import BatchSummary, FailedBatch, HudiError, HudiTable, InvalidConfigError

_PRODUCER = "urn:hudistream"
_SPEC = "https://openlineage.io/spec"
_EVENT_SCHEMA = f"{_SPEC}/2-0-2/OpenLineage.json#/$defs/RunEvent"
_FACETS = {
    "jobType": f"{_SPEC}/facets/2-0-3/JobTypeJobFacet.json#/$defs/JobTypeJobFacet",
    "schema": f"{_SPEC}/facets/1-1-1/SchemaDatasetFacet.json#/$defs/SchemaDatasetFacet",
    "version": f"{_SPEC}/facets/1-0-1/DatasetVersionDatasetFacet.json#/$defs/DatasetVersionDatasetFacet",
    "outputStatistics": f"{_SPEC}/facets/1-0-2/OutputStatisticsOutputDatasetFacet.json"
    "#/$defs/OutputStatisticsOutputDatasetFacet",
    "errorMessage": f"{_SPEC}/facets/1-0-1/ErrorMessageRunFacet.json#/$defs/ErrorMessageRunFacet",
}


@dataclass(frozen=True)
class OpenLineageEvents:
    """Tells a lineage service of each batch: a run of a job that wrote a table. Small and picklable.

    It goes among the callbacks of a sink, and among its ``on_failure``. A batch that was skipped or had no rows is not
    told. An error of the service is logged as any error of a callback (``callback_failed``). It fails no batch.

    Attributes:
        send: the address of the service, such as ``http://marquez:5000``: events are posted to ``/api/v1/lineage``. Or
            a function that takes an event, a dictionary as the specification of OpenLineage 2-0-2 has it.
        job: name of the job.
        namespace: of the job.
        inputs: what the job reads, such as ``kafka://broker:9092/topic`` or ``s3://bucket/path``.
        api_key: sent as a bearer token; None: none is.
        timeout_s: seconds that a batch waits for the service at most.
        storage_options: for fsspec, as of the sink: the columns of the table are read after the first batch, and after
            a batch that changed them.
    """

    send: str | Callable[[dict[str, Any]], object]
    job: str
    namespace: str = "hudistream"
    inputs: Collection[str] = ()
    api_key: str | None = field(default=None, repr=False)
    timeout_s: float = 2.0
    storage_options: Mapping[str, Any] | None = field(default=None, repr=False)
    _told: set[str] = field(default_factory=set, init=False, repr=False, compare=False)  # tables with their columns

    def __post_init__(self) -> None:
        if isinstance(self.send, str) and not self.send.startswith(("http://", "https://")):
            raise InvalidConfigError(
                f"send={self.send!r}: give the address of the service (http, https), or a function"
            )

    def __call__(self, outcome: BatchSummary | FailedBatch) -> None:
        """Sends the event of a batch, if it has one."""
        if isinstance(outcome, BatchSummary) and outcome.instant_time is None:
            return
        columns = self._columns_of(outcome) if isinstance(outcome, BatchSummary) else None
        event = event_of(outcome, self.namespace, self.job, self.inputs, columns, datetime.now(timezone.utc))
        if isinstance(self.send, str):
            self._post(self.send, event)
        else:
            self.send(event)

    def _columns_of(self, summary: BatchSummary) -> pa.Schema | None:
        """The columns of the table, where they are to be told."""
        if summary.table in self._told and not summary.schema_changes:
            return None
        try:
            found = HudiTable.open(summary.table, self.storage_options).schema
        except HudiError:
            return None  # the event counts more than the columns: they are told with the next one
        self._told.add(summary.table)
        return found

    def _post(self, address: str, event: dict[str, Any]) -> None:
        headers = {"Content-Type": "application/json"}
        if self.api_key is not None:
            headers["Authorization"] = f"Bearer {self.api_key}"
        body = json.dumps(event).encode()
        request = Request(f"{address.rstrip('/')}/api/v1/lineage", body, headers, method="POST")  # noqa: S310 checked
        with urlopen(request, timeout=self.timeout_s):  # noqa: S310 the scheme was checked
            pass


def event_of(
    outcome: BatchSummary | FailedBatch,
    namespace: str,
    job: str,
    inputs: Collection[str],
    columns: pa.Schema | None,
    now: datetime,
) -> dict[str, Any]:
    """The OpenLineage event of a batch, as JSON has it.

    Args:
        outcome: of the batch.
        namespace: of the job.
        job: its name.
        inputs: addresses of what it read.
        columns: of the table (Arrow); None where they are not to be told.
        now: the present, with its zone.
    """
    about = outcome.instant_time or f"batch {outcome.batch_id} at {now}"
    run: dict[str, Any] = {"facets": {}}
    output: dict[str, Any] = {**dataset_of(outcome.table), "facets": {}}
    if isinstance(outcome, FailedBatch):
        run["facets"]["errorMessage"] = _facet("errorMessage", message=str(outcome.error), programmingLanguage="PYTHON")
    else:
        output["facets"]["version"] = _facet("version", datasetVersion=outcome.instant_time)
        if columns is not None:
            named = [one for one in columns if not one.name.startswith("_hoodie_")]
            fields = [{"name": one.name, "type": str(one.type)} for one in named]
            output["facets"]["schema"] = _facet("schema", fields=fields)
        counted = {"rowCount": outcome.rows + outcome.rows_updated, "size": outcome.bytes_written}
        output["outputFacets"] = {"outputStatistics": _facet("outputStatistics", **counted)}
    kind = _facet("jobType", processingType="STREAMING", integration="HUDISTREAM", jobType="BATCH")
    return {
        "eventType": "FAIL" if isinstance(outcome, FailedBatch) else "COMPLETE",
        "eventTime": now.isoformat(),
        "producer": _PRODUCER,
        "schemaURL": _EVENT_SCHEMA,
        # the same for the same commit: an event that is sent twice is one run
        "run": {"runId": str(uuid.uuid5(uuid.NAMESPACE_URL, f"{outcome.table} {about}")), **run},
        "job": {"namespace": namespace, "name": job, "facets": {"jobType": kind}},
        "inputs": [dataset_of(one) for one in inputs],
        "outputs": [output],
    }


def _facet(name: str, **values: Any) -> dict[str, Any]:
    return {"_producer": _PRODUCER, "_schemaURL": _FACETS[name], **values}


def dataset_of(address: str) -> dict[str, str]:
    """Namespace and name of a dataset, by OpenLineage's rules for names.

    Args:
        address: of a table, a topic or files: ``s3://bucket/path``, ``kafka://broker:9092/topic``, or a local path.
    """
    scheme, separator, rest = address.partition("://")
    if not separator or scheme == "file":
        return {"namespace": "file", "name": rest or address}
    authority, _, path = rest.partition("/")
    return {"namespace": f"{scheme}://{authority}", "name": path or "/"}

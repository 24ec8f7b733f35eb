"""Histories on disk: a step is done by `ArrowSink` or `HudiSink`, a service by the table itself."""

import os

import pyarrow as pa
import pyarrow.parquet as pq

from hudistream import ActionPendingError, ArrowSink, HudiSink, HudiTable, InvalidConfigError
from table.options.groups import KEEP_LATEST_FILE_VERSIONS, ArchiveSettings, CleanSettings

from .cases import CONCURRENCY, HUDIS, KEY, ORDER, batch_of

PAYLOADS = {
    "event": "DefaultHoodieRecordPayload",
    "commit": "OverwriteWithLatestAvroPayload",
    "partial": "PartialUpdateAvroPayload",
}
# Hudi 1.2.0 spells a complex key of one column as older tables have it only when it is told to
SPELLED_SHORT = {
    "hoodie.write.complex.keygen.validation.enable": "false",
    "hoodie.write.complex.keygen.new.encoding": "true",
}
NEWEST_OF_OLD_HUDI = 8  # version of tables
CLEANED = CleanSettings(policy=KEEP_LATEST_FILE_VERSIONS, versions_retained=1, grace_ms=0, trigger_commits=0)


def options_of(shape):
    """Options of the sink of a table: nothing runs beside a batch."""
    payload = "org.apache.hudi.common.model." + PAYLOADS[shape.merging]
    return {
        "hoodie.table.name": "t",
        "hoodie.write.table.version": str(shape.version),
        "hoodie.datasource.write.table.type": "MERGE_ON_READ" if shape.merge_on_read else "COPY_ON_WRITE",
        "hoodie.index.type": shape.index,
        "hoodie.datasource.write.payload.class": payload,
        "hoodie.compaction.payload.class": payload,
        "hoodie.clean.automatic": "false",
        "hoodie.archive.automatic": "false",
        "hoodie.compact.inline": "false",
        "hoodie.datasource.compaction.async.enable": "false",
        "hudistream.clean.grace.ms": "0",
        **shape.options,
    }


def hudis_options(step, shape, version):
    """Options of real Hudi for a step.

    Args:
        version: of the table.
    """
    ours = {key: value for key, value in options_of(shape).items() if not key.startswith("hudistream.")}
    given = {
        "hoodie.write.table.version": str(version),
        "hoodie.datasource.write.recordkey.field": ",".join(shape.keys),
        "hoodie.datasource.write.partitionpath.field": ",".join(shape.paths),
        "hoodie.datasource.write.operation": step.what,
        "hoodie.embed.timeline.server": "false",
        **({"hoodie.datasource.write.precombine.field": ORDER} if ORDER in shape.kinds else {}),
        **({"hoodie.index.type": shape.index.replace("BLOOM", "SIMPLE")} if shape.virtual else {}),
        **(SPELLED_SHORT if len(shape.keys) == 1 < len(shape.paths) and version < 9 else {}),
    }
    if shape.shared and "hoodie.write.lock.provider" in shape.options:
        given["hoodie.cleaner.policy.failed.writes"] = "LAZY"
    elif shape.shared:  # our sinks need no lock among themselves
        del ours[CONCURRENCY]
    return {**ours, **given}


class Arrow:
    """Steps by `ArrowSink`.

    Args:
        hudis: version -> real Hudi, which does its steps.
    """

    name = "ArrowSink"

    def __init__(self, path, shape, hudis=None):
        self.path, self.shape, self._sinks, self._hudis = path, shape, {}, hudis or {}
        self.savepoints = {}  # number of a step -> instant time
        self.made_commit = False  # the last write, of rows or of columns

    def open(self, name):
        """The sink of a name, made when it is needed. Others stay open: each has its own memory of the table."""
        if name not in self._sinks:
            self._sinks[name] = self._make(
                self.path,
                {**options_of(self.shape), "hoodie.datasource.write.streaming.checkpoint.identifier": name},
                key=list(self.shape.keys),
                partition_by=list(self.shape.paths) or None,
                order_by=ORDER if ORDER in self.shape.kinds else None,
            )
        return self._sinks[name]

    def _make(self, *given, **named):
        return ArrowSink(*given, workers=1, **named)

    def stop(self):
        """Lets the table go; the next step opens it anew."""
        for sink in self._sinks.values():
            sink.stop()
        self._sinks = {}

    def table(self):
        return HudiTable.open(self.path)

    def do(self, step):
        """Does a step.

        Raises:
            HudiError: it was refused.
        """
        if step.writes:
            self._write(step)
        else:
            getattr(self, f"_{step.what}")(step)

    def _write(self, step):
        try:
            self._write_once(step)
        except ActionPendingError:
            self._compact(step)  # an ordering column was widened above a log with deletes: the error names this way out
            self._write_once(step)

    def _write_once(self, step):
        if step.by in self._hudis:
            self._write_by_hudi(step)
            self.made_commit = True
            return
        if step.what == "delete_where":
            summary = self._delete_where(step)
        else:
            summary = self.open(step.by).write(self._rows(batch_of(step.rows, step.kinds)), operation=step.what)
        self.made_commit = summary.instant_time is not None

    def name_of(self, step):
        """Who does a step."""
        return f"Hudi {step.by} as a writer" if step.by in self._hudis else self.name

    def _write_by_hudi(self, step):
        version = self.table().config.version if os.path.exists(f"{self.path}/.hoodie") else self.shape.version
        hudi = self._hudis[HUDIS[1] if version > NEWEST_OF_OLD_HUDI else step.by]
        hudi.write(self.path, batch_of(step.rows, step.kinds), hudis_options(step, self.shape, version))

    def _delete_where(self, step):
        return self.open(step.by).delete(where=step.where)

    def _rows(self, rows):
        return rows

    def _compact(self, step):
        self.table().compact()

    def _cluster(self, step):
        sort = [name for name in self.shape.kinds if name in (ORDER, KEY)][-1]
        self.table().cluster(sort if step.number % 2 else None)

    def _clean(self, step):
        self.table().clean(CLEANED)

    def _archive(self, step):
        self.table().archive(ArchiveSettings(min_commits=2, max_commits=3), CleanSettings(commits_retained=1))

    def _roll_back(self, step):
        self.stop()
        self.table().roll_back(self.table().load_timeline().completed_writes[-1].time)

    def _savepoint(self, step):
        self.stop()
        self.savepoints[step.number] = self.table().create_savepoint()

    def _delete_savepoint(self, step):
        self.stop()
        self.table().delete_savepoint(self._savepoint_of(step))

    def _restore(self, step):
        self.stop()
        self.table().restore_to_savepoint(self._savepoint_of(step))

    def _savepoint_of(self, step):
        if step.to not in self.savepoints:  # it was refused
            raise InvalidConfigError("there is no such savepoint")
        return self.savepoints[step.to]

    def _convert(self, step):
        self.stop()
        if self.table().config.version != step.to:
            self.table().convert(step.to)

    def _reopen(self, step):
        self.stop()


class Spark(Arrow):
    """Steps by `HudiSink`, of DataFrames.

    Args:
        spark: the session. It must read dates as they are (``spark.sql.parquet.datetimeRebaseModeInRead=CORRECTED``).
    """

    name = "HudiSink"

    def __init__(self, path, shape, spark):
        super().__init__(path, shape)
        self._spark, self._batches = spark, 0

    def _make(self, *given, **named):
        return HudiSink(*given, **named)

    def _rows(self, rows: pa.Table):
        self._batches += 1
        file = f"{self.path}-rows/{self._batches}.parquet"
        os.makedirs(os.path.dirname(file), exist_ok=True)
        pq.write_table(rows, file)
        return self._spark.read.option("datetimeRebaseMode", "CORRECTED").parquet(file)

    def _delete_where(self, step):
        given = (
            "hoodie.index.type",
            "hoodie.bucket.",
            "hoodie.bloom.",
            "hoodie.simple.",
            "hoodie.write.",
            "hoodie.metadata.",
            "hoodie.compact.",
            "hoodie.datasource.compaction.",
            "hoodie.clean.",
            "hoodie.archive.",
        )
        options = {key: value for key, value in options_of(self.shape).items() if key.startswith(given)}
        return self.table().delete(step.where, options)

"""Every key of Hudi and of Flink's Hudi connector that has no effect here, by reason (pure).

The other two classes, honoured and refused, are the tables of `table.options.keys`. A key in no class is
an error there, and a test holds this list against Hudi's own.
"""

from collections.abc import Mapping
from types import MappingProxyType

_GROUPS = {
    "how the JVM's readers read": """
        _hoodie.hfile.use.native.reader hoodie.datasource.merge.type hoodie.compaction.lazy.block.read
        hoodie.compaction.reverse.log.read
        hoodie.file.group.reader.enabled hoodie.merge.use.record.positions
    """,
    "the metadata table: parts that are not written here, and the JVM's own ways": """
        _hoodie.metadata.ignore.spurious.deletes hoodie.file.listing.parallelism hoodie.metadata.auto.initialize
        hoodie.metadata.dir.filter.regex
        hoodie.metadata.index.async hoodie.metadata.index.bloom.filter.column.list
        hoodie.metadata.index.bloom.filter.enable hoodie.metadata.index.bloom.filter.file.group.count
        hoodie.metadata.index.bloom.filter.parallelism hoodie.metadata.index.check.timeout.seconds
        hoodie.metadata.index.column.stats.column.list
        hoodie.metadata.index.column.stats.file.group.count
        hoodie.metadata.index.column.stats.inMemory.projection.threshold
        hoodie.metadata.index.column.stats.max.columns.to.index hoodie.metadata.index.column.stats.parallelism
        hoodie.metadata.index.column.stats.processing.mode.override hoodie.metadata.index.drop
        hoodie.metadata.index.expression.column hoodie.metadata.index.expression.enable
        hoodie.metadata.index.expression.file.group.count hoodie.metadata.index.expression.options
        hoodie.metadata.index.expression.parallelism hoodie.metadata.index.partition.stats.enable
        hoodie.metadata.index.partition.stats.file.group.count hoodie.metadata.index.partition.stats.parallelism
        hoodie.metadata.index.secondary.column hoodie.metadata.index.secondary.enable
        hoodie.metadata.index.secondary.parallelism hoodie.metadata.log.compaction.blocks.threshold
        hoodie.metadata.log.compaction.enable hoodie.metadata.max.deltacommits.when_pending
        hoodie.metadata.max.init.parallelism hoodie.metadata.max.logfile.size
        hoodie.metadata.max.reader.buffer.size hoodie.metadata.max.reader.memory hoodie.metadata.metrics.enable
        hoodie.metadata.optimized.log.blocks.scan.enable
        hoodie.metadata.record.index.growth.factor hoodie.metadata.record.index.max.filegroup.count
        hoodie.metadata.record.index.max.filegroup.size hoodie.metadata.record.index.min.filegroup.count
        hoodie.metadata.spillable.map.path
    """,
    "eventually consistent stores: every one supported is consistent now": """
        _hoodie.optimistic.consistency.guard.enable hoodie.consistency.check.enabled
        hoodie.consistency.check.initial_interval_ms hoodie.consistency.check.max_checks
        hoodie.consistency.check.max_interval_ms hoodie.optimistic.consistency.guard.sleep_time_ms
    """,
    "the JVM writer's own executors, caches, markers and retries": """
        _hoodie.record.size.estimator.max.commits hoodie.allow.empty.commit hoodie.auto.adjust.lock.configs
        hoodie.avro.schema.validate
        hoodie.bulkinsert.sort.suffix.record_key hoodie.bulkinsert.user.defined.partitioner.class
        hoodie.cdc.file.group.iterator.memory.spill.bytes
        hoodie.embed.timeline.server
        hoodie.embed.timeline.server.async hoodie.embed.timeline.server.gzip hoodie.embed.timeline.server.port
        hoodie.embed.timeline.server.reuse.enabled hoodie.embed.timeline.server.threads
        hoodie.fail.job.on.duplicate.data.file.detection hoodie.fail.on.timeline.archiving
        hoodie.fail.writes.on.inline.table.service.exception hoodie.fileid.prefix.provider.class
        hoodie.finalize.write.parallelism hoodie.instant_state.timeline_server_based.enabled
        hoodie.instant_state.timeline_server_based.force_refresh.request.number
        hoodie.markers.delete.parallelism hoodie.markers.timeline_server_based.batch.interval_ms
        hoodie.markers.timeline_server_based.batch.num_threads hoodie.merge.data.validation.enabled
        hoodie.record.size.estimator.average.metadata.size
        hoodie.record.size.estimator.class hoodie.release.resource.on.completion.enable
        hoodie.rollback.instant.backup.dir hoodie.rollback.instant.backup.enabled hoodie.rollback.parallelism
        hoodie.skip.default.partition.validation
        hoodie.table.services.incremental.enabled
        hoodie.write.concurrency.async.conflict.detector.initial_delay_ms
        hoodie.write.concurrency.async.conflict.detector.period_ms
        hoodie.write.concurrency.early.conflict.check.commit.conflict
        hoodie.write.concurrency.early.conflict.detection.enable
        hoodie.write.concurrency.early.conflict.detection.strategy
        hoodie.write.concurrency.schema.conflict.resolution.enable
        hoodie.write.executor.disruptor.buffer.limit.bytes hoodie.write.executor.disruptor.wait.strategy
        hoodie.write.executor.type
        hoodie.write.status.storage.level hoodie.write.tagged.record.storage.level
        hoodie.writestatus.class
    """,
    "rows travel in pieces of Arrow, not through a queue: hudistream.task.memory.bytes bounds what a task holds": """
        hoodie.write.buffer.limit.bytes hoodie.write.buffer.record.cache.limit
        hoodie.write.buffer.record.sampling.rate
    """,
    "markers: each data file has a file of its own, and a rollback goes by them": """
        hoodie.rollback.using.markers hoodie.write.markers.type
    """,
    "the batch is as large as Spark's source makes it: maxOffsetsPerTrigger and the like": """
        write.rate.limit
    """,
    "the checksum is computed": """
        hoodie.table.checksum
    """,
    "instants come from one clock and are made unique by create-if-absent": """
        _hoodie.time.generator.reuse.enable hoodie.time.generator.type
    """,
    "archival: it follows cleaning, in the same thread": """
        hoodie.archive.async hoodie.archive.delete.parallelism
        hoodie.timeline.compaction.batch.size
    """,
    "the JVM's file writers, ORC and HFile": """
        hoodie.avro.write.support.class
        hoodie.hfile.block.size hoodie.hfile.compression.algorithm
        hoodie.hfile.max.file.size hoodie.io.factory.class
        hoodie.orc.block.size hoodie.orc.compression.codec hoodie.orc.max.file.size hoodie.orc.stripe.size
        hoodie.parquet.bloom.filter.enabled hoodie.parquet.compression.ratio
        hoodie.parquet.field_id.write.enabled hoodie.parquet.page.size
        hoodie.parquet.spark.row.write.support.class hoodie.storage.class
    """,
    "how the JVM looks keys up": """
        hoodie.bloom.index.bucketized.checking hoodie.bloom.index.fileid.key.sorting.enable
        hoodie.bloom.index.input.storage.level hoodie.bloom.index.keys.per.bucket hoodie.bloom.index.parallelism
        hoodie.bloom.index.use.caching hoodie.bloom.index.use.metadata hoodie.bloom.index.use.treebased.filter
        hoodie.bucket.index.max.num.buckets hoodie.bucket.index.merge.threshold
        hoodie.bucket.index.min.num.buckets hoodie.bucket.index.query.pruning
        hoodie.bucket.index.split.threshold hoodie.global.index.reconcile.parallelism
        hoodie.global.simple.index.parallelism
        hoodie.record.index.input.storage.level
        hoodie.record.index.use.caching hoodie.simple.index.input.storage.level hoodie.simple.index.parallelism
        hoodie.simple.index.use.caching
    """,
    "bootstrap of foreign files": """
        hoodie.bootstrap.data.queries.only hoodie.bootstrap.full.input.provider hoodie.bootstrap.mode.selector
        hoodie.bootstrap.mode.selector.regex hoodie.bootstrap.mode.selector.regex.mode
        hoodie.bootstrap.parallelism hoodie.bootstrap.partitionpath.translator.class
    """,
    "properties that the table itself keeps": """
        hoodie.bootstrap.index.class hoodie.bootstrap.index.enable hoodie.bootstrap.index.type
        hoodie.table.cdc.supplemental.logging.mode hoodie.table.index.defs.path
        hoodie.table.initial.version hoodie.table.log.file.format hoodie.table.metadata.partitions
        hoodie.table.metadata.partitions.inflight hoodie.table.rt.file.format
        hoodie.table.secondary.indexes.metadata hoodie.timeline.history.path
    """,
    "internal to the JVM writer": """
        hoodie.bulkinsert.schema.ddl
    """,
    "cleaning: one clean at a time, and no bootstrap files": """
        hoodie.clean.allow.multiple hoodie.clean.delete.bootstrap.base.file hoodie.clean.multiple.enabled
        hoodie.cleaner.delete.bootstrap.base.file
    """,
    "clustering: one group after another; a batch of the same stream waits for its end": """
        hoodie.clustering.group.read.parallelism hoodie.clustering.max.parallelism
        hoodie.clustering.rollback.pending.replacecommit.on.conflict hoodie.clustering.updates.strategy
    """,
    "clustering: a curve runs through the ranks of the values, not through their bits": """
        hoodie.layout.optimize.build.curve.sample.size hoodie.layout.optimize.curve.build.method
    """,
    "switches of Hudi 0.10: the order is on where sort columns are named": """
        hoodie.layout.optimize.data.skipping.enable hoodie.layout.optimize.enable
    """,
    "the JVM's spillable maps and file index": """
        hoodie.common.diskmap.compression.enabled hoodie.common.spillable.diskmap.type
        hoodie.file.index.cache.spillable.mem hoodie.file.index.cache.use.spillable.map
        hoodie.memory.compaction.max.size hoodie.memory.dfs.buffer.max.size
        hoodie.read.timeline.holes.resolution.policy
    """,
    "which slices are compacted: by hoodie.compaction.strategy": """
        hoodie.compaction.partition.path.regex hoodie.compaction.plan.generator
        hoodie.log.compaction.blocks.threshold hoodie.log.compaction.enable hoodie.log.compaction.inline
    """,
    "the JVM data source": """
        as.of.instant
        hoodie.datasource.query.incremental.format hoodie.datasource.query.type
        hoodie.datasource.read.begin.instanttime hoodie.datasource.read.end.instanttime
        hoodie.datasource.read.extract.partition.values.from.path hoodie.datasource.read.file.index.listing.mode
        hoodie.datasource.read.file.index.listing.partition-path-prefix.analysis.enabled
        hoodie.datasource.read.incr.fallback.fulltablescan.enable hoodie.datasource.read.incr.filters
        hoodie.datasource.read.incr.path.glob hoodie.datasource.read.paths
        hoodie.datasource.read.schema.use.end.instanttime hoodie.datasource.view.type
        hoodie.datasource.write.new.columns.nullable
        hoodie.datasource.write.row.writer.enable
        hoodie.datasource.write.secondarykey.column hoodie.datasource.write.storage.type
        hoodie.datasource.write.streaming.retry.count
        hoodie.datasource.write.streaming.retry.interval.ms hoodie.datasource.write.table.name
        hoodie.enable.data.skipping hoodie.internal.write.schema.canonicalize
        hoodie.spark.sql.insert.into.operation hoodie.spark.sql.optimized.writes.enable
        hoodie.sql.bulk.insert.enable hoodie.sql.insert.mode

    """,
    "the JVM streamer's error table": """
        hoodie.errortable.base.path hoodie.errortable.insert.shuffle.parallelism
        hoodie.errortable.source.rdd.persist hoodie.errortable.target.table.name
        hoodie.errortable.upsert.shuffle.parallelism hoodie.errortable.validate.recordcreation.enable
        hoodie.errortable.validate.targetschema.enable hoodie.errortable.write.class
        hoodie.errortable.write.failure.strategy hoodie.errortable.write.union.enable
    """,
    "event times: commits do not record them": """
        eventtime.field hoodie.payload.event.time.field
    """,
    "secondary indexes: none are written": """
        hoodie.expression.index.function hoodie.expression.index.type hoodie.index.name
    """,
    "file systems retry by their own settings": """
        hoodie.filesystem.operation.retry.enable hoodie.filesystem.operation.retry.exceptions
        hoodie.filesystem.operation.retry.initial_interval_ms hoodie.filesystem.operation.retry.max_interval_ms
        hoodie.filesystem.operation.retry.max_numbers
    """,
    "the JVM's file system view server": """
        hoodie.filesystem.remote.backup.view.enable hoodie.filesystem.view.incr.timeline.sync.enable
        hoodie.filesystem.view.remote.host hoodie.filesystem.view.remote.port
        hoodie.filesystem.view.remote.retry.enable hoodie.filesystem.view.remote.retry.exceptions
        hoodie.filesystem.view.remote.retry.initial_interval_ms
        hoodie.filesystem.view.remote.retry.max_interval_ms hoodie.filesystem.view.remote.retry.max_numbers
        hoodie.filesystem.view.remote.timeout.secs hoodie.filesystem.view.rocksdb.base.path
        hoodie.filesystem.view.secondary.type hoodie.filesystem.view.spillable.bootstrap.base.file.mem.fraction
        hoodie.filesystem.view.spillable.clustering.mem.fraction
        hoodie.filesystem.view.spillable.compaction.mem.fraction hoodie.filesystem.view.spillable.dir
        hoodie.filesystem.view.spillable.log.compaction.mem.fraction hoodie.filesystem.view.spillable.mem
        hoodie.filesystem.view.spillable.replaced.mem.fraction hoodie.filesystem.view.type
    """,
    "the HBase index: inserts look up no keys": """
        hoodie.hbase.index.update.partition.path hoodie.index.hbase.bucket.number
        hoodie.index.hbase.desired_puts_time_in_secs hoodie.index.hbase.dynamic_qps
        hoodie.index.hbase.get.batch.size hoodie.index.hbase.kerberos.user.keytab
        hoodie.index.hbase.kerberos.user.principal hoodie.index.hbase.master.kerberos.principal
        hoodie.index.hbase.max.qps.fraction hoodie.index.hbase.max.qps.per.region.server
        hoodie.index.hbase.min.qps.fraction hoodie.index.hbase.put.batch.size
        hoodie.index.hbase.put.batch.size.autocompute hoodie.index.hbase.qps.allocator.class
        hoodie.index.hbase.qps.fraction hoodie.index.hbase.regionserver.kerberos.principal
        hoodie.index.hbase.rollback.sync hoodie.index.hbase.security.authentication
        hoodie.index.hbase.sleep.ms.for.get.batch hoodie.index.hbase.sleep.ms.for.put.batch
        hoodie.index.hbase.table hoodie.index.hbase.zk.connection_timeout_ms
        hoodie.index.hbase.zk.session_timeout_ms hoodie.index.hbase.zknode.path
        hoodie.index.hbase.zkpath.qps_root hoodie.index.hbase.zkport hoodie.index.hbase.zkquorum
    """,
    "the parser of the timestamp key generator, which is our own": """
        hoodie.deltastreamer.keygen.datetime.parser.class hoodie.keygen.datetime.parser.class






    """,
    "the JVM's memory fractions": """
        hoodie.memory.compaction.fraction hoodie.memory.merge.fraction hoodie.memory.merge.max.size
        hoodie.memory.spillable.map.path hoodie.memory.writestatus.failure.fraction
    """,
    "the meta server, refused when enabled": """
        hoodie.metaserver.connect.retries hoodie.metaserver.connect.retry.delay hoodie.metaserver.uris
    """,
    "the JVM's metrics reporters": """
        hoodie.metrics.cloudwatch.maxDatumsPerRequest hoodie.metrics.cloudwatch.metric.prefix
        hoodie.metrics.cloudwatch.namespace hoodie.metrics.cloudwatch.report.period.seconds
        hoodie.metrics.configs.properties hoodie.metrics.executor.enable hoodie.metrics.lock.enable
        hoodie.metrics.on hoodie.metrics.reporter.class hoodie.metrics.reporter.metricsname.prefix
        hoodie.metrics.reporter.type hoodie.metricscompaction.log.blocks.on
    """,
    "partition expiry, refused when enabled": """
        hoodie.partition.ttl.management.strategy.type hoodie.partition.ttl.strategy.class
        hoodie.partition.ttl.strategy.days.retain hoodie.partition.ttl.strategy.max.delete.partitions
        hoodie.partition.ttl.strategy.partition.selected
    """,
    "the JVM's validators, refused when named": """
        hoodie.precommit.validators.equality.sql.queries hoodie.precommit.validators.inequality.sql.queries
        hoodie.precommit.validators.single.value.sql.queries
    """,
    "the storage layout's partitioner": """
        hoodie.storage.layout.partitioner.class
    """,
    "the table service manager, refused when enabled": """
        hoodie.table.service.manager.actions hoodie.table.service.manager.connection.retries
        hoodie.table.service.manager.connection.retry.delay.sec
        hoodie.table.service.manager.connection.timeout.sec hoodie.table.service.manager.deploy.extra.params
        hoodie.table.service.manager.deploy.parallelism hoodie.table.service.manager.deploy.queue
        hoodie.table.service.manager.deploy.resources hoodie.table.service.manager.deploy.username
        hoodie.table.service.manager.execution.engine hoodie.table.service.manager.uris
    """,
    "HTTP callbacks, refused when switched on": """
        hoodie.write.commit.callback.class hoodie.write.commit.callback.http.api.key
        hoodie.write.commit.callback.http.custom.headers hoodie.write.commit.callback.http.timeout.seconds
        hoodie.write.commit.callback.http.url
    """,
    "locks: conflicts are found by one rule, and no metastore keeps locks": """
        hoodie.write.lock.conflict.resolution.strategy hoodie.write.lock.heartbeat_interval_ms
        hoodie.write.lock.hivemetastore.database hoodie.write.lock.hivemetastore.table
        hoodie.write.lock.hivemetastore.uris
    """,
    "commits always record sink, query and batch": """
        write.extra.metadata.enabled
    """,
    "lookups: a record index is asked for any number of keys": """
        read.record.index.keys.max.count
    """,
    "Flink's own memory, parallelism, state and reading": """
        catalog.path clustering.tasks compaction.max_memory
        compaction.timeout.seconds
        index.bootstrap.enabled index.partition.regex
        index.state.ttl lookup.join.cache.ttl metadata.compaction.delta_commits
        read.cdc.from.changelog read.commits.limit read.data.skipping.enabled
        read.end-commit read.splits.limit read.start-commit read.streaming.check-interval read.streaming.enabled
        read.streaming.skip_clustering read.streaming.skip_compaction read.streaming.skip_insertoverwrite
        read.tasks read.utc-timezone source.avro-schema.path write.batch.size
        write.bucket_assign.tasks write.bulk_insert.shuffle_by_partition write.bulk_insert.shuffle_input
        write.bulk_insert.sort_input write.bulk_insert.sort_input.by_record_key write.client.id
        write.commit.ack.timeout write.index_bootstrap.tasks write.insert.cluster
        write.merge.max_memory write.parquet.page.size
        write.retry.interval.ms write.retry.times write.sort.memory write.task.max.size write.tasks

    """,
}

# keys of catalog sync, metrics and streamers form open sets; they do not affect the table's files
WITHOUT_EFFECT_PREFIXES: Mapping[str, str] = MappingProxyType(
    {
        "hoodie.datasource.hive_sync.": "catalog sync: what the JVM's tools add",
        "hoodie.datasource.meta.sync.": "catalog sync: what the JVM's tools add",
        "hoodie.meta.sync.": "catalog sync: what the JVM's tools add",
        "clustering.plan.": "clustering: Flink's own classes",
        "hoodie.gcp.bigquery.sync.": "catalog sync: what the JVM's tools add",
        "hoodie.datahub.": "catalog sync: what the JVM's tools add",
        "hoodie.onehouse.": "catalog sync: what the JVM's tools add",
        "hive_sync.": "catalog sync: what the JVM's tools add",
        "hoodie.metrics.": "the JVM's metrics reporters",
        "hoodie.streamer.": "Hudi Streamer's sources",
        "hoodie.deltastreamer.": "Hudi Streamer's sources",
        "properties.": "Kafka clients of Flink's connector",
    }
)

WITHOUT_EFFECT: Mapping[str, str] = MappingProxyType(
    {key: reason for reason, keys in _GROUPS.items() for key in keys.split()}
)

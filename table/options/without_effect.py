"""Every key of Hudi and of Flink's Hudi connector that has no effect here, by reason (pure).

The other two classes, honoured and refused, are the tables of `table.options.keys` and `table.options.refused`. A key
in no class is an error, and a test holds these lists against Hudi's own classes. Each reason says what is so here, and
has a test that fails where it is not.
"""

from collections.abc import Mapping
from types import MappingProxyType

_GROUPS = {
    "reading: a sink reads by no option": """
        _hoodie.hfile.use.native.reader as.of.instant hoodie.bucket.index.query.pruning
        hoodie.compaction.lazy.block.read hoodie.compaction.reverse.log.read
        hoodie.datasource.merge.type hoodie.datasource.partition_extractor_class
        hoodie.datasource.query.incremental.format
        hoodie.datasource.read.create.filesystem.relation hoodie.datasource.read.file.index.list.partitions.from.catalog
        hoodie.datasource.read.file.index.optimize.listing.using.path.filter hoodie.datasource.read.handle.hollow.commit
        hoodie.datasource.read.incr.skip_cluster hoodie.datasource.read.incr.skip_compact
        hoodie.datasource.read.incr.table.version hoodie.datasource.read.partition.value.extractor.enabled
        hoodie.datasource.read.streaming.table.version
        hoodie.datasource.read.table.valued.function.filesystem.relation.subpath
        hoodie.datasource.read.table.valued.function.timeline.relation
        hoodie.datasource.read.table.valued.function.timeline.relation.archived hoodie.datasource.streaming.startOffset
        hoodie.file.index.enable hoodie.query.as.ro.table hoodie.spark.polaris.catalog.class
        hoodie.datasource.query.type hoodie.datasource.read.begin.instanttime hoodie.datasource.read.end.instanttime
        hoodie.datasource.read.extract.partition.values.from.path hoodie.datasource.read.file.index.listing.mode
        hoodie.datasource.read.file.index.listing.partition-path-prefix.analysis.enabled
        hoodie.datasource.read.incr.fallback.fulltablescan.enable hoodie.datasource.read.incr.filters
        hoodie.datasource.read.incr.path.glob hoodie.datasource.read.paths
        hoodie.datasource.read.schema.use.end.instanttime hoodie.datasource.view.type hoodie.enable.data.skipping
        hoodie.file.group.reader.enabled hoodie.file.index.cache.spillable.mem
        hoodie.file.index.cache.use.spillable.map hoodie.hfile.block.cache.enabled hoodie.hfile.block.cache.size
        hoodie.hfile.block.cache.ttl.minutes hoodie.lance.read.allocator.size.bytes
        hoodie.lance.read.metadata.allocator.size.bytes hoodie.merge.use.record.positions
        hoodie.metadata.fallback.enable hoodie.metadata.file.cache.max.size.mb hoodie.metadata.max.reader.buffer.size
        hoodie.metadata.max.reader.memory hoodie.metadata.optimized.log.blocks.scan.enable
        hoodie.read.blob.inline.mode hoodie.read.timeline.holes.resolution.policy
        lookup.join.cache.ttl read.cdc.from.changelog read.commits.limit read.data.skipping.enabled read.end-commit
        read.record.index.keys.max.count read.splits.limit read.start-commit read.streaming.check-interval
        read.streaming.enabled read.streaming.skip_clustering read.streaming.skip_compaction
        read.streaming.skip_insertoverwrite read.tasks read.utc-timezone catalog.path
    """,
    "the metadata table: no bloom filters and no secondary or expression indexes are made": """
        hoodie.bloom.index.use.metadata hoodie.datasource.write.secondarykey.column
        hoodie.expression.index.function hoodie.expression.index.range.metadata.storage.level
        hoodie.expression.index.type hoodie.index.name
        hoodie.metadata.index.async hoodie.metadata.index.bloom.filter.column.list
        hoodie.metadata.index.bloom.filter.enable hoodie.metadata.index.bloom.filter.file.group.count
        hoodie.metadata.index.bloom.filter.parallelism hoodie.metadata.index.check.timeout.seconds
        hoodie.metadata.index.drop hoodie.metadata.index.expression.column
        hoodie.metadata.index.expression.enable hoodie.metadata.index.expression.file.group.count
        hoodie.metadata.index.expression.options hoodie.metadata.index.expression.parallelism
        hoodie.metadata.index.secondary.column hoodie.metadata.index.secondary.enable
        hoodie.metadata.index.secondary.parallelism
        hoodie.metadata.partitioned.record.index.max.filegroup.count
        hoodie.metadata.partitioned.record.index.min.filegroup.count
        hoodie.metadata.record.level.index.max.filegroup.count hoodie.metadata.record.level.index.min.filegroup.count
    """,
    "the metadata table: its statistics have as many file groups as Hudi's by default": """
        hoodie.metadata.index.column.stats.file.group.count hoodie.metadata.index.partition.stats.file.group.count
    """,
    "the metadata table: its base files have no bloom filters": """
        hoodie.metadata.bloom.filter.dynamic.max.entries hoodie.metadata.bloom.filter.enable
        hoodie.metadata.bloom.filter.fpp hoodie.metadata.bloom.filter.num.entries hoodie.metadata.bloom.filter.type
    """,
    "the metadata table: hoodie.metadata.compact.max.delta.commits says when it is compacted": """
        hoodie.metadata.compact.max.delta.seconds hoodie.metadata.compact.trigger.strategy
        hoodie.metadata.derive.from.datatable.clean.policy hoodie.metadata.log.compaction.blocks.threshold
        hoodie.metadata.log.compaction.enable hoodie.metadata.max.deltacommits.when_pending
        hoodie.metadata.max.logfile.size hoodie.metadata.table.service.manager.actions
        hoodie.metadata.write.concurrency.mode hoodie.metadata.write.fail.on.table.service.failures
    """,
    "the metadata table: the process that commits makes it and keeps it up, without tasks": """
        _hoodie.metadata.ignore.spurious.deletes hoodie.hfile.writes.allow.duplicates
        hoodie.metadata.index.column.stats.inMemory.projection.threshold
        hoodie.metadata.index.column.stats.parallelism hoodie.metadata.index.column.stats.processing.mode.override
        hoodie.metadata.index.partition.stats.parallelism hoodie.metadata.max.init.parallelism
        hoodie.metadata.metrics.enable hoodie.metadata.range.repartition.random.seed
        hoodie.metadata.range.repartition.sampling.fraction
        hoodie.metadata.range.repartition.target.records.per.partition
        hoodie.metadata.record.index.enable.validation.on.initialization
        hoodie.metadata.record.level.index.defer.init hoodie.metadata.record.preparation.parallelism
        hoodie.metadata.repartition.default.partitions hoodie.metadata.repartition.min.partitions.threshold
        hoodie.metadata.spillable.map.path
        hoodie.metadata.streaming.write.datatable.write.statuses.coalesce.divisor
        hoodie.metadata.streaming.write.enabled
    """,
    "stores: a new object is listed at once, and nothing waits for it": """
        _hoodie.optimistic.consistency.guard.enable hoodie.consistency.check.enabled
        hoodie.consistency.check.initial_interval_ms hoodie.consistency.check.max_checks
        hoodie.consistency.check.max_interval_ms hoodie.optimistic.consistency.guard.sleep_time_ms
    """,
    "stores: retries are an option of each backend of fsspec": """
        hoodie.filesystem.operation.retry.enable hoodie.filesystem.operation.retry.exceptions
        hoodie.filesystem.operation.retry.initial_interval_ms hoodie.filesystem.operation.retry.max_interval_ms
        hoodie.filesystem.operation.retry.max_numbers
    """,
    "no server runs beside a sink": """
        hoodie.embed.timeline.server hoodie.embed.timeline.server.async hoodie.embed.timeline.server.gzip
        hoodie.embed.timeline.server.port hoodie.embed.timeline.server.reuse.enabled
        hoodie.embed.timeline.server.threads hoodie.filesystem.remote.backup.view.enable
        hoodie.filesystem.view.incr.timeline.sync.enable hoodie.filesystem.view.remote.host
        hoodie.filesystem.view.remote.port hoodie.filesystem.view.remote.retry.enable
        hoodie.filesystem.view.remote.retry.exceptions hoodie.filesystem.view.remote.retry.initial_interval_ms
        hoodie.filesystem.view.remote.retry.max_interval_ms hoodie.filesystem.view.remote.retry.max_numbers
        hoodie.filesystem.view.remote.timeout.secs hoodie.filesystem.view.rocksdb.base.path
        hoodie.filesystem.view.secondary.type hoodie.filesystem.view.spillable.bootstrap.base.file.mem.fraction
        hoodie.filesystem.view.spillable.clustering.mem.fraction
        hoodie.filesystem.view.spillable.compaction.mem.fraction hoodie.filesystem.view.spillable.dir
        hoodie.filesystem.view.spillable.log.compaction.mem.fraction hoodie.filesystem.view.spillable.mem
        hoodie.filesystem.view.spillable.replaced.mem.fraction hoodie.filesystem.view.type
        hoodie.instant_state.timeline_server_based.enabled
        hoodie.instant_state.timeline_server_based.force_refresh.request.number
        hoodie.markers.timeline_server_based.batch.interval_ms hoodie.markers.timeline_server_based.batch.num_threads
    """,
    "markers: each data file has a file of its own, and a rollback goes by them": """
        hoodie.markers.delete.parallelism hoodie.rollback.using.markers hoodie.write.markers.type
    """,
    "rollbacks: the end record of an instant lets one process end it, and no copy of it is kept": """
        hoodie.rollback.avoid.duplicate.plan hoodie.rollback.instant.backup.dir hoodie.rollback.instant.backup.enabled
    """,
    "memory: hudistream.task.memory.bytes bounds what a task holds": """
        compaction.max_memory hoodie.cdc.file.group.iterator.memory.spill.bytes
        hoodie.common.diskmap.compression.enabled hoodie.common.spillable.diskmap.type
        hoodie.memory.compaction.fraction hoodie.memory.compaction.max.size hoodie.memory.dfs.buffer.max.size
        hoodie.memory.merge.fraction hoodie.memory.merge.max.size hoodie.memory.spillable.map.path
        hoodie.memory.writestatus.failure.fraction hoodie.write.buffer.limit.bytes
        hoodie.write.buffer.record.cache.limit hoodie.write.buffer.record.sampling.rate
        hoodie.write.executor.disruptor.buffer.limit.bytes hoodie.write.executor.disruptor.wait.strategy
        hoodie.write.executor.type write.batch.size write.buffer.size write.memory.segment.page.size
        write.merge.max_memory write.sort.memory write.task.max.size
    """,
    "tasks: as many as hoodie.upsert.shuffle.parallelism and its like say": """
        clustering.tasks hoodie.archive.delete.parallelism hoodie.errortable.insert.shuffle.parallelism
        hoodie.errortable.upsert.shuffle.parallelism hoodie.file.listing.parallelism
        hoodie.finalize.write.parallelism hoodie.global.index.reconcile.parallelism
        hoodie.global.simple.index.parallelism hoodie.rollback.parallelism hoodie.simple.index.parallelism
        hoodie.bloom.index.parallelism write.bucket_assign.tasks write.incremental.job.graph.generation
        write.index_bootstrap.tasks write.tasks
    """,
    "DataFrames: none is cached": """
        hoodie.bloom.index.input.storage.level hoodie.bloom.index.use.caching hoodie.record.index.input.storage.level
        hoodie.record.index.use.caching hoodie.release.resource.on.completion.enable
        hoodie.simple.index.input.storage.level hoodie.simple.index.use.caching hoodie.write.status.storage.level
        hoodie.write.tagged.record.storage.level
    """,
    "lookups: the task that merges a file looks for its keys, and remembers hudistream.index.cache.bytes": """
        hoodie.bloom.index.bucketized.checking hoodie.bloom.index.bucketized.checking.enable.dynamic.parallelism
        hoodie.bloom.index.fileid.key.sorting.enable hoodie.bloom.index.keys.per.bucket
        hoodie.bloom.index.use.treebased.filter index.bootstrap.enabled index.partition.regex index.state.ttl
    """,
    "buckets: their number is fixed": """
        hoodie.bucket.index.max.num.buckets hoodie.bucket.index.merge.threshold hoodie.bucket.index.min.num.buckets
        hoodie.bucket.index.partition.rule.type hoodie.bucket.index.remote.partitioner.enable
        hoodie.bucket.index.split.threshold
    """,
    "bulk inserts: sorted by hoodie.bulkinsert.sort.mode, or by the columns that are named": """
        hoodie.bulkinsert.are.partitioner.records.sorted hoodie.bulkinsert.schema.ddl
        hoodie.bulkinsert.sort.suffix.record_key hoodie.datasource.write.row.writer.enable
        write.bulk_insert.shuffle_by_partition write.bulk_insert.shuffle_input write.bulk_insert.sort_input
        write.bulk_insert.sort_input.by_record_key
    """,
    "inserts: small files are filled, up to hoodie.parquet.small.file.limit": """
        write.insert.cluster
    """,
    "sizes: the size of a row is measured, unless hoodie.copyonwrite.record.size.estimate says it": """
        _hoodie.record.size.estimator.max.commits hoodie.parquet.compression.ratio
        hoodie.record.size.estimator.average.metadata.size hoodie.record.size.estimator.class
    """,
    "speculation: spark.speculation=true is always refused": """
        hoodie.block.writes.on.speculative.execution
    """,
    "files: one commit names each, and none that a repeated task left": """
        hoodie.fail.job.on.duplicate.data.file.detection hoodie.merge.data.validation.enabled
        hoodie.write.merge.handle.fallback
    """,
    "keys: a table is continued as its keys are spelled": """
        hoodie.write.complex.keygen.validation.enable
    """,
    "versions before 6 are refused": """
        hoodie.skip.default.partition.validation
    """,
    "schemas: a batch whose columns do not fit is always refused, and an added column is nullable": """
        hoodie.avro.schema.external.transformation hoodie.avro.schema.externalTransformation hoodie.avro.schema.validate
        hoodie.datasource.write.new.columns.nullable
        hoodie.internal.write.schema.canonicalize hoodie.write.concurrency.schema.conflict.resolution.enable
    """,
    "services: what a failed one leads to is said by hudistream.clean.on.failure": """
        hoodie.fail.on.timeline.archiving hoodie.fail.writes.on.inline.table.service.exception
        hoodie.post.commit.failures.ignored hoodie.write.can.ignore.post.commit.failures
    """,
    "services: strategies and filters say what a plan looks at": """
        hoodie.table.services.incremental.enabled
    """,
    "conflicts: they are found when a batch completes, and it is written anew": """
        hoodie.write.concurrency.async.conflict.detector.initial_delay_ms
        hoodie.write.concurrency.async.conflict.detector.period_ms
        hoodie.write.concurrency.early.conflict.check.commit.conflict
        hoodie.write.concurrency.early.conflict.detection.enable
        hoodie.write.concurrency.early.conflict.detection.strategy
    """,
    "the batch is as large as Spark's source makes it": """
        write.rate.limit
    """,
    "the checksum is computed": """
        hoodie.table.checksum
    """,
    "instants: each time is greater than all before it, and created once": """
        _hoodie.time.generator.reuse.enable hoodie.time.generator.type
    """,
    "archival: it follows the commits": """
        hoodie.archive.async
    """,
    "archival: ten files of the archive become one, and three manifests stay": """
        hoodie.timeline.compaction.batch.size hoodie.timeline.compaction.target.file.max.bytes
        hoodie.timeline.manifest.retained.versions
    """,
    "files: base files are Parquet, and no ORC, HFile or Lance": """
        hoodie.hfile.block.size hoodie.hfile.compression.algorithm hoodie.hfile.max.file.size
        hoodie.lance.max.file.size hoodie.lance.write.allocator.size.bytes hoodie.lance.write.flush.byte.watermark
        hoodie.orc.block.size hoodie.orc.compression.codec hoodie.orc.max.file.size hoodie.orc.stripe.size
    """,
    "files: their Parquet has no bloom filter of its own, and no field ids": """
        hoodie.parquet.bloom.filter.enabled hoodie.parquet.field_id.write.enabled
    """,
    "files: their ids are UUIDs": """
        _hoodie.writes.fileid.encoding
    """,
    "bootstrap of foreign files, refused where its path is named": """
        hoodie.bootstrap.data.queries.only hoodie.bootstrap.full.input.provider hoodie.bootstrap.index.class
        hoodie.bootstrap.index.enable hoodie.bootstrap.index.type hoodie.bootstrap.mode.selector
        hoodie.bootstrap.mode.selector.regex hoodie.bootstrap.mode.selector.regex.mode
        hoodie.bootstrap.parallelism hoodie.bootstrap.partitionpath.translator.class
        hoodie.clean.delete.bootstrap.base.file hoodie.cleaner.delete.bootstrap.base.file
    """,
    "properties that a table gets by what it is": """
        hoodie.table.index.defs.path hoodie.table.initial.version hoodie.table.legacy.payload.class
        hoodie.table.log.file.format hoodie.table.metadata.partitions hoodie.table.metadata.partitions.inflight
        hoodie.table.partition_extractor_class hoodie.table.rt.file.format
        hoodie.table.secondary.indexes.metadata hoodie.timeline.history.path
    """,
    "cleaning: one clean at a time, planned in one process": """
        hoodie.clean.allow.multiple hoodie.clean.multiple.enabled hoodie.clean.optimize.using.local.engine.context
    """,
    "cleaning: a clean that has nothing to delete is not written": """
        hoodie.write.empty.clean.interval.hours
    """,
    "clustering: one group after another, planned in one process": """
        hoodie.clustering.group.read.parallelism hoodie.clustering.max.parallelism
        hoodie.clustering.plan.generation.use.local.engine.context
        hoodie.clustering.plan.strategy.binary.copy.schema.evolution.enable
    """,
    "clustering: a batch that changes rows of one that another job planned is refused": """
        hoodie.clustering.enable.expirations hoodie.clustering.expiration.threshold.mins
        hoodie.clustering.fail.on.pending.ingestion.during.conflict.resolution
    """,
    "clustering: a curve runs through the ranks of the values, not through their bits": """
        hoodie.layout.optimize.build.curve.sample.size hoodie.layout.optimize.curve.build.method
    """,
    "clustering: the order is on where sort columns are named": """
        hoodie.layout.optimize.data.skipping.enable hoodie.layout.optimize.enable
    """,
    "compaction: hoodie.compaction.strategy says which slices, and none waits for a time-out": """
        compaction.timeout.seconds hoodie.compaction.partition.path.regex
    """,
    "compaction: log files are not put together without their base file": """
        hoodie.log.compaction.blocks.threshold hoodie.log.compaction.enable hoodie.log.compaction.inline
    """,
    "Hudi's SQL: hoodie.datasource.write.operation says what a batch does": """
        hoodie.spark.sql.insert.into.operation hoodie.spark.sql.optimized.writes.enable hoodie.sql.bulk.insert.enable
        hoodie.sql.insert.mode
    """,
    "retries: a failed batch raises, and whoever runs it runs it again": """
        hoodie.datasource.write.streaming.retry.count hoodie.datasource.write.streaming.retry.interval.ms
        write.commit.ack.timeout write.retry.interval.ms write.retry.times
    """,
    "the streamer's error table, refused when enabled": """
        hoodie.errortable.base.path hoodie.errortable.source.rdd.persist hoodie.errortable.target.table.name
        hoodie.errortable.validate.recordcreation.enable hoodie.errortable.validate.targetschema.enable
        hoodie.errortable.write.class hoodie.errortable.write.failure.strategy
        hoodie.errortable.write.union.enable
    """,
    "event times: commits do not record them": """
        eventtime.field hoodie.payload.event.time.field hoodie.write.track.event.time.watermark
    """,
    "the HBase index, refused when named": """
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
    "the meta server, refused when enabled": """
        hoodie.metaserver.connect.retries hoodie.metaserver.connect.retry.delay hoodie.metaserver.uris
    """,
    "metrics: hudistream.metrics tells them": """
        hoodie.metrics.configs.properties hoodie.metrics.executor.enable hoodie.metrics.lock.enable hoodie.metrics.on
        hoodie.metrics.reporter.class hoodie.metrics.reporter.metricsname.prefix hoodie.metrics.reporter.type
        hoodie.metricscompaction.log.blocks.on
    """,
    "partition expiry, refused when enabled": """
        hoodie.partition.ttl.management.strategy.type hoodie.partition.ttl.strategy.class
        hoodie.partition.ttl.strategy.days.retain hoodie.partition.ttl.strategy.max.delete.partitions
        hoodie.partition.ttl.strategy.partition.selected
    """,
    "the JVM's validators, refused when named": """
        hoodie.precommit.validators.equality.sql.queries hoodie.precommit.validators.failure.policy
        hoodie.precommit.validators.inequality.sql.queries hoodie.precommit.validators.single.value.sql.queries
        hoodie.precommit.validators.streaming.offset.tolerance.percentage
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
    "locks of a metastore, refused when named": """
        hoodie.write.lock.heartbeat_interval_ms hoodie.write.lock.hivemetastore.database
        hoodie.write.lock.hivemetastore.table hoodie.write.lock.hivemetastore.uris
    """,
    "locks: their options hold as they are given, and a lock names its holder": """
        hoodie.auto.adjust.lock.configs hoodie.write.application.id
    """,
    "commits always record sink, query and batch": """
        hoodie.write.rolling.metadata.timeline.lookback.commits write.client.id write.extra.metadata.enabled
    """,
    "catalogs: a metastore is reached by thrift, without a user": """
        hive_sync.conf.dir hive_sync.jdbc_url hive_sync.password hive_sync.use_jdbc hive_sync.username
        hoodie.datasource.hive_sync.jdbcurl hoodie.datasource.hive_sync.password hoodie.datasource.hive_sync.use_jdbc
        hoodie.datasource.hive_sync.use_spark_catalog hoodie.datasource.hive_sync.username
    """,
    "catalogs: one that cannot be reached fails no batch, and the next sync catches up": """
        hive_sync.ignore_exceptions hoodie.datasource.hive_sync.ignore_exceptions
        hoodie.datasource.hive_sync.recreate_table_on_error
        hoodie.datasource.meta.sync.glue.recreate_table_on_error
    """,
    "catalogs: columns are registered without comments and buckets": """
        hoodie.datasource.hive_sync.bucket_sync_spec hoodie.datasource.hive_sync.sync_comment
    """,
    "catalogs: a sync reads the commits since the last one, and asks for a partition once": """
        hoodie.datasource.hive_sync.filter_pushdown_enabled hoodie.datasource.hive_sync.filter_pushdown_max_size
        hoodie.datasource.meta.sync.glue.all_partitions_read_parallelism
        hoodie.datasource.meta.sync.glue.changed_partitions_read_parallelism
        hoodie.datasource.meta.sync.glue.metadata_file_listing
        hoodie.datasource.meta.sync.glue.partition_change_parallelism
        hoodie.datasource.meta.sync.glue.partition_index_fields
        hoodie.datasource.meta.sync.glue.partition_index_fields.enable
        hoodie.meta.sync.metadata_file_listing hoodie.meta.sync.no_partition_metadata
        hoodie.meta.sync.touch.partitions.enabled hoodie.meta_sync.global.replicate.timestamp
        hoodie.meta_sync.spark.version
    """,
}

# settings of other programs: no list tells their names. Those of the key generator are listed
WITHOUT_EFFECT_EXCEPT = ("hoodie.streamer.keygen.", "hoodie.deltastreamer.keygen.")
WITHOUT_EFFECT_PREFIXES: Mapping[str, str] = MappingProxyType(
    {
        **{
            f"hoodie.metrics.{reporter}": "metrics: hudistream.metrics tells them"
            for reporter in ("cloudwatch", "datadog", "graphite", "jmx", "m3", "prometheus", "pushgateway")
        },
        **dict.fromkeys(
            ("hoodie.streamer.", "hoodie.deltastreamer."), "Hudi Streamer: another program, which runs by itself"
        ),
        **dict.fromkeys(
            ("hoodie.gcp.bigquery.sync.", "hoodie.meta.sync.datahub.", "hoodie.datahub.", "hoodie.onehouse."),
            "catalogs of other programs, refused where their sync tool is named",
        ),
        "properties.": "Kafka's clients: rows come from Spark's source, whose options they are",
        "hadoop.": "Hadoop's file systems: a store is reached by fsspec, with storage_options",
    }
)

WITHOUT_EFFECT: Mapping[str, str] = MappingProxyType(
    {key: reason for reason, keys in _GROUPS.items() for key in keys.split()}
)

# keys whose user may wait for what does not come, and the values that ask for nothing
MISSED: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "eventtime.field": (),
        "hive_sync.use_jdbc": ("false",),
        "hoodie.bulkinsert.sort.suffix.record_key": ("false",),
        "hoodie.clustering.enable.expirations": ("false",),
        "hoodie.datasource.hive_sync.recreate_table_on_error": ("false",),
        "hoodie.datasource.hive_sync.sync_comment": ("false",),
        "hoodie.datasource.hive_sync.use_jdbc": ("false",),
        "hoodie.datasource.hive_sync.use_spark_catalog": ("false",),
        "hoodie.datasource.meta.sync.glue.partition_index_fields.enable": ("false",),
        "hoodie.datasource.write.secondarykey.column": (),
        "hoodie.fail.on.timeline.archiving": ("false",),
        "hoodie.fail.writes.on.inline.table.service.exception": ("false",),
        "hoodie.log.compaction.enable": ("false",),
        "hoodie.log.compaction.inline": ("false",),
        "hoodie.meta.sync.touch.partitions.enabled": ("false",),
        "hoodie.metadata.compact.trigger.strategy": ("NUM_COMMITS",),
        "hoodie.metadata.index.async": ("false",),
        "hoodie.metadata.index.bloom.filter.enable": ("false",),
        "hoodie.metadata.index.expression.enable": ("false",),
        "hoodie.metadata.index.secondary.column": (),
        "hoodie.metrics.on": ("false",),
        "hoodie.payload.event.time.field": (),
        "hoodie.rollback.instant.backup.enabled": ("false",),
        "hoodie.write.concurrency.early.conflict.detection.enable": ("false",),
        "hoodie.write.empty.clean.interval.hours": ("-1", "0"),
        "hoodie.write.track.event.time.watermark": ("false",),
        "write.client.id": (),
        "write.rate.limit": ("0",),
    }
)

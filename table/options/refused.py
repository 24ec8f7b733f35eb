"""Keys that are refused unless their value agrees with what happens anyway (pure).

To ignore one of them would change rows, keys, what is private, or what is kept. A class of one's own may do any of
that.
"""

from types import MappingProxyType

from table.options.vocabulary import Refusals

_MERGERS = (
    "",
    "org.apache.hudi.common.model.HoodieAvroRecordMerger",
    "org.apache.hudi.HoodieSparkRecordMerger",
    "org.apache.hudi.DefaultSparkRecordMerger",
    "org.apache.hudi.OverwriteWithLatestSparkRecordMerger",
)

_CLASSES = "classes of one's own are not loaded"
_DELETES = "a row deletes its key where _hoodie_is_deleted is true"
_PARTIAL = "partial updates are made by the payload class PartialUpdateAvroPayload alone"
_PREPPED = "rows come without meta columns"
_CONFLICTS = "org.apache.hudi.client.transaction."
_UPDATES = "org.apache.hudi.client.clustering.update.strategy."
_SYNC = "hoodie.datasource.hive_sync."
_GLUE = "hoodie.datasource.meta.sync.glue."
_AWS = (
    "identity, region and endpoint come from the environment and profiles of boto3, such as AWS_PROFILE and AWS_REGION"
)
_AWS_NAMES = (
    "access.key", "secret.key", "session.token", "region", "glue.endpoint", "glue.region", "role.arn",
    "role.external.id", "role.session.name",
)  # fmt: skip

REFUSED: Refusals = MappingProxyType(
    {
        "hoodie.clean.trigger.strategy": (("NUM_COMMITS",), "cleaning is triggered by the number of commits"),
        "hoodie.auto.commit": (("true",), "the stream's checkpoint would advance without data"),
        "hoodie.table.base.file.format": (("PARQUET",), "base files are Parquet"),
        "hoodie.timeline.layout.version": (("1", "2"), "it follows from the table's version"),
        "hoodie.timeline.path": (("timeline",), "timelines of layout 2 lie in .hoodie/timeline"),
        "hoodie.datasource.write.drop.partition.columns": (("false",), "partition columns are kept in the files"),
        "hoodie.partition.metafile.use.base.format": (("false",), "partition metadata is text"),
        "hoodie.table.multiple.base.file.formats.enable": (("false",), "base files are Parquet"),
        "hoodie.allow.operation.metadata.field": (("false",), "the column _hoodie_operation is not written"),
        "hoodie.index.bucket.engine": (("SIMPLE",), "the number of buckets is fixed"),
        "hoodie.index.class": (("",), "indexes of one's own are not loaded"),
        "hoodie.storage.layout.type": (("DEFAULT", "BUCKET"), "the index decides where records go"),
        "hoodie.schema.on.read.enable": (("false",), "schema history is not kept"),
        "hoodie.datasource.write.schema.allow.auto.evolution.column.drop": (("false",), "columns are not dropped"),
        "hoodie.internal.schema": (("",), "the batch's own schema is written"),
        "hoodie.write.partial.update.schema": (("",), "partial updates are not written"),
        "hoodie.datasource.write.keygenerator.consistent.logical.timestamp.enabled": (
            ("false",),
            "timestamps as keys are not supported yet",
        ),
        "hoodie.parquet.outputtimestamptype": (("TIMESTAMP_MICROS",), "timestamps have microseconds"),
        "hoodie.parquet.writelegacyformat.enabled": (("false",), "the standard Parquet format is written"),
        "hoodie.record.merge.strategy.id": (
            ("eeb8d96f-b1e4-49fd-bbf8-28ac514178e5", "ce9acb64-bde0-424c-9b91-f6ebba25356d"),
            "mergers of one's own are not loaded",
        ),
        "hoodie.datasource.write.record.merger.impls": (_MERGERS, "mergers of one's own are not loaded"),
        "hoodie.write.record.merge.custom.implementation.classes": (_MERGERS, "mergers of one's own are not loaded"),
        "hoodie.archive.beyond.savepoint": (
            ("false",),
            "archival stops at the oldest savepoint, because a restore needs the commits after it",
        ),
        "write.utc-timezone": (("true",), "times are instants, and are written in UTC"),
        "hoodie.bootstrap.base.path": (("",), "bootstrapped tables are not written"),
        "hoodie.errortable.enable": (("false",), "there is no error table"),
        "hoodie.precommit.validators": (("",), "validators of the JVM are not run"),
        "hoodie.write.commit.callback.on": (("false",), "callbacks of the JVM are not called"),
        "hoodie.client.init.callback.classes": (("",), "callbacks of the JVM are not called"),
        "hoodie.datasource.write.commitmeta.key.prefix": (
            ("_",),
            "options are not copied into commits",
        ),
        "hoodie.datasource.overwrite.mode": (
            ("DYNAMIC",),
            (
                "insert_overwrite replaces the partition paths that rows come for; for the whole table set "
                "hoodie.datasource.write.operation=insert_overwrite_table"
            ),
        ),
        "write.buffer.sort.enabled": (("false",), "upserts and inserts are not sorted within a file"),
        "write.buffer.sort.keys": (("",), "upserts and inserts are not sorted within a file"),
        "compaction.sequence": (("FIFO",), "compactions are carried out in the order of their requests"),
        "hoodie.clustering.plan.strategy.class": (
            ("org.apache.hudi.client.clustering.plan.strategy.SparkSizeBasedClusteringPlanStrategy",),
            "files are chosen by size; choose partition paths by hoodie.clustering.plan.partition.filter.mode",
        ),
        "hoodie.clustering.execution.strategy.class": (
            ("org.apache.hudi.client.clustering.run.strategy.SparkSortAndSizeExecutionStrategy",),
            "the rows of a group are sorted, and split by size",
        ),
        "hoodie.partition.ttl.inline": (("false",), "partitions do not expire here"),
        "hoodie.metaserver.enabled": (("false",), "the timeline is files"),
        "hoodie.table.service.manager.enabled": (("false",), "table services run here"),
        "hoodie.bulkinsert.overwrite.operation.type": (
            ("",),
            "set hoodie.datasource.write.operation=insert_overwrite or insert_overwrite_table instead",
        ),
        "hoodie.static.overwrite.partition.paths": (
            ("",),
            "insert_overwrite replaces the partition paths that rows come for, delete_partition those that it names",
        ),
        "hoodie.datasource.hive_sync.create_managed_table": (
            ("false",),
            "a catalog that owns a table deletes its files when it is dropped there",
        ),
        "hoodie.datasource.write.streaming.ignore.failed.batch": (("false",), "a failed batch raises"),
        "changelog.enabled": (("false",), "intermediate changes are not kept"),
        "partition.default_name": (
            ("__HIVE_DEFAULT_PARTITION__",),
            "readers take no other folder for the one of rows without a partition value",
        ),
        "write.partition.format": (("",), "partition values are written as they are"),
        "hoodie.datasource.write.slash.separated.date.partitioning": (
            ("false",),
            "the timestamp key generator makes paths of days: set hoodie.keygen.timebased.output.dateformat=yyyy/MM/dd",
        ),
        "hoodie.payload.delete.field": (("", "_hoodie_is_deleted"), _DELETES),
        "hoodie.payload.delete.marker": (("", "true"), _DELETES),
        "hoodie.record.merge.property.hoodie.payload.delete.field": (("", "_hoodie_is_deleted"), _DELETES),
        "hoodie.record.merge.property.hoodie.payload.delete.marker": (("", "true"), _DELETES),
        "hoodie.write.partial.update.unavailable.value": (("",), _PARTIAL),
        "hoodie.record.merge.property.hoodie.write.partial.update.unavailable.value": (("",), _PARTIAL),
        "hoodie.table.partial.update.mode": (("",), _PARTIAL),
        "hoodie.spark.sql.merge.into.partial.updates": (("false", "true"), "MERGE INTO does not run here"),
        "_hoodie.spark.sql.writes.prepped": (("false",), _PREPPED),
        "_hoodie.spark.sql.merge.into.prepped": (("false",), _PREPPED),
        "hoodie.table.format": (("native",), "Hudi's own format is written"),
        "hoodie.write.ignore.failed": (("false",), "a failed batch raises"),
        "hoodie.prewrite.validators": (("",), "validators of the JVM are not run"),
        "hoodie.prewrite.cleaner.policy": (
            ("NONE", "ROLLBACK_FAILED_WRITES"),
            "what failed writes left is rolled back before each batch, and cleaning follows commits",
        ),
        "hoodie.write.rolling.metadata.keys": (("",), "commits carry nothing on but what the sink records"),
        "hoodie.bulkinsert.user.defined.partitioner.class": (
            (
                "",
                "org.apache.hudi.execution.bulkinsert.RDDCustomColumnsSortPartitioner",
                "org.apache.hudi.execution.bulkinsert.RowCustomColumnsSortPartitioner",
            ),
            f"{_CLASSES}; name the columns in hoodie.bulkinsert.user.defined.partitioner.sort.columns",
        ),
        "hoodie.fileid.prefix.provider.class": (("org.apache.hudi.table.RandomFileIdPrefixProvider",), _CLASSES),
        "hoodie.write.merge.handle.class": (
            ("org.apache.hudi.io.HoodieWriteMergeHandle", "org.apache.hudi.io.FileGroupReaderBasedMergeHandle"),
            _CLASSES,
        ),
        "hoodie.compact.merge.handle.class": (("org.apache.hudi.io.FileGroupReaderBasedMergeHandle",), _CLASSES),
        "hoodie.write.concat.handle.class": (("org.apache.hudi.io.HoodieConcatHandle",), _CLASSES),
        "hoodie.writestatus.class": (("org.apache.hudi.client.WriteStatus",), _CLASSES),
        "hoodie.avro.write.support.class": (("org.apache.hudi.avro.HoodieAvroWriteSupport",), _CLASSES),
        "hoodie.parquet.spark.row.write.support.class": (
            ("org.apache.hudi.io.storage.row.HoodieRowParquetWriteSupport",),
            _CLASSES,
        ),
        "hoodie.parquet.flink.rowdata.write.support.class": (
            ("org.apache.hudi.io.storage.row.HoodieRowDataParquetWriteSupport",),
            _CLASSES,
        ),
        "hoodie.parquet.write.config.injector.class": (("",), f"{_CLASSES}, and files are not encrypted"),
        "hoodie.io.factory.class": (
            (
                "org.apache.hudi.io.storage.hadoop.HoodieHadoopIOFactory",
                "org.apache.hudi.io.hadoop.HoodieHadoopIOFactory",
            ),
            _CLASSES,
        ),
        "hoodie.storage.class": (("org.apache.hudi.storage.hadoop.HoodieHadoopStorage",), _CLASSES),
        "hoodie.keygen.datetime.parser.class": (("org.apache.hudi.keygen.parser.HoodieDateTimeParser",), _CLASSES),
        "hoodie.compaction.plan.generator": (
            ("org.apache.hudi.table.action.compact.plan.generators.HoodieCompactionPlanGenerator",),
            f"{_CLASSES}; hoodie.compaction.strategy says which slices are compacted",
        ),
        "hoodie.storage.layout.partitioner.class": (
            ("", "org.apache.hudi.table.action.commit.SparkBucketIndexPartitioner"),
            "the index decides where records go",
        ),
        "hoodie.bucket.index.partition.expressions": (("",), "all partition paths have the same number of buckets"),
        "hoodie.write.lock.conflict.resolution.strategy": (
            (
                f"{_CONFLICTS}SimpleConcurrentFileWritesConflictResolutionStrategy",
                f"{_CONFLICTS}BucketIndexConcurrentFileWritesConflictResolutionStrategy",
                f"{_CONFLICTS}PreferWriterConflictResolutionStrategy",
            ),
            "two commits conflict if they change the same file group",
        ),
        "hoodie.clustering.updates.strategy": (
            (
                f"{_UPDATES}SparkRejectUpdateStrategy",
                f"{_UPDATES}JavaRejectUpdateStrategy",
                f"{_UPDATES}FlinkRejectUpdateStrategy",
            ),
            "a batch that changes rows of a clustering of another job is refused; one of its own stream ends first",
        ),
        "hoodie.clustering.rollback.pending.replacecommit.on.conflict": (
            ("false",),
            "a clustering that another job planned is its own to end",
        ),
        "_.hoodie.allow.multi.write.on.same.instant": (("false",), "each batch has an instant of its own"),
        "hoodie.internal.sql.merge.into.writes": (("false",), _PREPPED),
        "hoodie.clustering.plan.strategy.earliest.commit.to.cluster": (
            ("",),
            "files are chosen by size; choose partition paths by hoodie.clustering.plan.partition.filter.mode",
        ),
        "hoodie.clustering.plan.strategy.file.slices.sort.by": (("SIZE",), "files of a group are taken by size"),
        "hoodie.metadata.index.column.stats.column.list": (
            ("",),
            (
                "statistics are of the first 32 columns: those of chosen columns make Hudi's own filters lose rows. "
                "Where a column must not have any, set hoodie.metadata.index.column.stats.enable=false"
            ),
        ),
        "hoodie.metadata.index.column.stats.max.columns.to.index": (
            ("32",),
            "statistics are of the first 32 columns; without any: hoodie.metadata.index.column.stats.enable=false",
        ),
        "hoodie.metadata.record.level.index.enable": (
            ("false",),
            "a record index of partition paths is not written; set hoodie.metadata.global.record.level.index.enable",
        ),
        "hoodie.metadata.dir.filter.regex": (("",), "lists of files that lack folders would hide rows"),
        "hoodie.metadata.table.service.manager.enabled": (("false",), "table services run here"),
        "hoodie.parquet.write.utc-timezone.enabled": (("true",), "times are instants, and are written in UTC"),
        "source.avro-schema.path": (("",), "give the schema's text: hoodie.avro.schema"),
        f"{_SYNC}assume_date_partitioning": (
            ("false",),
            f"name the extractor: {_SYNC}partition_extractor_class=SlashEncodedDayPartitionValueExtractor",
        ),
        f"{_SYNC}base_file_format": (("PARQUET",), "base files are Parquet"),
        f"{_SYNC}use_pre_apache_input_format": (("false",), "no reader of Hudi before Apache reads these tables"),
        f"{_SYNC}sync_as_datasource": (("true",), "tables are registered for Spark, too"),
        f"{_SYNC}bucket_sync": (("false",), "the buckets of Hive are other ones than those of a bucket index"),
        f"{_GLUE}catalogId": (("",), "tables are registered in the catalog of the account in use"),
        f"{_GLUE}resource_tags": (("",), "databases and tables are registered without tags"),
        f"{_GLUE}skip_table_archive": (("true",), "Glue keeps no earlier version of a registration"),
        **{f"hoodie.aws.{name}": (("",), _AWS) for name in _AWS_NAMES},
    }
)

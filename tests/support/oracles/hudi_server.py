"""Real Hudi in a process of its own: reads one JSON command a line, answers one JSON line.

Run as a script by `tests/support/oracles/hudi.py`; our side of the tests runs in a Spark without any JAR.
"""

import base64
import datetime
import decimal
import json
import os
import sys
import traceback

BUNDLE = "org.apache.hudi:hudi-spark3.5-bundle_2.12:"  # and the version, which comes as an argument
# what a JVM writer must set to share a table of version 6
SHARING = {
    "hoodie.write.table.version": "6",
    "hoodie.write.auto.upgrade": "false",
    "hoodie.metadata.enable": "false",
}


def start():
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[2]").appName("hudi-oracle")
    for key, value in {
        "spark.jars.packages": BUNDLE + sys.argv[1],
        "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
        "spark.kryo.registrator": "org.apache.spark.HoodieSparkKryoRegistrar",
        "spark.sql.extensions": "org.apache.spark.sql.hudi.HoodieSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.hudi.catalog.HoodieCatalog",
        "spark.ui.enabled": "false",
        # lists with null elements, which its older list form cannot hold
        "spark.hadoop.parquet.avro.write-old-list-structure": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.session.timeZone": "UTC",
        "spark.driver.memory": "2g",
        "spark.driver.extraJavaOptions": "-Duser.timezone=UTC",
        "spark.ui.showConsoleProgress": "false",
    }.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def plain(value):
    if isinstance(value, decimal.Decimal):
        return str(value)
    if isinstance(value, datetime.datetime):
        return value.isoformat(timespec="microseconds")
    if isinstance(value, datetime.date):
        return value.isoformat()
    if isinstance(value, (bytes, bytearray)):
        return base64.b64encode(bytes(value)).decode()
    if hasattr(value, "asDict"):
        return {key: plain(item) for key, item in value.asDict().items()}
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value


def do_read(spark, path, options=None, columns=None, where=None):
    frame = spark.read.format("hudi").options(**{"hoodie.metadata.enable": "false", **(options or {})}).load(path)
    if where:
        frame = frame.where(where)
    if columns:
        frame = frame.select(*columns)
    return [plain(row) for row in frame.collect()]


def do_write(spark, path, parquet, options, mode="append"):
    frame = spark.read.parquet(parquet)
    frame.write.format("hudi").options(**{**SHARING, **options}).mode(mode).save(path)
    return True


def do_sql(spark, statements):
    for key, value in SHARING.items():
        spark.conf.set(key, value)
    return [[plain(row) for row in spark.sql(statement).collect()] for statement in statements]


def do_client(spark, path, method, arguments=(), options=None):
    """A method of Hudi's write client: clean, savepoint, archive …"""
    jvm = spark._jvm
    properties = jvm.java.util.Properties()
    for key, value in {**SHARING, "hoodie.table.name": "t", **(options or {})}.items():
        properties.setProperty(key, value)
    config = jvm.org.apache.hudi.config.HoodieWriteConfig.newBuilder().withPath(path).withProperties(properties).build()
    context = jvm.org.apache.hudi.client.common.HoodieSparkEngineContext(
        jvm.org.apache.spark.api.java.JavaSparkContext(spark.sparkContext._jsc.sc())
    )
    client = jvm.org.apache.hudi.client.SparkRDDWriteClient(context, config)
    try:
        if method == "schedule_clean":
            service = jvm.org.apache.hudi.common.model.TableServiceType.CLEAN
            return str(client.scheduleTableService(jvm.org.apache.hudi.common.util.Option.empty(), service))
        if method == "archived_commits":
            builder = jvm.org.apache.hudi.common.table.HoodieTableMetaClient.builder()
            storage = jvm.org.apache.hudi.hadoop.fs.HadoopFSUtils.getStorageConf(
                spark.sparkContext._jsc.hadoopConfiguration()
            )
            meta = builder.setConf(storage).setBasePath(path).build()
            return [instant.toString() for instant in meta.getArchivedTimeline().getInstants()]
        return str(getattr(client, method)(*arguments))
    finally:
        client.close()


def do_buckets(spark, keys, fields, buckets):
    """Hudi's bucket of each key."""
    identifier = spark._jvm.org.apache.hudi.index.bucket.BucketIdentifier
    return [identifier.getBucketId(key, ",".join(fields), buckets) for key in keys]


def main():
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # the JVM inherits descriptor 1, and must not write into our answers
    spark = start()
    print(json.dumps({"ready": True}), file=answers, flush=True)
    for line in sys.stdin:
        command = json.loads(line)
        try:
            result = globals()["do_" + command.pop("do")](spark, **command)
            answer = {"ok": result}
        except Exception:
            answer = {"error": traceback.format_exc()}
        print(json.dumps(answer), file=answers, flush=True)
    spark.stop()


if __name__ == "__main__":
    main()

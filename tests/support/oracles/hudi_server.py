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
from functools import reduce

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
        "spark.jars.packages": ",".join([BUNDLE + sys.argv[1], *sys.argv[2:]]),
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
    learn_delete_records(spark._jvm)
    return spark


def learn_delete_records(jvm):
    """Has Avro look for the class of delete records now. It keeps the answer.

    The first one to ask may be a thread that does not see the bundle. Then no log with deletes can be read any more.
    """
    loader, model = jvm.java.lang.Thread.currentThread().getContextClassLoader(), "org.apache.hudi.avro.model."
    for name in ("HoodieDeleteRecordList", "HoodieDeleteRecord"):
        known = jvm.org.apache.avro.specific.SpecificData.getForClass(
            jvm.java.lang.Class.forName(model + name, True, loader)
        )
        found = known.getClass(jvm.org.apache.hudi.avro.model.HoodieDeleteRecord.getClassSchema())
        assert found.getName() == model + "HoodieDeleteRecord", found


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
        frame = frame.selectExpr(*columns)
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


def do_options(spark, classes=None):
    """The options that classes of the bundle declare."""
    from config_keys import PACKAGE, find_classes, read_keys

    if classes is None:
        [bundle] = [jar for jar in do_jars(spark) if BUNDLE.split(":")[1] in jar]
        classes = find_classes(bundle.removeprefix("file://"))
    else:
        classes = [PACKAGE + name for name in classes]
    loader = spark._jvm.java.lang.Thread.currentThread().getContextClassLoader()
    return read_keys(spark._jvm, loader, classes)


LOCKS = {}  # name -> a lock provider


def do_lock(spark, name, method, options=None, wait_ms=0):
    """A method of one of Hudi's lock providers: make, try, unlock, close."""
    jvm = spark._jvm
    if method == "make":
        properties = jvm.java.util.Properties()
        for key, value in options.items():
            properties.setProperty(key, value)
        config = jvm.org.apache.hudi.common.config.LockConfiguration(properties)
        storage = jvm.org.apache.hudi.hadoop.fs.HadoopFSUtils.getStorageConf(
            spark.sparkContext._jsc.hadoopConfiguration()
        )
        made = reduce(getattr, options["hoodie.write.lock.provider"].split("."), jvm)
        LOCKS[name] = made(config, storage)
        return True
    provider = LOCKS[name]
    if method == "held":
        held = provider.getLock()
        return None if held is None else {"owner": held.getOwner(), "valid_until_ms": held.getValidUntilMs()}
    if method == "try":
        return provider.tryLock(wait_ms, jvm.java.util.concurrent.TimeUnit.MILLISECONDS)
    getattr(provider, method)()
    return True


def do_jars(spark):
    """What the bundle came with."""
    return spark.sparkContext.getConf().get("spark.jars").split(",")


def do_add_jar(spark, path):
    """Lets the driver find classes of a JAR."""
    jvm = spark._jvm
    url = jvm.java.io.File(path).toURI().toURL()
    jvm.java.lang.Thread.currentThread().getContextClassLoader().addURL(url)
    return True


def do_set_hadoop(spark, settings):
    """Settings of Hadoop, before a file system is used that they are for."""
    for key, value in settings.items():
        spark.sparkContext._jsc.hadoopConfiguration().set(key, value)
    return True


def do_aws_lock(spark, name, method, key="", endpoint="", table="", lease_ms=0, wait_ms=0):
    """The client of DynamoDB's locks with which Hudi's DynamoDBBasedLockProvider works, with its parameters."""
    jvm = spark._jvm
    locks = jvm.com.amazonaws.services.dynamodbv2
    milliseconds = jvm.java.util.concurrent.TimeUnit.MILLISECONDS
    if method == "make":
        sdk = jvm.software.amazon.awssdk
        credentials = sdk.auth.credentials
        keys = credentials.StaticCredentialsProvider.create(credentials.AwsBasicCredentials.create("test", "test"))
        dynamodb = (
            sdk.services.dynamodb.DynamoDbClient.builder()
            .endpointOverride(jvm.java.net.URI.create(endpoint))
            .region(sdk.regions.Region.of("us-east-1"))
            .credentialsProvider(keys)
            .httpClientBuilder(sdk.http.apache.ApacheHttpClient.builder())
            .build()
        )
        options = (
            locks.AmazonDynamoDBLockClientOptions.builder(dynamodb, table)
            .withTimeUnit(milliseconds)
            .withLeaseDuration(lease_ms)
            .withHeartbeatPeriod(lease_ms // 3)
            .withCreateHeartbeatBackgroundThread(True)
            .build()
        )
        LOCKS[name] = [locks.AmazonDynamoDBLockClient(options), None]
        return True
    client, held = LOCKS[name]
    if method == "unlock":
        return client.releaseLock(held)
    if method == "is_expired":
        return held.isExpired()
    if method == "close":
        client.close()
        return True
    wanted = locks.AcquireLockOptions.builder(key).withAdditionalTimeToWaitForLock(wait_ms).withTimeUnit(milliseconds)
    found = client.tryAcquireLock(wanted.build())
    if found.isPresent():
        LOCKS[name][1] = found.get()
    return found.isPresent()


def do_address_hash(spark, address):
    """Hudi's hash of a table's address."""
    return (
        spark._jvm.org.apache.hudi.client.transaction.lock.ZookeeperBasedImplicitBasePathLockProvider.getLockBasePath(
            address
        )
    )


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

"""Asks Spark with Hudi's bundle through a metastore. Arguments: bundle, address of the metastore, queries as JSON."""

import json
import sys

from pyspark.sql import SparkSession

bundle, address, queries = sys.argv[1:]
spark = (
    SparkSession.builder.master("local[2]")
    .config("spark.jars.packages", bundle)
    .config("spark.serializer", "org.apache.spark.serializer.KryoSerializer")
    .config("spark.kryo.registrator", "org.apache.spark.HoodieSparkKryoRegistrar")
    .config("spark.sql.extensions", "org.apache.spark.sql.hudi.HoodieSparkSessionExtension")
    .config("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.hudi.catalog.HoodieCatalog")
    .config("spark.sql.shuffle.partitions", "2")
    .config("spark.ui.enabled", "false")
    .config("spark.hadoop.hive.metastore.uris", address)
    .config("spark.driver.memory", "1g")
    .enableHiveSupport()
    .getOrCreate()
)
spark.sparkContext.setLogLevel("ERROR")
print(json.dumps([[list(row) for row in spark.sql(query).collect()] for query in json.loads(queries)]))
spark.stop()

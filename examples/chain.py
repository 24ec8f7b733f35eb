"""Two tables in a chain: events arrive in bronze, and silver follows bronze. No JAR, exactly once. Needs Spark 4.2.

    python examples/chain.py FOLDER

Events are JSON files in FOLDER/incoming; some are made where there are none. Stop the program whenever you like, put
more files there, and start it again: each stage goes on where it was. `docs/guides/chain.md` says why nothing is lost.
"""

import json
import os
import sys

from pyspark.sql import SparkSession
from pyspark.sql.streaming import DataStreamWriter

from hudistream import HudiSink, as_upserts, read_hudi


def bronze(spark: SparkSession, folder: str) -> DataStreamWriter:
    """Every order as it arrived, the newest event of each; an event may delete its order."""
    events = spark.readStream.schema("id STRING, customer STRING, cents BIGINT, ts BIGINT, _hoodie_is_deleted BOOLEAN")
    sink = HudiSink(
        f"{folder}/bronze",
        # silver may be this many commits late
        {"hoodie.clean.commits.retained": "50"},
        key="id",
        order_by="ts",
    )
    arriving = events.option("maxFilesPerTrigger", 1).json(f"{folder}/incoming")
    return arriving.writeStream.foreachBatch(sink).option("checkpointLocation", f"{folder}/checkpoints/bronze")


def silver(spark: SparkSession, folder: str) -> DataStreamWriter:
    """Orders of real customers, in euros."""
    changes = spark.readStream.format("hudistream").options(deletes="true", before="true", max_instants_per_batch="5")
    real = changes.option("where", '[["customer", "!=", "test"]]').load(f"{folder}/bronze")
    orders = as_upserts(real, moved_by="customer").selectExpr(
        "id",
        "upper(trim(customer)) AS customer",
        "CAST(cents / 100 AS DECIMAL(12, 2)) AS euros",
        "ts",
        "_hoodie_is_deleted",
    )
    sink = HudiSink(f"{folder}/silver", key="id", partition_by="customer", order_by="ts")
    return orders.writeStream.foreachBatch(sink).option("checkpointLocation", f"{folder}/checkpoints/silver")


def make_events(folder: str, files: int = 6, events: int = 200) -> None:
    """Files of events; an order changes from file to file, and is deleted in some of them."""
    os.makedirs(f"{folder}/incoming", exist_ok=True)
    for number in range(files):
        lines = []
        for event in range(events):
            order = (number * events // 2 + event) % (events * 2)
            customer = ["ada", " bob ", "test"][order % 3]
            cents = 100 * order + number
            row = {"id": f"o{order}", "customer": customer, "cents": cents, "ts": number}
            lines.append(json.dumps({**row, "_hoodie_is_deleted": (order + number) % 5 == 0}))
        # Spark must not see half of a file
        with open(f"{folder}/incoming/.{number:04d}", "w", encoding="utf-8") as file:
            file.write("\n".join(lines))
        # Spark reads files in the order of their times: a delete that came before its order would delete nothing
        os.utime(f"{folder}/incoming/.{number:04d}", (1_767_225_600 + number,) * 2)
        os.replace(f"{folder}/incoming/.{number:04d}", f"{folder}/incoming/{number:04d}.json")


def main() -> None:
    """Runs both stages over what is there."""
    folder = os.path.abspath(sys.argv[1])
    if not os.path.exists(f"{folder}/incoming"):
        make_events(folder)
    spark = SparkSession.builder.config("spark.ui.enabled", "false").getOrCreate()
    for stage in (bronze, silver):
        stage(spark, folder).trigger(availableNow=True).start().awaitTermination()
    for name in ("bronze", "silver"):
        print(name, read_hudi(spark, f"{folder}/{name}").count())
    spark.stop()


if __name__ == "__main__":
    main()

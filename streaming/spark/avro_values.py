"""Avro values of Kafka as JSON text, for topics with a schema registry."""

import base64
from collections.abc import Mapping
from functools import partial

from pyspark.sql import DataFrame
from pyspark.sql.types import StringType, StructField, StructType

from streaming.spark.carried import carried
from streaming.task.registry import Registry, read_values
from table.errors import InvalidConfigError


def avro_to_json(
    frame: DataFrame,
    registry: str,
    *,
    column: str = "value",
    user: tuple[str, str] | None = None,
    headers: Mapping[str, str] | None = None,
) -> DataFrame:
    """Decodes the Avro values of a topic whose schemas are in a schema registry.

    ``rows = debezium(avro_to_json(kafka, "http://registry:8081"), "id bigint, customer string, amount decimal(12,2)")``

    Each value is read with the schema that it was written with, so a topic may have values of many versions. The tasks
    ask the registry for a schema once in each Python process. Decoding is a loop of Python: an event with nine
    columns before and after the change takes some 50 microseconds.

    Args:
        frame: of Spark's Kafka source, or another one with such a column.
        registry: address of the registry, with Confluent's interface: ``http://host:8081``.
        column: of bytes, as Confluent's serializers write them (a byte 0, the schema's number, the record).
        user: name and secret, for basic authentication.
        headers: of each request, such as ``Authorization``. They are part of the plan that Spark sends to its nodes.

    Returns:
        The frame, with the column as JSON text: decimals as text, times of Avro's logical types in ISO form, bytes in
        Base64, null where the value is null.

    Raises:
        InvalidConfigError: there is no such column of bytes, or the address is none. In the batch: the registry does
            not answer or refuses.
        InvalidRecordError: in the batch: a value cannot be read. The error names topic, partition and offset.
    """
    fields = {each.name: each for each in frame.schema.fields}
    if column not in fields or fields[column].dataType.typeName() != "binary":
        has = ", ".join(f"{name} {each.dataType.simpleString()}" for name, each in fields.items())
        raise InvalidConfigError(
            f"the frame has no column {column!r} of bytes (it has {has}): give the frame of Spark's Kafka source, "
            "before it is changed, or name the column"
        )
    if not registry.startswith(("http://", "https://")):
        raise InvalidConfigError(f"registry={registry!r}: give its address, as http://host:8081")
    sent = dict(headers or {})
    if user is not None:
        sent["Authorization"] = "Basic " + base64.b64encode(":".join(user).encode()).decode()
    schema = StructType(
        [StructField(column, StringType()) if each.name == column else each for each in frame.schema.fields]
    )
    return frame.mapInArrow(carried(partial(read_values, Registry(registry, sent), column)), schema)

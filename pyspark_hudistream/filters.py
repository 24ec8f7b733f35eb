"""Translates the filters that Spark passes to a Python source into terms of a scan (pure).

Spark applies the filters to every row again. A term only skips files, so a filter that may differ is left out.
"""

from typing import Any

import pyarrow as pa

from streaming.spark.same_comparison import compares_alike

# classes of pyspark.sql.datasource, from Spark 4.1 on
_OPERATORS = {
    "EqualTo": "=",
    "GreaterThan": ">",
    "GreaterThanOrEqual": ">=",
    "LessThan": "<",
    "LessThanOrEqual": "<=",
    "In": "in",
}


def term_of(found: Any, schema: pa.Schema) -> tuple[str, str, Any] | None:
    """Translates a filter to a term.

    Args:
        found: a ``pyspark.sql.datasource.Filter``.
        schema: the table's columns (Arrow).

    Returns:
        None where no term means the same to Arrow and to Spark.
    """
    operator = _OPERATORS.get(type(found).__name__)
    if operator is None or len(found.attribute) != 1 or found.attribute[0] not in schema.names:
        return None
    name = found.attribute[0]
    value = [one for one in found.value if one is not None] if operator == "in" else found.value
    return (name, operator, value) if compares_alike(schema.field(name).type, operator, value) else None

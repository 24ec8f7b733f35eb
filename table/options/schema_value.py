"""The value of an option that is an Avro schema (pure)."""

from dataclasses import dataclass
from typing import Any

from table.errors import HudiError
from table.options.values import refuse
from table.schema.avro_schema import from_avro


@dataclass(frozen=True)
class AvroSchema:
    """The Avro schema of a record, as JSON text."""

    allowed: str = "an Avro record schema as JSON"

    def read(self, name: str, value: Any) -> str | None:
        """The text; None if it is empty."""
        if not isinstance(value, str):
            refuse(name, value, "must be an Avro record schema as JSON text")
        if not value.strip():
            return None
        try:
            from_avro(value)
        except (HudiError, ValueError, KeyError, TypeError, AttributeError) as error:
            refuse(name, value, f"no Avro schema of a record that can be stored: {error}")
        return value.strip()

"""Quotes names and texts for Spark SQL; no other module does so (pure)."""


def quote_name(name: str) -> str:
    """A column name as a Spark SQL identifier."""
    return "`" + name.replace("`", "``") + "`"


def quote_text(text: str) -> str:
    """A string as a Spark SQL literal.

    A dollar sign is written as an escape with its number: before Spark parses SQL, it replaces variables such as
    ``${env:HOME}``, also within literals.
    """
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'").replace("$", "\\u0024") + "'"

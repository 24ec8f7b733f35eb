"""Names and texts as Spark SQL spells them: the only place where either becomes SQL (pure)."""


def quote_name(name: str) -> str:
    """A column name in Spark SQL."""
    return "`" + name.replace("`", "``") + "`"


def quote_text(text: str) -> str:
    """A string in Spark SQL.

    A dollar sign is spelled by its number: before Spark parses SQL it puts variables in, ``${env:HOME}`` for one,
    within literals, too.
    """
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'").replace("$", "\\u0024") + "'"

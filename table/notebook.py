"""How values look in a notebook: a small table of their facts (pure)."""

from collections.abc import Iterable, Mapping
from dataclasses import fields
from html import escape
from typing import Any, cast

_MOST = 400  # characters of one fact


def facts_html(title: str, facts: Iterable[tuple[str, Any]]) -> str:
    """A table of facts; all text is escaped, because partition values and messages come from outside.

    Args:
        title: the title of the table.
        facts: names and values.
    """
    rows = "".join(f"<tr><th>{escape(name)}</th><td>{escape(_text(value))}</td></tr>" for name, value in facts)
    return f"<table><caption>{escape(title)}</caption>{rows}</table>"


def _text(value: Any) -> str:
    if isinstance(value, (tuple, list, frozenset, set)):
        value = ", ".join(map(str, value))
    elif isinstance(value, Mapping):
        value = ", ".join(f"{key}: {one}" for key, one in value.items())
    text = f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
    return text if len(text) <= _MOST else f"{text[:_MOST]}…"


class ShownInNotebooks:
    """A dataclass that a notebook shows as a table of its fields, without empty ones, zeros and `False`."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        told = fields(cast("Any", self))
        facts = [(field.name, getattr(self, field.name)) for field in told if field.repr]
        said = [(name, value) for name, value in facts if value not in (None, "", 0, False, (), {}, frozenset())]
        return facts_html(type(self).__name__, said)

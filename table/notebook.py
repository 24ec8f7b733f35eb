"""How values look in a notebook: a small table of their facts (pure)."""

from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from html import escape
from typing import Any, cast

_MOST = 400  # characters of one fact
_FEW = 5  # parts of a value in one line


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


def _short(value: Any) -> str:
    """A value within one line: of a value with many parts, their number."""
    if isinstance(value, (tuple, list, frozenset, set, Mapping)) and len(value) > _FEW:
        return f"<{len(value):,}>"
    if is_dataclass(value):
        return f"<{type(value).__name__}>"
    return repr(value)


class ShownInNotebooks:
    """A dataclass (``repr=False``) that shows its fields without empty ones, zeros and `False`.

    A notebook shows a table, and `repr` one line.
    """

    __slots__ = ()

    def _repr_html_(self) -> str:
        return facts_html(type(self).__name__, self._said())

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={_short(value)}" for name, value in self._said())
        return f"{type(self).__name__}({shown})"

    def _said(self) -> list[tuple[str, Any]]:
        facts = [(field.name, getattr(self, field.name)) for field in fields(cast("Any", self)) if field.repr]
        return [(name, value) for name, value in facts if value not in (None, "", 0, False, (), {}, frozenset())]

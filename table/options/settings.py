"""The base of all groups of options, which check their values on construction (pure)."""

import inspect
import re
from dataclasses import dataclass, field, fields
from typing import Any

from table.errors import InvalidConfigError
from table.options.values import Kind


def option(default: Any, kind: Kind) -> Any:
    """A field of a group.

    Args:
        default: the value if none is given. None means "not given"; the field accepts it only if it is the default.
        kind: the kind of the field's values.
    """
    return field(default=default, metadata={"kind": kind})


@dataclass(frozen=True)
class Settings:
    """A group of options. Text is accepted wherever the option's key accepts it, and becomes the typed value.

    Raises:
        InvalidConfigError: a value does not fit; names field, value and way out.
    """

    def __post_init__(self) -> None:
        for each in fields(self):
            kind, value = each.metadata.get("kind"), getattr(self, each.name)
            name = f"{type(self).__name__}.{each.name}"
            if kind is None or (value is None and each.default is None):
                continue
            if value is None:
                raise InvalidConfigError(f"{name}=None: give a value ({kind.allowed}), or leave it out")
            object.__setattr__(self, each.name, kind.read(name, value))
        self._check()

    def _check(self) -> None:
        """Refuses fields that contradict each other."""


def kinds_of(group: type[Settings]) -> dict[str, Kind]:
    """Field name -> the kind of its values."""
    return {each.name: each.metadata["kind"] for each in fields(group) if "kind" in each.metadata}


def describe_fields(group: type) -> dict[str, str]:
    """Field name -> its description in the class's docstring, on one line."""
    text = inspect.getdoc(group) or ""
    _, _, attributes = text.partition("Attributes:\n")
    attributes = re.split(r"\n(?=\S)", attributes, maxsplit=1)[0]
    found = re.findall(r"^    (\w+): (.*(?:\n {8,}.*)*)", attributes, re.MULTILINE)
    return {name: " ".join(described.split()) for name, described in found}

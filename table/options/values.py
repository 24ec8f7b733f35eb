"""Kinds of option values: one rule for the text of an option and for a typed value (pure).

A kind reads a value, from text or typed, and returns the typed value. A value that does not fit is an
`InvalidConfigError` that names option or field, value and way out.
"""

import ast
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, NoReturn, Protocol, TypeVar

from table.columns.near_name import did_you_mean
from table.config.choice import Choice
from table.config.key_generator import KeyGenerator
from table.config.merge_mode import MergeMode, merge_mode_of
from table.config.table_config import KEYGEN_CLASSES, keygen_type_of
from table.errors import InvalidConfigError
from table.options.choices import BadRows, SchemaMode
from table.secret_names import HIDDEN, is_secret


class Kind(Protocol):
    """A kind of value."""

    def read(self, name: str, value: Any) -> Any:
        """The typed value.

        Args:
            name: the option's key or the field's name, for the message.
            value: text, or a typed value; never None.

        Raises:
            InvalidConfigError: the value does not fit.
        """

    @property
    def allowed(self) -> str:
        """The values that fit, in words."""


def refuse(name: str, value: Any, reason: str) -> NoReturn:
    """Refuses a value.

    Raises:
        InvalidConfigError: always.
    """
    shown = HIDDEN if is_secret(name) else value if isinstance(value, str) else repr(value)
    raise InvalidConfigError(f"{name}={shown}: {reason}")


@dataclass(frozen=True)
class Text:
    """Text that is not empty."""

    allowed: str = "text"

    def read(self, name: str, value: Any) -> str:
        """The text without blanks around it."""
        if not isinstance(value, str):
            refuse(name, value, "must be text")
        if not value.strip():
            raise InvalidConfigError(f"{name} is empty: give a value or leave it out")
        return str(value).strip()


def check_pattern(name: str, pattern: str) -> None:
    """Refuses text that is no regular expression.

    Raises:
        InvalidConfigError: names the option, its value and the mistake.
    """
    try:
        re.compile(pattern)
    except re.error as error:
        raise InvalidConfigError(f"{name}={pattern!r} is no regular expression: {error}") from error


@dataclass(frozen=True)
class AnyText:
    """Text that may be empty or begin with a blank, such as a delimiter."""

    allowed: str = "text"

    def read(self, name: str, value: Any) -> str:
        """The text as it is."""
        return str(value) if isinstance(value, str) else refuse(name, value, "must be text")


@dataclass(frozen=True)
class FolderName:
    """The name of a folder within ``.hoodie``."""

    allowed: str = "name of a folder"

    def read(self, name: str, value: Any) -> str:
        """The name."""
        folder = Text().read(name, value)
        if "/" in folder or folder.startswith("."):
            refuse(name, value, "must be the plain name of a folder within .hoodie")
        return folder


@dataclass(frozen=True)
class Names:
    """Names, separated by commas in text; a list of names; or the text of such a list (``['a', 'b']``).

    Attributes:
        allowed: the thing that is named, in words.
    """

    allowed: str = "columns, separated by commas"

    def read(self, name: str, value: Any) -> tuple[str, ...]:
        """The names, without blanks around them and without empty ones."""
        names = _listed(value)
        if names is None:
            if not isinstance(value, str):
                refuse(name, value, "must be a name or a list of names")
            names = value.split(",")
        if not all(isinstance(each, str) for each in names):
            refuse(name, value, "must be a name or a list of names")
        return tuple(str(each).strip() for each in names if each.strip())


@dataclass(frozen=True)
class Pairs:
    """Names with values: a mapping, or text with a line ``name=value`` for each."""

    allowed: str = "name=value, each on a line of its own"

    def read(self, name: str, value: Any) -> tuple[tuple[str, str], ...]:
        """Names and values, without blanks around them, in their order."""
        if isinstance(value, tuple):
            value = dict(value)
        if isinstance(value, Mapping):
            return tuple((str(key), str(each)) for key, each in value.items())
        if not isinstance(value, str):
            refuse(name, value, "must be name=value, or a mapping of names to values")
        pairs = [part.partition("=") for part in value.splitlines() if part.strip()]
        if bad := [key for key, equals, _ in pairs if not equals or not key.strip()]:
            refuse(name, value, f"{bad[0].strip()!r} has no value: write it as name=value")
        return tuple((key.strip(), each.strip()) for key, _, each in pairs)


def _listed(value: Any) -> list[Any] | None:
    """The items of a list, or of a list of texts written as text; None for any other value."""
    if isinstance(value, Iterable) and not isinstance(value, str | bytes | Mapping):
        return list(value)
    if not isinstance(value, str) or not (value.strip().startswith("[") and value.strip().endswith("]")):
        return None
    try:
        parsed = ast.literal_eval(value.strip())
    except (ValueError, SyntaxError):
        return None
    return parsed if isinstance(parsed, list) and all(isinstance(each, str) for each in parsed) else None


@dataclass(frozen=True)
class Flag:
    """``true`` or ``false``."""

    allowed: str = "true, false"

    def read(self, name: str, value: Any) -> bool:
        """The flag."""
        if isinstance(value, bool):
            return value
        if not isinstance(value, str) or value.strip().lower() not in ("true", "false"):
            refuse(name, value, "neither true nor false")
        return bool(value.strip().lower() == "true")


ChoiceT = TypeVar("ChoiceT", bound=Choice)


@dataclass(frozen=True)
class OneOf(Generic[ChoiceT]):
    """A closed choice, in upper or lower case.

    Attributes:
        choices: the enum.
        synonyms: other spellings in lower case, and the member each of them stands for.
        what: name of the choice, for the message.
    """

    choices: type[ChoiceT]
    synonyms: Mapping[str, ChoiceT] = field(default_factory=dict)
    what: str = "value"

    @property
    def allowed(self) -> str:
        """The values that fit, in words."""
        return ", ".join(self.choices)

    def read(self, name: str, value: Any) -> ChoiceT:
        """The enum's member."""
        if isinstance(value, self.choices):
            return value
        text = value.strip().lower() if isinstance(value, str) else ""
        if text in self.synonyms:
            return self.synonyms[text]
        for choice in self.choices:
            if text == choice.value.lower():
                return choice
        hint = did_you_mean(text, [*self.synonyms, *(choice.value.lower() for choice in self.choices)])
        return refuse(name, value, f"this {self.what} is not supported; use one of {self.allowed}{hint}")


@dataclass(frozen=True)
class KeyGeneratorName:
    """A key generator's type, or the name of its class."""

    allowed: str = ", ".join(KeyGenerator)

    def read(self, name: str, value: Any) -> KeyGenerator:
        """The type."""
        found = keygen_type_of(value) if isinstance(value, str) else None
        if found is None or found not in {*KeyGenerator}:
            known = ", ".join(KEYGEN_CLASSES[each] for each in KeyGenerator)
            refuse(name, value, f"this key generator is not supported; use one of {known}")
        return KeyGenerator(found)


@dataclass(frozen=True)
class PayloadName:
    """A payload class, with or without its package."""

    allowed: str = ", ".join(mode.payload_class.rsplit(".", 1)[-1] for mode in MergeMode)

    def read(self, name: str, value: Any) -> MergeMode:
        """The merge mode that the class stands for."""
        mode = merge_mode_of(value.strip().rsplit(".", 1)[-1]) if isinstance(value, str) else None
        if mode is None:
            known = ", ".join(each.payload_class for each in MergeMode)
            refuse(name, value, f"this payload is not supported; use one of {known}")
        return mode


@dataclass(frozen=True)
class RecordMergeMode:
    """``hoodie.record.merge.mode`` as Hudi 1.x writes it."""

    allowed: str = "EVENT_TIME_ORDERING, COMMIT_TIME_ORDERING"

    def read(self, name: str, value: Any) -> MergeMode:
        """The merge mode."""
        text = str(value).strip().upper()
        if text not in self.allowed.split(", "):
            refuse(name, value, f"this merge mode is not supported; use one of {self.allowed}")
        return MergeMode(text.removesuffix("_ORDERING"))


@dataclass(frozen=True)
class Reconciles:
    """``hoodie.datasource.write.reconcile.schema``: a flag for one of two schema modes."""

    allowed: str = "true, false"

    def read(self, name: str, value: Any) -> SchemaMode:
        """The schema mode."""
        return SchemaMode.RECONCILE if Flag().read(name, value) else SchemaMode.ADD


@dataclass(frozen=True)
class DuplicatePolicy:
    """``hoodie.datasource.insert.dup.policy``: ``none`` or ``drop``."""

    allowed: str = "none, drop"

    def read(self, name: str, value: Any) -> bool:
        """Whether duplicates are dropped."""
        text = str(value).strip().lower()
        if text not in ("none", "drop"):
            refuse(name, value, "this policy is not supported; use one of none, drop")
        return text == "drop"


@dataclass(frozen=True)
class FailsFast:
    """Flink's ``write.fail.fast``: true selects a policy for bad rows, false selects none."""

    allowed: str = "true, false"

    def read(self, name: str, value: Any) -> BadRows | None:
        """The policy, or None."""
        return BadRows.FAIL if Flag().read(name, value) else None


TIMEBASED_PREFIX = "hoodie.keygen.timebased."
TIMEBASED_KEYS = tuple(
    TIMEBASED_PREFIX + name
    for name in (
        "timestamp.type",
        "timestamp.scalar.time.unit",
        "output.dateformat",
        "output.timezone",
        "input.dateformat",
        "input.dateformat.list.delimiter.regex",
        "input.timezone",
        "timezone",
    )
)


@dataclass(frozen=True)
class TimebasedSettings:
    """Settings of the timestamp-based key generator: a mapping of ``hoodie.keygen.timebased.*`` keys to text."""

    allowed: str = "hoodie.keygen.timebased.* keys and values"

    def read(self, name: str, value: Any) -> tuple[tuple[str, str], ...]:
        """Keys and values, sorted."""
        pairs = dict(value)
        for key in pairs:
            if key not in TIMEBASED_KEYS:
                refuse(name, key, f"no such setting{did_you_mean(str(key), TIMEBASED_KEYS)}")
        return tuple(sorted((key, AnyText().read(key, each)) for key, each in pairs.items()))

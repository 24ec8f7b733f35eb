"""Every option with its meaning, for the documentation and for editors (pure)."""

from dataclasses import dataclass
from enum import Enum
from operator import attrgetter
from typing import Any

from table.options.keys import ALIASES, HONOURED, HonouredKey
from table.options.numbers import Whole
from table.options.refused import REFUSED
from table.options.values import (
    DuplicatePolicy,
    FailsFast,
    Reconciles,
    RecordMergeMode,
)
from table.options.without_effect import WITHOUT_EFFECT
from table.options.write_options import DEFAULT_OPERATION, SPLIT_SIZE, WriteOptions


class OptionClass(Enum):
    """How an option is treated."""

    HONOURED = "honoured"
    REFUSED = "refused"
    WITHOUT_EFFECT = "without effect"


@dataclass(frozen=True)
class OptionRow:
    """One option.

    Attributes:
        key: Hudi's key, or ``hudistream.…`` for an option that Hudi does not have.
        aliases: other spellings of the key, sorted.
        option_class: honoured, refused or without effect.
        field: the field of `WriteOptions` that it fills, such as ``clean.policy``; "" if it fills none.
        default: the value if the option is not given, as text; "" if there is none.
        choices: the values that fit, in words.
        description: its meaning, or why it is refused or has no effect.
    """

    key: str
    aliases: tuple[str, ...]
    option_class: OptionClass
    field: str
    default: str
    choices: str
    description: str


def list_options() -> tuple[OptionRow, ...]:
    """All options: honoured ones in the order of the fields they fill, then refused ones, then those without effect."""
    aliases: dict[str, list[str]] = {}
    for alias, key in ALIASES.items():
        aliases.setdefault(key, []).append(alias)

    def row(key: str, option_class: OptionClass, *texts: str) -> OptionRow:
        return OptionRow(key, tuple(sorted(aliases.get(key, ()))), option_class, *texts)

    defaults = WriteOptions()
    honoured = [
        row(key, OptionClass.HONOURED, *_field_and_default(option, defaults), option.kind.allowed, _sentence(option))
        for key, option in HONOURED.items()
    ]
    refused = [
        row(key, OptionClass.REFUSED, "", "", ", ".join(filter(None, harmless)), reason)
        for key, (harmless, reason) in REFUSED.items()
    ]
    ignored = [row(key, OptionClass.WITHOUT_EFFECT, "", "", "", reason) for key, reason in WITHOUT_EFFECT.items()]
    return (*honoured, *refused, *ignored)


_WITHOUT_FIELD = {"auto_split": ("sizes.rows_per_new_file", "true"), "base_path": ("", "")}


def _field_and_default(option: HonouredKey, defaults: WriteOptions) -> tuple[str, str]:
    if option.path == "operation":
        return option.path, str(DEFAULT_OPERATION)
    if option.path == "split_size":
        return "sizes.rows_per_new_file", str(SPLIT_SIZE)
    if option.path in _WITHOUT_FIELD:
        return _WITHOUT_FIELD[option.path]
    value = attrgetter(option.path)(defaults)
    if isinstance(option.own_kind, Whole):
        value //= option.own_kind.scale
    if isinstance(option.own_kind, Reconciles):
        value = False
    if isinstance(option.own_kind, DuplicatePolicy):
        value = "none"
    if isinstance(option.own_kind, FailsFast):
        value = False
    if isinstance(option.own_kind, RecordMergeMode) or option.path == "base_file.bloom_max_entries":
        value = None  # a given bound selects dynamic filters, so there is no default
    return option.path, _text(value)


def _sentence(option: HonouredKey) -> str:
    return option.description[0].upper() + option.description[1:]


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return ",".join(value) if isinstance(value, tuple) else f"{value:g}" if isinstance(value, float) else str(value)

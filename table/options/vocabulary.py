"""Sorts given keys into the three classes: honoured, refused with a reason, without effect (pure).

Writing and reading have vocabularies of their own, and are read by the one rule here.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

from table.errors import InvalidConfigError
from table.secret_names import shown_value

Refusals = Mapping[str, tuple[tuple[str, ...], str]]
"""Key -> the values that agree with what happens anyway, and why any other value is refused."""


@dataclass(frozen=True)
class Vocabulary:
    """The keys of one purpose.

    Attributes:
        honoured: keys that count.
        refused: keys that are refused, but for harmless values.
        aliases: other spelling -> key.
        find_reason: why a key has no effect; None where it is unknown.
        describe_unknown: what is said of an unknown key.
    """

    honoured: Collection[str]
    refused: Refusals
    aliases: Mapping[str, str]
    find_reason: Callable[[str], str | None]
    describe_unknown: Callable[[str], str]


@dataclass(frozen=True)
class SortedKeys:
    """Given keys by class.

    Attributes:
        honoured: key -> the spelling that was given, and its value as text.
        without_effect: given spelling -> why it has no effect.
    """

    honoured: Mapping[str, tuple[str, str]]
    without_effect: Mapping[str, str]


def sort_keys(options: Mapping[str, Any], vocabulary: Vocabulary) -> SortedKeys:
    """Sorts options by class.

    Args:
        options: keys and values, as users give them. None means that the option is not given.
        vocabulary: the keys that are known.

    Raises:
        InvalidConfigError: names the key, its value, and the way out; refused and unknown keys all at once.
    """
    values: dict[str, tuple[str, str]] = {}
    ignored: dict[str, str] = {}
    problems: list[str] = []
    for key, raw in options.items():
        if raw is None:
            continue
        value, name = _text_of(raw), vocabulary.aliases.get(key, key)
        if name in vocabulary.honoured or name in vocabulary.refused:
            earlier = values.setdefault(name, (key, value))
            if earlier[1] != value:
                raise InvalidConfigError(
                    f"{earlier[0]}={shown_value(name, earlier[1])} and {key}={shown_value(key, value)} say different "
                    "things: keep one"
                )
            continue
        reason = vocabulary.find_reason(key)
        if reason is None:
            problems.append(vocabulary.describe_unknown(key))
        else:
            ignored[key] = reason
    for name in [name for name in values if name in vocabulary.refused]:
        problems += _refuse(*values.pop(name), *vocabulary.refused[name])
    if problems:
        head = f"{len(problems)} options cannot be used: " if len(problems) > 1 else ""
        raise InvalidConfigError(head + ". ".join(problems))
    return SortedKeys(values, ignored)


def _text_of(raw: Any) -> str:
    if isinstance(raw, bool):
        return "true" if raw else "false"
    return ",".join(map(str, raw)) if isinstance(raw, list | tuple) else str(raw)


def _refuse(key: str, value: str, harmless: tuple[str, ...], reason: str) -> list[str]:
    if value.strip().lower() in {choice.lower() for choice in harmless}:
        return []
    allowed = " or ".join(choice for choice in harmless if choice)
    way_out = f"leave it out, or set {allowed}" if allowed else "leave it out"
    return [f"{key}={shown_value(key, value)} is refused: {reason}; {way_out}"]

"""Values of options that must not be shown: in logs, in errors, in what the command prints.

Hudi hides an option whose key contains one of ``hoodie.sensitive.config.keys``. Values of its default keys and of those
that are added here, are always hidden.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

SENSITIVE = "hoodie.sensitive.config.keys"
_PARTS = ("password", "passwd", "secret", "credential", "token", "ssl", "tls", "sasl", "auth", "jaas")
_ENDS = ("api.key", "access.key", "account.key")
HIDDEN = "(hidden)"

_asked: ContextVar[tuple[str, ...]] = ContextVar("hudistream_sensitive_keys", default=())


def is_secret(key: str) -> bool:
    """Whether the value of an option is a secret, by the name of the option.

    Args:
        key: such as ``hoodie.datasource.hive_sync.password``, ``fs.s3a.access.key``; also with ``_`` or ``-`` for dots.
    """
    name = _plain(key)
    return any(part in name for part in (*_PARTS, *_asked.get())) or name.endswith(_ENDS)


@contextmanager
def hiding(options: Mapping[str, Any]) -> Iterator[None]:
    """While the options are read, hides the values whose keys contain a part that the options name as sensitive.

    Args:
        options: keys and values as users give them; ``hoodie.sensitive.config.keys`` is text with commas, or a list.
    """
    given = options.get(SENSITIVE) or ()
    parts = given.split(",") if isinstance(given, str) else map(str, given)
    token = _asked.set(tuple(_plain(part.strip()) for part in parts if part.strip()))
    try:
        yield
    finally:
        _asked.reset(token)


def _plain(key: str) -> str:
    return key.lower().replace("_", ".").replace("-", ".")


def shown_value(key: str, value: object) -> str:
    """The value of an option for people: a secret is hidden.

    Args:
        key: of the option.
        value: as it was given.
    """
    return HIDDEN if is_secret(key) else str(value)

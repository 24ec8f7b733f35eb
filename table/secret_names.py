"""Values of options that must not be shown: in logs, in errors, in what the command prints (pure)."""

_PARTS = ("password", "passwd", "secret", "credential", "token")
_ENDS = ("api.key", "access.key", "account.key")
HIDDEN = "(hidden)"


def is_secret(key: str) -> bool:
    """Whether the value of an option is a secret, by the name of the option.

    Args:
        key: such as ``hoodie.datasource.hive_sync.password``, ``fs.s3a.access.key``; also with ``_`` or ``-`` for dots.
    """
    name = key.lower().replace("_", ".").replace("-", ".")
    return any(part in name for part in _PARTS) or name.endswith(_ENDS)


def shown_value(key: str, value: object) -> str:
    """The value of an option for people: a secret is hidden.

    Args:
        key: of the option.
        value: as it was given.
    """
    return HIDDEN if is_secret(key) else str(value)

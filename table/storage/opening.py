"""Opens the storage for a table's address in any form that users write."""

import os
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

import fsspec

from table.errors import InvalidConfigError
from table.secret_names import is_secret
from table.storage.backend import open_backend
from table.storage.interface import Storage
from table.storage.local import LocalStorage
from table.storage.remote import FsspecStorage

_SCHEMES = {"s3a": "s3", "s3n": "s3", "wasb": "abfs", "wasbs": "abfs", "abfss": "abfs"}


def open_storage(path: str | os.PathLike[str], options: Mapping[str, Any] | None = None) -> Storage:
    """The storage for a table's address in any form that users write.

    Args:
        path: ``/data/t``, ``data/t``, ``file:///data/t``, ``s3a://bucket/t``, ``gs://…``.
        options: options of fsspec's file system (keys, endpoints); not used for local paths. What they leave open comes
            from fsspec's configuration (``~/.config/fsspec``, ``FSSPEC_S3_KEY``), which tasks on other nodes get along.

    Raises:
        InvalidConfigError: when the path is empty, or no installed backend opens its scheme.
    """
    text = os.fspath(path).strip()
    if not text:
        raise InvalidConfigError("the table's path is empty: give a folder or an address")
    scheme = urlsplit(text).scheme if re.match(r"^[a-zA-Z][a-zA-Z0-9+.-]+:", text) else ""
    if scheme in ("", "file"):
        local = unquote(urlsplit(text).path) if scheme else text
        return LocalStorage(os.path.abspath(local))
    _check_no_secrets(text)
    protocol = _SCHEMES.get(scheme, scheme)
    given = {**fsspec.config.conf.get(protocol, {}), **(options or {})}
    try:
        fs = open_backend(protocol, given)
    except (ValueError, ImportError) as error:
        raise InvalidConfigError(
            f"nothing here can open {text!r}: {error}; install the fsspec backend of the scheme {scheme!r}"
        ) from error
    root = fs._strip_protocol(  # noqa: SLF001
        text.replace(f"{scheme}://", f"{protocol}://", 1)
    ).rstrip("/")
    return FsspecStorage(text.rstrip("/"), protocol, root, given)


def one_spelling(address: str) -> str:
    """One spelling for the address of a storage (`Storage.base_uri`), so that two of them can be compared.

    Symbolic links are resolved. Two stores with the same names of buckets are not told apart.
    """
    scheme, found, place = address.partition("://")
    return f"{_SCHEMES.get(scheme, scheme)}://{place.rstrip('/')}" if found else os.path.realpath(address)


def _check_no_secrets(text: str) -> None:
    """Refuses an address that holds a password or a key: logs, errors and summaries show addresses.

    Raises:
        InvalidConfigError: the address holds one; the message does not show the address.
    """
    address = urlsplit(text)
    before, at, host = address.netloc.rpartition("@")
    held = "a password" if at and ":" in before else ""
    if any(is_secret(name) for name, _ in parse_qsl(address.query, keep_blank_values=True)):
        held = "a secret"
    if held:
        raise InvalidConfigError(
            f"the table's address {address.scheme}://…{host or address.netloc}{address.path} holds {held}, and "
            "addresses are logged: give credentials as storage_options, or by the environment"
        )

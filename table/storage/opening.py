"""Opens the storage for a table's address in any form that users write."""

import os
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl, unquote_to_bytes, urlsplit

import fsspec

from table.errors import InvalidConfigError
from table.extras import OF_PROTOCOL, needs_extra
from table.secret_names import is_secret
from table.storage.backend import open_backend
from table.storage.folder_names import check_uncut
from table.storage.interface import Storage
from table.storage.local import LocalStorage
from table.storage.remote import FsspecStorage
from table.storage.schemes import PROTOCOLS


def open_storage(path: str | os.PathLike[str], options: Mapping[str, Any] | None = None) -> Storage:
    """The storage for a table's address in any form that users write.

    Args:
        path: ``/data/t``, ``data/t``, ``~/t``, ``file:///data/t``, ``s3a://bucket/t``, ``gs://…``. It is text of a
            user or of an option, and never made of an address and a name: `Storage.below` goes down by names. Only
            ``file:`` addresses are percent-encoded (``%23`` is ``#``); in all others each character stands for itself.
        options: options of fsspec's file system (keys, endpoints); not used for local paths. What they leave open comes
            from fsspec's configuration (``~/.config/fsspec``, ``FSSPEC_S3_KEY``), which tasks on other nodes get along.

    Raises:
        InvalidConfigError: when the path is empty, or begins or ends with a space; no installed backend opens its
            scheme; or a ``file:`` address has
            a host, a query or a fragment.
    """
    text = os.fspath(path).strip("\r\n\t")
    if not text.strip():
        raise InvalidConfigError("the table's path is empty: give a folder or an address")
    if text != text.strip():  # the folder with this name and the one without it are two
        raise InvalidConfigError(
            f"the path {text!r} begins or ends with a space: leave it out, or write it as %20 in an address file:///…"
        )
    found = re.match(r"^([a-zA-Z][a-zA-Z0-9+.-]+):", text)
    scheme = found[1].lower() if found else ""
    if scheme in ("", "file"):
        local = _folder_of(text) if scheme else _at_home(text)
        if "\0" in local:
            raise InvalidConfigError(f"the path {text!r} has a zero byte: no folder can have such a name")
        return LocalStorage(os.path.abspath(local))
    text = scheme + text[len(scheme) :]
    _check_no_secrets(text)
    protocol = PROTOCOLS.get(scheme, scheme)
    given = {**fsspec.config.conf.get(protocol, {}), **(options or {})}
    try:
        fs = open_backend(protocol, given)
    except (ValueError, ImportError, OSError) as error:  # OSError: a backend that needs a library, as of hdfs
        extra = OF_PROTOCOL.get(protocol)
        if extra is not None and isinstance(error, ImportError):
            raise InvalidConfigError(f"{needs_extra(f'the path {text!r}', extra)} ({error})") from error
        first = next(iter(str(error).splitlines()), type(error).__name__)
        raise InvalidConfigError(
            f"nothing here can open {text!r}: {first}; supported are local folders, s3://, gs:// "
            f"and abfss://, and another scheme where its fsspec backend works: install that of {scheme!r}"
        ) from error
    root = fs._strip_protocol(  # noqa: SLF001
        text.replace(f"{scheme}://", f"{protocol}://", 1)
    ).rstrip("/")
    if protocol == "memory" and root:
        root = "/" + root.lstrip("/")  # fsspec leaves the slash out where a name has ::
    check_uncut(root, protocol)
    at_root = re.sub(r":/+$", "://", text)  # however many slashes are given
    return FsspecStorage(text.rstrip("/") if root.strip("/") else at_root, protocol, root, given)


def _at_home(folder: str) -> str:
    """A folder, with ``~`` for the home directory as a shell has it. Python leaves it as a name; ``./~`` is one."""
    return os.path.expanduser(folder) if re.match("~(/|$)", folder) else folder


def _folder_of(address: str) -> str:
    """The folder that a ``file:`` address names. A part that would be passed over is refused: another folder is meant.

    Raises:
        InvalidConfigError: there is no path, or a host, a query or a fragment.
    """
    rest = address[len("file:") :]
    if rest.startswith("//"):
        host, slash, path = rest[2:].partition("/")
        if host not in ("", "localhost"):
            raise InvalidConfigError(
                f"{address!r} names the host {host!r}: a file address of this machine has three slashes, as in "
                f"file:///{rest[2:]}"
            )
        rest = slash + path
    if not rest:
        raise InvalidConfigError(f"{address!r} names no folder: write file:///data/t, or /data/t")
    for sign, code in (("#", "%23"), ("?", "%3F")):
        if sign in rest:
            raise InvalidConfigError(
                f"{address!r} has a {sign}, which ends the path of a file address: write {code} for it, or give the "
                "folder without file:"
            )
    return os.fsdecode(unquote_to_bytes(os.fsencode(rest)))


def one_spelling(address: str) -> str:
    """One spelling for the address of a storage (`Storage.base_uri`), so that two of them can be compared.

    Symbolic links are resolved. Two stores with the same names of buckets are not distinguished.
    """
    scheme, found, place = address.partition("://")
    return f"{PROTOCOLS.get(scheme, scheme)}://{place.rstrip('/')}" if found else os.path.realpath(address)


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

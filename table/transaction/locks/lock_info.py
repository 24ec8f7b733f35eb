"""The text of the file of a file-system lock (pure; LockInfo).

Hudi 1.0 and 1.2 write an empty file. The file of hudistream names its writer, so that it cannot be mistaken for
another writer's file.
"""

import json
from dataclasses import asdict, dataclass, fields


@dataclass(frozen=True, slots=True)
class LockInfo:
    """The writer that created a lock file.

    Attributes:
        lockCreateTime: time of creation, for display, as in Hudi's field of this name.
        lockThreadName: name of the writer's thread.
        lockOwner: identity of one lock object in one process.
        process: number of the process.
        version: version of hudistream.
        machine: machine of the process (`table.transaction.lease_record.this_machine`); "" if not known.
    """

    lockCreateTime: str  # noqa: N815 Hudi's name
    lockThreadName: str  # noqa: N815 Hudi's name
    lockOwner: str  # noqa: N815 as the others
    process: int
    version: str
    machine: str = ""

    def encode(self) -> bytes:
        """JSON."""
        return json.dumps(asdict(self)).encode()


def decode_lock_info(data: bytes) -> LockInfo | None:
    """The inverse of `LockInfo.encode`; fields of later versions are ignored. None: another engine wrote the file."""
    try:
        document = json.loads(data)
        info = LockInfo(**{name.name: document[name.name] for name in fields(LockInfo) if name.name in document})
    except (ValueError, TypeError):
        return None
    return info if isinstance(info.process, int) and isinstance(info.machine, str) else None


def describe_lock_info(data: bytes) -> str:
    """The writer that created a lock file, in words."""
    if not data.strip():
        return "a writer of another engine (the file names no writer)"
    info = decode_lock_info(data)
    if info is None:
        return f"a writer whose file says {data[:80]!r}"
    return f"process {info.process}, {info.lockThreadName}, hudistream {info.version} (owner {info.lockOwner})"


def is_expired(modified_ms: int, expiry_ms: int, now_ms: int) -> bool:
    """Whether a lock file counts as abandoned (FileSystemBasedLockProvider.checkIfExpired).

    Args:
        modified_ms: modification time of the file.
        expiry_ms: age above which it counts as abandoned; 0: never.
        now_ms: the present time.
    """
    return expiry_ms > 0 and now_ms - modified_ms > expiry_ms

"""The record of a lease's holder, and the check whether the holder's process still runs.

A record is read with tolerance. A field that this version does not know is ignored. A record that does not name its
holder in a way that this version knows is unreadable, and not released: a later version may have written it.
"""

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass

from table.transaction.heartbeat import WriterIdentity
from table.version import VERSION


@dataclass(frozen=True, slots=True)
class LeaseRecord:
    """The record of a table's holder.

    Attributes:
        number: number of the record; the greatest counts.
        identity: the holder; None: the table was released, or the record is unreadable.
        machine: the machine of the holder's process (`this_machine`); "" if not known.
        process: number of the process on that machine.
        version: version of hudistream.
        is_readable: whether the record names the holder, or says that the table was released.
    """

    number: int
    identity: WriterIdentity | None
    machine: str = ""
    process: int = 0
    version: str = VERSION
    is_readable: bool = True

    @property
    def is_released(self) -> bool:
        """Whether the last holder has released the table."""
        return self.identity is None and self.is_readable

    def encode(self) -> bytes:
        """JSON."""
        who = asdict(self.identity) if self.identity is not None else None
        document = {"identity": who, "machine": self.machine, "process": self.process, "version": self.version}
        return json.dumps(document).encode()


def decode_lease(number: int, data: bytes) -> LeaseRecord:
    """The inverse of `LeaseRecord.encode`, for records of this version, of earlier and of later ones.

    Args:
        number: number of the record.
        data: bytes of the record.
    """
    try:
        document = json.loads(data)
        who = document["identity"]
        identity = _decode_holder(who) if who is not None else None
    except (ValueError, KeyError, TypeError):
        return LeaseRecord(number, None, is_readable=False)
    machine, process, version = document.get("machine"), document.get("process"), document.get("version")
    return LeaseRecord(
        number,
        identity,
        machine if isinstance(machine, str) else "",
        process if isinstance(process, int) else 0,
        str(version),
    )


def _decode_holder(who: Mapping[str, object]) -> WriterIdentity:
    owner, sink_id, query_id = who["owner"], who.get("sink_id"), who.get("query_id")
    if not isinstance(owner, str) or not owner:
        raise ValueError(f"{owner!r} is no owner")
    return WriterIdentity(str(sink_id), query_id if isinstance(query_id, str) else None, owner)


def describe_holder(holder: LeaseRecord) -> str:
    """The holder in words, for messages."""
    who = holder.identity
    if holder.is_released:
        return "a writer that has released it since"
    if who is None:
        return f"a writer of another version of hudistream (the record lease/{holder.number} cannot be read here)"
    if not holder.process:  # the record is of a lease that several writers hold
        return "several writers that share it (hoodie.write.concurrency.mode=OPTIMISTIC_CONCURRENCY_CONTROL)"
    return f"sink {who.sink_id!r}, query {who.query_id!r} (process {holder.process}, hudistream {holder.version})"


def is_dead_here(holder: LeaseRecord) -> bool:
    """Whether the holder's process ran on this machine and no longer exists."""
    return is_process_dead(holder.machine, holder.process)


def is_process_dead(machine: str, process: int) -> bool:
    """Whether a process is known to have ended: it ran on this boot of this machine, in this process namespace.

    Args:
        machine: the value of `this_machine` in that process; "" if not known.
        process: number of the process.
    """
    if not machine or machine != this_machine() or process in (0, this_process()):
        return False
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return True
    except (OSError, OverflowError):
        return False  # the process runs and belongs to another user; or the number is no process number
    return False


def this_process() -> int:
    """Number of this process."""
    return os.getpid()


def this_machine() -> str:
    """Identifies this boot of this machine and this process namespace; "" if they cannot be found out."""
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            return f"{file.read().strip()}/{os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return ""

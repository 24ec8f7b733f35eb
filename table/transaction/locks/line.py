"""The queue of writers that wait for a lock in ZooKeeper (pure; Curator's InterProcessMutex).

Each waiting writer has a node that ends with its session. ZooKeeper numbers the nodes: ``_c_<uuid>-lock-0000000007``.
The writer of the node with the smallest number holds the lock.
"""

from collections.abc import Iterable

_LOCK_NAME = "lock-"


def name_in_line(uuid: str) -> str:
    """The name of a new node in the queue, to which ZooKeeper adds the number.

    Args:
        uuid: random id by which the writer recognizes its node if ZooKeeper's answer is lost.
    """
    return f"_c_{uuid}-{_LOCK_NAME}"


def in_order(nodes: Iterable[str]) -> list[str]:
    """Nodes in the order of the queue (StandardLockInternalsDriver.fixForSorting)."""
    return sorted(nodes, key=_after_lock_name)


def _after_lock_name(node: str) -> str:
    return node.rpartition(_LOCK_NAME)[2]


def who_is_before(nodes: Iterable[str], mine: str) -> str | None:
    """The node directly before `mine`; None if `mine` holds the lock.

    Raises:
        KeyError: `mine` is not in the queue.
    """
    line = in_order(nodes)
    if mine not in line:
        raise KeyError(mine)
    place = line.index(mine)
    return line[place - 1] if place else None

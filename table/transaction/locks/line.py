"""The line in which writers stand for a lock in ZooKeeper (pure; Curator's InterProcessMutex).

Each place is a node that ends with its session. ZooKeeper gives it a number: ``_c_<uuid>-lock-0000000007``. The node
with the smallest number holds the lock.
"""

from collections.abc import Iterable

_LOCK_NAME = "lock-"


def name_in_line(uuid: str) -> str:
    """The name of a new node, to which ZooKeeper adds the number.

    Args:
        uuid: lets the writer that made the node recognize it, if ZooKeeper's answer is lost.
    """
    return f"_c_{uuid}-{_LOCK_NAME}"


def in_order(nodes: Iterable[str]) -> list[str]:
    """Nodes in the order of the line (StandardLockInternalsDriver.fixForSorting)."""
    return sorted(nodes, key=_after_lock_name)


def _after_lock_name(node: str) -> str:
    return node.rpartition(_LOCK_NAME)[2]


def who_is_before(nodes: Iterable[str], mine: str) -> str | None:
    """The node right before mine; None where mine holds the lock.

    Raises:
        KeyError: mine is not in the line.
    """
    line = in_order(nodes)
    if mine not in line:
        raise KeyError(mine)
    place = line.index(mine)
    return line[place - 1] if place else None

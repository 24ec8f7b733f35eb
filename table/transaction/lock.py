"""The one place where a lock that several writers share is taken: `guarded`.

Hudi's writers take the table's lock around three steps (TransactionManager, BaseHoodieWriteClient): the choice of an
instant with its request, the look at the timeline with the completion that follows from it, and the planning of a
service with its request. Writing data files and carrying out a plan are outside of it.

Today the steps need no lock: one writer holds the table by its lease (`table.transaction.lease`), which every step
confirms for itself; an end that two want is decided by one object (`table.timeline.end_record`); and services and
operators look again once their plan is durable. So `guarded` takes nothing and calls no store.
"""

from contextlib import AbstractContextManager, nullcontext
from enum import Enum
from typing import Protocol

from table.hudi_table import HudiTable
from table.timeline.layout import check_is_written


class Step(Enum):
    """What is done under the lock."""

    BEGIN = "an instant is chosen and requested"
    COMPLETE = "the timeline is looked at, and an instant is completed because of what is there"
    SCHEDULE = "a service is planned and requested"


class TableLock(Protocol):
    """A lock of one table. It is not taken twice by one thread: no step lies within another."""

    def guarded(self, step: Step) -> AbstractContextManager[None]:
        """Holds the lock for one step.

        Args:
            step: which.

        Raises:
            CommitConflictError: others hold it for too long; nothing was done.
        """


class LeaseOnly:
    """Today's answer: who writes holds the table's lease, and there is nothing more to hold."""

    def guarded(self, step: Step) -> AbstractContextManager[None]:  # noqa: ARG002 a lock would say whom it waits for
        """Holds nothing."""
        return nullcontext()


_LEASE_ONLY = LeaseOnly()


def lock_of(table: HudiTable) -> TableLock:  # noqa: ARG001 the table's properties will say which
    """The lock of a table."""
    return _LEASE_ONLY


def guarded(table: HudiTable, step: Step) -> AbstractContextManager[None]:
    """Holds the table's lock for one step.

    Args:
        table: the table.
        step: which.

    Raises:
        UnsupportedTableError: the layout of the table's timeline is not written here.
        CommitConflictError: others hold it for too long; nothing was done.
    """
    check_is_written(table.layout)
    return lock_of(table).guarded(step)

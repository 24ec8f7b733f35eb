"""What became of an attempt to complete a commit."""

from table.errors import WriteConflictError
from table.transaction.outcome import LostCommit


def test_a_lost_commit_is_an_error_that_can_be_tried_again():
    lost = LostCommit("the commit 7 changed p/f", frozenset({("p", "f")}))
    error = lost.error()
    assert isinstance(error, WriteConflictError)
    assert str(error) == "the commit 7 changed p/f; the batch is not visible and can be run again"
    assert error.file_groups == {("p", "f")}
    assert LostCommit("why").error().file_groups == frozenset()

"""The queue for a lock in ZooKeeper: by the numbers that it gave, whatever stands before them."""

import pytest

from table.transaction.locks.line import in_order, name_in_line, who_is_before

NODES = ["_c_f-lock-0000000009", "_c_a-lock-0000000011", "lock-0000000010"]


def test_the_order_is_that_of_the_numbers():
    assert in_order(NODES) == [NODES[0], NODES[2], NODES[1]]


@pytest.mark.parametrize(("mine", "before"), [(0, None), (1, 2), (2, 0)])
def test_each_waits_for_the_one_before(mine, before):
    assert who_is_before(NODES, NODES[mine]) == (None if before is None else NODES[before])


def test_a_writer_that_left_the_queue_is_told():
    with pytest.raises(KeyError, match="_c_x"):
        who_is_before(NODES, "_c_x-lock-0000000012")


def test_a_writer_knows_its_node_by_its_name():
    assert (name_in_line("u") + "0000000012") in [*NODES, "_c_u-lock-0000000012"]

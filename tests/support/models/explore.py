"""Every state that a model can reach, and what is wrong with each."""

from collections import Counter


def explore(start, steps, broken, *, stops=False):
    """Takes every step from every state, once.

    Args:
        start: the first state; states can be hashed.
        steps: state -> the states that come next.
        broken: (state, whether it is a last one) -> texts of what is wrong with it.
        stops: whether to stop at the first state that is wrong.

    Returns:
        The number of states that were reached, and text -> number of states.
    """
    seen, left, found = {start}, [start], Counter()
    while left and not (stops and found):
        world = left.pop()
        nexts = set(steps(world))
        found.update(broken(world, is_last=not nexts))
        left += nexts - seen
        seen |= nexts
    return len(seen), dict(found)

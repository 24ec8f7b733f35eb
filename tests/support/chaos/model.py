"""Which rows a snapshot has to show (pure)."""

from collections import Counter

from chaos.draw import GUEST, WRITERS, batch, first_rows, shared_keys


class Model:
    """Rows by how many batches of each writer are visible. It grows with the journals.

    Args:
        drawn: the world.
    """

    def __init__(self, drawn):
        self._drawn = drawn
        self._own = {writer: [{}] for writer in WRITERS}  # after n batches
        self._shared = {writer: [{}] for writer in WRITERS}

    def extend(self, writer, ordering):
        """Learns of the batches that a writer has begun; `ordering` has a value for each."""
        own, shared = self._own[writer], self._shared[writer]
        for number in range(len(own) - 1, len(ordering)):
            rows, both = dict(own[-1]), dict(shared[-1])
            for key, deleted in batch(self._drawn, writer, number)[1].items():
                row = (ordering[number], f"{writer}{number}")
                if key in _SHARED:
                    both[key] = row
                elif deleted:
                    rows.pop(key, None)
                else:
                    rows[key] = row
            own.append(rows)
            shared.append(both)

    def judge(self, rows, least, most):
        """Compares a snapshot.

        Args:
            rows: list of (key, ts, value, partition path).
            least: writer -> batches that have to be visible.
            most: writer -> batches that may be.

        Returns:
            (violation or None, writer -> batches that are visible).
        """
        doubled = [key for key, count in Counter(row[0] for row in rows).items() if count > 1]
        if doubled:
            return f"keys twice: {sorted(r for r in rows if r[0] in doubled)[:8]}", None
        found = {row[0]: (row[1], row[2]) for row in rows}
        visible = {}
        for writer in WRITERS:
            own = {key: row for key, row in found.items() if key.startswith(f"{writer}-")}
            states = self._own[writer]
            fits = [n for n in range(least[writer], most[writer] + 1) if states[n] == own]
            if not fits:
                why = min((_differ(own, states[n]) for n in range(least[writer], most[writer] + 1)), key=len)
                return f"rows of {writer} fit none of {least[writer]} to {most[writer]} batches: {'; '.join(why)}", None
            visible[writer] = fits[0]
        expected = {key: row for key, row in first_rows().items() if key in _SHARED}
        for writer, count in visible.items():
            for key, row in self._shared[writer][count].items():
                expected[key] = max(expected[key], row)
        shared = {key: row for key, row in found.items() if key in _SHARED}
        strangers = [key for key in found if key not in _SHARED and not key.startswith(_OF_WRITERS)]
        if shared != expected or strangers:
            return f"shared rows, {visible}: {'; '.join([*_differ(shared, expected), *strangers])}", None
        return None, visible


_SHARED = frozenset(shared_keys())
_OF_WRITERS = tuple(f"{writer}-" for writer in (*WRITERS, GUEST))  # the guest's rows are the history's to explain


def _differ(found, expected):
    """What is missing, what is too much, what is another row."""
    said = [f"{key} is gone, expected {expected[key]}" for key in sorted(expected.keys() - found.keys())]
    said += [f"{key} is {found[key]}, expected nothing" for key in sorted(found.keys() - expected.keys())]
    both = sorted(found.keys() & expected.keys())
    return said + [f"{k} is {found[k]}, expected {expected[k]}" for k in both if found[k] != expected[k]]

"""The journals of a world as a history, which the checker judges (`history`): it knows nothing of the model."""

import math
from collections import Counter

from history import Read, Write, explain

from chaos.draw import GUEST, WRITERS, batch, first_rows
from chaos.journal import read_journal


def explain_world(drawn, names, damaged=()):
    """Whether one order explains what all processes of a world were told and saw.

    Args:
        drawn: the world.
        names: of its journals.
        damaged: (since, until) while a file was damaged; what was read then proves nothing.

    Returns:
        (what cannot be explained or None, how many writes of the guest were acknowledged, refused, unknown).
    """
    lines = {name: read_journal(drawn.journals, name) for name in names}
    guest = guest_writes(lines.get(GUEST, []))
    reads = [one for name in names for one in snapshots(name, lines[name], damaged)]
    batches = [one for writer in WRITERS for one in stream_writes(drawn, writer, lines.get(writer, []))]
    told = Counter("refused" if one.refused else "acknowledged" if one.ended < math.inf else "unknown" for one in guest)
    return explain([*batches, *guest, *reads], first_rows()), dict(sorted(told.items()))


def stream_writes(drawn, writer, lines):
    """The batches of a stream: from the first intent to the acknowledgement, however often they were tried."""
    ended = {line["batch"]: line["at"] for line in lines if line["what"] == "acknowledged"}
    for line in lines:
        if line["what"] == "intent":
            number, value = line["batch"], f"{writer}{line['batch']}"
            keys = batch(drawn, writer, number)[1]
            rows = {key: (line["ts"], None if gone else value) for key, gone in keys.items()}
            yield Write(writer, line["at"], ended.get(number, math.inf), rows)


def guest_writes(lines):
    """What the guest was told of each write."""
    told = {line["write"]: line for line in lines if line["what"] in ("acknowledged", "refused", "unknown")}
    writes = []
    for line in lines:
        if line["what"] == "intent":
            answer = told.get(line["write"], {"what": "unknown"})
            ended = math.inf if answer["what"] == "unknown" else answer["at"]
            rows = {key: (line["ts"], value) for key, value in line["rows"].items()}
            writes.append(Write(GUEST, line["at"], ended, rows, refused=answer["what"] == "refused"))
    return writes


def snapshots(name, lines, damaged):
    """What a reader saw while no file was damaged."""
    for line in lines:
        if line["what"] == "snapshot" and not any(
            line["began"] - 1 < until and since < line["at"] for since, until in damaged
        ):
            yield Read(name, line["began"], line["at"], tuple((key, value) for key, value in line["rows"]))

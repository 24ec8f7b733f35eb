"""A guest: writes without a number, takes the answer that it gets, and goes on to the next.

The streams repeat a batch until it is acknowledged. The guest never repeats: what it is told of a write is what counts.
So each of its writes was acknowledged, refused (nothing of it may ever be visible), or has an unknown outcome.
"""

import random
import time

from chaos.draw import GUEST, guest_batch
from chaos.journal import Journal, read_journal
from chaos.process import begin, is_over, tell_error
from chaos.writer import make_sink, to_rows
from hudistream import CommitOutcomeUnknownError


def write(drawn, journal, number):
    """Writes once, and notes what it was told. Without a note, the process was killed: the outcome is unknown."""
    keys, ts = guest_batch(drawn, number), time.time_ns()
    value = f"{GUEST}{number}"
    journal.tell("intent", write=number, ts=ts, rows={key: None if gone else value for key, gone in keys.items()})
    sink = make_sink(drawn, GUEST)
    try:
        sink.write(to_rows(ts, value, keys))
    except CommitOutcomeUnknownError:
        journal.tell("unknown", write=number)
    except Exception as error:
        journal.tell("refused", write=number)
        tell_error(journal, "write", error)
    else:
        journal.tell("acknowledged", write=number)
    finally:
        sink.stop()


def main():
    drawn, name = begin()
    journal, luck = Journal(drawn.journals, name), random.Random()
    number = sum(line["what"] == "intent" for line in read_journal(drawn.journals, name))
    while not is_over(drawn):
        write(drawn, journal, number)
        number += 1
        time.sleep(luck.uniform(0.0, 0.5))


if __name__ == "__main__":
    main()

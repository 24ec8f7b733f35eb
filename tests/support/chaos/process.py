"""What every process of a world does first."""

import json
import logging
import os
import sys
import traceback

from bad_disk import spoil_disk

from chaos.draw import Drawn
from table.storage import backend


def begin():
    """The world that the command line names, and the process's name. Silences the log, and spoils a toxic disk."""
    import structlog

    logging.disable(logging.CRITICAL)
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    with open(sys.argv[1]) as file:
        drawn, name = Drawn(**json.load(file)), sys.argv[2]
    is_witness = name in ("first", "judge") or len(sys.argv) > 3
    if drawn.toxic and drawn.storage:
        backend.REQUEST_TIMEOUT_S = 8.0  # a world lasts a quarter of a minute
    elif drawn.toxic and not is_witness:
        spoil_disk(f"{drawn.seed} {name} {os.getpid()}", share=0.008)
    return drawn, name


def is_over(drawn):
    """Whether the world ends: the process stops after what it does."""
    return os.path.exists(os.path.join(drawn.journals, "over"))


def open_table(drawn):
    """The table, opened anew."""
    from hudistream import HudiTable

    return HudiTable.open(drawn.path, drawn.storage)


def tell_error(journal, doing, error, **more):
    """An error as a line; `ours` tells errors of the project from others, `damage` that a file is damaged."""
    from hudistream import BrokenInvariantError, CorruptFileError, HudiError

    ours = isinstance(error, HudiError) and not isinstance(error, BrokenInvariantError | CorruptFileError)
    more["damage"] = isinstance(error, CorruptFileError)
    kind, where = type(error).__name__, traceback.format_exc()[-3000:]
    journal.tell("error", doing=doing, kind=kind, ours=ours, text=str(error)[:500], trace="" if ours else where, **more)

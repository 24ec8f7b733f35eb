"""The log: events with fields, through Python's `logging`.

Every logger lies below ``hudistream`` (``hudistream.sink``, ``hudistream.clean`` …). An event is a name and fields. Its
record has the text ``event key=value key=value`` and an attribute ``hudistream``: a dict with ``event`` and the fields.

Levels:

- INFO: one line per batch (``batch_committed``, ``batch_skipped``, or ``batch_empty``), a line every ten seconds of a
  batch that takes longer, and what happens once in a while: a table was created, a savepoint was restored.
- DEBUG: the steps of a batch, its whole summary, every file that a clean deletes and by which rule.
- WARNING and ERROR: an operator should look at it.

Who decides where the lines go:

- The application has configured `logging`, so that the root logger or ``hudistream`` has a handler: its handlers
  and levels count, and nothing is added. A `logging.NullHandler` on ``hudistream`` makes it silent.
- The program has not configured `logging`: ``hudistream`` gets a handler of ours that writes to standard error,
  from INFO on. It is removed as soon as the application adds a handler. The root logger is never touched.
- The application has called ``structlog.configure``: events go to structlog as configured there.

On the workers the same rules hold in each Python process; by default the lines are in the executors' standard error.
"""

import logging
import sys
from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager
from typing import Any

import structlog

ROOT = "hudistream"
FIELDS = "hudistream"
"""Attribute of a `logging.LogRecord` that holds the event's fields."""

_NEEDS_QUOTES = frozenset(' "=\n\r\t')
_STACK_LEVEL = 6  # 1 and 2 are structlog's calls of `logging`, then its wrapper, `_log`, `EventLogger.info`, its caller


class EventLogger:
    """Logs events with fields.

    Args:
        name: of the logger, below ``hudistream``.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._logger = structlog.wrap_logger(
            logging.getLogger(name),
            processors=[structlog.stdlib.filter_by_level, structlog.contextvars.merge_contextvars, _to_record],
            wrapper_class=structlog.stdlib.BoundLogger,
            context_class=dict,
            cache_logger_on_first_use=True,
        )

    def debug(self, event: str, **fields: Any) -> None:
        """A step, for a person who looks for a fault."""
        self._log("debug", event, fields)

    def info(self, event: str, **fields: Any) -> None:
        """What became of a batch, or of a table."""
        self._log("info", event, fields)

    def warning(self, event: str, **fields: Any) -> None:
        """An operator should look at it. The work continues."""
        self._log("warning", event, fields)

    def error(self, event: str, **fields: Any) -> None:
        """Something failed."""
        self._log("error", event, fields)

    def exception(self, event: str, **fields: Any) -> None:
        """Something failed, with the traceback of the exception that is being handled."""
        self._log("error", event, {"exc_info": True, **fields})

    def _log(self, method: str, event: str, fields: dict[str, Any]) -> None:
        if structlog.is_configured():
            getattr(structlog.get_logger(self._name), method)(event, **fields)
            return
        _settle_handler()
        getattr(self._logger, method)(event, **fields)


def get_logger(name: str) -> EventLogger:
    """The logger of a module.

    Args:
        name: ``hudistream.`` and what the module does.
    """
    return EventLogger(name)


@contextmanager
def logging_to_stderr(level: int, without: frozenset[str] = frozenset()) -> Iterator[None]:
    """Lets a command write its log to standard error, from a level on; afterwards everything is as it was.

    Args:
        level: of `logging`.
        without: events that are left out: the command says the same itself.
    """
    logger = logging.getLogger(ROOT)
    handler, before, propagated = _StderrHandler(), logger.level, logger.propagate
    handler.addFilter(lambda record: getattr(record, FIELDS, {}).get("event") not in without)
    logger.addHandler(handler)
    logger.setLevel(level)
    logger.propagate = False
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(before)
        logger.propagate = propagated


class _StderrHandler(logging.Handler):
    """Writes short lines to what standard error is at that moment."""

    def __init__(self) -> None:
        super().__init__()
        self.setFormatter(logging.Formatter("%(asctime)s %(levelname)-7s %(message)s", "%H:%M:%S"))

    def emit(self, record: logging.LogRecord) -> None:
        """Writes one line; a failure here fails no batch."""
        try:
            sys.stderr.write(f"{self.format(record)}\n")
            sys.stderr.flush()
        except Exception:  # noqa: BLE001 as every handler of `logging`
            self.handleError(record)


class _Default:
    """Our handler, and whether the level of ``hudistream`` is ours, too."""

    handler = _StderrHandler()
    owns_level = False


def _settle_handler() -> None:
    """Adds our handler if the program has not configured `logging`, and removes it if it has by now."""
    logger = logging.getLogger(ROOT)
    others = logging.getLogger().handlers or [h for h in logger.handlers if h is not _Default.handler]
    is_ours = _Default.handler in logger.handlers
    if others and is_ours:
        logger.removeHandler(_Default.handler)
        if _Default.owns_level and logger.level == logging.INFO:
            logger.setLevel(logging.NOTSET)
        _Default.owns_level = False
    elif not others and not is_ours:
        logger.addHandler(_Default.handler)
        if logger.level == logging.NOTSET:
            logger.setLevel(logging.INFO)
            _Default.owns_level = True


def _to_record(_logger: Any, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """An event as the arguments of a `logging.Logger` method: the last of structlog's processors."""
    given = {name: event.pop(name) for name in ("exc_info", "stack_info") if name in event}
    name = event.pop("event")
    fields = {"event": name, **event}
    text = " ".join([str(name), *(f"{key}={_spelled(value)}" for key, value in event.items())])
    return {"msg": text, "extra": {FIELDS: fields}, "stacklevel": _STACK_LEVEL, **given}


def _spelled(value: Any) -> str:
    text = str(value)
    return repr(text) if not text or not _NEEDS_QUOTES.isdisjoint(text) else text

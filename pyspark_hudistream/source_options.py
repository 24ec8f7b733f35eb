"""Parses the options of the format ``hudistream`` (pure)."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from table.columns.near_name import did_you_mean
from table.errors import InvalidConfigError
from table.options.numbers import Whole
from table.options.read_options import (
    READ_HONOURED,
    READ_REFUSED,
    READ_WITHOUT_EFFECT,
    QueryType,
    ReadOptions,
    parse_read_options,
)
from table.options.values import Flag, Names, OneOf
from table.scan.feed.choices import FeedChoices, Moves

_OWN = (
    "path",
    "storage_options",
    "columns",
    "where",
    "as_of",
    "since",
    "until",
    "starting_offset",
    "max_instants_per_batch",
    "max_bytes_per_batch",
    "deletes",
    "before",
    "each_commit",
    "moves",
    "unchanged",
)
_OF_FEEDS = ("deletes", "before", "each_commit", "moves", "unchanged")
_OF_STREAMS = ("starting_offset", "max_instants_per_batch", "max_bytes_per_batch")
# Spark passes keys in lower case
_SPELLED = {key.lower(): key for key in (*READ_HONOURED, *READ_REFUSED, *READ_WITHOUT_EFFECT)}


@dataclass(frozen=True)
class SourceOptions:
    """The parsed options of a query.

    Attributes:
        path: the table.
        storage_options: for fsspec.
        columns: the columns wanted, in order; None means all.
        where: which rows, in the form of `table.scan.predicate.parse_where`; None means all.
        read: which rows by time.
        max_instants: most commits in a batch of a stream; None means all.
        max_bytes: most bytes of files that the commits of a batch wrote; None means all. A batch has at least one
            commit.
        of_streams: given options that are only for streams.
        feed: what a change feed shows; None: the rows themselves are wanted.
        without_effect: key -> why it has no effect.
    """

    path: str
    storage_options: Mapping[str, Any] = field(default_factory=dict, repr=False)
    columns: tuple[str, ...] | None = None
    where: list[Any] | None = None
    read: ReadOptions = field(default_factory=ReadOptions)
    max_instants: int | None = None
    max_bytes: int | None = None
    of_streams: tuple[str, ...] = ()
    feed: FeedChoices | None = None
    without_effect: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_limited(self) -> bool:
        """Whether a batch of a stream may leave commits to the next one."""
        return self.max_instants is not None or self.max_bytes is not None

    def check_for_batch(self) -> None:
        """Refuses options that are only for streams.

        Raises:
            InvalidConfigError: names the option.
        """
        if self.of_streams:
            raise InvalidConfigError(
                f"the option {self.of_streams[0]} is for streams (spark.readStream); spark.read takes since and until"
            )
        if self.feed is not None and (self.read.as_of is not None or self.read.query_type is QueryType.READ_OPTIMIZED):
            raise InvalidConfigError(
                f"{', '.join(_OF_FEEDS)} ask for the changes of a range: give since and until, and neither as_of nor "
                "read_optimized"
            )

    def check_for_stream(self) -> None:
        """Refuses options that a stream does not support.

        Raises:
            InvalidConfigError: names the option.
        """
        named = [name for name in ("as_of", "since", "until") if getattr(self.read, name) is not None]
        if named:
            raise InvalidConfigError(
                f"a stream reads on from its checkpoint: give starting_offset in place of {named[0]}"
            )
        if self.read.query_type is QueryType.READ_OPTIMIZED:
            raise InvalidConfigError("read_optimized is not for streams: rows would come whenever compaction runs")


def parse_source_options(options: Mapping[str, str]) -> SourceOptions:
    """Parses options.

    Args:
        options: keys and values. Keys of Hudi's reader may be in lower case, as Spark passes them.

    Raises:
        InvalidConfigError: names the option, its value and a remedy.
    """
    own = {key: value for key, value in options.items() if key in _OWN}
    hudis = {_SPELLED.get(key.lower(), key): value for key, value in options.items() if key not in _OWN}
    if "pushdown" in hudis:
        raise InvalidConfigError(
            "pushdown is not an option any more: Spark keeps the files that one filter chose for the next query on the "
            "same DataFrame, which then misses rows; use where"
        )
    for key in hudis:
        if not key.startswith(("hoodie.", "as.of.")) and key not in _SPELLED.values():
            raise InvalidConfigError(f"unknown option {key}{did_you_mean(key, _OWN)}")
    if not own.get("path", "").strip():
        raise InvalidConfigError("no path is given: load('/data/lake/table'), or option('path', …)")
    given = ReadOptions(
        as_of=own.get("as_of"),
        since=own.get("since"),
        until=own.get("until"),
        start=own.get("starting_offset"),
    )
    parsed = parse_read_options(hudis, given, own["path"])
    limits = {key: Whole(1).read(key, own[key]) for key in _OF_STREAMS[1:] if key in own}
    streams = [key for key in _OF_STREAMS if key in own]
    if parsed.options.start is not None and "starting_offset" not in own:
        streams.append("hoodie.datasource.streaming.startOffset")
    return SourceOptions(
        path=own["path"].strip(),
        storage_options=_object("storage_options", own.get("storage_options", "{}")),
        columns=_columns(own.get("columns")),
        where=_where(own.get("where")),
        read=parsed.options,
        max_instants=limits.get("max_instants_per_batch"),
        max_bytes=limits.get("max_bytes_per_batch"),
        of_streams=tuple(streams),
        feed=_feed(own),
        without_effect=parsed.without_effect,
    )


def _feed(own: Mapping[str, str]) -> FeedChoices | None:
    given: dict[str, Any] = {key: Flag().read(key, own[key]) for key in _OF_FEEDS if key in own and key != "moves"}
    if "moves" in own:
        given["moves"] = OneOf(Moves, what="choice").read("moves", own["moves"])
    return FeedChoices(**given) if given else None


def _columns(text: str | None) -> tuple[str, ...] | None:
    if text is None:
        return None
    if text.strip().startswith("["):
        given = _json("columns", text)
        if not isinstance(given, list) or not all(isinstance(name, str) for name in given):
            raise InvalidConfigError(f"columns={text}: give names, separated by commas, or a JSON list of names")
        names = tuple(given)
    else:
        names = Names().read("columns", text)
    if not names:
        raise InvalidConfigError("columns is empty: name columns, separated by commas, or leave it out")
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise InvalidConfigError(f"columns={text} names {twice} more than once")
    return names


def _where(text: str | None) -> list[Any] | None:
    if text is None:
        return None
    given = _json("where", text)
    groups = given if isinstance(given, list) else []
    if groups and all(_is_term(term) for term in groups):
        return [tuple(term) for term in groups]
    if groups and all(isinstance(group, list) and group and all(_is_term(term) for term in group) for group in groups):
        return [[tuple(term) for term in group] for group in groups]
    raise InvalidConfigError(
        f'where={text}: give a JSON list of terms, [["day", "=", "2026-01-02"]], or a list of such lists of which one '
        "is true"
    )


def _is_term(term: Any) -> bool:
    return isinstance(term, list) and len(term) == 3 and isinstance(term[0], str) and isinstance(term[1], str)


def _object(name: str, text: str) -> dict[str, Any]:
    given = _json(name, text, shown=False)
    if not isinstance(given, dict):
        raise InvalidConfigError(f"{name} is no JSON object")
    return given


def _json(name: str, text: str, *, shown: bool = True) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        what = f"{name}={text}" if shown else name  # storage_options hold secrets
        raise InvalidConfigError(f"{what} is no JSON: {error if shown else 'look at its quotes'}") from error

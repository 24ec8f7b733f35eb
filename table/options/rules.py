"""Rules about options that contradict each other (pure)."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from table.errors import InvalidConfigError
from table.options.choices import BloomType
from table.options.clustering_settings import ClusteringSettings, check_layout
from table.options.groups import KEEP_LATEST_COMMITS, ArchiveSettings, CleanSettings


def check_sort_columns(columns: tuple[str, ...], clustering: ClusteringSettings) -> None:
    """Refuses sort columns of a bulk insert that are no order, and a curve for which no columns are named.

    Args:
        columns: the sort columns of a bulk insert.
        clustering: its layout is that of the bulk insert, too.

    Raises:
        InvalidConfigError: names the option.
    """
    key = "hoodie.bulkinsert.user.defined.partitioner.sort.columns"
    if twice := sorted({name for name in columns if columns.count(name) > 1}):
        raise InvalidConfigError(f"{key} names {', '.join(twice)} twice: name each column once")
    if not columns:
        check_layout(clustering.layout, clustering.sort_columns)
    elif len(columns) > 1 or not clustering.sort_columns:  # one column is a line, whatever the clusterings' curve is
        check_layout(clustering.layout, columns, key)


def checked_retention(clean: CleanSettings, archive: ArchiveSettings, *, given: bool) -> ArchiveSettings:
    """The bounds of archival: archival must not retire an instant whose files the cleaner has not yet examined.

    Args:
        clean: what cleaning retains.
        archive: the bounds of archival.
        given: whether the user gave these bounds. Default bounds move up with the retained commits, and stay as far
            apart as Hudi's defaults.

    Raises:
        InvalidConfigError: names the three numbers.
    """
    retained = clean.commits_retained if clean.policy == KEEP_LATEST_COMMITS else 0
    if not given and retained >= archive.min_commits:
        return replace(archive, min_commits=retained + 10, max_commits=retained + 20)
    if not retained < archive.min_commits < archive.max_commits:
        raise InvalidConfigError(
            f"hoodie.clean.commits.retained={retained} < hoodie.keep.min.commits={archive.min_commits} < "
            f"hoodie.keep.max.commits={archive.max_commits} does not hold: archival would retire commits whose files "
            "are still to be cleaned; spread the three numbers"
        )
    return archive


def check_clean_spellings(parsed: Mapping[str, Any], spelled: Mapping[str, str]) -> None:
    """Refuses the two switches of asynchronous cleaning if they contradict each other.

    Off, Hudi's switch means cleaning after each commit before the next batch begins, and Flink's switch means no
    cleaning at all.

    Args:
        parsed: field -> value.
        spelled: field -> key and value as they were given.

    Raises:
        InvalidConfigError: names both.
    """
    ours, flinks = "clean.asynchronous", "clean.at_checkpoint"
    if ours not in parsed or flinks not in parsed or (parsed[ours] and parsed[flinks]):
        return
    raise InvalidConfigError(
        f"{spelled[ours]} and {spelled[flinks]} say different things: off, the first means cleaning after each commit, "
        "and the second none at all; keep one"
    )


def choose_bloom_type(parsed: dict[str, Any], spelled: Mapping[str, str]) -> None:
    """Selects dynamic filters, Hudi's default, if a bound of dynamic filters is given.

    Args:
        parsed: field -> value; the type is added if only the bound was given.
        spelled: field -> key and value as they were given.

    Raises:
        InvalidConfigError: the bound is given with a type of filter that has no bound.
    """
    bound, kind = "base_file.bloom_max_entries", "base_file.bloom_type"
    if bound in parsed and parsed.setdefault(kind, BloomType.DYNAMIC_V0) is not BloomType.DYNAMIC_V0:
        raise InvalidConfigError(
            f"{spelled[bound]} bounds the filters of {BloomType.DYNAMIC_V0}, and {spelled[kind]}: drop one of the two"
        )

"""What a table's properties say in another version (pure; SevenToEightUpgradeHandler, EightToNineUpgradeHandler, …)."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from table.config.key_generator import KeyEncoding
from table.config.merge_mode import LEGACY_PAYLOAD, PARTIAL_KEY, mode_in_force
from table.config.table_config import LAYOUTS, MERGER_VERSION, UPGRADED_UNTIL, TableConfig
from table.errors import InvalidConfigError, UnsupportedTableError

INITIAL_VERSION = "hoodie.table.initial.version"
_ARCHIVE = "hoodie.archivelog.folder"
_OF_MODE = frozenset({"hoodie.record.merge.mode"})
_OF_LAYOUT_2 = frozenset({INITIAL_VERSION, UPGRADED_UNTIL, "hoodie.timeline.path", "hoodie.timeline.history.path"})
_OF_CLASS = frozenset(
    {"hoodie.table.precombine.field", "hoodie.compaction.payload.class", "hoodie.record.merge.strategy.id"}
)
_OF_MERGER = frozenset({"hoodie.table.ordering.fields", "hoodie.table.format", LEGACY_PAYLOAD, PARTIAL_KEY})
# the keys that a version does not have
_UNKNOWN: Mapping[int, frozenset[str]] = MappingProxyType(
    {6: _OF_MODE | _OF_LAYOUT_2 | _OF_MERGER, 8: _OF_MERGER, 9: _OF_CLASS}
)


@dataclass(frozen=True)
class PropertyChange:
    """How ``hoodie.properties`` changes.

    Attributes:
        written: keys and values.
        removed: keys.
    """

    written: Mapping[str, str]
    removed: frozenset[str]


def check_convertible(config: TableConfig, to: int) -> None:
    """Refuses a version that is not written, and tables that the version cannot hold.

    Args:
        config: of the table; it says how its record keys are spelled (`with_key_encoding`).
        to: the version that it is to have.

    Raises:
        InvalidConfigError: the version is not one of those that are written.
        UnsupportedTableError: names the property that stands against it.
    """
    if to not in LAYOUTS:
        raise InvalidConfigError(f"table version {to} is not written: choose one of {', '.join(map(str, LAYOUTS))}")
    if to < MERGER_VERSION:
        if len(config.ordering_fields) > 1:
            raise UnsupportedTableError(
                f"the table {config.name!r} has hoodie.table.ordering.fields={','.join(config.ordering_fields)}: one "
                f"field orders the records of a table of version {to}; keep version {config.version}"
            )
        return
    mode = mode_in_force(config.version, config.payload_class, config.extra)
    if mode is None:
        raise UnsupportedTableError(
            f"the table {config.name!r} has hoodie.compaction.payload.class={config.payload_class}: version {to} says "
            "in other properties how such records are merged, which are not written here; keep version 6 or 8, or let "
            "Hudi upgrade the table"
        )
    if config.has_complex_key_of_one_field and config.key_encoding is not KeyEncoding.FIELD_PREFIXED:
        raise UnsupportedTableError(
            f"the table {config.name!r} has hoodie.table.keygenerator.type=COMPLEX and one record key field, and its "
            f"keys hold the value alone: Hudi 1.1 and later put {config.record_key_fields[0]!r} and a colon before it "
            f"in version {to}, and would not find them; keep version {config.version}"
        )


def change_properties(config: TableConfig, to: int) -> PropertyChange:
    """What the properties of a table become.

    Args:
        config: of the table, without a metadata table.
        to: a version that `check_convertible` allows.
    """
    mode = mode_in_force(config.version, config.payload_class, config.extra)
    payload = config.extra.get(LEGACY_PAYLOAD) or (mode.payload_class if mode is not None else config.payload_class)
    layout = LAYOUTS[to]
    archive = config.archive_folder
    if layout != config.layout_version:
        archive = "history" if layout > 1 else config.extra.get(_ARCHIVE) or "archived"
    converted = replace(config, version=to, layout_version=layout, archive_folder=archive, payload_class=payload)
    written = {**converted.to_properties(), INITIAL_VERSION: config.extra.get(INITIAL_VERSION) or str(config.version)}
    written[_ARCHIVE] = config.extra.get(_ARCHIVE) or "archived"
    if to >= MERGER_VERSION:
        written[LEGACY_PAYLOAD] = payload
    removed = _UNKNOWN[to]
    return PropertyChange({key: value for key, value in written.items() if key not in removed}, removed)

"""How a table merges records of one key, according to its properties (pure; HoodieRecordPayload, RecordMergeMode).

In table version 6 the payload class decides. From version 8 on ``hoodie.record.merge.mode`` decides.
"""

from collections.abc import Mapping

from table.config.choice import Choice
from table.errors import UnsupportedTableError

_PACKAGE = "org.apache.hudi.common.model."
PAYLOAD_STRATEGY = "00000000-0000-0000-0000-000000000000"  # the payload class decides


class MergeMode(Choice):
    """The merge semantics of a table, fixed when the table is made.

    Attributes:
        EVENT_TIME: the record with the greater ordering value stays; ``DefaultHoodieRecordPayload``.
        COMMIT_TIME: the record that arrived last stays; ``OverwriteWithLatestAvroPayload``.
        PARTIAL_UPDATE: as EVENT_TIME, and nulls of the newer record are filled from the older one;
            ``PartialUpdateAvroPayload``, from version 9 on ``hoodie.table.partial.update.mode=IGNORE_DEFAULTS``.
    """

    EVENT_TIME = "EVENT_TIME"
    COMMIT_TIME = "COMMIT_TIME"
    PARTIAL_UPDATE = "PARTIAL_UPDATE"

    @property
    def compares_ordering(self) -> bool:
        """Whether ordering values decide which record stays."""
        return self is not MergeMode.COMMIT_TIME

    @property
    def fills_nulls(self) -> bool:
        """Whether nulls of the record that stays are filled from the other one."""
        return self is MergeMode.PARTIAL_UPDATE

    @property
    def payload_class(self) -> str:
        """``hoodie.compaction.payload.class``, with its package."""
        return _PACKAGE + _PAYLOADS[self]

    @property
    def strategy_id(self) -> str:
        """``hoodie.record.merge.strategy.id``."""
        return _STRATEGIES.get(self, PAYLOAD_STRATEGY)


_PAYLOADS = {
    MergeMode.EVENT_TIME: "DefaultHoodieRecordPayload",
    MergeMode.COMMIT_TIME: "OverwriteWithLatestAvroPayload",
    MergeMode.PARTIAL_UPDATE: "PartialUpdateAvroPayload",
}
_STRATEGIES = {
    MergeMode.EVENT_TIME: "eeb8d96f-b1e4-49fd-bbf8-28ac514178e5",
    MergeMode.COMMIT_TIME: "ce9acb64-bde0-424c-9b91-f6ebba25356d",
}


_NAMED_BY_CLASS = 6  # the last version whose payload class alone decides
_MODE_KEY = "hoodie.record.merge.mode"
_STRATEGY_KEY = "hoodie.record.merge.strategy.id"
_MODES = {"EVENT_TIME_ORDERING": MergeMode.EVENT_TIME, "COMMIT_TIME_ORDERING": MergeMode.COMMIT_TIME}
LEGACY_PAYLOAD = "hoodie.table.legacy.payload.class"
PARTIAL_KEY, IGNORE_DEFAULTS = "hoodie.table.partial.update.mode", "IGNORE_DEFAULTS"
_MERGER_PROPERTIES = "hoodie.record.merge.property."


def merge_mode_in(properties: Mapping[str, str]) -> MergeMode | None:
    """The mode that a table of version 8 or 9 names; None if its payload class decides.

    The payload class decides if the table names no mode, or the mode ``CUSTOM`` with the merge strategy of payload
    classes.

    Args:
        properties: properties of the table.

    Raises:
        UnsupportedTableError: this project does not know how the table merges; names property, value and way out.
    """
    mode, partial = (properties.get(key, "").strip().upper() for key in (_MODE_KEY, PARTIAL_KEY))
    special = [key for key in sorted(properties) if key.startswith(_MERGER_PROPERTIES)]
    is_partial = (_MODES.get(mode), partial) == (MergeMode.EVENT_TIME, IGNORE_DEFAULTS)
    refused = [PARTIAL_KEY] if partial and not is_partial else special[:1]
    by_payload = mode == "CUSTOM" and properties.get(_STRATEGY_KEY) == PAYLOAD_STRATEGY
    if mode and mode not in _MODES and not by_payload:
        refused = [_MODE_KEY]
    if refused:
        raise UnsupportedTableError(
            f"the table has {refused[0]}={properties[refused[0]]}: how it merges records is not known here; let Hudi "
            "write and compact the table"
        )
    return MergeMode.PARTIAL_UPDATE if is_partial else _MODES.get(mode)


def mode_properties(mode: MergeMode | None, *, by_class: bool) -> dict[str, str]:
    """The properties that name a mode, in a table of version 8 or 9.

    Args:
        mode: of the table; None where its payload class decides.
        by_class: whether the payload class says what ``hoodie.record.merge.mode`` cannot, as in version 8.
    """
    if mode is MergeMode.PARTIAL_UPDATE and not by_class:
        named = {_MODE_KEY: "EVENT_TIME_ORDERING", PARTIAL_KEY: IGNORE_DEFAULTS}
        return {**named, LEGACY_PAYLOAD: mode.payload_class}
    return {_MODE_KEY: next((name for name, each in _MODES.items() if each is mode), "CUSTOM")}


def mode_in_force(version: int, payload_class: str, properties: Mapping[str, str]) -> MergeMode | None:
    """How a table merges records: in version 6 by its payload class, in later versions first by a mode.

    Args:
        version: version of the table.
        payload_class: payload class of the table.
        properties: properties of the table.

    Returns:
        The mode; None if the payload class decides and this project does not know it.

    Raises:
        UnsupportedTableError: see `merge_mode_in`.
    """
    named = merge_mode_in(properties) if version > _NAMED_BY_CLASS else None
    return named or merge_mode_of(payload_class)


def merge_mode_of(payload_class: str) -> MergeMode | None:
    """The mode of one of Hudi's payload classes, with or without its package; None for any other class."""
    name = payload_class.strip().removeprefix(_PACKAGE)
    return next((mode for mode, known in _PAYLOADS.items() if known == name), None)

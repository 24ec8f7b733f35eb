"""Small frozen groups of settings that several rooms share and workers receive."""

from dataclasses import dataclass


@dataclass(frozen=True)
class BaseFileSettings:
    """How base files are written.

    Attributes:
        codec: ``zstd``, ``snappy``, ``gzip``, ``lz4`` or ``none``.
        codec_level: level of the codec, or None for its default.
        row_group_bytes: Arrow bytes of rows that make a row group.
        bloom_type: ``SIMPLE`` or ``DYNAMIC_V0``.
        bloom_entries: size of the filter in keys, or None to fit it to the file (60,000 for DYNAMIC_V0).
        bloom_fpp: false positive rate of the filter.
        bloom_max_entries: bound of a DYNAMIC_V0 filter in keys.
        bloom_headroom: how many times the file's keys a fitted filter is sized for.
        dictionary: whether columns of the table are dictionary-encoded.
        verify_share: share of the files made of copied row groups that are read whole before they count.
    """

    codec: str = "zstd"
    codec_level: int | None = 1
    row_group_bytes: int = 32 * 1024 * 1024
    bloom_type: str = "SIMPLE"
    bloom_entries: int | None = None
    bloom_fpp: float = 1e-6
    bloom_max_entries: int = 100_000
    bloom_headroom: float = 2.0
    dictionary: bool = True
    verify_share: float = 0.0


@dataclass(frozen=True, slots=True)
class HeartbeatSettings:
    """``hoodie.client.heartbeat.interval_in_ms`` and ``hoodie.client.heartbeat.tolerable.misses``."""

    interval_ms: int = 60_000
    tolerable_misses: int = 2

    @property
    def expiry_ms(self) -> int:
        """Age at which a heartbeat counts as dead."""
        return self.interval_ms * self.tolerable_misses

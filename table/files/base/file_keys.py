"""The record keys of a file while it is written: its bloom filter, its key range, and what an index remembers."""

from collections.abc import Callable

import pyarrow as pa

from table.errors import InvalidRecordError
from table.files.base.hudi_footer import filter_of_footer, key_range, stored_bounds
from table.files.bloom import bloom_filter
from table.files.bloom.bloom_filter import AnyBloomFilter
from table.files.parquet.footer import Footer
from table.options.groups import BaseFileSettings

Keys = list[pa.Array]

MOST_KEY_BYTES = 2**31 - 1  # an array of Arrow holds no more text, and the keys of a file are looked up as one array


def check_keys_fit(key_bytes: int) -> None:
    """Refuses more record keys in one file than can be looked up.

    Args:
        key_bytes: bytes of the keys that a batch, or a service, brings to the file.

    Raises:
        InvalidRecordError: it names the limit and the ways out.
    """
    if key_bytes > MOST_KEY_BYTES:
        raise InvalidRecordError(
            f"the record keys for one file take {key_bytes} bytes, and {MOST_KEY_BYTES} is the most: write smaller "
            "batches, or make smaller file groups (hoodie.parquet.max.file.size, hoodie.bucket.index.num.buckets); "
            "nothing of the batch is visible"
        )


class FileKeys:
    """Collects the record keys of a file's rows. The filter is sized by their number, so it is made at the end.

    Args:
        settings: sizes of the filter.
        older: footer of the file that is continued. Its filter is extended while it has room, unless the settings ask
            for keys made anew: a filter cannot forget a deleted key.
        knows_bounds: whether the older file's key range is taken over, too.

    Attributes:
        written: keys of the rows that are encoded, in order.
    """

    def __init__(self, settings: BaseFileSettings, older: Footer | None = None, *, knows_bounds: bool = False) -> None:
        self._settings = settings
        older = None if settings.keys_anew else older
        self._filter = filter_of_footer(older, settings.bloom_max_entries) if older is not None else None
        self._bounds = stored_bounds(older) if older is not None and knows_bounds else None
        self._carried: Keys = []
        self._new: Keys = []
        self._new_bytes = 0
        self.written: Keys = []

    def add(self, keys: Keys, *, carried: bool) -> None:
        """Adds the keys of rows that are encoded.

        Args:
            keys: string arrays without nulls.
            carried: whether the older file's filter holds them.

        Raises:
            InvalidRecordError: as `check_keys_fit`.
        """
        if not carried:
            self._new_bytes += sum(int(part.nbytes) for part in keys)
            check_keys_fit(self._new_bytes)
        self.written.extend(keys)
        (self._carried if carried else self._new).extend(keys)

    def add_tail(self, keys: Keys) -> None:
        """Adds the keys of the older file's last rows, which are encoded before all others."""
        self.written = [*keys, *self.written]
        self._carried.extend(keys)

    def summarize(
        self, rows: int, data_bytes: int, read_copied: Callable[[], Keys]
    ) -> tuple[AnyBloomFilter, tuple[str, str] | None]:
        """The filter and the range of all keys.

        Args:
            rows: rows of the file.
            data_bytes: bytes before the footer.
            read_copied: reads the keys of the row groups that were copied. It is called only if the older file's
                filter or range does not do.

        Returns:
            The filter, and least and greatest key (None without rows).
        """
        new = pa.chunked_array(self._new, pa.string()).combine_chunks()
        fresh = len(new) == rows
        extended = None if fresh else self._extended(new, rows)
        if extended is not None and self._bounds is not None:
            known = [pa.array(self._bounds)]
        else:
            known = [*read_copied(), *self._carried]
        if extended is None:
            every = pa.chunked_array([*known, new], pa.string()).combine_chunks()
            extended = bloom_filter.fitted_filter(self._settings, len(every), data_bytes).added(every)
        keys = pa.chunked_array([*known, new], pa.string())
        return extended, key_range(keys) if len(keys) else None

    def _extended(self, new: pa.Array, rows: int) -> AnyBloomFilter | None:
        """The older file's filter with the new keys; None if it has no room for them."""
        carried = self._filter
        if carried is None:
            return None
        # a bloom filter cannot forget keys, so it is sized by the keys ever added, not by the rows that remain
        held = max(rows, carried.keys_held + len(new))
        return carried.added(new) if bloom_filter.can_extend(carried, self._settings, held) else None

"""Hudi's bloom filters, bit for bit, a column of keys at a time (pure).

Two forms: SIMPLE is one row of bits (SimpleBloomFilter, InternalBloomFilter); DYNAMIC_V0 is several, each
for a fixed number of keys, up to a bound (HoodieDynamicBoundedBloomFilter, InternalDynamicBloomFilter).

The hash is Hadoop's MurmurHash, in which tail bytes are sign-extended; the k-th hash is seeded with
the one before it. Values that depend on the key alone are computed once, so each of the k rounds
costs two operations for four bytes of key.
"""

import base64
import binascii
import math
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from table.errors import CorruptFileError
from table.files.bloom.filter_size import bytes_per_entry, entries_per_key, fitted_entries
from table.files.bloom.key_hashes import Bits, hash_rounds
from table.options.groups import BaseFileSettings

SIMPLE, DYNAMIC_V0 = "SIMPLE", "DYNAMIC_V0"

_SPARSE = 32  # from this number of filter bits per bit to set, setting single bits is cheaper than touching all
_FEW_KEYS = 256
_SAMPLE_BYTES = 32 * 1024  # shows the share of set bits within tenths of a percent, as hashes spread evenly
HEADER_BYTES = 13
_MAX_BITS = 2**31 - 1
DEFAULT_ENTRIES = 60_000  # hoodie.index.bloom.num_entries


def filter_bits(entries: int, fpp: float) -> int:
    """Size of a filter in bits for that many keys at that false positive rate (BloomFilterUtils)."""
    return min(_MAX_BITS, math.ceil(entries * (-math.log(fpp) / (math.log(2) * math.log(2)))))


def hash_count(entries: int, bits: int) -> int:
    """Number of hash functions (BloomFilterUtils.getNumHashes)."""
    return math.ceil(math.log(2) * bits / entries)


@dataclass(frozen=True)
class BloomFilter:
    """A SIMPLE filter: one row of bits.

    Attributes:
        hashes: rounds per key.
        bits: number of bits.
        bitmap: ``ceil(bits / 8)`` bytes, bit i at byte i >> 3, mask 1 << (i & 7).
    """

    hashes: int
    bits: int
    bitmap: Bits

    def added(self, keys: pa.Array) -> "BloomFilter":
        """A copy of this filter with these keys added (string array without nulls)."""
        if self.is_sparse(keys):
            return self._with_few(keys)
        flags = np.zeros(8 * len(self.bitmap), np.uint8)  # a byte for each bit
        for _, rounds in hash_rounds(keys, self.hashes):
            for values in _joined(rounds):
                flags[remainder(values, self.bits)] = 1
        return replace(self, bitmap=np.packbits(flags, bitorder="little") | self.bitmap)

    def is_sparse(self, keys: pa.Array) -> bool:
        """Whether the keys are so few that setting single bits is cheaper than touching all bits of the filter."""
        return len(keys) * self.hashes * _SPARSE < self.bits

    def holds(self, index: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        """Whether these bits are set."""
        found: npt.NDArray[np.bool_] = (self.bitmap[index >> 3] >> (index & 7).astype(np.uint8)) & 1 == 1
        return found

    def first_bytes(self, count: int) -> Bits:
        """The beginning of its bitmap."""
        return self.bitmap[:count]

    def _with_few(self, keys: pa.Array) -> "BloomFilter":
        bitmap = self.bitmap.copy()
        for _, rounds in hash_rounds(keys, self.hashes):
            for values in _joined(rounds):
                index = remainder(values, self.bits)
                np.bitwise_or.at(bitmap, index >> 3, np.uint8(1) << (index & 7).astype(np.uint8))
        return replace(self, bitmap=bitmap)

    def screen(self, hashes: npt.NDArray[np.uint32]) -> npt.NDArray[np.bool_]:
        """For each key False when its first hashes (`screen_hashes`) say that it was never added."""
        open_keys = np.arange(hashes.shape[1])
        for values in hashes[: self.hashes]:
            open_keys = open_keys[self.holds(remainder(values[open_keys], self.bits))]
            if not len(open_keys):
                break
        passed = np.zeros(hashes.shape[1], np.bool_)
        passed[open_keys] = True
        return passed

    @property
    def size_bytes(self) -> int:
        """Memory of its bits."""
        return len(self.bitmap)

    def may_contain(self, keys: pa.Array) -> npt.NDArray[np.bool_]:
        """For each key False when it was surely never added."""
        found = np.ones(len(keys), np.bool_)
        for positions, rounds in hash_rounds(keys, self.hashes):
            hit = np.ones(len(positions), np.bool_)
            for values in rounds:
                hit &= self.holds(remainder(values, self.bits))
            found[positions] = hit
        return found

    @property
    def entries(self) -> int:
        """About how many keys the filter was sized for."""
        return max(1, round(math.log(2) * self.bits / self.hashes))

    @property
    def keys_held(self) -> int:
        """About how many keys the filter holds, by the share of its bits that are set; a large filter is sampled."""
        sample = self.first_bytes(_SAMPLE_BYTES)
        share = int.from_bytes(sample.tobytes(), "big").bit_count() / min(self.bits, 8 * len(sample))
        return round(-self.bits / self.hashes * math.log1p(-min(share, 1 - 1e-12)))

    @property
    def type_code(self) -> str:
        """``SIMPLE``."""
        return SIMPLE

    def encode(self) -> str:
        """The filter as base64 text for the footer's ``org.apache.hudi.bloomfilter``."""
        return str(base64.b64encode(_encode_row(self)), "ascii")


@dataclass(frozen=True)
class DynamicBloomFilter:
    """A DYNAMIC_V0 filter: rows of bits, each for the same number of keys.

    Attributes:
        hashes: rounds per key.
        bits: bits of each row.
        row_keys: keys per row of the filter.
        max_keys: keys for which rows are added; further keys go round-robin over the existing rows.
        held: keys in the last row, and all keys added beyond `max_keys`.
        rows: the rows.
    """

    hashes: int
    bits: int
    row_keys: int
    max_keys: int
    held: int
    rows: tuple[BloomFilter, ...]

    def added(self, keys: pa.Array) -> "DynamicBloomFilter":
        """A copy of this filter with these keys added (string array without nulls)."""
        rows, held, at = list(self.rows), self.held, 0
        while at < len(keys):
            if held >= self.row_keys:
                if len(rows) * self.row_keys >= self.max_keys:
                    break
                rows.append(empty_filter(self.hashes, self.bits))
                held = 0
            taken = keys.slice(at, self.row_keys - held)
            rows[-1] = rows[-1].added(taken)
            at, held = at + len(taken), held + len(taken)
        rest = keys.slice(at)
        if len(rest):
            # the first key beyond the bound goes to row 0, then 0, 1, 2 … in turn: Java's
            # round-robin counter starts at the bound and is not stored, so it starts anew in a filter that is read back
            first = max(0, held - self.row_keys)
            numbers = np.arange(first, first + len(rest))
            targets = np.where(numbers == 0, 0, (numbers - 1) % len(rows))
            for row in range(len(rows)):
                mine = rest.filter(pa.array(targets == row))
                if len(mine):
                    rows[row] = rows[row].added(mine)
            held += len(rest)
        return replace(self, held=held, rows=tuple(rows))

    def screen(self, hashes: npt.NDArray[np.uint32]) -> npt.NDArray[np.bool_]:
        """For each key False when its first hashes (`screen_hashes`) say that it was never added."""
        passed = np.zeros(hashes.shape[1], np.bool_)
        for row in self.rows:
            passed |= row.screen(hashes)
        return passed

    @property
    def size_bytes(self) -> int:
        """Memory of its bits."""
        return sum(row.size_bytes for row in self.rows)

    def may_contain(self, keys: pa.Array) -> npt.NDArray[np.bool_]:
        """For each key False when it was surely never added."""
        found = np.zeros(len(keys), np.bool_)
        for row in self.rows:
            found |= row.may_contain(keys)
        return found

    @property
    def entries(self) -> int:
        """The number of keys up to which the filter keeps its false positive rate."""
        return self.max_keys

    @property
    def keys_held(self) -> int:
        """How many keys the filter holds."""
        return (len(self.rows) - 1) * self.row_keys + self.held

    @property
    def type_code(self) -> str:
        """``DYNAMIC_V0``."""
        return DYNAMIC_V0

    def encode(self) -> str:
        """The filter as base64 text for the footer."""
        header = _encode_header(self.hashes, self.bits)
        counts = b"".join(number.to_bytes(4, "big") for number in (self.row_keys, self.held, len(self.rows)))
        return base64.b64encode(header + counts + b"".join(map(_encode_row, self.rows))).decode("ascii")


AnyBloomFilter = BloomFilter | DynamicBloomFilter


def _joined(rounds: list[npt.NDArray[np.uint32]]) -> list[npt.NDArray[np.uint32]]:
    """The rounds of few keys in one array: for few keys a call of numpy costs more than the hashes."""
    return [np.concatenate(rounds)] if rounds and len(rounds[0]) <= _FEW_KEYS else rounds


def remainder(values: npt.NDArray[np.uint32], bits: int) -> npt.NDArray[np.int64]:
    """The number of the bit that each hash names, in a filter of `bits` bits."""
    # numpy divides by a scalar with SIMD, but takes remainders one by one
    divisor = np.uint32(bits)
    return (values - values // divisor * divisor).astype(np.int64)


def empty_filter(hashes: int, bits: int) -> BloomFilter:
    """A SIMPLE filter without keys."""
    return BloomFilter(hashes, bits, np.zeros((bits + 7) // 8, np.uint8))


def sized_filter(entries: int, fpp: float) -> BloomFilter:
    """A SIMPLE filter without keys, sized for `entries` keys at that false positive rate."""
    entries = max(1, entries)
    bits = filter_bits(entries, fpp)
    return empty_filter(hash_count(entries, bits), bits)


def sized_dynamic_filter(entries: int, fpp: float, max_entries: int) -> DynamicBloomFilter:
    """A DYNAMIC_V0 filter without keys: rows for `entries` keys each, `max_entries` in all."""
    row = sized_filter(entries, fpp)
    return DynamicBloomFilter(row.hashes, row.bits, max(1, entries), max_entries, 0, (row,))


def fitted_filter(settings: BaseFileSettings, keys: int, data_bytes: int = 0) -> AnyBloomFilter:
    """An empty filter for a file with that many keys, with room to grow unless its size is fixed.

    Args:
        settings: type, size and rate of the filter.
        keys: number of keys in the file.
        data_bytes: bytes of the file's rows (`fitted_entries`); 0: not known.
    """
    if settings.bloom_type == DYNAMIC_V0:
        entries = settings.bloom_entries or DEFAULT_ENTRIES
        return sized_dynamic_filter(entries, settings.bloom_fpp, settings.bloom_max_entries)
    return sized_filter(settings.bloom_entries or fitted_entries(settings, keys, data_bytes), settings.bloom_fpp)


def filter_bytes_per_key(settings: BaseFileSettings) -> float:
    """How many bytes each key of a full file takes in the text of its filter; 0 where its size is fixed."""
    if settings.bloom_type == DYNAMIC_V0 or settings.bloom_entries:
        return 0.0
    return entries_per_key(settings) * bytes_per_entry(settings.bloom_fpp)


def can_extend(carried: AnyBloomFilter, settings: BaseFileSettings, keys: int) -> bool:
    """Whether a filter of the wanted form can hold a file's keys and keep its rate.

    A filter of fixed size is extended however full it is: a new one would have the same size and the same keys.

    Args:
        carried: the filter of the file before.
        settings: type, size and rate of the wanted filter.
        keys: keys of the new file, carried ones included.
    """
    wanted = fitted_filter(settings, keys)
    if carried.type_code != settings.bloom_type:
        return False
    if settings.bloom_type == DYNAMIC_V0 or settings.bloom_entries:
        return (carried.hashes, carried.bits) == (wanted.hashes, wanted.bits)
    # rounding changes the hash count of small filters, and `entries` is computed from the hash count
    return abs(carried.hashes - wanted.hashes) <= 1 and keys <= carried.entries * 1.05


def _encode_header(hashes: int, bits: int) -> bytes:
    return b"\xff\xff\xff\xff" + hashes.to_bytes(4, "big") + b"\x01" + bits.to_bytes(4, "big")


def _encode_row(bloom: BloomFilter) -> bytes:
    return b"".join((_encode_header(bloom.hashes, bloom.bits), bloom.bitmap.data))


def decode_filter(text: str, type_code: str | None, max_entries: int) -> AnyBloomFilter:
    """The filter of a footer.

    Args:
        text: base64 of ``org.apache.hudi.bloomfilter``.
        type_code: ``hoodie_bloom_filter_type_code``; None means SIMPLE.
        max_entries: bound for keys that are added later; the stored form of DYNAMIC_V0 does not hold it.

    Raises:
        CorruptFileError: when the text is no such filter.
    """
    try:
        data = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise CorruptFileError(f"a bloom filter is not base64: {error}") from error
    if type_code in (None, SIMPLE):
        row, end = _decode_row(data, 0)
        _check_end(data, end)
        return row
    if type_code != DYNAMIC_V0:
        raise CorruptFileError(f"a bloom filter has the unknown type {type_code!r}")
    hashes, bits = decode_header(data, 0)
    if len(data) < HEADER_BYTES + 12:
        raise CorruptFileError("a dynamic bloom filter is cut short")
    row_keys, held, count = (
        int.from_bytes(data[at : at + 4], "big") for at in range(HEADER_BYTES, HEADER_BYTES + 12, 4)
    )
    rows, at = [], HEADER_BYTES + 12
    for _ in range(count):
        row, at = _decode_row(data, at)
        rows.append(row)
    _check_end(data, at)
    if not rows or any((row.hashes, row.bits) != (hashes, bits) for row in rows) or row_keys < 1:
        raise CorruptFileError("a dynamic bloom filter has rows that do not belong together")
    return DynamicBloomFilter(hashes, bits, row_keys, max(max_entries, count * row_keys), held, tuple(rows))


def decode_simple(text: str) -> BloomFilter:
    """The filter of a footer without a type code.

    Raises:
        CorruptFileError: when the text is no such filter.
    """
    decoded = decode_filter(text, None, 0)
    assert isinstance(decoded, BloomFilter)
    return decoded


def decode_header(data: bytes, at: int) -> tuple[int, int]:
    """Hashes and bits of the filter whose stored form begins at byte `at`.

    Raises:
        CorruptFileError: when no filter begins there.
    """
    if len(data) < at + HEADER_BYTES or data[at : at + 4] != b"\xff\xff\xff\xff" or data[at + 8] != 1:
        raise CorruptFileError("a bloom filter has a header that is not Hudi's")
    hashes, bits = int.from_bytes(data[at + 4 : at + 8], "big"), int.from_bytes(data[at + 9 : at + 13], "big")
    if not 1 <= bits <= _MAX_BITS or not 1 <= hashes <= 1024:
        raise CorruptFileError(f"a bloom filter says it has {bits} bits and {hashes} hashes")
    return hashes, bits


def _decode_row(data: bytes, at: int) -> tuple[BloomFilter, int]:
    hashes, bits = decode_header(data, at)
    start, end = at + HEADER_BYTES, at + HEADER_BYTES + (bits + 7) // 8
    if end > len(data):
        raise CorruptFileError(f"a bloom filter of {bits} bits has {len(data) - start} bytes")
    return BloomFilter(hashes, bits, np.frombuffer(data, np.uint8, end - start, start)), end


def _check_end(data: bytes, end: int) -> None:
    if end != len(data):
        raise CorruptFileError(f"a bloom filter has {len(data) - end} bytes too many")

"""Which columns without a dictionary are stored as differences, and how (pure; Encodings.md of the format's project).

Whole numbers and times: DELTA_BINARY_PACKED, where all differences are small. Readers agree on those alone:
fastparquet reads wide ones wrong. Text: DELTA_BYTE_ARRAY where values begin as the one before,
DELTA_LENGTH_BYTE_ARRAY where all are equally long, if that is asked for: fastparquet refuses it.
"""

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from table.options.choices import DeltaEncodings

NUMBERS, PREFIXES, LENGTHS = "DELTA_BINARY_PACKED", "DELTA_BYTE_ARRAY", "DELTA_LENGTH_BYTE_ARRAY"

# differences below these: of 8 bytes what readers agree on (28 bits), of 4 bytes what takes clearly less than a value
_MOST = {64: 1 << 27, 32: 1 << 23}
_SAFE_RANGE = 1 << 62  # differences of such values do not overflow
_GROUPS, _TOGETHER, _LOOKED_AT = 64, 4, 64  # places that are sampled, values at each, bytes of a value
_LEAST_ROWS = _GROUPS * _TOGETHER
_LEAST_LENGTH = 8  # of texts of one length
_SHARED_PART = 4  # prefixes pay from this part of the values on


def choose_deltas(rows: pa.Table, names: Iterable[str], wanted: DeltaEncodings) -> dict[str, str]:
    """The columns that are stored as differences, with their encoding.

    Args:
        rows: what is to be written.
        names: the top-level columns without a dictionary.
        wanted: for which columns.
    """
    found: dict[str, str] = {}
    if wanted is DeltaEncodings.NONE or len(rows) < _LEAST_ROWS:
        return found
    for name in names:
        values = rows.column(name)
        if has_small_steps(values):
            found[name] = NUMBERS
        elif wanted is DeltaEncodings.ALL and pa.types.is_string(values.type):
            encoding = _encoding_of_text(values)
            if encoding is not None:
                found[name] = encoding
    return found


def has_small_steps(values: pa.ChunkedArray) -> bool:
    """Whether a column is of whole numbers or times, each of them near the one before it; nulls do not count."""
    kind = values.type
    is_number = pa.types.is_int64(kind) or pa.types.is_int32(kind)
    if not (is_number or pa.types.is_timestamp(kind) or pa.types.is_date32(kind)):
        return False
    numbers = values.cast(pa.int32() if kind.bit_width == 32 else pa.int64()) if not is_number else values
    ends = pc.min_max(numbers).as_py()
    if ends["min"] is None:
        return True
    extent, most = ends["max"] - ends["min"], _MOST[kind.bit_width]
    if extent < most:
        return True
    if extent >= _SAFE_RANGE:
        return False
    chunks = [chunk.drop_null().to_numpy(zero_copy_only=False) for chunk in numbers.chunks]
    steps = np.diff(np.concatenate(chunks).astype(np.int64, copy=False))
    return bool(-most < steps.min() and steps.max() < most)


def _encoding_of_text(values: pa.ChunkedArray) -> str | None:
    """How a column of text is best stored as differences, by a sample of neighbours; None: not at all."""
    starts = np.arange(_GROUPS) * (len(values) - _TOGETHER) // (_GROUPS - 1)
    taken = values.take(pa.array((starts[:, None] + np.arange(_TOGETHER)).ravel())).combine_chunks()
    sample = pa.concat_arrays(taken.chunks) if isinstance(taken, pa.ChunkedArray) else taken
    if sample.null_count:
        sample = pc.fill_null(sample, "")
    lengths = pc.binary_length(sample).to_numpy()
    shared = _shared_prefixes(sample, lengths)
    # of a value longer than what is looked at, that part stands for the whole
    if shared.mean() * _SHARED_PART >= max(1.0, np.minimum(lengths, _LOOKED_AT).mean()):
        return PREFIXES
    return LENGTHS if lengths.min() == lengths.max() >= _LEAST_LENGTH else None


def _shared_prefixes(sample: pa.Array, lengths: npt.NDArray[np.int32]) -> npt.NDArray[np.int64]:
    """How many bytes each value has in common with the one before it, those at the beginning of a place left out."""
    _, offset_buffer, data_buffer = sample.buffers()
    offsets = np.frombuffer(offset_buffer, np.int32)[sample.offset : sample.offset + len(sample)].astype(np.int64)
    data = np.frombuffer(data_buffer, np.uint8) if data_buffer is not None else np.zeros(0, np.uint8)
    at = offsets[:, None] + np.arange(_LOOKED_AT)
    padded = np.concatenate([data, np.zeros(1, np.uint8)])
    text = padded[np.minimum(at, len(data))].astype(np.int16)
    text[np.arange(_LOOKED_AT) >= lengths[:, None]] = -1
    blocks = text.reshape(-1, _TOGETHER, _LOOKED_AT)
    same = (blocks[:, 1:] == blocks[:, :-1]) & (blocks[:, 1:] >= 0)
    whole: npt.NDArray[np.int64] = np.logical_and.accumulate(same, axis=2).sum(axis=2)
    return whole

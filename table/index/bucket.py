"""The bucket index: a key's hash says its file group (BucketIdentifier, HoodieSimpleBucketIndex; pure)."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from table.files.key_hashes import same_length_blocks

_DIGITS = 8


def bucket_numbers(keys: pa.Array, buckets: int, hash_fields: Sequence[str]) -> npt.NDArray[np.int64]:
    """The bucket of each key: Java's hash of the list of its hashed parts, modulo the number of buckets.

    Args:
        keys: record keys (string array without nulls).
        buckets: how many there are.
        hash_fields: record key fields that count; keys without ``,`` and ``:`` count as they are.
    """
    hashes = np.zeros(len(keys), np.uint32)
    for positions, block in same_length_blocks(keys):
        h = np.zeros(len(positions), np.uint32)
        for column in block.T:
            h = h * np.uint32(31) + column
        hashes[positions] = h + np.uint32(31)  # a list of one: 31 * 1 + hash
    odd = pc.or_(pc.match_substring_regex(keys, "[,:]"), pc.not_equal(pc.utf8_length(keys), pc.binary_length(keys)))
    for position in np.flatnonzero(odd.to_numpy(zero_copy_only=False)).tolist():
        hashes[position] = _list_hash(hashed_parts(keys[position].as_py(), hash_fields))
    return (hashes & np.uint32(0x7FFFFFFF)).astype(np.int64) % buckets


def hashed_parts(key: str, hash_fields: Sequence[str]) -> list[str | None]:
    """The parts of a key that are hashed (KeyGenUtils.extractRecordKeysByFields)."""
    if "," not in key and ":" not in key:
        return [key]
    parts: list[str | None] = []
    for pair in key.split(","):
        name, _, value = pair.partition(":")
        if name in hash_fields:
            parts.append({"__null__": None, "__empty__": ""}.get(value, value))
    return parts


def _list_hash(parts: Sequence[str | None]) -> int:
    total = 1
    for part in parts:
        units = (part or "").encode("utf-16-be", "surrogatepass")
        h = 0
        for at in range(0, len(units), 2):
            h = (h * 31 + (units[at] << 8 | units[at + 1])) & 0xFFFFFFFF
        total = (total * 31 + h) & 0xFFFFFFFF
    return total


def bucket_of_file_id(file_id: str) -> int | None:
    """The bucket that a file group holds, by the digits its id begins with; None where it has none."""
    head = file_id[:_DIGITS]
    return int(head) if len(head) == _DIGITS and head.isascii() and head.isdigit() else None


def bucket_file_id(bucket: int, fresh_id: str) -> str:
    """The id of a bucket's file group.

    Args:
        bucket: its number.
        fresh_id: a new file id; its first eight characters give way to the number.
    """
    return f"{bucket:0{_DIGITS}d}" + fresh_id[_DIGITS:]

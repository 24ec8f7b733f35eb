"""The bucket index: the hash of a key determines its file group (BucketIdentifier, HoodieSimpleBucketIndex; pure)."""

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from table.files.java_hash import java_hash, java_hashes

_DIGITS = 8
_MOST_BUCKETS = 100_000
# one in 43 random file ids begins with eight digits, and one in 65,536 with a number below this limit
_MOST_TAKEN_FOR_BUCKETS = 2**16


def bucket_numbers(keys: pa.Array, buckets: int, hash_fields: Sequence[str]) -> npt.NDArray[np.int64]:
    """The bucket of each key: Java's hash of the list of its hashed parts, modulo the number of buckets.

    Args:
        keys: record keys (string array without nulls).
        buckets: number of buckets.
        hash_fields: record key fields that are hashed; a key without ``,`` or ``:`` is hashed as a whole.
    """
    hashes = java_hashes(keys) + np.uint32(31)  # a list of one: 31 * 1 + hash
    composite = pc.and_(pc.match_substring(keys, ","), pc.match_substring(keys, ":"))
    for position in np.flatnonzero(composite.to_numpy(zero_copy_only=False)).tolist():
        hashes[position] = _list_hash(hashed_parts(keys[position].as_py(), hash_fields))
    return (hashes & np.uint32(0x7FFFFFFF)).astype(np.int64) % buckets


def is_of_bucket(file_id: str) -> bool:
    """Whether a file id looks like that of a bucket. Nothing else tells with which index a file group was written.

    Args:
        file_id: of a file group.
    """
    number = bucket_of_file_id(file_id)
    return number is not None and number < _MOST_TAKEN_FOR_BUCKETS


def hashed_parts(key: str, hash_fields: Sequence[str]) -> list[str | None]:
    """The parts of a key that are hashed (KeyGenUtils.extractRecordKeysByFields of Hudi 1.0.2).

    A key holds ``field:value`` pairs. A value may hold commas and colons: it ends at the last comma before a colon.

    Args:
        key: a record key.
        hash_fields: the fields whose values are hashed.

    Returns:
        Values in order; the whole key if it is no list of pairs, or holds none of the fields.
    """
    if "," not in key or ":" not in key:
        return [key]
    parts: list[str | None] = []
    at = 0
    while at < len(key):
        colon = key.index(":", at)
        later, comma = key.find(":", colon + 1), -1
        while later > 0:
            comma = key.rfind(",", 0, later)
            if comma > colon:
                break
            later = key.find(":", later + 1)
        end = comma if later > 0 else len(key)
        if key[at:colon] in hash_fields:
            value = key[colon + 1 : end]
            parts.append({"__null__": None, "__empty__": ""}.get(value, value))
        at = end + 1
    return parts or [key]


def _list_hash(parts: Sequence[str | None]) -> int:
    total = 1
    for part in parts:
        total = (total * 31 + java_hash(part or "")) & 0xFFFFFFFF
    return total


def bucket_of_file_id(file_id: str) -> int | None:
    """The bucket of a file group, from the digits at the start of its id; None where it does not start with digits."""
    head = file_id[:_DIGITS]
    return int(head) if len(head) == _DIGITS and head.isascii() and head.isdigit() else None


def are_buckets(file_ids: Iterable[str]) -> bool:
    """Whether these file groups are buckets: all ids begin with the number of a bucket, and none is a mere chance.

    Args:
        file_ids: of a table, or of a partition path. One id in forty without a bucket begins with eight digits; one in
            50,000 does so with three zeros.
    """
    numbers = [bucket_of_file_id(file_id) for file_id in file_ids]
    return bool(numbers) and all(number is not None and number < _MOST_BUCKETS for number in numbers)


def bucket_file_id(bucket: int, fresh_id: str) -> str:
    """The id of a bucket's file group.

    Args:
        bucket: its number.
        fresh_id: a new file id; the number replaces its first eight characters.
    """
    return f"{bucket:0{_DIGITS}d}" + fresh_id[_DIGITS:]

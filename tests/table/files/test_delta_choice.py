"""What is stored as differences, and that it is so only where readers agree."""

import datetime

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from table.files.base.writer import BaseFileWriter
from table.files.parquet.delta_choice import LENGTHS, NUMBERS, PREFIXES, choose_deltas, has_small_steps
from table.options.choices import DeltaEncodings
from table.options.groups import BaseFileSettings
from table.schema.avro_schema import RECORD_KEY, with_meta_columns
from table.storage.local import LocalStorage
from table.write.meta_columns import stamp_new_rows

ROWS = 20_000
RANDOM = np.random.default_rng(3)


def column(values, arrow=None):
    return pa.chunked_array([pa.array(values, arrow)])


def stepping(by, kind):
    """Numbers that go up and down by that much."""
    return column(np.where(np.arange(ROWS) % 2, by, 0).astype(kind))


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (column(np.arange(ROWS)), True),
        (column(np.arange(ROWS)[::-1]), True),
        (column(np.arange(ROWS) * 10**8), True),  # a wide range, small steps
        (stepping(2**27 - 1, np.int64), True),
        (stepping(2**27, np.int64), False),
        (stepping(2**23 - 1, np.int32), True),
        (stepping(2**23, np.int32), False),
        (column(np.append(np.arange(ROWS), [2**62, -(2**62)])), False),  # steps that do not fit into a number
        (column(np.append(np.arange(ROWS), [2**63 - 1, -(2**63)])), False),
        (column([None if number % 3 else number for number in range(ROWS)], pa.int64()), True),
        (column([None if number % 3 else number * 2**31 for number in range(ROWS)], pa.int64()), False),
        (column([None] * ROWS, pa.int64()), True),
        (column(np.arange(ROWS) + 10**15, pa.timestamp("us", "UTC")), True),
        (column(np.arange(ROWS) * 10**10, pa.timestamp("us")), False),
        (column([datetime.date(2026, 1, 1)] * ROWS), True),
        # what Parquet's encoding is not for, or what few readers know
        (column(np.arange(ROWS) / 2), False),
        (column(np.arange(ROWS) % 2 == 0), False),
        (column(["x"] * ROWS), False),
        (column([[1]] * ROWS), False),
        (column([1] * ROWS, pa.decimal128(9, 0)), False),
        # a step from one piece to the next counts, too
        (pa.chunked_array([pa.array([0] * 9), pa.array([2**40] * 9)]), False),
    ],
)
def test_numbers_are_differences_where_all_steps_are_small(values, expected):
    assert has_small_steps(values) is expected


def hexadecimal(count, digits):
    return [f"{int(number):0{digits}x}" for number in RANDOM.integers(0, 16**digits, count)]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (hexadecimal(ROWS, 12), LENGTHS),
        ([f"20260101_1_{number}" for number in range(ROWS)], PREFIXES),
        (sorted(f"user-{number}" for number in RANDOM.integers(0, 10**9, ROWS)), PREFIXES),
        ([str(number) for number in RANDOM.integers(0, 10**9, ROWS)], None),  # neither a prefix nor one length
        ([f"{number % 10}" for number in range(ROWS)], None),
        ([""] * ROWS, None),
        ([None] * ROWS, None),
        ([None if number % 2 else f"a long beginning {number}" for number in range(ROWS)], None),
        ([None if number % 5 == 0 else f"a long beginning {number}" for number in range(ROWS)], PREFIXES),
        (["ключ-" * 40 + str(number) for number in range(ROWS)], PREFIXES),
        (["x" * number for number in range(300)], PREFIXES),
    ],
)
def test_text_is_stored_by_prefixes_by_lengths_or_as_it_is(values, expected):
    rows = pa.table({"a": pa.array(["z", *values, "z"], pa.string()).slice(1, len(values))})
    wanted = {} if expected is None else {"a": expected}
    assert choose_deltas(rows, ["a"], DeltaEncodings.ALL) == wanted
    assert choose_deltas(rows, ["a"], DeltaEncodings.NUMBERS) == {}


def test_few_rows_and_other_columns_stay_as_they_are():
    rows = pa.table({"a": np.arange(ROWS), "b": np.arange(ROWS)})
    assert choose_deltas(rows, ["a"], DeltaEncodings.NUMBERS) == {"a": NUMBERS}
    assert choose_deltas(rows, ["a", "b"], DeltaEncodings.NONE) == {}
    assert choose_deltas(rows.slice(0, 200), ["a"], DeltaEncodings.ALL) == {}


SCHEMA = pa.schema([("id", pa.string()), ("wide", pa.int64()), ("n", pa.int64())])


def batch_of(wide):
    ids = hexadecimal(ROWS, 12)
    columns = [ids, wide, RANDOM.integers(0, 10**6, ROWS), ids]
    return pa.Table.from_arrays(list(map(pa.array, columns)), names=[*SCHEMA.names, RECORD_KEY])


def encodings_of(file):
    """For each row group: column -> how its values are stored."""
    metadata = pq.read_metadata(file)
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    return [
        {chunk.path_in_schema: set(chunk.encodings) - {"RLE"} for chunk in map(group.column, range(group.num_columns))}
        for group in groups
    ]


def test_rows_with_wide_steps_end_the_differences(tmp_path):
    settings = BaseFileSettings(row_group_bytes=1_000_000, delta_encodings=DeltaEncodings.NUMBERS)
    writer = BaseFileWriter(LocalStorage(str(tmp_path)), "a.parquet", with_meta_columns(SCHEMA), "{}", settings)
    pieces = [batch_of(np.arange(ROWS)), batch_of(RANDOM.integers(0, 2**62, ROWS)), batch_of(np.arange(ROWS))]
    for number, piece in enumerate(pieces):
        writer.write(stamp_new_rows(piece, SCHEMA, "1", "", "a.parquet", (0, number * ROWS)))
    writer.close()
    found = encodings_of(tmp_path / "a.parquet")
    assert len(found) > 3
    kinds = [frozenset(group["wide"]) for group in found]
    assert set(kinds) == {frozenset({NUMBERS}), frozenset({"PLAIN"})}
    # one writer goes on as it began: differences are not taken up again
    assert kinds == sorted(kinds, key=lambda kind: NUMBERS not in kind)
    whole = pq.read_table(tmp_path / "a.parquet")
    assert whole.select(SCHEMA.names).equals(pa.concat_tables(pieces).select(SCHEMA.names).cast(SCHEMA))


@pytest.mark.parametrize(("wanted", "size"), [("none", 1.0), ("numbers", 0.98), ("all", 0.93)])
def test_files_become_smaller(tmp_path, wanted, size):
    rows = batch_of(np.arange(ROWS))
    stamped = stamp_new_rows(rows, SCHEMA, "1", "", "a.parquet", (0, 0))
    sizes = {}
    for deltas in (DeltaEncodings.NONE, DeltaEncodings(wanted)):
        settings = BaseFileSettings(delta_encodings=deltas, bloom_entries=1)
        storage = LocalStorage(str(tmp_path))
        writer = BaseFileWriter(storage, f"{deltas}.parquet", with_meta_columns(SCHEMA), "{}", settings)
        writer.write(stamped)
        sizes[deltas] = writer.close().size_bytes
    assert sizes[DeltaEncodings(wanted)] <= size * sizes[DeltaEncodings.NONE]
    [found] = encodings_of(tmp_path / f"{wanted}.parquet")
    expected = {"none": ("PLAIN", "PLAIN"), "numbers": (NUMBERS, "PLAIN"), "all": (NUMBERS, LENGTHS)}[wanted]
    assert (found["n"], found["id"]) == ({expected[0]}, {expected[1]})

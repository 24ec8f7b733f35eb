"""Damaged log files: the rows of what is whole, or an error. No hang, and no memory beyond the limit."""

import random
import struct
import time
import tracemalloc

import pytest
from log_files import data_block, delete_block, read, record, rollback_block, shown, write_base, write_log

from table import CorruptFileError, UnsupportedTableError
from table.files.log.framing import MAGIC, BlockType, encode_block

QUICK, ALL = 20, 400  # for each of the five kinds of damage
MOST_BYTES = 4 << 20
MOST_SECONDS = 10
HOSTILE = [-1, 0, 1, 7, 2**31 - 1, -(2**31), 2**30, 255, 65536]
BASE = [record(f"k{number:02}", 1, "base") for number in range(20)]


def blocks_of(rng):
    """Some blocks of committed writes, and a rollback of one that is not."""
    made = []
    for version in range(rng.randint(1, 4)):
        rows = [
            record(f"k{rng.randrange(30):02}", rng.randrange(4), f"log {version}") for _ in range(rng.randint(1, 9))
        ]
        kind = rng.choice([BlockType.AVRO_DATA, BlockType.AVRO_DATA, BlockType.PARQUET_DATA])
        made.append(data_block(rng.choice("23"), rows, kind))
    made.append(delete_block("3", [(f"k{rng.randrange(30):02}", rng.choice([None, 2])) for _ in range(3)]))
    made.append(rollback_block("4", "9"))
    rng.shuffle(made)
    return made


def flipped(rng, data):
    for _ in range(rng.randint(1, 4)):
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    return data


def cut(rng, data):
    return data[: rng.randrange(len(data))]


def hostile(rng, data):
    """A number that no writer writes, in the place of four or eight bytes."""
    at = rng.randrange(max(1, len(data) - 8))
    value = rng.choice(HOSTILE)
    data[at : at + 4] = struct.pack(">i", value)
    return data


def framed(rng, data):
    """The same within the frame of a block: type, counts and lengths stand near its start."""
    starts = [at for at in range(len(data)) if data.startswith(MAGIC, at)]
    at = rng.choice(starts) + rng.choice([6, 10, 14, 18, 22, 26, 30])
    data[at : at + 4] = struct.pack(">i", rng.choice(HOSTILE))
    return data


def inserted(rng, data):
    at = rng.randrange(len(data))
    data[at:at] = rng.choice([b"stray", MAGIC, bytes(rng.randrange(40))])
    return data


@pytest.mark.parametrize("cases", [range(QUICK), pytest.param(range(QUICK, ALL), marks=pytest.mark.slow)], ids=len)
@pytest.mark.parametrize("damage", [flipped, cut, hostile, framed, inserted])
def test_damaged_log_files_give_rows_or_an_error_within_bounds(tmp_path, damage, cases):
    outcomes, failures = set(), []
    tracemalloc.start()
    try:
        for case in cases:
            rng = random.Random(f"{damage.__name__} {case}")
            write_base(tmp_path, BASE)
            data = damage(rng, bytearray(b"".join(encode_block(block) for block in blocks_of(rng))))
            write_log(tmp_path, 1, bytes(data))
            tracemalloc.reset_peak()
            before, started = tracemalloc.get_traced_memory()[0], time.process_time()
            try:
                rows = read(tmp_path, ("1", "2", "3"), memory_bytes=rng.choice([0, 1 << 20]))
            except (CorruptFileError, UnsupportedTableError) as error:
                outcomes.add(type(error))
                failures.append(str(error))
            else:
                outcomes.add(list)
                assert len({row["_hoodie_record_key"] for row in rows}) == len(rows)
            assert tracemalloc.get_traced_memory()[1] - before < MOST_BYTES, case
            assert time.process_time() - started < MOST_SECONDS, case
    finally:
        tracemalloc.stop()
    assert list in outcomes
    assert [failure for failure in failures if ".log.1" not in failure] == []


@pytest.mark.parametrize("stray", [MAGIC, MAGIC + struct.pack(">q", 1 << 50), MAGIC + bytes(8)])
def test_blocks_behind_damage_are_read(tmp_path, stray):
    write_base(tmp_path, BASE)
    blocks = b"".join(encode_block(block) for block in blocks_of(random.Random(1)))
    write_log(tmp_path, 1, blocks)
    expected = shown(read(tmp_path, ("1", "2", "3")))
    assert expected != shown(BASE)
    write_log(tmp_path, 1, stray + blocks + stray[:5])
    assert shown(read(tmp_path, ("1", "2", "3"))) == expected


@pytest.mark.parametrize("stray", [b"strays", bytes(60)])
def test_a_file_that_begins_with_no_block_is_an_error(tmp_path, stray):
    write_base(tmp_path, BASE)
    write_log(tmp_path, 1, stray + encode_block(data_block("2", BASE)))
    with pytest.raises(CorruptFileError, match="no block begins there"):
        read(tmp_path, ("1", "2", "3"))

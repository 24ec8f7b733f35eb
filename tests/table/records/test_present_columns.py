"""Records that lack columns: a newer one is completed from an older one, column by column."""

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from table.records.present_columns import PRESENT_COLUMN, completed, present_column, present_type

NAMES = [f"c{n}" for n in range(10)]
ALL = [*NAMES, PRESENT_COLUMN]


def records(values, present):
    columns = {name: pa.array([values[name] if name in present else None], pa.int64()) for name in NAMES}
    return pa.table({**columns, PRESENT_COLUMN: present_column(ALL, {*present, PRESENT_COLUMN}, 1)})


def present_of(rows):
    (bits,) = rows[PRESENT_COLUMN].to_pylist()
    return {name for n, name in enumerate(ALL) if bits[n // 8] & (0x80 >> n % 8)} - {PRESENT_COLUMN}


@given(st.sets(st.sampled_from(NAMES)), st.sets(st.sampled_from(NAMES)), st.booleans())
def test_each_column_comes_from_the_newer_record_that_has_it(in_old, in_new, newer):
    old, new = ({name: base + n for n, name in enumerate(NAMES)} for base in (0, 100))
    found = completed(records(old, in_old), records(new, in_new), pa.array([newer]).to_numpy(zero_copy_only=False))
    first, second = ((new, in_new), (old, in_old)) if newer else ((old, in_old), (new, in_new))
    expected = {
        name: first[0][name] if name in first[1] else second[0][name] if name in second[1] else None for name in NAMES
    }
    assert {name: found[name].to_pylist()[0] for name in NAMES} == expected
    assert present_of(found) == in_old | in_new


def test_a_whole_record_lacks_nothing():
    whole = pa.table({name: [n] for n, name in enumerate(NAMES)})
    newer = pa.array([True]).to_numpy(zero_copy_only=False)
    found = completed(whole, records(dict.fromkeys(NAMES, 50), {"c1"}), newer)
    assert found.to_pylist() == [{name: 50 if name == "c1" else n for n, name in enumerate(NAMES)}]


def test_bits_fill_whole_bytes():
    assert present_type(8) == pa.binary(1)
    assert present_type(9) == pa.binary(2)
    assert present_column(ALL, None, 3).to_pylist() == [b"\xff\xe0"] * 3
    assert present_column(ALL, {"c0", "c9"}, 1).to_pylist() == [b"\x80\x40"]

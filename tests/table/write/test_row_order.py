"""The order of clustered rows: lines and curves, in memory and by way of local disk."""

from contextlib import closing
from datetime import date

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tiers import examples

from table.errors import InvalidConfigError
from table.options.clustering_settings import Layout
from table.write.row_order import order_of
from table.write.sorted_rows import Ordering, SortedRows

pytestmark = pytest.mark.pure


def grid(axes, side):
    """Every place of a grid, in an order of chance."""
    places = np.stack([axis.ravel() for axis in np.meshgrid(*[np.arange(side)] * axes)], axis=1)
    np.random.default_rng(7).shuffle(places)
    return pa.table({f"c{number}": places[:, number] for number in range(axes)})


@pytest.mark.parametrize(("axes", "side"), [(2, 16), (3, 8), (4, 4)])
def test_neighbours_on_a_hilbert_curve_are_neighbours_in_space(axes, side):
    rows = grid(axes, side)
    along = rows.take(pa.array(order_of(rows, Layout.HILBERT)))
    steps = np.abs(np.diff(np.stack([column.to_numpy() for column in along.columns], axis=1), axis=0)).sum(axis=1)
    assert steps.max() == 1


@pytest.mark.parametrize("layout", [Layout.Z_ORDER, Layout.HILBERT])
@pytest.mark.parametrize("axes", [2, 3])
def test_a_part_of_a_curve_is_narrow_in_every_column(layout, axes):
    side = 16 if axes == 2 else 8
    rows = grid(axes, side)
    along = rows.take(pa.array(order_of(rows, layout)))
    part = along.slice(0, len(along) // 2**axes)  # of a line, it would be narrow in the first column alone
    for column in part.columns:
        assert max(column.to_pylist()) - min(column.to_pylist()) < side / 2


def test_values_that_are_bunched_together_fill_the_curve():
    luck = np.random.default_rng(1)
    rows = pa.table({"x": luck.random(4096) ** 12, "y": np.exp(luck.random(4096) * 40)})
    along = rows.take(pa.array(order_of(rows, Layout.HILBERT)))
    part = along.slice(0, 1024)
    for name in rows.column_names:
        below = sum(value <= max(part.column(name).to_pylist()) for value in rows.column(name).to_pylist())
        assert below < 0.65 * len(rows)


VALUES = {
    "n": st.none() | st.integers(-5, 5),
    "t": st.none() | st.sampled_from(["", "a", "ä", "zz"]),
    "d": st.none() | st.dates(date(2026, 1, 1), date(2026, 1, 5)),
    "b": st.none() | st.booleans(),
}


@given(st.lists(st.fixed_dictionaries(VALUES), max_size=30), st.permutations(list(VALUES)))
@settings(max_examples=examples(60), deadline=None)
def test_a_line_is_the_order_of_the_columns_with_nulls_first(found, names):
    schema = pa.schema([("n", pa.int64()), ("t", pa.string()), ("d", pa.date32()), ("b", pa.bool_())])
    rows = pa.Table.from_pylist(found, schema=schema)
    order = order_of(rows.select(names), Layout.LINEAR).tolist()

    def key(number):
        cells = [found[number][name] for name in names]
        return [(cell is not None, cell.encode() if isinstance(cell, str) else cell or 0) if not isinstance(cell, date)
                else (True, cell.toordinal()) for cell in cells]  # fmt: skip

    assert order == sorted(range(len(found)), key=key)


@given(
    st.lists(st.lists(st.integers(0, 40), max_size=20), max_size=12),
    st.sampled_from([(), ("x",), ("x", "y")]),
    st.sampled_from(list(Layout)),
    st.sampled_from([1, 300, 2000, 1 << 30]),
)
@settings(max_examples=examples(80), deadline=None)
def test_rows_by_way_of_local_disk_are_those_in_memory(pieces, columns, layout, memory_bytes):
    tables = [
        pa.table({"x": pa.array(piece, pa.int64()), "y": pa.array([n % 7 for n in piece], pa.int64()),
                  "n": pa.array([f"{at}-{n}" for n in range(len(piece))], pa.string())})
        for at, piece in enumerate(pieces)
    ]  # fmt: skip
    used = layout if len(columns) > 1 else Layout.LINEAR
    with closing(SortedRows(iter(tables), Ordering(columns, used, memory_bytes))) as rows:
        found = [row for piece in rows for row in piece.to_pylist()]
        assert rows.count == len(found) == sum(map(len, pieces))
    whole = pa.concat_tables(tables) if tables else pa.table({"x": [], "y": [], "n": []})
    order = order_of(whole.select(list(columns)), used).tolist() if columns else range(len(whole))
    assert found == [whole.to_pylist()[number] for number in order]


def test_a_column_without_an_order_is_refused_by_name():
    rows = pa.table({"a": pa.array([{"x": 1}], pa.struct([("x", pa.int64())]))})
    with pytest.raises(InvalidConfigError, match="column 'a' of type struct"):
        order_of(rows, Layout.LINEAR)

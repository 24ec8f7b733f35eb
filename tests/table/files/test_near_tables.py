"""What an error says about a path at which there is no table."""

import pyarrow as pa
import pytest

from hudistream import HudiTable, TableNotFoundError, write_hudi


@pytest.fixture
def lake(tmp_path):
    for name in ("orders", "visits", "clicks", "prices"):
        write_hudi(tmp_path / "lake" / name, pa.table({"id": ["a"]}), key="id")
    return tmp_path / "lake"


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("lake/order", "; did you mean '{lake}/orders'?"),
        ("lake/Orders", "; did you mean '{lake}/orders'?"),
        ("laek/orders", "; did you mean '{lake}/orders'?"),
        ("lake/orders/2026-01-01", "; '{lake}/orders' is a table: give its folder, not one within it"),
        ("lake/orders/a/b", "; '{lake}/orders' is a table: give its folder, not one within it"),
        ("lake", "; there are tables within it: clicks, orders, prices and 1 more"),
        ("lake/elsewhere", ""),
        ("nothing/at/all", ""),
    ],
)
def test_a_path_without_a_table_names_what_was_probably_meant(lake, path, said):
    with pytest.raises(TableNotFoundError) as raised:
        HudiTable.open(lake.parent / path)
    assert str(raised.value).endswith("(no .hoodie/hoodie.properties)" + said.format(lake=lake))


def test_a_store_is_looked_at_too_and_its_root_is_the_end(lake):
    write_hudi("memory://near/lake/orders", pa.table({"id": ["a"]}), key="id")
    with pytest.raises(TableNotFoundError, match=r"did you mean 'memory://near/lake/orders'\?$"):
        HudiTable.open("memory://near/lake/ordres")
    with pytest.raises(TableNotFoundError, match=r"properties\)$"):
        HudiTable.open("memory://far")

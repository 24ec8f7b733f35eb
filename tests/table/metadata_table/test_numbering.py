"""The number of a metadata table, which its files have in their names."""

from types import SimpleNamespace

import pytest
from engine import Engine, rows

from table.config.table_config import load_table_config, update_properties
from table.errors import CommitConflictError
from table.hudi_table import HudiTable
from table.metadata_table import make
from table.metadata_table.numbering import COUNT, count_made, counted


@pytest.mark.parametrize(("text", "number"), [("7", 7), ("", 0), ("x", 0), ("-1", 0), ("0012", 12)])
def test_what_properties_say(text, number):
    assert counted({COUNT: text}) == number


def test_a_process_that_stood_still_takes_no_number_back(tmp_path, monkeypatch):
    """It counted before others made two metadata tables, and lost the table meanwhile."""
    path = str(tmp_path / "t")
    engine = Engine(path, {"hoodie.write.table.version": "8"})
    engine.write(0, rows(range(3)))
    engine.writer.stop()
    table = HudiTable.open(path)

    def lost():
        raise CommitConflictError("taken over")

    def count_late(storage):
        number = count_made(storage)
        update_properties(storage, {COUNT: "3"})
        return number

    monkeypatch.setattr(make, "count_made", count_late)
    holding = SimpleNamespace(owner="me", confirm=lost)
    with pytest.raises(CommitConflictError):
        make.make_lists(
            table.storage, table.config, table.load_timeline(), table.store_listing, make.WantedIndexes(), holding
        )
    assert load_table_config(table.storage).extra[COUNT] == "3"

"""Positions in log blocks (``hoodie.write.record.positions``): Hudi finds rows by those that we write."""

from dataclasses import replace

import numpy as np
import pytest
from engine import Engine, rows
from tiers import quick

from table import read_table
from table.files.log.record_positions import RecordPositions

pytestmark = pytest.mark.hudi

OPTIONS = {
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.datasource.write.operation": "upsert",
    "hoodie.compact.inline": "false",
    "hoodie.datasource.compaction.async.enable": "false",
}
SHOWN = ["id", "p", "ts", "v"]


def write(path, version, has_deletes):
    """Forty rows; changes in an order of their own, deletes, and changes of what was changed."""
    options = {**OPTIONS, "hoodie.write.table.version": str(version)}
    deletes = {**options, "hoodie.datasource.write.operation": "delete"}
    Engine(path, options).write(0, rows(range(40)))
    Engine(path, options).write(1, rows([31, 4, 19, 7, 22, 1], ts=1, v="changed"))
    if has_deletes:
        Engine(path, deletes).write(2, rows([4, 33, 12], ts=2))
    Engine(path, options).write(3, rows([0, 39, 31, 8], ts=3, v="last"))


def by_hudi(hudi, path):
    return sorted(tuple(row[name] for name in SHOWN) for row in hudi.read(path))


def by_us(path):
    return sorted(tuple(row[name] for name in SHOWN) for row in read_table(path).to_pylist())


# 1.0.2 cannot compare a delete without an ordering value, and its other reader takes no positions
@pytest.mark.parametrize(("version", "reader", "has_deletes"), quick(1, [(9, 9, True), (8, 9, True), (8, 8, False)]))
def test_hudi_finds_rows_by_our_positions(tmp_path, partners, monkeypatch, version, reader, has_deletes):
    path = str(tmp_path / "t")
    write(path, version, has_deletes)
    assert len(by_us(path)) == (37 if has_deletes else 40)
    assert by_hudi(partners[reader], path) == by_us(path)
    # and it does not look at the keys: with positions that are wrong it shows other rows
    header = RecordPositions.header
    monkeypatch.setattr(RecordPositions, "header", lambda told: header(replace(told, rows=np.arange(len(told.rows)))))
    wrong = str(tmp_path / "wrong")
    write(wrong, version, has_deletes)
    assert by_us(wrong) == by_us(path)
    assert by_hudi(partners[reader], wrong) != by_us(path)

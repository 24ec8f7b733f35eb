"""Rows of a change feed as a DataFrame become rows to upsert, as Arrow rows do."""

import pyarrow as pa
import pytest
from engine import Engine, rows

from hudistream import HudiTable
from streaming import as_upserts
from table import InvalidConfigError

UPSERT = {"hoodie.datasource.write.operation": "upsert", "hoodie.index.type": "GLOBAL_SIMPLE"}

pytestmark = pytest.mark.spark


def shown(found):
    return sorted(map(str, found))


def test_deletes_are_marked_and_moves_delete_the_old_row(spark, tmp_path):
    path = str(tmp_path / "t")
    Engine(path, UPSERT).write(None, rows(range(4), v="a"))
    table = HudiTable.open(path)
    first = table.newest_instant
    Engine(path, UPSERT).write(None, pa.concat_tables([rows([0], ts=1, v="b"), rows([1, 7], lambda _: "p2", ts=1)]))
    Engine(path, {"hoodie.datasource.write.operation": "delete"}).write(None, rows([2]))
    changes = table.changes(first, before=True).to_arrow()
    arrow = as_upserts(changes, moved_by="p")
    assert shown((row["id"], row["p"], row["_hoodie_is_deleted"]) for row in arrow.to_pylist()) == shown([
        ("k0", "p0", False), ("k1", "p1", True), ("k1", "p2", False), ("k2", "p2", True), ("k7", "p2", False)
    ])  # fmt: skip
    fields = "id string, p string, ts bigint, v string"
    schema = f"_change_operation string, _change_instant string, {fields}, _change_before struct<{fields}>"
    frame = spark.createDataFrame([tuple(row.values()) for row in changes.to_pylist()], schema)
    for moved_by in ("p", ()):
        theirs = as_upserts(frame, moved_by=moved_by)
        assert theirs.columns == arrow.column_names
        ours = as_upserts(changes, moved_by=moved_by)
        assert shown(row.asDict() for row in theirs.collect()) == shown(ours.to_pylist())
    with pytest.raises(InvalidConfigError, match="before=True"):
        as_upserts(frame.drop("_change_before"), moved_by=["p"])

"""Tables whose meta columns are null (``hoodie.populate.meta.fields=false``): Hudi and we write them in turns."""

import glob

import pyarrow.parquet as pq
import pytest
from engine import Engine
from turns import OURS, SERVICES, THEIRS, Model, write_theirs

from table.config.table_config import load_table_config
from table.hudi_table import HudiTable
from table.schema.avro_schema import FILE_NAME, META_COLUMNS
from table.services.check.check import check
from table.storage.local import LocalStorage

pytestmark = pytest.mark.hudi
SLOW = pytest.mark.slow
VIRTUAL = {"hoodie.populate.meta.fields": "false"}


def meta_values(path):
    """Values of meta columns in all base files, but of the file name, which Hudi gives to rows that it carries over."""
    columns = [name for name in META_COLUMNS if name != FILE_NAME]
    found = [pq.read_table(file).select(columns) for file in glob.glob(f"{path}/p*/*.parquet")]
    assert found
    return {value for rows in found for column in rows.columns for value in column.unique().to_pylist()}


@SLOW  # test_virtual_keys_spark.py has the quick one
@pytest.mark.parametrize(
    ("version", "first"),
    [(6, "ours"), (6, "theirs"), (8, "ours"), (9, "theirs"), (9, "ours")],
)
@pytest.mark.parametrize("index", ["SIMPLE", "GLOBAL_SIMPLE"])
def test_batches_in_turns(version, first, index, partners, tmp_path, utc):
    path, hudi, model = str(tmp_path / "t"), partners[version], Model(version)
    chosen = {"hoodie.index.type": index}
    payload = {key: value for key, value in THEIRS.items() if key.endswith("payload.class")}
    ours = {
        **OURS,
        **chosen,
        **payload,
        "hoodie.write.table.version": str(version),
        **(VIRTUAL if first == "ours" else {}),
    }
    theirs = {**chosen, **VIRTUAL, **SERVICES}
    number = 0
    for turn in range(2):
        if turn or first == "ours":
            for _ in range(2):
                Engine(path, ours).write(number, model.draw())
                number += 1
                model.check(path, hudi)
            Engine(path, {**ours, "hoodie.datasource.write.operation": "delete"}).write(number, model.delete())
            number += 1
            model.check(path, hudi)
        write_theirs(hudi, path, version, model.draw(), **theirs)
        model.check(path, hudi)
        gone = {**theirs, "hoodie.datasource.write.operation": "delete"}
        write_theirs(hudi, path, version, model.delete(), **gone)
        model.check(path, hudi)
    assert not load_table_config(LocalStorage(path)).populate_meta_fields
    assert meta_values(path) <= {None, ""}
    assert check(HudiTable.open(path)).is_sound

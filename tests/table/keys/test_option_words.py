"""How errors name an option."""

import pyarrow as pa
import pytest

from hudistream import HudiTable, InvalidConfigError, write_hudi
from table.keys.option_words import SHORT_NAMES, in_words
from table.options.keys import HONOURED


def test_an_option_with_a_short_name_is_named_by_both():
    assert in_words("hoodie.datasource.write.recordkey.field", "id") == (
        "key='id' (hoodie.datasource.write.recordkey.field=id)"
    )
    assert in_words("hoodie.table.name", "t") == "hoodie.table.name=t"
    assert SHORT_NAMES.keys() <= HONOURED.keys()


def test_a_column_that_the_batch_does_not_have_is_named_as_it_was_given(tmp_path):
    rows = pa.table({"id": ["a"], "day": ["x"], "ts": [1]})
    for given, said in (
        ({"key": "idd"}, r"^key='idd' .*recordkey.field=idd\): the batch has no such column; .*did you mean id\?"),
        ({"key": "id", "partition_by": "dya"}, r"^partition_by='dya' .* did you mean day\?"),
        ({"key": "id", "order_by": "tss"}, r"^order_by='tss' .* did you mean ts\?"),
        ({"key": "id", "order_by": "s.ts"}, r"^order_by='s.ts' .*fields within structs cannot order"),
    ):
        with pytest.raises(InvalidConfigError, match=said):
            write_hudi(tmp_path / "t", rows, **given)
    write_hudi(tmp_path / "t", rows, key="id")
    with pytest.raises(InvalidConfigError, match=r"^key='ts' \(.*\) contradicts the table, which has id"):
        write_hudi(tmp_path / "t", rows, key="ts")


def test_a_column_that_the_table_does_not_have_is_met_with_the_columns_of_the_person(tmp_path):
    write_hudi(tmp_path / "t", pa.table({"id": ["a"], "day": ["x"]}), key="id")
    for asked in ({"columns": ["dya"]}, {"where": [("dya", "=", "x")]}):
        with pytest.raises(InvalidConfigError, match=r"no column 'dya'; it has id, day; did you mean day\?"):
            HudiTable.open(tmp_path / "t").scan(**asked).to_arrow()

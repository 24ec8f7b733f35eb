"""What a person sees when a batch fails: the ways out, and the command that explains the error."""

import sys
import traceback

import pyarrow as pa
import pytest
from engine import OPTIONS, rows
from structlog.testing import capture_logs

from hudistream import ArrowSink, TableNotFoundError
from table.errors import SchemaMismatchError


def test_an_error_ends_with_the_command_that_explains_it(tmp_path):
    sink = ArrowSink(str(tmp_path / "t"), {**OPTIONS, "hudistream.table.create": "never"})
    with capture_logs() as logs, pytest.raises(TableNotFoundError) as caught:
        sink.write(rows(range(3)), 0)
    [told] = [line for line in logs if line["event"] == "batch_failed"]
    assert told["why"] == "hudistream why TableNotFoundError"
    assert told["outcome_unknown"] is False  # where there is no table there is no batch
    if sys.version_info >= (3, 11):
        assert traceback.format_exception(caught.value)[-1].strip() == "[hudistream why TableNotFoundError]"


def test_errors_of_others_are_not_explained(tmp_path):
    def refuse(told):
        raise RuntimeError("not ours")

    sink = ArrowSink(str(tmp_path / "t"), OPTIONS, validators=[refuse])
    with capture_logs() as logs, pytest.raises(Exception) as caught:
        sink.write(rows(range(3)), 0)
    [told] = [line for line in logs if line["event"] == "batch_failed"]
    assert (told["why"] is None) == (type(caught.value).__module__ != "table.errors")


@pytest.mark.parametrize(
    ("batch_id", "said"),
    [(0, r"or set hudistream.table.create=if_absent(\n|$)"), (3, r"so that batches 0 to 2 come again(\n|$)")],
)
def test_a_table_that_is_not_there_is_to_be_made_with_all_its_batches(tmp_path, batch_id, said):
    sink = ArrowSink(str(tmp_path / "t"), {**OPTIONS, "hudistream.table.create": "never"})
    with pytest.raises(TableNotFoundError, match=said):
        sink.write(rows(range(3)), batch_id)


@pytest.mark.parametrize(
    ("column", "said"),
    [
        (["x"], r"'n' is string, the table has int64: cast it with CAST\(n AS BIGINT\), .*to\.text=true"),
        ([{"a": 1}], r"'n' is struct<a: int64>, the table has int64: select one value of it AS n, or give"),
        ([True], r"'n' is bool, the table has int64: cast it with CAST\(n AS BIGINT\), or give the column another"),
    ],
)  # fmt: skip
def test_a_column_of_another_type_is_told_with_what_can_be_done(tmp_path, column, said):
    def batch(values):
        return rows(range(1)).append_column("n", [pa.array(values)])

    sink = ArrowSink(str(tmp_path / "t"), OPTIONS)
    sink.write(batch([1]), 0)
    with pytest.raises(SchemaMismatchError, match=said) as caught:
        sink.write(batch(column), 1)
    assert "does not have the table's columns" not in str(caught.value)
    sink.stop()

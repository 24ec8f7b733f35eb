"""What errors show of bad rows, and how many of them a batch may have."""

import pyarrow as pa
import pytest
from engine import Engine, key_set, rows

from streaming.batch.bad_rows import check_bad_rows
from streaming.plan.task_result import TaskResult
from table import read_table
from table.config.table_config import TableConfig
from table.errors import InvalidConfigError, InvalidRecordError
from table.options.write_groups import BadRowSettings
from table.options.write_options import parse_options
from table.storage.local import LocalStorage
from table.timeline.metadata.commit import WriteStat

CONFIG = TableConfig("t", ("id",))


def batch_with_bad(numbers=(), value="private", total=10):
    made = rows(range(total), v=value)
    ids = [None if number in numbers else f"k{number}" for number in range(total)]
    return made.set_column(0, "id", pa.array(ids, pa.string()))


def test_an_error_shows_keys_and_the_reason_and_no_other_column(tmp_path):
    with pytest.raises(InvalidRecordError) as raised:
        Engine(str(tmp_path / "t")).write(0, batch_with_bad([3]))
    assert "1 rows cannot be stored" in str(raised.value)
    assert "'p': 'p0'" in str(raised.value)
    assert "private" not in str(raised.value)


def test_whole_rows_are_shown_where_that_is_asked_for(tmp_path):
    engine = Engine(str(tmp_path / "t"), {"hudistream.bad.rows.shown": "rows"})
    with pytest.raises(InvalidRecordError, match="private"):
        engine.write(0, batch_with_bad([3]))


def test_a_row_is_cut_off_however_long_its_values_are(tmp_path):
    engine = Engine(str(tmp_path / "t"), {"hudistream.bad.rows.shown": "rows"})
    with pytest.raises(InvalidRecordError) as raised:
        engine.write(0, batch_with_bad([0, 1, 2, 3], value="x" * 10_000))
    assert len(str(raised.value)) < 1_300
    assert "…" in str(raised.value)


@pytest.mark.parametrize(
    ("bad", "stored", "most", "is_refused"),
    [(0, 5, 0.0, False), (1, 9, 0.1, False), (2, 8, 0.1, True), (1, 9, 0.0, True), (5, 0, 0.99, True),
     (5, 0, 1.0, False), (5, 5, None, False)],
)  # fmt: skip
def test_a_share_of_bad_rows_is_allowed(bad, stored, most, is_refused):
    stats = (WriteStat("f", "f", "", num_inserts=stored),) if stored else ()
    result = TaskResult(stats=stats, bad_rows=bad, quarantined=("file",) if bad else ())
    settings = BadRowSettings(max_share=most)
    if not is_refused:
        check_bad_rows(result, CONFIG, settings)
        return
    with pytest.raises(
        InvalidRecordError, match=f"{bad} of {bad + stored} rows .* hudistream.bad.rows.max.share={most:g}"
    ):
        check_bad_rows(result, CONFIG, settings)


def test_a_batch_with_too_many_bad_rows_is_not_committed_and_puts_none_aside(tmp_path):
    path, aside = str(tmp_path / "t"), LocalStorage(str(tmp_path / "aside"))
    options = {"hudistream.bad.rows": "quarantine", "hudistream.bad.rows.max.share": "0.2"}
    Engine(path, options, aside=aside).write(0, batch_with_bad([1]))
    with pytest.raises(InvalidRecordError, match="3 of 10 rows"):
        Engine(path, options, aside=aside).write(1, batch_with_bad([1, 2, 3]))
    assert len(key_set(read_table(path))) == 9
    Engine(path, options, aside=aside).write(1, batch_with_bad([2]))
    kept = [file for file in (tmp_path / "aside").rglob("*.parquet") if "_tmp" not in str(file)]
    assert len(kept) == 2


@pytest.mark.parametrize("value", ["2", "-0.1", "many"])
def test_a_share_lies_between_0_and_1(value):
    with pytest.raises(InvalidConfigError, match="max.share"):
        parse_options({"hudistream.bad.rows.max.share": value})

"""The table keeps what decides where a key lies: a sink that would look elsewhere is refused, and doubles nothing."""

import pyarrow as pa
import pytest

from hudistream import ArrowSink, HudiTable, InvalidConfigError, write_hudi
from table.config.table_config import update_properties
from table.inspect.doctor import examine
from table.options.agreement import BUCKETS, HASHED
from table.options.write_options import parse_options
from table.storage.local import LocalStorage

TIMED = "hoodie.keygen.timebased."
QUIET = {"hoodie.clean.automatic": "false", "hoodie.archive.automatic": "false"}
BUCKET = {**QUIET, "hoodie.index.type": "BUCKET", BUCKETS: "2"}
EACH_FORM = pytest.mark.parametrize(("version", "table_type"), [("6", "cow"), ("9", "mor")])


def numbered(numbers, v=0):
    return pa.table({"id": [f"k{n}" for n in numbers], "b": [f"b{n % 2}" for n in numbers], "v": [v] * len(numbers)})


def ids(path):
    return sorted(HudiTable.open(path).scan(["id"]).to_arrow()["id"].to_pylist())


@EACH_FORM
@pytest.mark.parametrize("index", ["BLOOM", "SIMPLE", "GLOBAL_BLOOM", "RECORD_INDEX"])
@pytest.mark.parametrize("operation", ["upsert", "insert", "bulk_insert"])
def test_a_table_of_buckets_takes_no_rows_by_another_index(tmp_path, version, table_type, index, operation):
    path = str(tmp_path / "t")
    made = {**BUCKET, "hoodie.write.table.version": version}
    write_hudi(path, numbered(range(6)), key="id", options=made, table_type=table_type)
    stays = {f"hoodie.{kind}.index.update.partition.path": "false" for kind in ("bloom", "simple", "record")}
    other = {**QUIET, **stays, "hoodie.index.type": index}
    with pytest.raises(InvalidConfigError, match=rf"hoodie.index.type={index} contradicts.*{BUCKETS}=2"):
        write_hudi(path, numbered(range(6, 12)), options=other, operation=operation)
    diagnosis = examine(path, parse_options({**other, "hoodie.datasource.write.operation": operation}).options)
    assert any("buckets" in finding.text for finding in diagnosis.findings if finding.level == "stop")
    write_hudi(path, numbered(range(12)), options=BUCKET)
    assert ids(path) == sorted(f"k{n}" for n in range(12))


def test_deletes_from_a_table_of_buckets_need_no_index(tmp_path):
    path = str(tmp_path / "t")
    write_hudi(path, numbered(range(6)), key="id", options=BUCKET)
    HudiTable.open(path).delete([("id", "in", ["k1", "k2"])])
    with ArrowSink(path, QUIET) as sink:
        sink.delete(["k3"])
    assert ids(path) == ["k0", "k4", "k5"]


def test_without_the_property_new_rows_go_to_files_of_their_own(tmp_path):
    """Hudi does not keep the number of buckets: a writer with the bucket index notices the new files."""
    path = str(tmp_path / "t")
    write_hudi(path, numbered(range(6)), key="id", options=BUCKET)
    update_properties(LocalStorage(path), {}, {BUCKETS, HASHED})
    write_hudi(path, numbered(range(4, 9)), options=QUIET)
    assert ids(path) == sorted(f"k{n}" for n in range(9))
    with pytest.raises(InvalidConfigError, match="is not one of a bucket index"):
        write_hudi(path, numbered(range(9)), options=BUCKET)
    assert ids(path) == sorted(f"k{n}" for n in range(9))


@pytest.mark.parametrize(("made", "then"), [(None, "id"), ("id", None), ("id", "b"), ("b", "id,b")])
def test_the_hashed_fields_are_those_of_the_table(tmp_path, made, then):
    path = str(tmp_path / "t")
    of = lambda fields: {} if fields is None else {HASHED: fields}  # noqa: E731
    write_hudi(path, numbered(range(6)), key=["id", "b"], options={**BUCKET, **of(made)})
    with pytest.raises(InvalidConfigError, match=f"{HASHED}=.* contradicts the table, which hashes"):
        write_hudi(path, numbered(range(6), 1), options={**BUCKET, **of(then)})
    write_hudi(path, numbered(range(6), 2), options={**BUCKET, **of(made)})
    assert len(ids(path)) == 6


def timed(v):
    return pa.table({"id": ["a"], "t": [1700000000000], "r": ["eu"], "v": [v]})


TIMES = {f"{TIMED}timestamp.type": "EPOCHMILLISECONDS", f"{TIMED}output.dateformat": "yyyy-MM-dd"}


@pytest.mark.parametrize("key", ["timezone", "output.timezone"])
def test_a_setting_that_was_left_out_counts_with_its_default(tmp_path, key):
    path = str(tmp_path / "t")
    options = {**QUIET, **TIMES, "hoodie.datasource.write.keygenerator.type": "TIMESTAMP"}
    write_hudi(path, timed(1), key="id", partition_by="t", options=options)
    with pytest.raises(InvalidConfigError, match=rf"{key}=GMT\+10:00 contradicts the table, which was made without it"):
        write_hudi(path, timed(2), options={**options, TIMED + key: "GMT+10:00"})
    write_hudi(path, timed(3), options={**options, TIMED + key: "UTC"})  # which is the default
    assert ids(path) == ["a"]


@pytest.mark.parametrize("left", [{}, {f"{TIMED}output.dateformat": "yyyy-MM-dd"}], ids=["none", "some"])
def test_settings_that_another_engine_did_not_keep_are_named_by_each_sink(tmp_path, left):
    path = str(tmp_path / "t")
    options = {**QUIET, **TIMES, "hoodie.datasource.write.keygenerator.type": "TIMESTAMP"}
    write_hudi(path, timed(1), key="id", partition_by="t", options=options)
    update_properties(LocalStorage(path), {}, TIMES.keys() - left.keys())
    write_hudi(path, timed(2), options={**options, f"{TIMED}timezone": "UTC"})
    assert ids(path) == ["a"]


@pytest.mark.parametrize("version", ["6", "8", "9"])
@pytest.mark.parametrize(("change", "says"), [
    ({f"{TIMED}output.dateformat": "yyyy/MM/dd"}, "which has yyyy-MM-dd"),
    ({f"{TIMED}timezone": "GMT+10:00"}, "which was made without it"),
    ({"hoodie.datasource.write.partitionpath.field": "r:SIMPLE,t:SIMPLE"}, "which has r:SIMPLE,t:TIMESTAMP"),
])  # fmt: skip
def test_the_custom_key_generator_keeps_its_kinds_and_times(tmp_path, version, change, says):
    path = str(tmp_path / "t")
    options = {
        **QUIET, **TIMES, "hoodie.write.table.version": version,
        "hoodie.datasource.write.keygenerator.type": "CUSTOM",
        "hoodie.datasource.write.partitionpath.field": "r:SIMPLE,t:TIMESTAMP",
    }  # fmt: skip
    write_hudi(path, timed(1), key="id", options=options)
    with pytest.raises(InvalidConfigError, match=says):
        write_hudi(path, timed(2), options={**options, **change})
    write_hudi(path, timed(3), options=QUIET)  # what decides is in the properties
    assert ids(path) == ["a"]

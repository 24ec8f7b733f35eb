"""Record keys of one field and the complex key generator: each table is continued as its keys are spelled."""

import pyarrow as pa
import pytest
from structlog.testing import capture_logs

from hudistream import ArrowSink, HudiTable, write_hudi
from table.config.key_generator import ENCODING_KEY, KeyEncoding
from table.config.table_config import KEYGEN_CLASSES, update_properties
from table.errors import InvalidConfigError, UnsupportedTableError
from table.inspect.doctor import examine
from table.scan.stored_key import encoding_of
from table.storage.local import LocalStorage

PREFIXED, VALUE = KeyEncoding.FIELD_PREFIXED, KeyEncoding.VALUE_ONLY
BUCKETS = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "1"}
LOGS = {**BUCKETS, "hoodie.datasource.write.table.type": "MERGE_ON_READ"}


def rows(v, ids="abc"):
    count = len(ids)
    return pa.table({"id": list(ids), "y": ["26"] * count, "m": ["01"] * count, "ts": [v] * count, "v": [v] * count})


def write(path, v, version=9, options=None, fields=("y", "m"), ids="abc"):
    given = {"hoodie.write.table.version": str(version), **(options or {})}
    with capture_logs() as logs:
        write_hudi(path, rows(v, ids), options=given, key="id", partition_by=list(fields), order_by="ts")
    return [line for line in logs if line["event"] == "keys_spelled_otherwise"]


def keys_of(path):
    shown = HudiTable.open(path).scan(columns=["_hoodie_record_key", "v"]).to_arrow()
    return dict(zip(shown.column(0).to_pylist(), shown.column(1).to_pylist(), strict=True))


def told(path):
    return HudiTable.open(path).config.key_encoding


def make_old(path, version, options=None):
    """A table as hudistream once wrote it: values alone, and no property that says so."""
    write(path, 1, version, options, fields=["m"])  # a simple key
    changes = {
        "hoodie.table.keygenerator.type": "COMPLEX",
        "hoodie.table.keygenerator.class": KEYGEN_CLASSES["COMPLEX"],
    }
    update_properties(LocalStorage(path), changes)


@pytest.mark.parametrize(("version", "encoding"), [(6, VALUE), (8, VALUE), (9, PREFIXED)])
def test_a_new_table_is_spelled_as_the_hudi_of_its_version_does(tmp_path, version, encoding):
    path, prefix = str(tmp_path / "t"), "id:" if encoding is PREFIXED else ""
    assert write(path, 1, version) == write(path, 2, version, ids="bd") == []
    assert keys_of(path) == {f"{prefix}a": 1, f"{prefix}b": 2, f"{prefix}c": 1, f"{prefix}d": 2}
    assert told(path) is encoding
    with ArrowSink(path) as sink:
        assert sink.delete(rows(3, "b")).rows_deleted == 1
    assert [key[-1] for key in sorted(keys_of(path))] == ["a", "c", "d"]


@pytest.mark.parametrize(
    ("given", "version", "encoding"),
    [("true", 6, VALUE), ("false", 6, PREFIXED), ("false", 8, PREFIXED), ("true", 9, PREFIXED)],
)
def test_hudis_option_chooses_before_version_9_and_no_table_gets_both_spellings(tmp_path, given, version, encoding):
    path, key = str(tmp_path / "t"), "hoodie.write.complex.keygen.new.encoding"
    write(path, 1, version, {key: given})
    assert told(path) is encoding
    if version == 9:
        write(path, 2, version, {key: "false"})
        return
    update_properties(LocalStorage(path), {}, {ENCODING_KEY})
    for _ in range(2):  # before the table says it, and after
        with pytest.raises(InvalidConfigError, match=f"{key}=.* contradicts the table"):
            write(path, 2, version, {key: "false" if given == "true" else "true"})
    write(path, 2, version, {key: given})
    assert set(keys_of(path).values()) == {2}


@pytest.mark.parametrize("options", [{}, LOGS], ids=["base files", "log files"])
def test_a_table_that_does_not_say_it_is_looked_at_once_and_continued(tmp_path, options):
    path = str(tmp_path / "t")
    write(path, 1, options=options)
    update_properties(LocalStorage(path), {}, {ENCODING_KEY})
    assert told(path) is None
    write(path, 2, options=options)
    assert keys_of(path) == {"id:a": 2, "id:b": 2, "id:c": 2}
    assert told(path) is PREFIXED


def test_an_old_table_that_hudi_would_double_is_continued_and_named(tmp_path):
    path = str(tmp_path / "t")
    make_old(path, 9)
    assert [finding.level for finding in examine(path).findings if "add every row again" in finding.text] == ["note"]
    assert told(path) is None  # a look changes nothing
    [warned] = write(path, 2, fields=["m"])
    assert "Hudi 1.1 and later put 'id:' before it in version 9" in warned["hint"]
    assert keys_of(path) == {"a": 2, "b": 2, "c": 2}
    assert told(path) is VALUE


def test_an_old_table_of_version_6_keeps_its_version(tmp_path):
    path = str(tmp_path / "t")
    make_old(path, 6)
    with pytest.raises(UnsupportedTableError, match=r"one record key field.* hold the value alone.*keep version 6"):
        HudiTable.open(path).convert(9)
    assert write(path, 2, 6, fields=["m"]) == []  # Hudi 1.1 refuses it by itself
    said = [finding.text for finding in examine(path).findings if "Hudi 1.1 and later refuse" in finding.text]
    assert "complex.keygen.new.encoding=true" in said[0]


def test_a_table_with_the_names_in_its_keys_goes_through_the_versions(tmp_path):
    path = str(tmp_path / "t")
    write(path, 1)
    for number, version in enumerate((6, 9), 2):
        HudiTable.open(path).convert(version)
        write(path, number, version)
        assert (keys_of(path), told(path)) == (dict.fromkeys(("id:a", "id:b", "id:c"), number), PREFIXED)


@pytest.mark.pure
@pytest.mark.parametrize(
    ("key", "value", "encoding"),
    [("k1", "k1", VALUE), ("id:k1", "k1", PREFIXED), ("id:k1", "id:k1", VALUE), ("id:id:k1", "id:k1", PREFIXED)],
)
def test_a_value_that_begins_like_a_name_is_told_from_one(key, value, encoding):
    assert encoding_of(pa.table({"_hoodie_record_key": [key], "id": [value]}), "id") is encoding


@pytest.mark.pure
def test_a_row_without_the_column_of_its_key_is_judged_by_the_key():
    assert encoding_of(pa.table({"_hoodie_record_key": ["a.b:1"]}), "a.b") is PREFIXED

"""Options and the properties of a table."""

import pytest

from table.config.change_images import ChangeImages
from table.config.table_config import TableConfig
from table.errors import InvalidConfigError
from table.options.agreement import check_options_agree, new_table_config
from table.options.write_options import WriteOptions, parse_options


def grouped(fields):
    """Keyword arguments of `WriteOptions` from fields of its groups for keys and the table."""
    of_table = {"name", "database", "merge_mode", "timezone", "archive_folder"}
    return {
        "keys": {name: value for name, value in fields.items() if name not in of_table},
        "table": {name: value for name, value in fields.items() if name in of_table},
    }


@pytest.mark.parametrize(
    ("options", "keygen"),
    [
        ({"record_key_fields": ("a",), "partition_fields": ("b",)}, "SIMPLE"),
        ({"record_key_fields": ("a", "b"), "partition_fields": ("c",)}, "COMPLEX"),
        ({"record_key_fields": ("a",), "partition_fields": ("b", "c")}, "COMPLEX"),
        ({"record_key_fields": ("a",)}, "NON_PARTITION"),
        ({"record_key_fields": ("a", "b")}, "NON_PARTITION"),
    ],
)
def test_the_key_generator_follows_from_the_fields(options, keygen):
    assert new_table_config(WriteOptions(**grouped(options)), "t").keygen_type == keygen


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "recordkey.field"),
        (
            {"record_key_fields": ("a", "b"), "partition_fields": ("c",), "keygen_type": "SIMPLE"},
            "complex key generator",
        ),
        (
            {"record_key_fields": ("a",), "partition_fields": ("b", "c"), "keygen_type": "SIMPLE"},
            "complex key generator",
        ),
        ({"record_key_fields": ("a",), "partition_fields": ("b",), "keygen_type": "TIMESTAMP"}, "timestamp.type"),
        ({"record_key_fields": ("a",), "keygen_type": "SIMPLE"}, "partitionpath.field"),
        ({"record_key_fields": ("a",), "partition_fields": ("b",), "keygen_type": "NON_PARTITION"}, "contradict"),
    ],
)
def test_a_new_table_needs_keys_that_make_sense(options, message):
    with pytest.raises(InvalidConfigError, match=message):
        new_table_config(WriteOptions(**grouped(options)), "t")


TABLE = TableConfig("t", ("id",), ("p",), ("ts",))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"record_key_fields": ("other",)}, r"recordkey.field=other\) contradicts the table, which has id"),
        ({"partition_fields": ()}, r"partitionpath.field=\) contradicts the table, which has p"),
        ({"ordering_fields": ("x",)}, "precombine.field=x"),
        ({"name": "x"}, "hoodie.table.name=x"),
        ({"hive_style": True}, "hive_style_partitioning=true"),
        ({"timezone": "LOCAL"}, "timezone=LOCAL"),
        ({"keygen_type": "COMPLEX"}, "keygenerator.type=COMPLEX"),
        ({"archive_folder": "past"}, "archivelog.folder=past"),
    ],
)
def test_options_that_contradict_the_table_are_refused(options, message):
    with pytest.raises(InvalidConfigError, match=message):
        check_options_agree(WriteOptions(**grouped(options)), TABLE)


def test_what_is_left_out_is_the_tables():
    check_options_agree(WriteOptions(), TABLE)


@pytest.mark.parametrize(
    ("options", "images"),
    [
        ({}, None),
        ({"hoodie.table.cdc.enabled": "false", "cdc.supplemental.logging.mode": "data_before"}, None),
        ({"cdc.enabled": "true"}, ChangeImages.DATA_BEFORE_AFTER),
        ({"cdc.enabled": "true", "cdc.supplemental.logging.mode": "op_key_only"}, ChangeImages.OP_KEY_ONLY),
    ],
)
def test_a_new_table_has_change_files_where_options_say_so(options, images):
    parsed = parse_options({"hoodie.datasource.write.recordkey.field": "id", **options}).options
    assert new_table_config(parsed, "t").change_images is images

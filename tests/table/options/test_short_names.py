import pytest

from table import WriteOptions, parse_options
from table.errors import InvalidConfigError
from table.options.operation import Operation
from table.options.short_names import with_short_names

TYPE = "hoodie.datasource.write.table.type"
KEY, PATH, ORDER, OPERATION = (
    "hoodie.datasource.write." + name
    for name in ("recordkey.field", "partitionpath.field", "precombine.field", "operation")
)


@pytest.mark.parametrize(
    ("short", "long"),
    [
        ({"key": "id"}, {KEY: "id"}),
        ({"key": ["a", "b"]}, {KEY: "a,b"}),
        ({"partition_by": "day"}, {PATH: "day"}),
        ({"partition_by": ("region", "day")}, {PATH: "region,day"}),
        ({"partition_by": []}, {PATH: ""}),
        ({"order_by": "ts"}, {ORDER: "ts"}),
        ({"operation": "UPSERT"}, {OPERATION: "upsert"}),
        ({"operation": Operation.INSERT}, {OPERATION: "insert"}),
        ({"table_type": "mor"}, {TYPE: "MERGE_ON_READ"}),
        ({"table_type": "cow"}, {TYPE: "COPY_ON_WRITE"}),
        ({"table_type": "merge_on_read"}, {TYPE: "mor"}),
        ({"index": "bucket"}, {"hoodie.index.type": "BUCKET"}),
        ({"index": "bloom"}, {"hoodie.index.type": "BLOOM"}),
    ],
)
def test_short_names_mean_hudis_and_the_same_twice_is_fine(short, long):
    expected = parse_options(long).options
    assert with_short_names(WriteOptions(), **short) == expected
    assert with_short_names(expected, **short) == expected


@pytest.mark.parametrize(
    ("short", "long", "message"),
    [
        ({"key": "id"}, {KEY: "uuid"}, f"key=id and {KEY}=uuid say different things: keep one"),
        ({"key": ["a", "b"]}, {KEY: "b,a"}, f"key=a,b and {KEY}=b,a say"),
        ({"partition_by": "day"}, {PATH: ""}, f"partition_by=day and {PATH}= say"),
        ({"order_by": "ts"}, {ORDER: "seq"}, f"order_by=ts and {ORDER}=seq say"),
        ({"operation": "insert"}, {OPERATION: "upsert"}, f"operation=insert and {OPERATION}=upsert say"),
        ({"operation": "upsrt"}, {}, "operation=upsrt"),
        ({"key": []}, {}, "names no column"),
        ({"table_type": "mor"}, {TYPE: "cow"}, f"table_type=MERGE_ON_READ and {TYPE}=COPY_ON_WRITE say"),
        ({"table_type": "mro"}, {}, "table_type=mro: this table type is not supported"),
        ({"index": "simple"}, {"hoodie.index.type": "bucket"}, "index=SIMPLE and hoodie.index.type=BUCKET say"),
        ({"index": "blom"}, {}, "did you mean bloom"),
        ({"order_by": ["a", "b"]}, {ORDER: "b,a"}, f"order_by=a,b and {ORDER}=b,a say"),
    ],
)
def test_short_names_that_contradict_are_refused(short, long, message):
    with pytest.raises(InvalidConfigError) as error:
        with_short_names(parse_options(long).options, **short)
    assert message in str(error.value)


def test_kinds_of_the_custom_key_generator_are_kept():
    custom = {"hoodie.datasource.write.keygenerator.type": "CUSTOM", PATH: "day:TIMESTAMP"}
    expected = parse_options(custom).options
    assert with_short_names(expected, partition_by="day:TIMESTAMP") == expected
    del custom[PATH]
    assert with_short_names(parse_options(custom).options, partition_by="day:TIMESTAMP") == expected
    with pytest.raises(InvalidConfigError, match="partition_by=SIMPLE and .*=TIMESTAMP say different things"):
        with_short_names(expected, partition_by="day:SIMPLE")

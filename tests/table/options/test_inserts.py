import pytest

from table.errors import InvalidConfigError
from table.options.choices import IndexType
from table.options.inserts import check_inserts_stay
from table.options.operation import Operation
from table.options.write_groups import DuplicateSettings

EVERY = DuplicateSettings()


def test_inserts_into_logs_of_buckets_are_refused():
    with pytest.raises(InvalidConfigError, match=r"operation=insert .*BUCKET .*not keep every row.*operation=upsert"):
        check_inserts_stay(Operation.INSERT, IndexType.BUCKET, EVERY, "MERGE_ON_READ")


@pytest.mark.parametrize(
    ("operation", "index", "duplicates", "table_type"),
    [
        (Operation.UPSERT, IndexType.BUCKET, EVERY, "MERGE_ON_READ"),
        (Operation.INSERT, IndexType.BLOOM, EVERY, "MERGE_ON_READ"),
        (Operation.INSERT, IndexType.BUCKET, EVERY, "COPY_ON_WRITE"),
        (Operation.INSERT, IndexType.BUCKET, EVERY, None),
        (Operation.INSERT, IndexType.BUCKET, DuplicateSettings(allow_on_insert=False), "MERGE_ON_READ"),
    ],
)
def test_others_stay(operation, index, duplicates, table_type):
    check_inserts_stay(operation, index, duplicates, table_type)

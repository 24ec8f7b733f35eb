"""Which indexes of a metadata table are kept, dropped or refused: by table."""

import pytest

from table.config.metadata_indexes import check_maintained, indexes_in
from table.errors import UnsupportedTableError


@pytest.mark.parametrize(
    ("named", "expected"),
    [("", set()), ("files", {"files"}), (" files , column_stats,", {"files", "column_stats"}), (",", set())],
)
def test_names(named, expected):
    assert indexes_in(named) == expected


@pytest.mark.parametrize("indexes", ["", "files", "files,column_stats,partition_stats"])
def test_kept_or_dropped(indexes):
    check_maintained(indexes_in(indexes))


@pytest.mark.parametrize(
    ("indexes", "named"),
    [
        ("files,record_index", "record_index cannot"),
        ("bloom_filters,files,record_index", "bloom_filters, record_index cannot"),
        ("column_stats", "those without files cannot"),
    ],
)
def test_refused_with_both_ways_out(indexes, named):
    with pytest.raises(UnsupportedTableError, match=named) as told:
        check_maintained(indexes_in(indexes))
    assert "hoodie.metadata.enable=false" in str(told.value)
    assert "DROP INDEX" in str(told.value)

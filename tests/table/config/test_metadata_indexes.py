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


@pytest.mark.parametrize(
    ("indexes", "tells_keys"),
    [("", False), ("files", False), ("files,column_stats,partition_stats", False), ("files,record_index", True)],
)
def test_kept_or_dropped(indexes, tells_keys):
    check_maintained(indexes_in(indexes), tells_keys=tells_keys)


@pytest.mark.parametrize(
    ("indexes", "tells_keys", "named"),
    [
        ("files,record_index", False, "of these, record_index cannot"),
        ("bloom_filters,files,record_index", False, "of these, bloom_filters, record_index cannot"),
        ("bloom_filters,files,record_index", True, "of these, bloom_filters cannot"),
        ("column_stats", True, "those without files cannot"),
        ("record_index", True, "those without files cannot"),
    ],
)
def test_refused_with_both_ways_out(indexes, tells_keys, named):
    with pytest.raises(UnsupportedTableError, match=named) as told:
        check_maintained(indexes_in(indexes), tells_keys=tells_keys)
    assert "hoodie.metadata.enable=false" in str(told.value)
    assert "DROP INDEX" in str(told.value)

"""Partition paths are taken apart as the catalog's class says."""

import pytest

from table.catalog.partition_values import partition_values
from table.errors import CatalogError
from table.options.catalog_settings import PartitionExtractor


@pytest.mark.parametrize(
    ("path", "fields", "more", "expected"),
    [
        ("", [], {}, ()),
        ("eu", ["region"], {}, ("eu",)),
        ("eu/2026", ["region"], {}, ("eu/2026",)),  # one field takes the whole path
        ("eu/2026", ["region", "year"], {}, ("eu", "2026")),
        ("region=eu/year=2026", ["region", "year"], {"is_styled": True}, ("eu", "2026")),
        ("region=a=b", ["region"], {"is_styled": True}, ("a=b",)),
        ("a=b", ["region"], {}, ("a=b",)),
        ("=b", ["region"], {"is_styled": True}, ("=b",)),
        ("a%2Fb", ["region"], {"decodes": True}, ("a/b",)),
        ("a%2Fb", ["region"], {}, ("a%2Fb",)),
        ("2026/11/25", ["day"], {"extractor": PartitionExtractor.SLASHED_DAY}, ("2026-11-25",)),
        (
            "y=2026/m=11/d=25",
            ["day"],
            {"extractor": PartitionExtractor.SLASHED_DAY, "is_styled": True},
            ("2026-11-25",),
        ),
        ("eu", ["region"], {"extractor": PartitionExtractor.EACH_LEVEL}, ("eu",)),
        ("eu", ["region"], {"extractor": PartitionExtractor.NONE}, ()),
    ],
)
def test_a_path_has_a_value_for_each_field(path, fields, more, expected):
    assert partition_values(path, fields, **more) == expected


@pytest.mark.parametrize(
    ("path", "fields", "extractor"), [("eu", ["a", "b"], None), ("a/b", ["a"], PartitionExtractor.EACH_LEVEL)]
)
def test_a_path_with_other_levels_is_named_with_the_way_out(path, fields, extractor):
    with pytest.raises(CatalogError, match=rf"partition path '{path}' has .* levels.*partition_extractor_class"):
        partition_values(path, fields, extractor)

"""Which slices a clustering takes (by table), and its plan as Hudi writes it."""

from pathlib import Path

import pytest

from table.errors import CorruptFileError, InvalidConfigError
from table.files.names import BaseFileName
from table.options.clustering_settings import ClusteringSettings, Layout, RowOrder
from table.options.write_options import parse_options
from table.services.clustering.plan import choose_partitions, order_number, plan_clustering
from table.storage.interface import FileInfo
from table.timeline.metadata.clustering import (
    ClusteredSlice,
    ClusteringGroup,
    ClusteringPlan,
    decode_clustering_plan,
    encode_clustering_plan,
    is_of_others,
)
from table.view.file_group import BaseFile, FileSlice, parse_data_files

pytestmark = pytest.mark.pure
MB = 1024 * 1024
T1, T2 = "20260101000000000", "20260102000000000"


def a_slice(number, size_mb, path="p", time=T1, log_mb=None, order=0):
    file_id = f"{number:08x}-0000-0000-0000-000000000000-0"
    names = [(str(BaseFileName(file_id, f"0-{order}-7", time)), size_mb * MB)] if size_mb else []
    if log_mb:
        names.append((f".{file_id}_{time}.log.1_0-0-0", log_mb * MB))
    bases, logs = parse_data_files(path, [FileInfo(name, size, 0, False) for name, size in names])
    base: BaseFile | None = bases[0] if bases else None
    return FileSlice(path, file_id, time, base, tuple(logs))


def taken(slices, given):
    plan = plan_clustering(slices, ClusteringSettings(**given))
    return [([int(one.file_id[:8], 16) for one in group.slices], group.files) for group in plan.groups]


SORTED = {"sort_columns": ("x",)}
BY_X, BY_Y = (order_number((name,), Layout.LINEAR) for name in "xy")


@pytest.mark.parametrize(
    ("slices", "given", "expected"),
    [
        ([], {}, []),
        ([a_slice(1, 5), a_slice(2, 9)], {}, [([1, 2], 1)]),
        ([a_slice(1, 5)], {}, []),  # one file without an order: nothing to gain
        ([a_slice(1, 5)], SORTED, [([1], 1)]),
        ([a_slice(1, 5)], {**SORTED, "takes_single": False}, []),
        ([a_slice(1, 5, log_mb=1)], {}, [([1], 1)]),
        ([a_slice(1, 5, order=BY_X)], SORTED, []),  # in order already
        ([a_slice(1, 5, order=BY_Y)], SORTED, [([1], 1)]),
        ([a_slice(1, 5, order=BY_Y), a_slice(2, 5, order=BY_X)], {}, []),  # put together already, in whatever order
        ([a_slice(1, 5, order=BY_X), a_slice(2, 5, order=BY_X)], SORTED, []),
        ([a_slice(1, 5, order=BY_X), a_slice(2, 5, order=BY_X, time=T2)], SORTED, [([1, 2], 1)]),
        ([a_slice(1, 5, order=BY_X), a_slice(2, 5)], SORTED, [([1, 2], 1)]),
        ([a_slice(1, 5, order=BY_X, log_mb=1)], SORTED, [([1], 1)]),
        ([a_slice(1, 400), a_slice(2, 5)], {}, []),  # the large one is no candidate
        ([a_slice(1, 400), a_slice(2, 5)], {"small_file_bytes": 500 * MB}, [([1, 2], 1)]),
        ([a_slice(1, 0, log_mb=400), a_slice(2, 5)], {}, [([1, 2], 1)]),  # its base file decides
        ([a_slice(n, 100) for n in (1, 2, 3)], {"group_bytes": 200 * MB}, [([1, 2], 1)]),
        ([a_slice(n, 100) for n in (1, 2, 3)], {"group_bytes": 200 * MB, **SORTED}, [([1, 2], 1), ([3], 1)]),
        ([a_slice(n, 100) for n in (1, 2, 3)], {"target_bytes": 150 * MB}, [([1, 2, 3], 2)]),
        ([a_slice(n, 9, path=f"p{n % 3}") for n in range(6)], {"most_groups": 2}, [([0, 3], 1), ([1, 4], 1)]),
    ],
)
def test_slices_of_a_plan(slices, given, expected):
    assert taken(slices, given) == expected


PATHS = ["d=1", "d=2", "d=3", "d=4", "x"]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, PATHS),
        ({"partitions": ("x", "d=2", "gone")}, ["d=2", "x"]),
        ({"partition_pattern": r"d=[12]"}, ["d=1", "d=2"]),
        ({"partition_pattern": "d"}, []),
        ({"partition_filter": "RECENT_DAYS"}, ["d=4", "x"]),
        ({"partition_filter": "RECENT_DAYS", "days": 1, "days_skipped": 1}, ["d=4"]),
        (
            {"partition_filter": "SELECTED_PARTITIONS", "first_partition": "d=2", "last_partition": "d=3"},
            ["d=2", "d=3"],
        ),
        ({"partition_filter": "SELECTED_PARTITIONS", "first_partition": "d=4"}, ["d=4", "x"]),
        ({"partition_filter": "DAY_ROLLING"}, ["d=3"]),
    ],
)
def test_partition_paths_of_a_plan(given, expected):
    assert choose_partitions(reversed(PATHS), ClusteringSettings(**given), hour=2) == expected


PLAN = ClusteringPlan(
    (
        ClusteringGroup(
            (ClusteredSlice("a=1", "f1-0", "f1-0_0-0-0_1.parquet", ("l1", "l2")),), 2, {"TOTAL_IO_MB": 3.0}
        ),
        ClusteringGroup((ClusteredSlice("", "f2-0", None, ("l3",)), ClusteredSlice("", "f3-0", "f3.parquet"))),
    ),
    ("x", "y"),
)


def test_a_plan_is_read_as_it_was_written():
    data = encode_clustering_plan(PLAN, "s3a://lake/t/")
    assert decode_clustering_plan(data) == PLAN
    assert not is_of_others(data)
    assert PLAN.replaced == {"a=1": ("f1-0",), "": ("f2-0", "f3-0")}


def test_a_plan_of_hudi_is_read(golden):
    path, _ = golden("v9_mor_clustered")
    (name,) = Path(path).glob(".hoodie/timeline/*.clustering.requested")
    plan = decode_clustering_plan(name.read_bytes())
    assert not plan.is_ours
    assert is_of_others(name.read_bytes())
    assert plan.sort_columns == ("qty", "price")
    assert all(one.base_file.startswith(one.file_id) for group in plan.groups for one in group.slices)


def test_requests_of_overwrites_are_no_clusterings(golden):
    path, _ = golden("cow_insert_overwrite")
    name = next(Path(path).glob(".hoodie/*.replacecommit.requested"))
    assert decode_clustering_plan(name.read_bytes()) is None
    assert not is_of_others(name.read_bytes())
    assert decode_clustering_plan(b"") is None


def test_a_plan_that_names_a_file_elsewhere_is_refused():
    outside = ClusteringPlan((ClusteringGroup((ClusteredSlice("../victim", "f", "f.parquet"),)),))
    with pytest.raises(CorruptFileError):
        decode_clustering_plan(encode_clustering_plan(outside, "/lake/t"))


def test_hudis_options_are_read():
    keys = {
        "hoodie.clustering.inline": "true",
        "hoodie.clustering.inline.max.commits": "7",
        "hoodie.layout.optimize.strategy": "z-order",
        "hoodie.clustering.plan.strategy.sort.columns": "a, b",
        "hoodie.clustering.plan.strategy.small.file.limit": "1MB",
        "hoodie.clustering.plan.partition.filter.mode": "recent_days",
    }
    found = parse_options({"hoodie.datasource.write.recordkey.field": "id", **keys}).options.clustering
    assert (found.inline, found.max_commits, found.sort_columns, found.layout) == (True, 7, ("a", "b"), "Z_ORDER")
    assert (found.small_file_bytes, found.partition_filter) == (MB, "RECENT_DAYS")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"hoodie.index.type": "BUCKET"}, "leave one of them out"),
        ({"hoodie.clustering.inline.max.commits": "50"}, "more than archival keeps"),
    ],
)
def test_a_clustering_between_batches_that_cannot_be_is_refused(given, said):
    options = {"hoodie.datasource.write.recordkey.field": "id", "hoodie.clustering.inline": "true", **given}
    with pytest.raises(InvalidConfigError, match=said):
        parse_options(options)
    assert parse_options({**options, "hoodie.clustering.inline": "false"})


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"layout": "hilbert", "sort_columns": ("a",)}, "needs two or more columns"),
        ({"partition_pattern": "("}, "is no regular expression"),
    ],
)
def test_settings_that_cannot_be_are_refused(given, said):
    with pytest.raises(InvalidConfigError, match=said):
        ClusteringSettings(**given)


BULK = "hoodie.bulkinsert.user.defined.partitioner.sort.columns"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"hoodie.layout.optimize.strategy": "hilbert"}, "needs two or more columns in hoodie.clustering"),
        ({"hoodie.layout.optimize.strategy": "hilbert", BULK: "a"}, f"needs two or more columns in {BULK}, not a"),
        ({BULK: "a,b,a"}, f"{BULK} names a twice"),
        (
            {
                BULK: "a,b,c,d,e,f,g,h,i",
                "hoodie.clustering.plan.strategy.sort.columns": "a,b",
                "hoodie.layout.optimize.strategy": "hilbert",
            },
            f"takes at most 8 columns, and {BULK} names 9",
        ),
    ],
)
def test_an_order_of_a_bulk_insert_that_cannot_be_is_refused(given, said):
    options = {"hoodie.datasource.write.recordkey.field": "id", "hoodie.datasource.write.operation": "bulk_insert"}
    with pytest.raises(InvalidConfigError, match=said):
        parse_options({**options, **given})


@pytest.mark.parametrize(
    ("given", "order"),
    [
        ({}, None),
        ({BULK: "a"}, RowOrder(("a",))),
        ({BULK: "a,b", "hoodie.layout.optimize.strategy": "z-order"}, RowOrder(("a", "b"), Layout.Z_ORDER)),
        ({BULK: "a,b", "hoodie.datasource.write.operation": "insert"}, None),
        (
            {
                BULK: "a",
                "hoodie.clustering.plan.strategy.sort.columns": "a,b",
                "hoodie.layout.optimize.strategy": "hilbert",
            },
            RowOrder(("a",)),
        ),
    ],
)
def test_the_order_of_a_bulk_insert(given, order):
    options = {"hoodie.datasource.write.recordkey.field": "id", "hoodie.datasource.write.operation": "bulk_insert"}
    assert parse_options({**options, **given}).options.bulk_insert_order == order

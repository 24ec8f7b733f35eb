"""Hudi's strings for reading: what each asks for, what is refused, what has no effect."""

from datetime import date

import pytest

from table import InvalidConfigError
from table.options.read_options import (
    READ_ALIASES,
    READ_HONOURED,
    READ_REFUSED,
    READ_WITHOUT_EFFECT,
    ParsedReadOptions,
    QueryType,
    ReadOptions,
    parse_read_options,
)

QUERY_TYPE = "hoodie.datasource.query.type"
VIEW_TYPE = "hoodie.datasource.view.type"
BEGIN = "hoodie.datasource.read.begin.instanttime"
END = "hoodie.datasource.read.end.instanttime"

# keys of DataSourceReadOptions in Hudi 1.0.2 and 1.2.0
HUDIS = """
    hoodie.datasource.query.type hoodie.datasource.view.type hoodie.datasource.query.incremental.format
    hoodie.datasource.merge.type hoodie.datasource.read.paths hoodie.file.index.enable
    hoodie.datasource.streaming.startOffset hoodie.datasource.read.begin.instanttime
    hoodie.datasource.read.end.instanttime hoodie.datasource.read.streaming.table.version
    hoodie.datasource.read.incr.table.version hoodie.datasource.read.schema.use.end.instanttime
    hoodie.datasource.read.incr.filters hoodie.datasource.read.incr.path.glob
    hoodie.datasource.read.incr.skip_compact hoodie.datasource.read.incr.skip_cluster as.of.instant
    hoodie.enable.data.skipping hoodie.datasource.read.extract.partition.values.from.path
    hoodie.datasource.read.file.index.listing.mode
    hoodie.datasource.read.file.index.listing.partition-path-prefix.analysis.enabled
    hoodie.datasource.read.file.index.optimize.listing.using.path.filter
    hoodie.datasource.read.file.index.list.partitions.from.catalog
    hoodie.datasource.read.incr.fallback.fulltablescan.enable hoodie.schema.on.read.enable
    hoodie.read.timeline.holes.resolution.policy
    hoodie.datasource.read.table.valued.function.timeline.relation
    hoodie.datasource.read.table.valued.function.timeline.relation.archived
    hoodie.datasource.read.create.filesystem.relation
    hoodie.datasource.read.table.valued.function.filesystem.relation.subpath
    hoodie.datasource.read.partition.value.extractor.enabled hoodie.query.as.ro.table
""".split()


@pytest.mark.parametrize(
    ("options", "asked"),
    [
        ({}, ReadOptions()),
        ({QUERY_TYPE: "SNAPSHOT"}, ReadOptions()),
        ({QUERY_TYPE: "read_optimized"}, ReadOptions(QueryType.READ_OPTIMIZED)),
        ({"hoodie.query.as.ro.table": "true"}, ReadOptions(QueryType.READ_OPTIMIZED)),
        ({"hoodie.query.as.ro.table": False}, ReadOptions()),
        # as Hudi translates its older key
        ({VIEW_TYPE: "read_optimized"}, ReadOptions()),
        ({VIEW_TYPE: "realtime"}, ReadOptions()),
        ({VIEW_TYPE: "realtime", QUERY_TYPE: "read_optimized"}, ReadOptions(QueryType.READ_OPTIMIZED)),
        ({"as.of.instant": "2026-01-02"}, ReadOptions(as_of="2026-01-02")),
        (
            {QUERY_TYPE: "incremental", BEGIN: "20260101000000", END: "20260102000000"},
            ReadOptions(QueryType.INCREMENTAL, None, "20260101000000", "20260102000000", None, names_hudis_begin=True),
        ),
        (
            {VIEW_TYPE: "incremental", BEGIN: "000"},
            ReadOptions(QueryType.INCREMENTAL, since="000", names_hudis_begin=True),
        ),
        ({"hoodie.datasource.streaming.startOffset": "latest"}, ReadOptions(start="latest")),
        ({QUERY_TYPE: None, "path": "/lake/t/"}, ReadOptions()),
    ],
)  # fmt: skip
def test_what_options_ask_for(options, asked):
    assert parse_read_options(options, base_path="/lake/t") == ParsedReadOptions(asked, {})


def test_arguments_ask_for_the_same_things():
    day = date(2026, 1, 2)
    assert parse_read_options({}, ReadOptions(as_of=day)).options == ReadOptions(as_of=day)
    for asked in (ReadOptions(since="1"), ReadOptions(until="2"), ReadOptions(since="1", until="2")):
        assert parse_read_options({}, asked).options == ReadOptions(
            QueryType.INCREMENTAL, None, asked.since, asked.until
        )
    assert parse_read_options({"as.of.instant": "2026-01-02"}, ReadOptions(as_of=day)).options.as_of == day


@pytest.mark.parametrize(
    ("options", "given", "said"),
    [
        ({QUERY_TYPE: "incremental"}, {}, f"needs {BEGIN}"),
        ({QUERY_TYPE: "incremental", BEGIN: "1", "as.of.instant": "2"}, {}, "give until="),
        ({QUERY_TYPE: "incremental", BEGIN: "1"}, {"as_of": "2"}, "give until="),
        ({BEGIN: "1"}, {}, "set it to incremental"),
        ({QUERY_TYPE: "snapshot"}, {"since": "1"}, "set it to incremental"),
        ({QUERY_TYPE: "incremental", BEGIN: "1"}, {"since": "2"}, f"since='2' and {BEGIN}=1 say different things"),
        ({QUERY_TYPE: "snapshot", "hoodie.query.as.ro.table": "true"}, {}, "say different things"),
        ({QUERY_TYPE: "read_optimised"}, {}, "did you mean read_optimized"),
        ({"hoodie.datasource.query.typ": "snapshot"}, {}, "did you mean hoodie.datasource.query.type"),
        ({"hoodie.datasource.query.incremental.format": "cdc"}, {}, "leave it out, or set latest_state"),
        ({"hoodie.datasource.merge.type": "skip_merge", "read.start-commit": "1"}, {}, "2 options cannot be used"),
        ({"hoodie.base.path": "/lake/other"}, {}, "'/lake/other'"),
        ({"path": "/lake/t", "hoodie.base.path": "/lake/u"}, {}, "hoodie.base.path=/lake/u say different things"),
    ],
)  # fmt: skip
def test_what_is_refused_names_the_way_out(options, given, said):
    with pytest.raises(InvalidConfigError, match=said.replace("(", r"\(")):
        parse_read_options(options, ReadOptions(**given), "/lake/t")


def test_every_key_of_hudis_reader_is_in_one_class():
    classes = {key: sum(key in one for one in (READ_HONOURED, READ_REFUSED, READ_WITHOUT_EFFECT)) for key in HUDIS}
    assert {key for key, count in classes.items() if count != 1} == set()


def test_harmless_values_pass_and_keys_without_effect_are_told():
    for key, (harmless, _) in READ_REFUSED.items():
        for value in harmless:
            assert parse_read_options({key: value.upper()}) == ParsedReadOptions(ReadOptions(), {})
    told = {"hoodie.metadata.enable": True, "hoodie.file.index.enable": "true", "hoodie.metrics.on": "true"}
    assert parse_read_options(told).without_effect.keys() == told.keys()
    assert set(READ_ALIASES.values()) <= set(READ_HONOURED)

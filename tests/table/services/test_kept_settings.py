"""The settings that a sink leaves at its table, and how tools judge by them."""

import json

import pyarrow as pa
import pytest

from hudistream import ArrowSink, HudiTable
from table.inspect.health import load_health
from table.inspect.health_facts import Code
from table.options.groups import ArchiveSettings, CleanSettings, CompactionSettings
from table.options.write_groups import SizeSettings
from table.services.kept_settings import SETTINGS_FILE, KeptSettings, decode_settings, encode_settings, load_settings

IDENTIFIER = "hoodie.datasource.write.streaming.checkpoint.identifier"
KEPT = KeptSettings(
    "orders",
    SizeSettings(max_file_bytes=5),
    CleanSettings(policy="KEEP_LATEST_BY_HOURS", hours_retained=3, incremental=False, partitions=("a", "b")),
    ArchiveSettings(max_commits=99, min_commits=50),
    CompactionSettings(delta_commits=7, trigger="NUM_OR_TIME"),
)


def test_settings_come_back_as_they_were():
    assert decode_settings(encode_settings(KEPT)) == KEPT
    assert decode_settings(encode_settings(KeptSettings())) == KeptSettings()


@pytest.mark.parametrize("data", [b"", b"{", b"[1]", b"null", b"7"])
def test_a_damaged_file_gives_the_defaults(data):
    assert decode_settings(data) == KeptSettings()


def test_what_another_version_wrote_is_taken_as_far_as_it_is_known():
    found = json.loads(encode_settings(KEPT))
    found["clean"]["of_a_later_version"] = 1
    found["archive"]["max_commits"] = "many"
    found["more"] = {}
    assert decode_settings(json.dumps(found).encode()) == KeptSettings(
        "orders", KEPT.sizes, KEPT.clean, ArchiveSettings(), KEPT.compaction
    )


def write(path, number, options):
    with ArrowSink(path, {**options, IDENTIFIER: "orders"}, key="id") as sink:
        sink.write(pa.table({"id": ["a"], "v": [number or 0]}), batch_id=number)


def test_a_table_is_judged_by_the_settings_of_its_sink(tmp_path):
    path = str(tmp_path / "t")
    options = {
        "hoodie.datasource.write.table.type": "MERGE_ON_READ",
        "hoodie.datasource.compaction.async.enable": "false",
    }
    for number in range(17):
        write(path, number, {**options, "hoodie.compact.inline.max.delta.commits": "2"})
    table = HudiTable.open(path)
    found = table.health()
    assert found.judged_as == "orders"
    assert [one.code for one in found.findings] == [Code.NOT_COMPACTED]
    write(path, 17, {**options, "hoodie.compact.inline.max.delta.commits": "50"})
    assert load_settings(table.storage).compaction.delta_commits == 50
    assert table.health().findings == ()
    assert [one.code for one in load_health(table, KeptSettings()).findings] == [Code.NOT_COMPACTED]


def test_settings_are_written_where_they_changed_alone(tmp_path):
    path = str(tmp_path / "t")
    write(path, 0, {})
    before = (tmp_path / "t" / SETTINGS_FILE).stat().st_mtime_ns
    write(path, 1, {})
    assert (tmp_path / "t" / SETTINGS_FILE).stat().st_mtime_ns == before
    write(path, 2, {"hoodie.clean.commits.retained": "3"})
    assert (tmp_path / "t" / SETTINGS_FILE).stat().st_mtime_ns > before


def test_a_write_outside_of_a_stream_replaces_none(tmp_path):
    path = str(tmp_path / "t")
    write(path, None, {"hoodie.clean.commits.retained": "4"})
    storage = HudiTable.open(path).storage
    assert load_settings(storage).clean.commits_retained == 4  # there were none
    write(path, 1, {"hoodie.clean.commits.retained": "3"})
    HudiTable.open(path).delete([("id", "=", "a")])
    assert load_settings(storage).clean.commits_retained == 3

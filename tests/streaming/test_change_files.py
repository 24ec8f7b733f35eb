"""Change files (``hoodie.table.cdc.enabled``): what a commit inserted, updated and deleted in a base file."""

import random
import zipfile
from pathlib import Path

import pyarrow as pa
import pytest
from change_files import blocks_of, records_of
from every_type import EVERY_TYPE, random_batch
from tiers import quick

import hudistream
from hudistream import ArrowSink, HudiTable, InvalidConfigError, UnsupportedTableError
from table.config.table_config import load_table_config
from table.files.base.writer import BaseFileWriter, CopyInDoubtError
from table.files.markers import create_marker, list_markers
from table.files.names import parse_base_file, parse_log_file
from table.options.groups import KEEP_LATEST_FILE_VERSIONS, CleanSettings
from table.snapshot import Snapshot
from table.storage.local import LocalStorage
from table.write import announce

GOLDEN = Path(__file__).parents[1] / "golden" / "cdc"
ON = {"hoodie.table.cdc.enabled": "true"}
IMAGES = "hoodie.table.cdc.supplemental.logging.mode"
QUIET = {
    "hoodie.clean.automatic": "false",
    "hoodie.archive.automatic": "false",
    "hoodie.compact.inline": "false",
    "hoodie.datasource.compaction.async.enable": "false",
}
NAMED = {"key": "id", "partition_by": "p", "order_by": "ts"}


def open_sink(path, **more):
    return ArrowSink(path, {**ON, **QUIET, **more}, **NAMED)


def rows(numbers, ts=1, v="v"):
    numbers = list(numbers)
    return pa.table(
        {
            "id": [f"k{number}" for number in numbers],
            "p": [f"p{number % 2}" for number in numbers],
            "ts": pa.array([ts] * len(numbers), pa.int64()),
            "v": [f"{v}{number}" for number in numbers],
        }
    )


def newest_stats(path):
    snapshot = Snapshot.load(HudiTable.open(path))
    return snapshot.commits.find(snapshot.timeline.completed_writes[-1]).stats


def told(path):
    """What the change files of the newest commit say: operation, key before or after, and value before and after."""
    found = []
    for stat in newest_stats(path):
        for file, size_bytes in stat.change_files.items():
            assert Path(path, file).stat().st_size == size_bytes
            name, base = parse_log_file(Path(file).name), parse_base_file(Path(stat.path).name)
            assert (name.file_id, name.base_instant_time, name.write_token, name.version, name.suffix) == (
                base.file_id, base.instant_time, base.write_token, 1, ".cdc",
            )  # fmt: skip
            found += records_of(Path(path, file))
    return sorted(
        (one["op"], *(row and (row["id"], row["v"]) for row in (one["before"], one["after"]))) for one in found
    )


def shown(path, since):
    """The same by the feed that is computed from file slices."""
    feed = (
        HudiTable.open(path).changes(since, columns=["id", "v"], before=True, each_commit=True).to_arrow().to_pylist()
    )
    made = []
    for row in feed:
        after, before = (row["id"], row["v"]), row["_change_before"] and tuple(row["_change_before"].values())
        operation = row["_change_operation"]
        made.append((operation, before, None if operation == "d" else after))
    return sorted(made)


FORMS = [
    {"hoodie.write.table.version": version, "hoodie.datasource.write.table.type": kind}
    for version in ("6", "8", "9")
    for kind in ("COPY_ON_WRITE", "MERGE_ON_READ")
]


@pytest.mark.parametrize(
    "more",
    [
        pytest.param({}, id="one row group"),
        pytest.param({"hoodie.parquet.block.size": "600"}, id="many", marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize("form", FORMS[::2], ids=str)
def test_change_files_say_what_the_feed_says(tmp_path, form, more):
    path, rng = str(tmp_path / "t"), random.Random(5)
    with open_sink(path, **form, **more) as sink:
        sink.write(rows(range(60)), operation="insert")
        assert told(path) == []  # new file groups have no change files: all rows are new
        assert not list(Path(path).rglob("*.cdc"))
        for number in range(2, 12):
            since = HudiTable.open(path).newest_instant
            some = rng.sample(range(80), rng.randint(1, 30))
            if number % 5 == 4:
                sink.write(rows(some), operation="delete")
            else:
                sink.write(rows(some, number - 5 * (number % 4 == 3), f"w{number}-"), operation="upsert")
            assert told(path) == shown(path, since), number
    assert {one[0] for one in told(path)} <= {"i", "u", "d"}
    assert HudiTable.open(path).check().is_sound


def test_patched_row_groups_are_told_with_all_their_columns(tmp_path):
    """In large row groups only changed columns are encoded: the images have the others, too."""
    path = str(tmp_path / "t")
    many, changed = rows(range(0, 40_000, 2)), rows(range(0, 400, 40), 2, "w")
    with open_sink(path, **{"hoodie.parquet.block.size": "100000"}) as sink:
        sink.write(many, operation="insert")
        since = HudiTable.open(path).newest_instant
        sink.write(changed.append_column("n", pa.array(range(10), pa.int64())), operation="upsert")
        assert len(told(path)) == 10
        assert told(path) == shown(path, since)
        since = HudiTable.open(path).newest_instant
        sink.write(rows(range(0, 800, 40), 3, "x").append_column("n", pa.array(range(20), pa.int64())))
        assert len(told(path)) == 20
        assert told(path) == shown(path, since)


@pytest.mark.parametrize("form", FORMS[1::2], ids=str)
def test_merge_on_read_tells_of_base_files_that_are_merged(tmp_path, form):
    path = str(tmp_path / "t")
    with open_sink(path, **form) as sink:
        sink.write(rows(range(4)), operation="insert")
        since = HudiTable.open(path).newest_instant
        sink.write(rows([0, 1, 7], 2, "w"), operation="upsert")  # the new row goes into a small file, updates with it
        assert told(path) == [one for one in shown(path, since) if one[1] != ("k0", "v0")]
        [log] = [stat for stat in newest_stats(path) if parse_log_file(Path(stat.path).name)]
        assert log.extra["baseFile"].endswith(".parquet")
        assert not log.change_files
        sink.write(rows([0], 3, "x"), operation="upsert")
        [later] = newest_stats(path)
        assert later.extra["baseFile"] == log.extra["baseFile"]
        assert later.extra["logFiles"] == [Path(one.path).name for one in (log, later)]
        HudiTable.open(path).compact()
        assert sorted(map(len, (newest_stats(path), told(path)))) == [0, 1]
    assert HudiTable.open(path).check().is_sound


@pytest.mark.parametrize("form", FORMS, ids=str)
@pytest.mark.parametrize("images", ["op_key_only", "DATA_BEFORE"])
def test_what_images_hold_is_the_tables_and_stays(tmp_path, form, images):
    path = str(tmp_path / "t")
    with open_sink(path, **form, **{IMAGES: images}) as sink:
        sink.write(rows(range(4)), operation="insert")
        sink.write(rows([1, 5, 7], 2), operation="upsert")
    config = load_table_config(LocalStorage(path))
    assert config.change_images == images.upper()
    found = [record for file in Path(path).rglob("*.cdc") for record in records_of(file)]
    assert {record["record_key"]: record["op"] for record in found} == {"k1": "u", "k5": "i", "k7": "i"}
    assert {"before" in record for record in found} == {images == "DATA_BEFORE"}
    with pytest.raises(InvalidConfigError, match="logging.mode=DATA_BEFORE_AFTER contradicts the table"):
        open_sink(path, **form, **{IMAGES: "data_before_after"}).write(rows([1]))
    with pytest.raises(InvalidConfigError, match=r"cdc.enabled=false contradicts the table"):
        ArrowSink(path, {"hoodie.table.cdc.enabled": "false"}).write(rows([1]))
    with ArrowSink(path, QUIET) as sink:  # only the properties count
        sink.write(rows([1], 3), operation="upsert")
    assert (len(newest_stats(path)[0].change_files) == 1) == ("COPY" in form["hoodie.datasource.write.table.type"])


def test_values_of_every_type_are_in_the_images(tmp_path):
    path, rng = str(tmp_path / "t"), random.Random(3)
    old, new = random_batch(rng, 0, 30), random_batch(rng, 0, 30)
    with open_sink(path) as sink:
        sink.write(old, operation="insert")
        sink.write(new, operation="upsert")
    [file] = Path(path).rglob("*.cdc")
    found = {record["after"]["id"]: record for record in records_of(file)}
    for before, after in zip(old.to_pylist(), new.to_pylist(), strict=True):
        for name in EVERY_TYPE.names:
            if name != "counts":
                assert found[after["id"]]["before"][name] == before[name]
                assert found[after["id"]]["after"][name] == after[name]


def test_records_that_lose_are_not_told(tmp_path):
    path = str(tmp_path / "t")
    with open_sink(path) as sink:
        sink.write(rows(range(4), 5), operation="insert")
        sink.write(rows([0, 2], 1), operation="upsert")
        assert told(path) == []
        [stat] = newest_stats(path)
        assert len(stat.change_files) == 1  # readers of Hudi take a stat without one for another case
        [file] = stat.change_files
        assert len(blocks_of(Path(path, file))) == 1


def test_partial_updates_are_told_filled(tmp_path):
    path, partial = str(tmp_path / "t"), "org.apache.hudi.common.model.PartialUpdateAvroPayload"
    with open_sink(path, **{"hoodie.datasource.write.payload.class": partial}) as sink:
        sink.write(rows(range(2)), operation="insert")
        empty = rows([0], 2).set_column(3, "v", pa.array([None], pa.string()))
        sink.write(empty, operation="upsert")
    assert told(path) == [("u", ("k0", "v0"), ("k0", "v0"))]


def test_a_file_that_is_written_once_more_tells_its_changes_once(tmp_path, monkeypatch):
    path, close = str(tmp_path / "t"), BaseFileWriter.close
    with open_sink(path) as sink:
        sink.write(rows(range(0, 40, 2)), operation="insert")
        since, doubts = HudiTable.open(path).newest_instant, [CopyInDoubtError("a test")]

        def doubtful(self):
            found = close(self)
            if doubts:
                raise doubts.pop()
            return found

        monkeypatch.setattr(BaseFileWriter, "close", doubtful)
        sink.write(rows([2, 4, 100], 2, "w"), operation="upsert")
    assert not doubts
    assert told(path) == shown(path, since) != []


@pytest.mark.parametrize("form", FORMS, ids=str)
def test_change_files_live_and_go_with_their_slices(tmp_path, form):
    """Cleans, savepoints, rollbacks and lists of files treat them like the base files beside them."""
    path = str(tmp_path / "t")
    with open_sink(path, **form, **{"hoodie.metadata.enable": "true"}) as sink:
        sink.write(rows(range(0, 8, 2)), operation="insert")
        sink.write(rows([0, 10], 2), operation="upsert")
        held = HudiTable.open(path).create_savepoint()
        [kept] = Path(path).rglob("*.cdc")
        for number in range(3, 7):
            sink.write(rows([0, 10 + 2 * number], number), operation="upsert")
        assert len(list(Path(path).rglob("*.cdc"))) == 5
        settings = CleanSettings(policy=KEEP_LATEST_FILE_VERSIONS, versions_retained=2, grace_ms=0, trigger_commits=0)
        HudiTable.open(path).clean(settings)
        assert kept.exists()
        HudiTable.open(path).delete_savepoint(held)
        HudiTable.open(path).clean(settings)
        left = set(Path(path).rglob("*.cdc"))
        assert len(left) == 2
        assert HudiTable.open(path).check().is_sound
        newest = HudiTable.open(path).load_timeline().completed_writes[-1].time
        assert [file for file in left if newest in file.name]
    HudiTable.open(path).roll_back(newest)
    assert not [file for file in Path(path).rglob("*.cdc") if newest in file.name]
    report = HudiTable.open(path).check()
    assert report.is_sound
    assert not list_markers(LocalStorage(path), newest)


@pytest.mark.parametrize("form", quick(3, FORMS[::-1]), ids=str)
@pytest.mark.parametrize("images", ["OP_KEY_ONLY", "DATA_BEFORE_AFTER"])
def test_an_erasure_leaves_no_image_behind(tmp_path, form, images):
    path = str(tmp_path / "t")
    with open_sink(path, **form, **{IMAGES: images}) as sink:
        sink.write(rows(range(0, 8, 2)), operation="insert")
        sink.write(rows([0, 2, 10], 2, "secret"), operation="upsert")
        sink.write(rows([2], 3), operation="delete")  # its image stays in the newest slice
        sink.write(rows([12], 3), operation="upsert")
    grace = {"hudistream.clean.grace.ms": "0"}
    assert hudistream.erase(path, ["k0", "k2"], options=grace).rows_are_gone
    for file in Path(path).rglob("*"):
        if file.is_file() and ".hoodie" not in file.parts:
            assert b"secret0" not in file.read_bytes()
            assert b"secret2" not in file.read_bytes()
    with open_sink(path, **form) as sink:
        sink.write(rows([4], 9), operation="upsert")
    assert HudiTable.open(path).check().is_sound


@pytest.mark.parametrize("file", sorted(GOLDEN.glob("*.zip")), ids=lambda file: file.stem)
def test_tables_of_hudi_are_continued(file, tmp_path):
    with zipfile.ZipFile(file) as archive:
        archive.extractall(tmp_path)
    path = str(tmp_path)
    before = HudiTable.open(path).scan().to_arrow()
    changed = before.slice(0, 1).set_column(before.schema.get_field_index("name"), "name", pa.array(["x"]))
    since = HudiTable.open(path).newest_instant
    with ArrowSink(path, QUIET) as sink:
        sink.write(changed, operation="upsert")
        sink.write(before.slice(1), operation="delete")
    feed = HudiTable.open(path).changes(since, before=True, each_commit=True).to_arrow()
    assert sorted(feed.column("_change_operation").to_pylist()) == ["d"] * (len(before) - 1) + ["u"]
    named = [name for stat in newest_stats(path) for name in stat.change_files]
    assert bool(named) == ("cow" in file.stem)
    assert HudiTable.open(path).check().is_sound


def test_what_cannot_be_told_is_refused(tmp_path):
    path = str(tmp_path / "t")
    with pytest.raises(InvalidConfigError, match="cdc.enabled=true with hoodie.populate.meta.fields=false"):
        open_sink(path, **{"hoodie.populate.meta.fields": "false"}).write(rows([1]))
    with open_sink(path) as sink:
        sink.write(rows([1]))
    properties = Path(path, ".hoodie", "hoodie.properties")
    properties.write_text(properties.read_text().replace("DATA_BEFORE_AFTER", "SOME"))
    with pytest.raises(UnsupportedTableError, match="logging.mode=SOME: OP_KEY_ONLY, DATA_BEFORE, DATA_BEFORE_AFTER"):
        HudiTable.open(path)


@pytest.mark.parametrize("form", FORMS, ids=str)
def test_a_restore_takes_change_files_back_with_their_commits(tmp_path, form):
    path = str(tmp_path / "t")
    with open_sink(path, **form) as sink:
        sink.write(rows(range(0, 8, 2)), operation="insert")
        sink.write(rows([0, 10], 2), operation="upsert")
        before = set(Path(path).rglob("*.cdc"))
        held = HudiTable.open(path).create_savepoint()
        sink.write(rows([2, 12], 3), operation="upsert")
        assert len(set(Path(path).rglob("*.cdc")) - before) == 1
    HudiTable.open(path).restore_to_savepoint(held)
    assert set(Path(path).rglob("*.cdc")) == before
    report = HudiTable.open(path).check()
    assert report.is_sound
    assert not [found for found in report.findings if ".cdc" in found.where]


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_a_conversion_keeps_them(tmp_path, kind):
    path = str(tmp_path / "t")
    with open_sink(path, **{"hoodie.datasource.write.table.type": kind}) as sink:
        sink.write(rows(range(0, 8, 2)), operation="insert")
        sink.write(rows([0, 10], 2), operation="upsert")
    named = [name for stat in newest_stats(path) for name in stat.change_files]
    for version in (8, 9):
        HudiTable.open(path).convert(version)
        assert load_table_config(LocalStorage(path)).change_images == "DATA_BEFORE_AFTER"
        assert [name for stat in newest_stats(path) for name in stat.change_files] == named != []
        assert HudiTable.open(path).check().is_sound
    with ArrowSink(path, QUIET) as sink:
        sink.write(rows([0, 12], 3), operation="upsert")
    assert bool([name for stat in newest_stats(path) for name in stat.change_files])


@pytest.mark.parametrize(("version", "kind"), [("6", "APPEND"), ("8", "CREATE"), ("9", "CREATE")])
def test_each_is_announced_as_hudis_rollbacks_of_that_version_take_it(tmp_path, monkeypatch, version, kind):
    """On version 6 a marker of another kind stops every later write of Hudi."""
    path, announced = str(tmp_path / "t"), []

    def note(storage, time, marker, ticket=""):
        announced.append(marker)
        create_marker(storage, time, marker, ticket)

    with open_sink(path, **{"hoodie.write.table.version": version}) as sink:
        sink.write(rows([0]), operation="insert")
        monkeypatch.setattr(announce, "create_marker", note)
        sink.write(rows([0], 2), operation="upsert")
    [stat] = newest_stats(path)
    assert {marker.data_file: marker.kind for marker in announced} == {
        stat.path: "MERGE",
        **dict.fromkeys(stat.change_files, kind),
    }

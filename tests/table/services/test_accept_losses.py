"""Files that others delete, cut or damage: nothing is built on what is left, until a person accepts the loss."""

import json
import os
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from command_line import said
from engine import Engine
from engine import rows as numbered

from hudistream import (
    ArrowSink,
    CorruptFileError,
    HudiError,
    HudiTable,
    InvalidConfigError,
    LostDataError,
    accept_losses,
    check,
    cluster,
    compact,
    find_losses,
    read_table,
)
from streaming.cli.main import main
from table.services.check.finding import Kind, Severity

LOGS = {
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.index.type": "BUCKET",
    "hoodie.bucket.index.num.buckets": "1",
    "hoodie.datasource.compaction.async.enable": "false",
}
FORMS = [
    pytest.param({}, id="copy-on-write 6"),
    pytest.param({"hoodie.write.table.version": "9"}, id="copy-on-write 9"),
    pytest.param(LOGS, id="merge-on-read 6"),
    pytest.param({**LOGS, "hoodie.write.table.version": "8"}, id="merge-on-read 8"),
    pytest.param({**LOGS, "hoodie.write.table.version": "9"}, id="merge-on-read 9"),
]


def half(path):
    os.truncate(path, os.path.getsize(path) // 2)


def rows(number, keys):
    return pa.table({"id": [f"k{key}" for key in keys], "ts": [number] * len(keys), "v": [number] * len(keys)})


def write(path, options, number, keys):
    with ArrowSink(path, options, key="id", order_by="ts") as sink:
        sink.write(rows(number, keys), batch_id=number)


def newest_file(path):
    return HudiTable.open(path).files()["path"].to_pylist()[-1]


def errors(path):
    return {finding.kind for finding in check(path, sample=None).findings if finding.severity is Severity.ERROR}


def values(path):
    table = read_table(path, columns=["id", "v"])
    return dict(zip(table["id"].to_pylist(), table["v"].to_pylist(), strict=True))


@pytest.fixture(params=FORMS)
def written(request, tmp_path):
    """A table with 10 rows, of which 5 were updated by its newest file."""
    path = str(tmp_path / "t")
    write(path, request.param, 0, range(10))
    write(path, request.param, 1, range(5))
    return path, request.param


@pytest.mark.parametrize("damage", [os.remove, half, lambda path: os.truncate(path, 0)], ids=["gone", "half", "empty"])
def test_nothing_is_built_on_what_is_left(written, damage):
    path, options = written
    file = newest_file(path)
    copy = shutil.copy(f"{path}/{file}", f"{path}-copy")
    damage(f"{path}/{file}")
    files = sorted(os.listdir(path))
    for _ in range(2):
        with pytest.raises(LostDataError, match=rf"{path}.*{file}.*accept-loss"):
            write(path, options, 2, range(4, 7))
    if "hoodie.datasource.write.table.type" in options:
        with pytest.raises(LostDataError, match=file):
            compact(HudiTable.open(path))
    assert sorted(os.listdir(path)) == files
    assert errors(path) & {Kind.MISSING_FILE, Kind.WRONG_SIZE}
    assert HudiTable.open(path).health().missing_files == (file,)
    shutil.copy(copy, f"{path}/{file}")
    write(path, options, 2, range(4, 7))
    updated = {key: 2 if 4 <= key < 7 else int(key < 5) for key in range(10)}
    assert values(path) == {f"k{key}": value for key, value in updated.items()}
    assert errors(path) == set()


@pytest.mark.parametrize("damage", [os.remove, half], ids=["gone", "half"])
def test_a_loss_that_is_accepted_is_recorded_and_shown(written, damage, capsys):
    path, options = written
    file = newest_file(path)
    damage(f"{path}/{file}")
    assert main(["accept-loss", path, "--format", "json"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert [one["path"] for one in told["files"]] == [file]
    assert told["record"] is None
    with pytest.raises(LostDataError):
        write(path, options, 2, range(4, 7))
    assert main(["accept-loss", path, "--yes"]) == 0
    assert not find_losses(path)
    assert not accept_losses(path)
    assert errors(path) == set()
    write(path, options, 2, range(4, 7))
    if "hoodie.datasource.write.table.type" in options:
        compact(HudiTable.open(path))
    write(path, options, 3, [9])
    found = values(path)
    assert {key for key, value in found.items() if value == 2} == {"k4", "k5", "k6"}
    assert found["k9"] == 3
    report = check(path, sample=None)
    assert [finding.where for finding in report.findings if finding.kind is Kind.ACCEPTED_LOSS] == [file]
    assert report.is_sound
    assert HudiTable.open(path).health().missing_files == ()


def test_a_running_sink_goes_on_after_a_loss_was_accepted(tmp_path):
    path = str(tmp_path / "t")
    with ArrowSink(path, LOGS, key="id", order_by="ts") as sink:
        sink.write(rows(0, range(10)), batch_id=0)
        sink.write(rows(1, range(5)), batch_id=1)
        os.remove(f"{path}/{newest_file(path)}")
        with pytest.raises(LostDataError):
            sink.write(rows(2, [7]), batch_id=2)
        sink.stop()
        accept_losses(path)
        sink.write(rows(2, [7]), batch_id=2)
    assert values(path)["k7"] == 2


def by_bloom(options):
    """The same table with an index that looks keys up in base files."""
    return {name: value for name, value in options.items() if "ucket" not in name and name != "hoodie.index.type"}


@pytest.mark.parametrize("version", ["6", "9"])
@pytest.mark.parametrize("damage", [os.remove, half], ids=["gone", "half"])
def test_log_files_whose_base_file_is_lost_are_folded_into_another_one(tmp_path, version, damage):
    path, options = str(tmp_path / "t"), {**by_bloom(LOGS), "hoodie.write.table.version": version}
    write(path, options, 0, range(10))
    write(path, options, 1, range(5))
    [base] = [file for file in HudiTable.open(path).files()["path"].to_pylist() if ".log." not in file]
    damage(f"{path}/{base}")
    accept_losses(path)
    write(path, options, 2, range(4, 7))
    assert values(path) == {**{f"k{key}": 1 for key in range(4)}, **{f"k{key}": 2 for key in range(4, 7)}}
    assert errors(path) == set()


def test_a_base_file_that_others_appended_to_keeps_its_rows(tmp_path):
    path = str(tmp_path / "t")
    write(path, {}, 0, range(10))
    with open(f"{path}/{newest_file(path)}", "ab") as file:
        file.write(b"more")
    with pytest.raises(LostDataError, match="bytes, not"):
        write(path, {}, 1, range(5))
    accept_losses(path)
    write(path, {}, 1, range(5))
    assert len(values(path)) == 10
    assert errors(path) == set()


def test_a_base_file_of_other_bytes_is_deleted_once_its_loss_is_accepted(tmp_path, capsys):
    path = str(tmp_path / "t")
    write(path, {}, 0, range(10))
    write(path, {}, 1, range(5))
    file = newest_file(path)
    with open(f"{path}/{file}", "r+b") as stream:
        stream.write(os.urandom(os.path.getsize(f"{path}/{file}")))
    with pytest.raises(CorruptFileError, match="accept-loss"):
        write(path, {}, 2, range(5))
    assert main(["accept-loss", path]) == 1
    assert f"{file}: " in (said := capsys.readouterr().out)
    assert "--yes deletes it" in said
    accept_losses(path)
    write(path, {}, 2, range(5))
    assert errors(path) == set()
    assert sorted(set(values(path).values())) == [0, 2]


@pytest.mark.parametrize("version", ["6", "8", "9"])
@pytest.mark.parametrize("damage", [os.remove, half, lambda path: os.truncate(path, 0)], ids=["gone", "half", "empty"])
def test_a_clustering_does_not_believe_the_metadata_table(tmp_path, version, damage):
    path = str(tmp_path / "t")
    options = {**by_bloom(LOGS), "hoodie.write.table.version": version, "hoodie.metadata.enable": "true"}
    for number in range(3):
        write(path, options, number, range(number, 10))
    file = newest_file(path)
    assert ".log." in file
    damage(f"{path}/{file}")
    with pytest.raises(LostDataError, match=file):
        cluster(HudiTable.open(path))
    assert HudiTable.open(path).load_timeline().pending == ()


def test_a_damaged_block_of_a_log_file_is_cut_out(tmp_path):
    path = str(tmp_path / "t")
    for number in range(3):
        write(path, LOGS, number, range(number, 10))
    file = f"{path}/{newest_file(path)}"
    with open(file, "r+b") as log:
        log.seek(os.path.getsize(file) - 120)
        log.write(bytes(100))
    with pytest.raises(Exception, match="damaged"):
        compact(HudiTable.open(path))
    found = find_losses(path)
    assert [one.named.path for one in found.damaged] == [newest_file(path)]
    assert accept_losses(path).record is not None
    compact(HudiTable.open(path))
    assert set(values(path).values()) == {0, 1}
    assert errors(path) == set()


def test_a_past_loss_is_proven_by_what_was_built_on_it(written):
    """A sink of an older version built on what was left: the write stats say so."""
    path, options = written
    file = newest_file(path)
    os.remove(f"{path}/{file}")
    losses = f"{path}/.hoodie/.hudistream/losses"
    accept_losses(path)
    write(path, options, 2, range(4, 7))
    if "hoodie.datasource.write.table.type" in options:
        compact(HudiTable.open(path))
    assert errors(path) == set()
    shutil.rmtree(losses)
    assert errors(path) == {Kind.NOT_CONTINUED}


@pytest.mark.parametrize("damage", [os.remove, half], ids=["gone", "half"])
def test_a_scan_that_is_asked_to_confirms_what_it_reads(written, damage):
    path, _ = written
    table, file = HudiTable.open(path), newest_file(path)
    assert len(table.scan().confirmed().to_arrow()) == 10
    with pytest.raises(InvalidConfigError, match="only the newest"):
        table.scan(as_of=table.newest_instant).confirmed().to_arrow()
    damage(f"{path}/{file}")
    with pytest.raises(LostDataError, match=file):
        table.scan(where=[("id", "=", "k7")]).confirmed().to_arrow()
    accept_losses(path)
    left = len(read_table(path))
    assert len(HudiTable.open(path).scan().confirmed().to_arrow()) == left


def test_a_partition_path_that_is_gone_is_told(tmp_path):
    path = str(tmp_path / "t")
    with ArrowSink(path, {}, key="id", partition_by="v", order_by="ts") as sink:
        sink.write(rows(1, range(3)), batch_id=0)
        sink.write(rows(2, range(3)), batch_id=1)
    shutil.rmtree(f"{path}/1")
    with pytest.raises(LostDataError, match="1/"):
        HudiTable.open(path).scan().confirmed().to_arrow()
    assert len(find_losses(path).files) == 1
    with ArrowSink(path, {}, key="id", partition_by="v", order_by="ts") as sink, pytest.raises(LostDataError):
        sink.write(rows(1, range(3)), batch_id=2)


def test_a_base_file_with_a_damaged_page_is_found_by_reading_and_the_stream_goes_on(tmp_path, capsys):
    """Footers do not show it; batches and deletes failed for good, and nothing helped."""
    path = str(tmp_path / "t")
    options = {"hoodie.datasource.write.operation": "upsert"}
    engine = Engine(path, options)
    engine.write(0, numbered(range(30), partition=lambda _: "p"))
    [file] = Path(path, "p").glob("*.parquet")
    chunk = pq.ParquetFile(file).metadata.row_group(0).column(8)
    data = bytearray(file.read_bytes())
    end = (chunk.dictionary_page_offset or chunk.data_page_offset) + chunk.total_compressed_size
    data[end - 3] ^= 255
    file.write_bytes(data)
    with pytest.raises(HudiError, match="accept-loss PATH --read"):
        engine.write(1, numbered(range(40), partition=lambda _: "p", v="new"))
    engine.writer.stop()
    assert "(--read reads rows, too)" in said(capsys, "accept-loss", path)
    assert "differs from its checksum" in said(capsys, "accept-loss", path, "--read", code=1)
    assert "accepted, and recorded" in said(capsys, "accept-loss", path, "--read", "--yes")
    assert "base files can be read" in said(capsys, "accept-loss", path, "--read")
    Engine(path, options).write(1, numbered(range(40), partition=lambda _: "p", v="new"))
    assert len(read_table(path)) == 40
    assert check(path, sample=None).is_sound

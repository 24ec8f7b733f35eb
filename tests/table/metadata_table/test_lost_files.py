"""After a file of the metadata table was deleted or emptied, no row is hidden, and no key is doubled."""

import os
import re
from types import SimpleNamespace

import pytest
from engine import Engine, rows
from tiers import quick

from table import read_table
from table.errors import CorruptFileError
from table.hudi_table import HudiTable
from table.metadata_table.compact import compact_lists
from table.metadata_table.lost_files import NamedFiles, check_whole, name_files
from table.timeline.instant import Action, Instant, State
from table.timeline.metadata.commit import WriteStat

OPTIONS = {
    "hoodie.datasource.write.operation": "upsert",
    "hoodie.metadata.enable": "true",
    "hoodie.metadata.record.index.enable": "true",
    "hoodie.index.type": "RECORD_INDEX",
    "hoodie.record.index.update.partition.path": "false",
    "hoodie.metadata.record.index.min.filegroup.count": "1",
    "hoodie.metadata.record.index.max.filegroup.count": "1",
    "hoodie.clean.automatic": "false",
    "hoodie.archive.automatic": "false",
}


def engine_of(path, version, table_type, **more):
    form = {"hoodie.write.table.version": version, "hoodie.datasource.write.table.type": table_type}
    return Engine(path, {**OPTIONS, **form, **more})


def fill(path, form):
    """Four batches of two keys each. The metadata table is made with the rows of the first one."""
    bare = engine_of(path, *form, **{"hoodie.metadata.enable": "false", "hoodie.index.type": "BLOOM"})
    bare.write(0, rows([0, 1], lambda _: "p0"))
    bare.writer.stop()
    engine = engine_of(path, *form)
    for number in range(1, 4):
        engine.write(number, rows([2 * number, 2 * number + 1], lambda _, to=number: f"p{to}"))
    return engine


@pytest.fixture(params=quick(2, ["9 COPY_ON_WRITE", "6 COPY_ON_WRITE", "8 MERGE_ON_READ"]))
def form(request):
    return request.param.split()


@pytest.fixture
def path(tmp_path, form):
    path = str(tmp_path / "t")
    fill(path, form).writer.stop()
    assert "record_index" in HudiTable.open(path).config.metadata_indexes
    return path


def files_of(path, index, ending):
    folder = os.path.join(path, ".hoodie", "metadata", index)
    found = [os.path.join(folder, name) for name in os.listdir(folder) if ending in name]
    return sorted((file for file in found if os.path.getsize(file)), key=os.path.getmtime)


def rows_by_key(path):
    found = read_table(path, ["id", "p", "ts"]).to_pylist()
    assert len({row["id"] for row in found}) == len(found)
    return {row["id"]: (row["p"], row["ts"]) for row in found}


@pytest.mark.parametrize("index", ["files", "record_index"])
@pytest.mark.parametrize("ending", [".log.", ".hfile"])
@pytest.mark.parametrize("is_emptied", [False, True], ids=["deleted", "emptied"])
def test_no_row_is_hidden_and_no_key_is_doubled(path, form, logs, index, ending, is_emptied):
    before, lost = rows_by_key(path), files_of(path, index, ending)[-1]
    assert len(before) == 8
    os.truncate(lost, 0) if is_emptied else os.remove(lost)
    assert rows_by_key(path) == before
    engine = engine_of(path, *form)  # its process knows nothing of the table
    engine.write(4, rows(range(8), lambda _: "p9", ts=5))
    engine.writer.stop()
    assert rows_by_key(path) == {f"k{number}": (f"p{number // 2}", 5) for number in range(8)}
    event = "metadata_table_not_used" if index == "files" else "record_index_not_used"
    told = [entry for entry in logs if entry["event"] == event]
    assert {entry["log_level"] for entry in told} == {"warning"}
    assert all("check PATH --repair" in entry["hint"] for entry in told)


@pytest.mark.parametrize("index", ["files", "record_index"])
def test_a_sink_that_goes_on_notices_it_too(tmp_path, form, index):
    path = str(tmp_path / "t")
    engine = fill(path, form)
    os.remove(files_of(path, index, ".log.")[-1])
    engine.write(4, rows(range(8), lambda _: "p9", ts=5))
    engine.writer.stop()
    assert rows_by_key(path) == {f"k{number}": (f"p{number // 2}", 5) for number in range(8)}


@pytest.mark.parametrize("index", ["files", "record_index"])
def test_a_compaction_makes_no_loss_permanent(path, index):
    table = HudiTable.open(path)
    os.remove(files_of(path, index, ".log.")[1])  # after the log file that the file group begins with
    with pytest.raises(CorruptFileError, match="is gone or empty, and .*deltacommit wrote it"):
        compact_lists(table.storage, table.load_timeline(), delta_commits=1)


def test_an_instant_names_its_files_by_index():
    stats = [WriteStat("a-0", "files/.a-0_1.log.1_0-0-0", "files"), WriteStat("", "", "files")]
    named = name_files(Action.DELTA_COMMIT, stats)
    assert named.by_index == {"files": {".a-0_1.log.1_0-0-0"}}


def wrote(time, completed, *names, action=Action.DELTA_COMMIT):
    instant = Instant(time, action, State.COMPLETED, completed)
    return NamedFiles(instant, {"record_index": frozenset(names)})


def log_of(time, group="g-0"):
    return f".{group}_{time}.log.1_0-0-0"


MADE_FIRST = wrote("00000000000000000", "20260101000000001", "g-0_0-0-0_00000000000000000.hfile")
MADE_AGAIN = wrote("00000000000000010", "20260101000000005", "g-0_0-0-0_00000000000000010.hfile")
EARLY = wrote("20260101000000002", "20260101000000003", log_of("20260101000000002"))
LATE = wrote("20260101000000006", "20260101000000007", log_of("20260101000000006"))
OF_ANOTHER = wrote("20260101000000006", "20260101000000007", log_of("20260101000000006", "h-0"))
COMPACTED = wrote("20260101000000008", "20260101000000009", "g-0_0-0-1_20260101000000008.hfile", action=Action.COMMIT)


@pytest.mark.parametrize(
    ("base", "every", "names", "lost"),
    [
        ("00000000000000000", [MADE_FIRST, EARLY], {log_of("20260101000000002")}, None),
        ("00000000000000000", [MADE_FIRST, EARLY], set(), ".g-0_20260101000000002"),
        ("", [MADE_FIRST], set(), "g-0_0-0-0_00000000000000000"),
        # the index was dropped and made anew: what was written before is gone
        ("00000000000000010", [MADE_FIRST, EARLY, MADE_AGAIN], set(), None),
        ("00000000000000010", [MADE_FIRST, EARLY, MADE_AGAIN, LATE], set(), ".g-0_20260101000000006"),
        ("00000000000000000", [MADE_FIRST, OF_ANOTHER], set(), None),
        ("20260101000000008", [MADE_FIRST, EARLY, LATE, COMPACTED], {*COMPACTED.by_index["record_index"]}, None),
        ("00000000000000000", [MADE_FIRST, COMPACTED], set(), "g-0_0-0-1_20260101000000008"),
    ],
)
def test_which_files_a_slice_has_lost(base, every, names, lost):
    file = SimpleNamespace(instant_time=base, size_bytes=1) if base else None
    found = SimpleNamespace(partition_path="record_index", file_id="g-0", base_file=file)
    if lost is None:
        check_whole(found, every, names)
    else:
        with pytest.raises(CorruptFileError, match=re.escape(lost)):
            check_whole(found, every, names)

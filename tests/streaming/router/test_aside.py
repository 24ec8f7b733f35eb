"""Rows that wait: under which name, in which order they reach the disk, and in which order they leave it."""

import json

import pyarrow as pa
import pytest

from streaming.router.aside import (
    ASIDE_FOLDER,
    OWN_FOLDER,
    KnownPositions,
    Waiting,
    find_waiting,
    forget,
    list_waiting,
    put_aside,
    sweep_staged,
)
from streaming.router.split import STAGED_FOLDER, Piece
from streaming.router.waiting_room import WaitingRoom
from table.errors import BatchOrderError, CorruptFileError, StorageError
from table.storage.interface import join
from table.storage.local import LocalStorage

QUERY, OTHER = "11111111-1111-1111-1111-111111111111", "22222222-2222-2222-2222-222222222222"


class Watched(LocalStorage):
    """Notes what reaches the disk, and what leaves it; `refuses` cannot be deleted."""

    calls: list = []
    refuses = ""

    def sync(self, path):
        self.calls.append(("flush", path))
        super().sync(path)

    def create_exclusive(self, path, data, *, durable=False):
        self.calls.append(("create durably" if durable else "create", path))
        return super().create_exclusive(path, data, durable=durable)

    def _delete(self, path):
        if self.refuses and path.endswith(self.refuses):
            raise StorageError("the store refuses")
        self.calls.append(("delete", path))
        return super()._delete(path)


@pytest.fixture
def storage(tmp_path, monkeypatch):
    monkeypatch.setattr(Watched, "calls", [])
    return Watched(str(tmp_path / OWN_FOLDER))


def stream_of(*numbers):
    sink = pa.BufferOutputStream()
    rows = pa.table({"id": pa.array(numbers, pa.int64())})
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows)
    return sink.getvalue().to_pybytes()


def piece_of(storage, *numbers, name="x", in_file=True):
    data = stream_of(*numbers)
    if not in_file:
        return Piece(name, len(numbers), len(data), frozenset({"id"}), None, data)
    file = join(STAGED_FOLDER, "7-x", f"{'-'.join(map(str, numbers))}.arrow")
    with storage.open_output(file) as output:
        output.write(data)
    return Piece(name, len(numbers), len(data), frozenset({"id"}), file, None)


def waiting_of(storage, batch_id=3, query_id=QUERY, numbers=(1,), name="x", **more):
    return Waiting(name, batch_id, query_id, (piece_of(storage, *numbers, name=name),), "not now", **more)


def rows_of(storage, waiting):
    return [number for piece in waiting.pieces for number in piece.open(storage).read_all()["id"].to_pylist()]


def old_record(storage, name, batch_id, query_id, piece):
    """As versions up to 0.3 wrote it."""
    document = {
        "version": 1,
        "query_id": query_id,
        "error": "then",
        "pieces": [[piece.file, piece.rows, piece.size_bytes, sorted(piece.filled)]],
    }
    path = join(ASIDE_FOLDER, name, f"{batch_id:020d}.json")
    storage.create_exclusive(path, json.dumps(document).encode(), durable=True)
    return path


def test_a_batch_that_waits_is_read_as_it_was_stored(storage):
    known = KnownPositions(('{"t":{"0":1}}', None), ('{"t":{"0":9}}', '"x"'))
    stored = put_aside(storage, waiting_of(storage, sink_id="s", order=4, positions=known))
    assert list_waiting(storage) == {"x": [stored]}
    assert (stored.sink_id, stored.order, stored.positions) == ("s", 4, known)
    assert stored.record == f"aside/x/{3:020d}-{QUERY}.json"
    assert rows_of(storage, stored) == [1]


@pytest.mark.parametrize("query_id", [OTHER, None], ids=["another query", "outside a stream"])
@pytest.mark.parametrize("is_old", [False, True], ids=["this version", "an older version"])
def test_a_batch_of_another_query_with_the_same_number_waits_beside_it(storage, query_id, is_old):
    """A number is unique within one query alone."""
    if is_old:
        old_record(storage, "x", 3, QUERY, piece_of(storage, 1))
    else:
        put_aside(storage, waiting_of(storage))
    other = put_aside(storage, waiting_of(storage, query_id=query_id, numbers=(2,), order=1))
    found = list_waiting(storage)["x"]
    assert [(each.query_id, rows_of(storage, each)) for each in found] == [(QUERY, [1]), (query_id, [2])]
    assert other == found[1]


def test_a_batch_that_is_stored_already_keeps_its_rows(storage):
    first = put_aside(storage, waiting_of(storage))
    assert put_aside(storage, waiting_of(storage, numbers=(1, 2))) == first
    assert list_waiting(storage) == {"x": [first]}


def test_a_query_whose_id_has_signs_of_a_path_stays_in_the_folder(storage, tmp_path):
    stored = put_aside(storage, waiting_of(storage, query_id="../../x/y"))
    assert "/" not in stored.file_name
    assert list_waiting(storage) == {"x": [stored]}
    assert [path.name for path in tmp_path.iterdir()] == [OWN_FOLDER]


def test_batches_wait_in_the_order_in_which_they_came_and_older_versions_first(storage):
    old_record(storage, "x", 8, QUERY, piece_of(storage, 8))
    old_record(storage, "x", 7, QUERY, piece_of(storage, 7))
    room = WaitingRoom(storage, "/lake")
    room.enter()
    for query_id, batch_id in ((QUERY, 9), (OTHER, 0), (OTHER, 1)):
        room.add(waiting_of(storage, batch_id, query_id, (batch_id,)))
    again = WaitingRoom(storage, "/lake")
    again.enter()
    for each in (room, again):
        assert [one.batch_id for one in each.batches_of("x")] == [7, 8, 9, 0, 1]
    assert [one.order for one in again.batches_of("x")] == [-1, -1, 0, 1, 2]


def test_records_of_older_versions_are_taken_up_with_their_files(storage):
    piece = piece_of(storage, 1, 2)
    old_record(storage, "x", 3, QUERY, piece)
    room = WaitingRoom(storage, "/lake")
    room.enter()  # sweeps what nobody names
    (waiting,) = room.batches_of("x")
    assert (waiting.batch_id, waiting.query_id, waiting.sink_id, waiting.positions) == (3, QUERY, None, None)
    assert waiting.is_batch(QUERY, 3)
    assert not waiting.is_batch(OTHER, 3)
    assert rows_of(storage, waiting) == [1, 2]
    room.end(waiting)
    assert list(room) == []
    assert storage.list_tree("staged") == storage.list_tree(ASIDE_FOLDER) == {}


def test_files_are_flushed_before_the_record_that_names_them(storage):
    """A record that outlives a power failure names rows that do, too."""
    first, second = piece_of(storage, 1), piece_of(storage, 2, in_file=False)
    storage.calls.clear()
    put_aside(storage, Waiting("x", 3, QUERY, (first, second), "not now"))
    (stored,) = list_waiting(storage)["x"]
    expected = [*(("flush", file) for file in stored.files), ("create durably", stored.record)]
    assert [call for call in storage.calls if call in expected] == expected
    assert len(stored.files) == 2


def test_the_record_of_a_written_batch_is_deleted_before_its_files(storage):
    stored = put_aside(storage, waiting_of(storage))
    storage.calls.clear()
    forget(storage, stored)
    assert storage.calls == [("delete", stored.record), ("delete", stored.files[0])]


def test_a_record_that_cannot_be_deleted_keeps_its_files(storage, monkeypatch):
    stored = put_aside(storage, waiting_of(storage))
    with monkeypatch.context() as patched:
        patched.setattr(Watched, "refuses", ".json")
        with pytest.raises(StorageError):
            forget(storage, stored)
    (found,) = list_waiting(storage)["x"]
    assert rows_of(storage, found) == [1]


def test_a_sweep_keeps_the_files_of_all_that_waits(storage):
    kept = [
        put_aside(storage, waiting_of(storage)),
        put_aside(storage, waiting_of(storage, query_id=OTHER, numbers=(2,))),
    ]
    left = piece_of(storage, 5)
    sweep_staged(storage, kept)
    assert not storage.exists(left.file)
    assert [rows_of(storage, each) for each in kept] == [[1], [2]]


def test_a_record_that_cannot_be_read_stops_the_router(storage):
    put_aside(storage, waiting_of(storage))
    storage.put(f"{ASIDE_FOLDER}/y/{3:020d}-{QUERY}.json", b"{")
    with pytest.raises(CorruptFileError, match="it names rows that wait"):
        WaitingRoom(storage, "/lake").enter()


def test_what_waits_for_a_table_is_found_from_the_table(storage, tmp_path):
    stored = put_aside(storage, waiting_of(storage, name="a#b"))
    put_aside(storage, waiting_of(storage))
    folder, found = find_waiting(LocalStorage(str(tmp_path / "a#b")))
    assert (folder.base_uri, found) == (storage.base_uri, [stored])
    assert rows_of(folder, found[0]) == [1]
    assert find_waiting(LocalStorage(str(tmp_path / "z")))[1] == []
    assert find_waiting(LocalStorage("/"))[1] == []


def test_a_batch_that_no_table_will_take_tells_where_its_rows_are(storage):
    stored = put_aside(storage, waiting_of(storage))
    said = str(stored.refused(storage, BatchOrderError("batch 3 is not above batch 5")))
    assert said.startswith("batch 3 is not above batch 5. The batch waits below")
    assert stored.files[0] in said
    assert f"then delete {stored.record}" in said

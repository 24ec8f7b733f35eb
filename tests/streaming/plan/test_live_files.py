"""Live files of a plan: small when pickled, and the same on a worker."""

import pickle
import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.plan.live_files import LiveFiles, in_order
from table.files.names import BaseFileName
from table.view.file_group import base_file_of


def file_of(number, path="p"):
    file_id = f"{uuid.UUID(int=number)}-0"
    return base_file_of(path, str(BaseFileName(file_id, "0-1-2", f"2026010100000{number % 10000:04d}")), number)


NUMBERS = st.lists(st.integers(0, 2**60), max_size=4, unique=True)
PATHS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)


@given(st.dictionaries(PATHS, NUMBERS, max_size=6), st.booleans(), PATHS)
def test_a_worker_gets_the_same_answers(numbers, is_complete, other):
    files = {path: tuple(file_of(number, path) for number in of_path) for path, of_path in numbers.items()}
    here = LiveFiles(files, is_complete=is_complete)
    there = pickle.loads(pickle.dumps(here))
    assert (sorted(there), len(there), there.is_complete) == (sorted(files), len(files), is_complete)
    for path in [*files, other]:
        assert there.of(path) == here.of(path)


@pytest.mark.parametrize(("is_complete", "answer"), [(False, None), (True, ())])
def test_an_empty_path_and_an_unknown_path_are_different_answers(is_complete, answer):
    files = LiveFiles({"empty": ()}, is_complete=is_complete)
    for one in (files, pickle.loads(pickle.dumps(files))):
        assert one.of("empty") == ()
        assert one.of("unknown") == answer


def test_what_a_worker_got_can_be_sent_on():
    files = LiveFiles({"p": (file_of(1),)})
    twice = pickle.loads(pickle.dumps(pickle.loads(pickle.dumps(files))))
    assert twice.of("p") == (file_of(1),)


def test_fifty_thousand_files_take_less_than_sixty_bytes_each():
    files = LiveFiles({f"p{number}": (file_of(number * 2**40 + 7, f"p{number}"),) for number in range(50_000)})
    assert len(pickle.dumps(files)) < 50_000 * 60


@given(NUMBERS)
def test_files_are_in_order_of_file_id(numbers):
    files = in_order(map(file_of, numbers))
    assert [file.size_bytes for file in files] == sorted(numbers)
    assert all(file.name.endswith(f"_{file.instant_time}.parquet") for file in files)

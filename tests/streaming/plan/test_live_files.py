"""Live files of a plan: small when pickled, and the same on a worker."""

import pickle
import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.plan.bucket_assigner import LiveFile
from streaming.plan.live_files import LiveFiles, as_base_files, as_live_files
from table.files.names import BaseFileName


def file_of(number):
    file_id = f"{uuid.UUID(int=number)}-0"
    return LiveFile(file_id, str(BaseFileName(file_id, "0-1-2", f"2026010100000{number % 10000:04d}")), number)


FILES = st.lists(st.integers(0, 2**60).map(file_of), max_size=4, unique=True).map(tuple)
PATHS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)


@given(st.dictionaries(PATHS, FILES, max_size=6), st.booleans(), PATHS)
def test_a_worker_gets_the_same_answers(files, is_complete, other):
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
    files = LiveFiles({f"p{number}": (file_of(number * 2**40 + 7),) for number in range(50_000)})
    assert len(pickle.dumps(files)) < 50_000 * 60


@given(FILES)
def test_the_form_of_a_listing_is_in_order_of_file_id_and_goes_back(files):
    bases = as_base_files("p", files)
    assert [base.file_id for base in bases] == sorted(file.file_id for file in files)
    assert set(as_live_files(bases)) == set(files)
    assert all(base.name.endswith(f"_{base.instant_time}.parquet") for base in bases)

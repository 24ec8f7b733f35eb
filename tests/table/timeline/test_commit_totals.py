"""The sums of a commit: the same as its decoded stats give, without an object for each."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from table.errors import CorruptFileError
from table.storage.local import LocalStorage
from table.timeline import commit_cache
from table.timeline.commit_cache import CommitCache
from table.timeline.instant import Action, Instant, State
from table.timeline.metadata.avro_commit import decode_avro_commit, encode_avro_commit
from table.timeline.metadata.commit import CommitMetadata, WriteStat, encode_commit
from table.timeline.metadata.commit_totals import decode_totals, totals_of

# what a text would have to hold to be taken for the number of rows of a stat
TRAPS = ['{"fileId": "f", "numWrites": 7}', '"numWrites": 7', "numWrites", "fileId", "path.parquet"]
text = st.sampled_from(TRAPS) | st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
paths = st.sampled_from(["p/a.parquet", "p/.f_1.log.1_0-0-0", "x"])
stats = st.builds(
    WriteStat, text, paths, text, text, st.none() | text, *[st.integers(0, 2**50)] * 7, create_ms=st.integers(0, 9)
)
names = st.sampled_from(["UPSERT", "CLUSTER", "UNKNOWN"])


@given(st.lists(stats, max_size=9), names, st.dictionaries(text, text), st.dictionaries(text, st.tuples(text)))
def test_they_are_those_of_the_decoded_stats(written, operation, extra, replaced):
    whole = CommitMetadata(tuple(written), operation, extra, replaced)
    for data in (encode_commit(whole), encode_avro_commit(whole, replaces=bool(replaced))):
        assert decode_totals(data) == totals_of(decode_avro_commit(data))


@pytest.mark.parametrize("name", ["cow_insert_partitioned", "mor_avro_logs", "v8_cow_nometa", "v8_mor_logs"])
def test_of_commits_that_hudi_wrote(golden, name):
    path, _ = golden(name)
    kinds = ("commit", "deltacommit", "replacecommit")
    found = (file for kind in kinds for file in Path(path, ".hoodie").rglob(f"*.{kind}"))
    files = [file for file in found if "metadata" not in file.parts]
    assert files
    for file in files:
        found = decode_totals(file.read_bytes())
        assert found == totals_of(decode_avro_commit(file.read_bytes()))
        assert found.files


DAMAGED = {"partitionToWriteStats": {"p": [{"fileId": "f", "numWrites": 1, "numInserts": "x"}]}}


@pytest.mark.parametrize(
    "data", [b"{", b"[]", b'{"extraMetadata": 3}', json.dumps(DAMAGED).encode(), b"Obj\x01", b"Obj\x01" + b"x" * 50]
)
def test_a_broken_commit_is_named(data):
    with pytest.raises(CorruptFileError, match=r"x\.commit"):
        decode_totals(data, "x.commit")


def test_no_stat_of_a_large_commit_is_decoded(tmp_path, monkeypatch):
    many = CommitMetadata(tuple(WriteStat(f"f{n}", f"p/f{n}.parquet", "p", num_inserts=2) for n in range(50)))
    monkeypatch.setattr(commit_cache, "_LARGE_BYTES", 10)
    monkeypatch.setattr(commit_cache, "decode_avro_commit", None)
    monkeypatch.setattr(commit_cache, "find_instant", lambda *_: encode_commit(many))
    found = CommitCache(LocalStorage(str(tmp_path))).find_totals(Instant("1", Action.COMMIT, State.COMPLETED))
    assert (found.files, found.inserts, len(found.sample)) == (50, 100, 3)

"""A commit without its files: the same operation and extra metadata as the whole file gives, for less."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from table.errors import CorruptFileError
from table.timeline.metadata import avro_commit
from table.timeline.metadata.avro_commit import decode_avro_commit, decode_outline, encode_avro_commit
from table.timeline.metadata.commit import CommitMetadata, WriteStat, encode_commit, outline_of_json

EXTRA = '"extraMetadata"'
# what a text would have to hold to be taken for the end of a file
TRAPS = [EXTRA, f'"compacted": false, {EXTRA}: {{}}, "operationType": "X"}}', '\\\\"', "é\u2028", "}"]
text = st.sampled_from(TRAPS) | st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
stats = st.builds(
    WriteStat, text, text, text, text, st.none() | text, *[st.integers(0, 2**60)] * 7, create_ms=st.integers(0, 9)
)
names = st.sampled_from(["UPSERT", "INSERT_OVERWRITE", "UNKNOWN"])
GOLDEN = [
    "cow_insert_partitioned",
    "streaming_sink",
    "mor_avro_logs",
    "v8_cow_nometa",
    "v8_mor_logs",
    "v9_cow_defaults",
]


def told(metadata):
    return metadata.operation, dict(metadata.extra)


@given(st.lists(stats, max_size=4), names, st.dictionaries(text, text), st.dictionaries(text, st.tuples(text)))
def test_it_says_what_the_whole_commit_says(written, operation, extra, replaced):
    commit = CommitMetadata(tuple(written), operation, extra, replaced)
    for data in (encode_commit(commit), encode_avro_commit(commit, replaces=bool(replaced))):
        assert told(decode_outline(data)) == (operation, extra)


@pytest.mark.parametrize("indent", [True, False])
def test_the_files_are_not_decoded(monkeypatch, indent):
    commit = CommitMetadata((WriteStat("f", "p/f", "p", "null", None, *[0] * 7, create_ms=0),), "UPSERT", {"a": EXTRA})
    monkeypatch.setattr(avro_commit, "decode_avro_commit", None)  # not to be called
    data = encode_commit(commit)
    data = data if indent else data.replace(b"\n", b"")
    assert told(decode_outline(data)) == told(decode_outline(encode_avro_commit(commit))) == ("UPSERT", {"a": EXTRA})


@pytest.mark.parametrize("name", GOLDEN)
def test_of_commits_that_hudi_wrote(golden, name):
    path, _ = golden(name)
    files = [
        file
        for kind in ("commit", "deltacommit", "replacecommit")
        for folder in (f"{path}/.hoodie", f"{path}/.hoodie/timeline")
        for file in Path(folder).glob(f"*.{kind}")
    ]
    assert files
    for file in files:
        data = file.read_bytes()
        assert told(decode_outline(data)) == told(decode_avro_commit(data))
        if data.startswith(b"{") and b"partitionToReplaceFileIds" not in data:
            assert outline_of_json(data) is not None


@pytest.mark.parametrize("data", [b"{", b"[]", b'{"extraMetadata": 3}', b"Obj\x01", b"Obj\x01" + b"x" * 50])
def test_a_broken_commit_is_named(data):
    with pytest.raises(CorruptFileError, match=r"x\.commit"):
        decode_outline(data, "x.commit")

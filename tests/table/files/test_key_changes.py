"""Record keys that a write adds and deletes travel as JSON."""

import json
from itertools import chain

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from table.files.key_changes import KeyChanges, decode_keys, encode_keys

KEYS = st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=5), max_size=5)


@given(st.lists(KEYS, max_size=3), st.lists(KEYS, max_size=3))
def test_what_is_encoded_is_decoded(added, deleted):
    made = KeyChanges(*(tuple(pa.array(keys, pa.string()) for keys in parts) for parts in (added, deleted)))
    found = decode_keys(json.loads(json.dumps(encode_keys(made))))
    assert [keys.to_pylist() for keys in found.added] == [list(chain(*added))]
    assert [keys.to_pylist() for keys in found.deleted] == [list(chain(*deleted))]


def test_unknown_stays_unknown():
    assert decode_keys(encode_keys(None)) is None

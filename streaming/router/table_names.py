"""Which names of tables a row may bring (pure)."""

import pyarrow as pa
import pyarrow.compute as pc

# one folder below the root: no separators, no control characters, nothing that a store, a catalog or Spark hides
VALID_NAME = r"^[^/\\:*?\"<>|\x00-\x1f\x7f._ -][^/\\:*?\"<>|\x00-\x1f\x7f]*$"
_MOST_BYTES = 255


def find_valid(names: pa.Array) -> pa.Array:
    """Which names can be folders below the router's root; false for null.

    Args:
        names: text (Arrow).

    Returns:
        A boolean for each name, never null.
    """
    fits = pc.less_equal(pc.binary_length(names), _MOST_BYTES)
    trimmed = pc.equal(names, pc.utf8_trim_whitespace(names))
    ended = pc.invert(pc.ends_with(names, "."))
    matched = pc.match_substring_regex(names, VALID_NAME)
    found = pc.and_(pc.and_(fits, trimmed), pc.and_(ended, matched))
    return pc.fill_null(found, False)

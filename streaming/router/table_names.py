"""Which names of tables a row may bring (pure)."""

import pyarrow as pa
import pyarrow.compute as pc

from table.columns.text_bytes import find_bad_text
from table.storage.folder_names import MOST_BYTES

# one folder below the root: no separators, no control characters, nothing that a store, a catalog or Spark hides
_SIGNS = r"/\\:*?\"<>|\x00-\x1f\x7f-\x{9f}\x{2028}\x{2029}"
VALID_NAME = rf"^[^{_SIGNS}._ -][^{_SIGNS}]*$"


def find_valid(names: pa.Array, kept_ending: str | None = None) -> pa.Array:
    """Which names can be folders below the router's root; false for null.

    Args:
        names: text (Arrow); bytes that are not UTF-8 may be among it.
        kept_ending: an ending that folders beside the tables have, so that no table may have it; None: there is none.

    Returns:
        A boolean for each name, never null.
    """
    for bad in find_bad_text(pa.table({"name": names})):
        names = pc.if_else(pa.array(bad.rows), pa.scalar(None, names.type), names)
    fits = pc.less_equal(pc.binary_length(names), MOST_BYTES)
    trimmed = pc.equal(names, pc.utf8_trim_whitespace(names))
    ended = pc.invert(pc.ends_with(names, "."))
    matched = pc.match_substring_regex(names, VALID_NAME)
    found = pc.and_(pc.and_(fits, trimmed), pc.and_(ended, matched))
    if kept_ending is not None:
        found = pc.and_(found, pc.invert(pc.ends_with(names, kept_ending)))
    return pc.fill_null(found, False)

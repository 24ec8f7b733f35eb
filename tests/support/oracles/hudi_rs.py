"""hudi-rs as a reader: an oracle nobody here wrote."""

import pyarrow as pa
from needs import require


def read(path, as_of=None):
    """The snapshot of a table, now or as of an instant time, by hudi-rs (Arrow)."""
    library = require("hudi")
    options = library.HudiReadOptions().with_as_of_timestamp(as_of) if as_of is not None else None
    batches = library.HudiTableBuilder.from_base_uri(str(path)).build().read(options)
    return pa.Table.from_batches([pa.record_batch(batch) for batch in batches])

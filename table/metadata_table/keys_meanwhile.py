"""Keys that a commit adds, and of which the record index says something since the commit looked them up."""

from collections.abc import Collection, Iterable

import pyarrow as pa
import pyarrow.compute as pc

from table.config.metadata_indexes import RECORD_INDEX
from table.files.hfile.pieces import Sought
from table.files.hfile.read_hfile import HFile
from table.files.log.framing import Header
from table.metadata_table.groups import Layer, layer_of, valid_blocks
from table.metadata_table.known_layers import layers_of_file
from table.metadata_table.lost_files import read_named
from table.metadata_table.metadata_table import MetadataTable
from table.storage.interface import Storage, join
from table.timeline.instant import Action
from table.timeline.metadata.commit import WriteStat
from table.view.file_group import committed_instants


def find_key_meanwhile(storage: Storage, stats: Iterable[WriteStat], times: Collection[str]) -> str | None:
    """A key that a commit adds, and that other commits added, moved or deleted meanwhile.

    Two file groups would hold such a key. And the log files of the index are read in the order of their requests, so
    that a delete of a later request would hide the key from the index, although its row is there.

    Args:
        storage: of the table.
        stats: of the commit, with the keys that each file group gets.
        times: request times of the others.

    Raises:
        FileNotFoundError: what one of them wrote is not there any more: a compaction of the metadata table merged it.
        UnsupportedTableError, CorruptFileError, StorageError: the index cannot be read.
    """
    added = [keys for stat in stats if stat.keys is not None for keys in stat.keys.added]
    keys = pa.concat_arrays([pa.array([], pa.string()), *added]).unique().cast(pa.binary())
    if not len(keys):
        return None
    own = MetadataTable.open(storage)
    timeline = own.load_timeline()
    committed = committed_instants(timeline, {})
    sought = Sought(keys)
    wrote = read_named(own, [one for one in timeline.completed_of(Action.DELTA_COMMIT) if one.time in times])
    passed = set(times) - {named.instant.time for named in wrote}
    if passed:
        raise FileNotFoundError(f"the delta commit {min(passed)} of the metadata table")
    for named in wrote:
        for name in sorted(named.by_index.get(RECORD_INDEX, ())):
            path = join(RECORD_INDEX, name)
            for block in valid_blocks(own.storage.read(path), path, committed)[0]:
                if block.header.get(Header.INSTANT_TIME, "") != named.instant.time:
                    continue  # Hudi appends the blocks of several delta commits to one file of version 6
                found = _first_in(layer_of(block, path), keys, sought)
                if found is not None:
                    return found
    return None


def _first_in(layer: Layer, keys: pa.Array, sought: Sought) -> str | None:
    """A key of which a block says something."""
    if isinstance(layer, HFile):
        hits = (one.match(sought).keys for one in layers_of_file(layer, layer.places))
        at = next((int(found[0]) for found in hits if len(found)), None)
    else:
        at = pc.index(pc.is_in(keys, value_set=pa.array(layer, pa.binary())), True).as_py()
        at = None if at < 0 else at
    return None if at is None else str(keys[at].as_py().decode())

"""Keys that a commit adds, and of which the record index says something since the commit looked them up."""

from collections.abc import Collection, Iterable

import pyarrow as pa

from table.config.metadata_indexes import RECORD_INDEX
from table.files.hfile.pieces import Sought
from table.files.hfile.read_hfile import HFile
from table.files.log.framing import Header
from table.metadata_table.groups import layer_of, valid_blocks
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
        UnsupportedTableError, CorruptFileError, StorageError, FileNotFoundError: the index cannot be read.
    """
    added = [keys for stat in stats if stat.keys is not None for keys in stat.keys.added]
    keys = pa.concat_arrays([pa.array([], pa.string()), *added]).unique().cast(pa.binary())
    if not len(keys):
        return None
    own = MetadataTable.open(storage)
    timeline = own.load_timeline()
    committed = committed_instants(timeline, {})
    sought = Sought(keys)
    for named in read_named(own, [one for one in timeline.completed_of(Action.DELTA_COMMIT) if one.time in times]):
        for name in sorted(named.by_index.get(RECORD_INDEX, ())):
            path = join(RECORD_INDEX, name)
            for block in valid_blocks(own.storage.read(path), path, committed)[0]:
                if block.header.get(Header.INSTANT_TIME, "") != named.instant.time:
                    continue  # Hudi appends the blocks of several delta commits to one file of version 6
                layer = layer_of(block, path)
                if isinstance(layer, HFile):
                    hits = (one.match(sought).keys for one in layers_of_file(layer, layer.places))
                    found = next((keys[int(at[0])] for at in hits if len(at)), None)
                else:
                    found = next((key for key in keys if key.as_py() in layer), None)
                if found is not None:
                    return str(found.as_py().decode())
    return None

"""Change files in worlds whose tables have them: each one that a visible commit names is there, whole, in its slice."""

import struct

from table.config.table_config import load_table_config
from table.files.log.framing import BlockType, scan_blocks
from table.hudi_table import HudiTable
from table.snapshot import Snapshot

from .disk import SimStorage
from .world import Process

ON = {"hoodie.table.cdc.enabled": "true"}


def check_change_files(world, disk):
    """Looks at the newest version of each file group, once the world is over. Returns how many have one."""
    storage, seen = SimStorage(disk, Process("the end"), 0.0), 0
    config = load_table_config(storage)
    if config is None:
        return 0
    snapshot = Snapshot.load(HudiTable(storage, config))
    commits = {one.time: snapshot.commits.find(one) for one in snapshot.timeline.completed_writes}
    for _, groups in snapshot.walk_file_groups():
        for group in groups:
            found = group.latest_slice
            commit = commits.get(found.base_instant_time)
            stat = next((one for one in commit.stats if one.file_id == group.file_id), None) if commit else None
            if stat is None or stat.prev_base_file is None or commit.compacted:
                continue
            there = {file.path: file.size_bytes for file in found.change_files}
            if there != stat.change_files or len(there) != 1:
                world.violate(f"{stat.path} has the change files {there}, and its commit names {stat.change_files}")
            for path, size_bytes in there.items():
                with storage.open_input(path, size_bytes) as stream:
                    blocks = [place.block for place in scan_blocks(stream)]
                if not blocks or any(block is None or block.type is not BlockType.CDC_DATA for block in blocks):
                    world.violate(f"{path} is not whole")
                told = sum(struct.unpack_from(">i", block.content, 4)[0] for block in blocks)
                if told < stat.num_inserts + stat.num_update_writes + stat.num_deletes:
                    world.violate(f"{path} tells of {told} changes, and its commit of more")
                seen += 1
    return seen

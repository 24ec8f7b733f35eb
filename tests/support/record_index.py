"""What the record index of a table says, against the rows."""

import datetime
import uuid
from dataclasses import replace
from io import BytesIO

import fastavro

from table import read_table
from table.config.metadata_indexes import RECORD_INDEX
from table.hudi_table import HudiTable
from table.metadata_table.groups import read_records
from table.metadata_table.location_codec import newest_location
from table.metadata_table.metadata_table import MetadataTable, slices_in
from table.metadata_table.record_codec import parsed_schema, schema_of
from table.view.file_group import committed_instants


def locations(path):
    """Record key -> (partition path, file id, instant time in UTC), as the index has them."""
    table = HudiTable.open(path)
    own = MetadataTable.open(table.storage)
    committed = committed_instants(own.load_timeline(), {})
    pending = {instant.time for instant in table.load_timeline().pending}  # its delta commit does not count yet
    committed = replace(committed, times=committed.times - pending, inflight=committed.inflight | pending)
    found = {}
    for one in slices_in(RECORD_INDEX, own.list_files(RECORD_INDEX), committed):
        for key, values in read_records(own, one, committed).entries():
            data = newest_location(values, own.config.version)
            if data is not None:
                assert key not in found
                found[key.decode()] = _place(data, own.config.version)
    return found


def _place(data, version):
    record = fastavro.schemaless_reader(BytesIO(data), parsed_schema(schema_of(version)), None)
    at = record["recordIndexMetadata"]
    file_id = at["fileId"]
    if at["fileIdEncoding"] == 0:
        bits = (at["fileIdHighBits"] % 2**64) << 64 | at["fileIdLowBits"] % 2**64
        file_id = f"{uuid.UUID(int=bits)}-{at['fileIndex']}"
    time = datetime.datetime.fromtimestamp(at["instantTime"] / 1000, datetime.timezone.utc)
    return at["partitionName"], file_id, time.strftime("%Y%m%d%H%M%S") + f"{at['instantTime'] % 1000:03}"


def assert_record_index_is_right(path):
    """It has each key of the table with its file group, and no other."""
    rows = read_table(path, ["_hoodie_record_key", "_hoodie_partition_path", "_hoodie_file_name"])
    wanted = {
        row["_hoodie_record_key"]: (row["_hoodie_partition_path"], row["_hoodie_file_name"].partition("_")[0])
        for row in rows.to_pylist()
    }
    told = locations(path)
    found = {key: place[:2] for key, place in told.items()}
    wrong = {key: (found.get(key), wanted.get(key)) for key in {*found, *wanted} if found.get(key) != wanted.get(key)}
    assert not wrong, f"key -> where the index has it, and where it is: {wrong}"
    timeline = HudiTable.open(path).load_timeline()
    times = {instant.time for instant in timeline.completed_writes}
    assert all(time in times or time < timeline.first_active_time for _, _, time in told.values())

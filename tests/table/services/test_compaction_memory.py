"""The memory that the compaction of one large slice takes: bounded, whatever the log files hold."""

import os
import subprocess
import sys
import textwrap

import pytest
from large_slices import BASE_ROWS, write_large_slice

from hudistream import HudiTable

MOST_MIB = 1024
PROGRAM = """
    import sys
    from pathlib import Path
    from hudistream import HudiTable
    from table import BaseFileSettings, CompactionSettings
    from table.services.compaction.compaction import compact
    [_] = compact(HudiTable.open(sys.argv[1]), CompactionSettings(tasks=1), BaseFileSettings())
    print(int(Path("/proc/self/status").read_text().partition("VmHWM:")[2].split()[0]) // 1024)
"""


@pytest.mark.slow
@pytest.mark.parametrize(("form", "logs", "log_bytes"), [("avro", 1, 60e6), ("parquet", 8, 200e6)])
def test_a_slice_of_120_mb_is_compacted_within_1_gib(tmp_path, form, logs, log_bytes):
    """60 MB of log records are held in memory, 200 MB are not."""
    path = str(tmp_path / "t")
    _, found = write_large_slice(path, form, logs)
    assert found > log_bytes
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(PROGRAM), path],
        capture_output=True, text=True, check=True, env=os.environ,
    )  # fmt: skip
    peak_mib = int(done.stdout)
    print(f"\n{form}, {logs} log files of {found / 1e6:.0f} MB: {peak_mib} MiB at most")
    table = HudiTable.open(path)
    assert len(table.scan(["ts"]).to_arrow()) == BASE_ROWS
    assert not any(file["kind"] == "log" for file in table.files().to_pylist())
    assert peak_mib < MOST_MIB

"""The memory that a slice with large log files takes: bounded, whatever the log files hold."""

import os
import subprocess
import sys
import textwrap

import pytest
from large_slices import BASE_ROWS, write_large_slice

LOGS = 8
MOST_MIB = 512


@pytest.mark.slow
@pytest.mark.parametrize("form", ["avro", "parquet"])
def test_a_slice_of_120_mb_and_200_mb_of_logs_is_read_within_512_mib(tmp_path, form):
    path = str(tmp_path / "t")
    _, logs = write_large_slice(path, form, LOGS)
    assert logs > 200e6
    program = f"""
        from pathlib import Path
        from hudistream import HudiTable
        rows = sum(len(batch) for batch in HudiTable.open({path!r}).scan().to_batches())
        peak = int(Path("/proc/self/status").read_text().partition("VmHWM:")[2].split()[0]) // 1024
        print(rows, peak)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, check=True, env=os.environ
    )
    rows, peak_mib = map(int, done.stdout.split())
    assert rows == BASE_ROWS
    assert peak_mib < MOST_MIB

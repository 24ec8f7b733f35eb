"""What `from streaming import …` offers, and what it needs for that."""

import subprocess
import sys
import textwrap

import pytest

import streaming


def ran(code):
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_every_name_is_there():
    assert {name: getattr(streaming, name).__name__ for name in streaming.__all__} == {
        name: name for name in streaming.__all__
    }
    assert set(streaming.__all__) <= set(dir(streaming))


def test_the_list_of_names_is_the_table_of_their_modules():
    assert sorted(streaming._MODULES) == sorted(streaming.__all__)


def test_another_name_is_no_attribute():
    with pytest.raises(AttributeError, match="module 'streaming' has no attribute 'HoodieSink'"):
        streaming.HoodieSink  # noqa: B018


@pytest.mark.usefixtures("tmp_path")  # a process: it does not only decide over values
def test_what_needs_no_spark_is_imported_without_it():
    ran("""
        import sys
        sys.modules["pyspark"] = sys.modules["pandas"] = None
        import streaming
        assert "prometheus_client" not in sys.modules
        from streaming import BatchSummary, FailedBatch, PendingBatch, PrometheusMetrics, RowCount, UpkeepSummary
    """)

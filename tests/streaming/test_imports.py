"""What can be imported and made without pyspark, and what is said when a batch comes all the same."""

import subprocess
import sys

import pytest

import streaming

WITHOUT_SPARK = "import sys; sys.modules['pyspark'] = None; "


def run(code):
    done = subprocess.run([sys.executable, "-c", WITHOUT_SPARK + code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_names_are_loaded_and_a_sink_is_made_without_pyspark(tmp_path):
    run(
        "import pickle; from streaming import BatchSummary, HudiSink, NullShare, RowCount, Unique; "
        "from streaming.task.in_process import InProcessWorkers; "
        "from streaming.batch.micro_batch import MicroBatchWriter; "
        f"pickle.loads(pickle.dumps(HudiSink({str(tmp_path)!r}, key='id')))"
    )


def test_a_batch_without_pyspark_is_refused_with_the_way_out(tmp_path):
    said = run(
        f"from hudistream import HudiSink, InvalidConfigError; sink = HudiSink({str(tmp_path)!r}, key='id')\n"
        "try: sink.write(None)\n"
        "except InvalidConfigError as error: print(error)"
    )
    assert "a batch of Spark needs the extra 'spark': pip install 'pyspark>=3.5" in said


def test_every_name_that_is_offered_is_there():
    for name in streaming.__all__:
        if name != "PrometheusMetrics":  # an extra
            assert getattr(streaming, name) is not None
    assert set(streaming.__all__) <= set(dir(streaming))
    with pytest.raises(AttributeError, match="nothing"):
        getattr(streaming, "nothing")  # noqa: B009 what is tested

"""`hudistream` is the name that users import: it offers what both packages offer, and names what shadows them."""

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

import hudistream
import streaming
import table
from hudistream import user_table
from hudistream.lazy import place_of
from table.version import VERSION

OWN = ("HudiTable", "create_table")  # above both packages: a table that users hold also writes
ROOT = Path(hudistream.__file__).parent.parent


def run(code, folder, **environment):
    """Runs code as a script that lies in a folder, without what this process has imported."""
    script = folder / "script.py"
    script.write_text(code)
    paths = os.pathsep.join([*environment.pop("paths", []), str(ROOT)])
    return subprocess.run(
        [sys.executable, str(script)],
        env={**os.environ, "PYTHONPATH": paths, **environment},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )


def typed_names():
    """Names that type checkers see."""
    tree = ast.parse(Path(hudistream.__file__).read_text())
    [checked] = [node for node in tree.body if isinstance(node, ast.If)]
    return {alias.asname or alias.name for node in checked.body for alias in node.names}


def test_it_offers_all_that_both_packages_offer():
    offered = {*streaming.__all__, *table.__all__, *OWN, "__version__"}
    assert set(hudistream.__all__) == offered
    assert {name for name in offered if place_of(name)[0] == "streaming"} == {*streaming.__all__}
    assert typed_names() == offered


def test_a_name_is_what_its_package_calls_so():
    expected = {
        name: getattr(streaming, name, None) or getattr(table, name, None) for name in {*hudistream.__all__} - {*OWN}
    }
    expected |= {"__version__": VERSION} | {name: getattr(user_table, name) for name in OWN}
    assert [name for name in hudistream.__all__ if getattr(hudistream, name) is not expected[name]] == []


def test_all_names_are_listed_and_others_are_refused():
    assert set(hudistream.__all__) <= set(dir(hudistream))
    with pytest.raises(AttributeError, match="'hudistream' has no attribute 'HudiSync'"):
        _ = hudistream.HudiSync


def test_importing_it_loads_neither_spark_nor_arrow(tmp_path):
    code = (
        "import sys, hudistream; print([n for n in ('pyspark', 'pyarrow', 'table', 'streaming') if n in sys.modules])"
    )
    assert run(code, tmp_path).stdout.strip() == "[]"


@pytest.mark.parametrize("names", ["HudiTable, read_table", "HudiSink, BatchSummary, RowCount"])
def test_only_what_needs_spark_loads_it(tmp_path, names):
    code = f"import sys; from hudistream import {names}; print('pyspark' in sys.modules)"
    assert run(code, tmp_path).stdout.strip() == "False"


@pytest.mark.parametrize(
    ("module", "name"), [("streaming", "HudiSink"), ("table", "HudiSink"), ("table", "read_table")]
)
def test_a_file_of_the_user_that_shadows_a_package_is_named(tmp_path, module, name):
    (tmp_path / f"{module}.py").write_text("raise SystemExit('it was run')")
    said = run(f"from hudistream import {name}", tmp_path)
    last = said.stderr.strip().splitlines()[-1]
    assert last.startswith(f"ImportError: {tmp_path / module}.py shadows hudistream's package {module!r} ({ROOT}")
    assert "rename or remove it" in last


def test_a_module_that_was_imported_before_is_named(tmp_path):
    (tmp_path / "streaming.py").write_text("")
    said = run("import streaming\nfrom hudistream import HudiSink", tmp_path)
    assert f"{tmp_path / 'streaming.py'} shadows hudistream's package 'streaming'" in said.stderr


def test_a_folder_without_init_file_does_not_shadow(tmp_path):
    (tmp_path / "table").mkdir()
    assert run("from hudistream import read_table; print('read')", tmp_path).stdout.strip() == "read"


def test_a_distribution_that_was_installed_over_ours_is_named(tmp_path):
    site = tmp_path / "site"
    for package in ("hudistream", "table"):
        (site / package).mkdir(parents=True)
        for source in (ROOT / package).glob("*.py"):
            (site / package / source.name).write_text(source.read_text())
    (site / "table" / "__init__.py").write_text("class DataTable: ...")
    (site / "other-1.0.dist-info").mkdir()
    (site / "other-1.0.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: other\nVersion: 1.0\n")
    (site / "other-1.0.dist-info" / "top_level.txt").write_text("table\n")
    said = run("from hudistream import read_table", tmp_path, paths=[str(site)])
    last = said.stderr.strip().splitlines()[-1]
    assert last.startswith("ImportError: other has installed its own package 'table' over hudistream's")

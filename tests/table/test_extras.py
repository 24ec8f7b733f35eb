"""What an error says about an extra that is not installed."""

import importlib.util
import re
import sys
from pathlib import Path
from unittest import mock

import pytest

from hudistream import InvalidConfigError, read_table
from table.extras import OF_PROTOCOL, PACKAGES, needs_extra
from table.storage.opening import open_storage

ROOT = Path(__file__).parent.parent.parent


def test_the_packages_are_those_of_pyproject():
    settings = ROOT.joinpath("pyproject.toml").read_text()
    section = re.search(r"\[project.optional-dependencies\]\n(.*?)\n\n", settings, re.DOTALL)[1]
    listed = {
        name: tuple(re.findall(r'"(.*?)"', rest)) for name, rest in re.findall(r"^(\w+) = \[(.*)\]$", section, re.M)
    }
    assert {name: packages for name, packages in listed.items() if name != "demo"} == PACKAGES
    assert set(OF_PROTOCOL.values()) <= PACKAGES.keys()


def test_a_release_tries_each_extra():
    spec = importlib.util.spec_from_file_location("release", ROOT / ".ci" / "release.py")
    release = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(release)
    assert release.USES.keys() == PACKAGES.keys()


def test_the_command_names_packages_and_not_hudistream():
    assert needs_extra("to_polars()", "polars") == "to_polars() needs the extra 'polars': pip install 'polars>=1.33'"
    assert needs_extra("it", "spark").endswith("pip install 'pyspark>=3.5,<5' 'pandas>=2.0,<3'")


def test_no_code_and_no_page_has_a_command_that_asks_an_index_for_hudistream():
    named = re.compile(r"(?<![\w/.-])hudistream(?![\w-])(\[[\w,]*\])?( @ )?")
    rooms = ("table", "streaming", "hudistream", "pyspark_hudistream", "docs", ".ci", "examples")
    files = [path for room in rooms for path in ROOT.joinpath(room).rglob("*") if path.suffix in {".py", ".md"}]
    lines = [(path.name, line) for path in [*files, *ROOT.glob("*.md")] for line in path.read_text().splitlines()]
    commands = [(page, line) for page, line in lines if "pip install" in line or "python-modules" in line]
    assert len(commands) > 10
    for page, line in commands:
        asked = line[line.index("install") :] if "pip install" in line else line
        assert all(found[2] for found in named.finditer(asked.partition("#")[0])), f"{page}: {line}"


@pytest.mark.parametrize(("path", "package"), [("s3://b/t", "s3fs"), ("gs://b/t", "gcsfs"), ("abfss://b/t", "adlfs")])
def test_a_store_without_its_extra_is_met_by_the_path_and_the_command(path, package):
    with (
        mock.patch.dict(sys.modules, {package: None}),
        mock.patch.dict("fsspec.registry._registry", clear=True),
        pytest.raises(InvalidConfigError, match=rf"{path}' needs the extra '\w+': pip install '{package}>="),
    ):
        read_table(path)


def test_a_path_at_home_is_expanded(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    assert open_storage("~/lake/t").base_uri == str(tmp_path / "lake" / "t")
    monkeypatch.chdir(tmp_path)
    assert open_storage("./~/t").base_uri == str(tmp_path / "~" / "t")
    assert open_storage("~x").base_uri == str(tmp_path / "~x")

"""What a worker keeps of the archives that it imports from between two tasks."""

import importlib
import sys
import zipimport
from zipfile import ZipFile

import pytest

from streaming.spark.zipped_library import forget_finders


@pytest.fixture
def archive(tmp_path, monkeypatch):
    """A zip file with a package in it, another one beside it, both imported from."""
    for name in ("lib", "other"):
        with ZipFile(tmp_path / f"{name}.zip", "w") as packed:
            packed.writestr(f"zipped_{name}/__init__.py", "")
            packed.writestr(f"zipped_{name}/part.py", "")
        monkeypatch.syspath_prepend(str(tmp_path / f"{name}.zip"))
        importlib.import_module(f"zipped_{name}.part")
    yield tmp_path / "lib.zip"
    for name in [name for name in sys.modules if name.startswith("zipped_")]:
        del sys.modules[name]


def test_the_zip_file_is_not_read_again_between_tasks(archive, monkeypatch):
    read, inner = [], zipimport._read_directory
    monkeypatch.setattr(zipimport, "_read_directory", lambda path: read.append(path) or inner(path))
    forget_finders(f"/nowhere.zip:{archive}:")
    importlib.invalidate_caches()  # as Spark does
    del sys.modules["zipped_lib.part"]
    importlib.import_module("zipped_lib.part")
    assert str(archive) not in read


def test_finders_of_other_zip_files_stay(archive):
    forget_finders(f"/nowhere.zip:{archive}:")
    assert str(archive) not in sys.path_importer_cache
    assert str(archive.with_name("other.zip")) in sys.path_importer_cache


def test_finders_of_folders_stay(archive):
    before = dict(sys.path_importer_cache)
    forget_finders(str(archive.parent))
    assert dict(sys.path_importer_cache) == before

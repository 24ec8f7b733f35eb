"""Rules of the house that no linter knows."""

import ast
import pickle
import re
from pathlib import Path

import pytest

from table import errors

ROOT = Path(__file__).parent.parent
TESTS = sorted(Path(__file__).parent.rglob("*.py"))
ROOMS = ("table", "streaming", "hudistream", "pyspark_hudistream")
MOST_LINES = 310
SOURCES = sorted(path for room in ROOMS for path in ROOT.joinpath(room).rglob("*.py"))


def source_id(path):
    return str(path.relative_to(ROOT))


def code_lines(path):
    """Numbers of the lines with code: no comments, no docstrings; a table of data at module level is one line."""
    source = path.read_text()
    lines = {
        number for number, line in enumerate(source.splitlines(), 1) if line.strip(" )]}") and line.strip()[0] != "#"
    }
    for node in ast.walk(ast.parse(source)):
        first = node.body[0] if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) and node.body else None
        if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str):
            lines -= set(range(first.lineno, first.end_lineno + 1))
        if isinstance(node, ast.Module):
            for table in (one for one in node.body if isinstance(one, (ast.Assign, ast.AnnAssign))):
                lines -= set(range(table.lineno + 1, table.end_lineno + 1))
    return lines


@pytest.mark.parametrize("path", SOURCES, ids=source_id)
def test_no_module_has_more_code_than_one_person_reads_at_once(path):
    assert len(code_lines(path)) <= MOST_LINES


@pytest.mark.parametrize("path", SOURCES, ids=source_id)
def test_no_function_is_longer_than_a_screen(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef):
            body = node.end_lineno - node.lineno + 1
            doc = ast.get_docstring(node, clean=False)
            assert body - (len(doc.splitlines()) if doc else 0) <= 50, f"{node.name} has {body} lines"


def is_of_a_package(node):
    """Docstring, imports and assignments; and what it takes to import names on their first use (PEP 562)."""
    if isinstance(node, ast.FunctionDef):
        return node.name in ("__getattr__", "__dir__")
    if isinstance(node, ast.If):  # for type checkers and editors
        only_imports = all(isinstance(inner, ast.ImportFrom) for inner in [*node.body, *node.orelse])
        return ast.unparse(node.test) == "TYPE_CHECKING" and only_imports
    return isinstance(node, (ast.Expr, ast.Import, ast.ImportFrom, ast.Assign))


@pytest.mark.parametrize("path", [p for p in SOURCES if p.name == "__init__.py"], ids=source_id)
def test_packages_hold_no_code(path):
    assert all(is_of_a_package(node) for node in ast.parse(path.read_text()).body)


@pytest.mark.parametrize(
    "path", [p for p in SOURCES if {"streaming", "pyspark_hudistream"} & set(p.parts)], ids=source_id
)
def test_streaming_uses_the_dataframe_api_alone(path):
    forbidden = re.compile(r"\._jvm|\.sparkContext|\.rdd\b|\.persist\(|\.cache\(\)|_jdf|_jsc")
    assert not forbidden.search(path.read_text())


def says_pure(path):
    """Whether a module's docstring calls it pure, in brackets: ``(pure)`` or ``(pure; HudiClass)``."""
    doc = ast.get_docstring(ast.parse(path.read_text())) or ""
    return re.search(r"\((?:[^()]*; )?pure(?:; [^()]*)?\)", doc) is not None


def listed_as_pure():
    settings = ROOT.joinpath("pyproject.toml").read_text()
    contract = re.search(r'name = "Decisions do no I/O"\n.*?source_modules = \[\n(.*?)\n\]', settings, re.DOTALL)
    return set(re.findall(r'"(.*?)"', contract[1]))


def test_every_module_that_says_pure_is_under_the_contract_that_holds_it_to_that_and_no_other():
    says = {".".join(p.relative_to(ROOT).with_suffix("").parts) for p in SOURCES if says_pure(p)}
    assert len(says) > 30
    assert sorted(says) == sorted(listed_as_pure())


def places_of_test(module):
    """Where the tests of a module may be: in the folder of its package, or one above, under its name or its room's."""
    *folders, room, name = module.split(".")
    for folder in ("/".join([*folders, room]), "/".join(folders)):
        yield from (f"tests/{folder}/test_{stem}.py" for stem in (name, f"{room}_{name}", room))


@pytest.mark.parametrize("module", sorted(listed_as_pure()))
def test_a_pure_module_has_tests_where_people_look_for_them(module):
    assert any((ROOT / place).exists() for place in places_of_test(module)), [*places_of_test(module)]


def tracked_files():
    import subprocess

    said = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False)
    return [ROOT / name for name in said.stdout.split()]


def test_no_machine_path_and_no_host_of_a_registry_is_in_the_tree():
    forbidden = re.compile("|".join(["/ho" + "me/", "/ro" + "ot/", "/wo" + "rk/", "pypi" + r"\.org", "maven" + r"\.org",
                                     "pythonhosted" + r"\.org"]))  # fmt: skip
    for path in tracked_files():
        if path.suffix in {".py", ".md", ".toml", ".txt", ".json", ".cfg", ""} and path.is_file():
            found = forbidden.search(path.read_text(errors="ignore"))
            assert not found, f"{path.name}: {found}"


def error_classes(root):
    for child in root.__subclasses__():
        yield child
        yield from error_classes(child)


def test_the_tree_of_errors_and_that_they_survive_pickling():
    names = {error.__name__ for error in error_classes(errors.HudiError)}
    assert names == {
        "InvalidConfigError", "TableNotFoundError", "TableExistsError", "UnsupportedTableError", "SchemaMismatchError",
        "InvalidRecordError", "CommitConflictError", "CommitOutcomeUnknownError", "StorageError", "CorruptFileError",
        "BrokenInvariantError", "BatchRefusedError", "TaskFailedError", "TimelineMovedError", "CatalogError",
        "TableHeldError", "ActionPendingError", "WriteConflictError", "InstantEndedError", "BatchOrderError",
        "LostDataError",
    }  # fmt: skip
    for error in error_classes(errors.HudiError):
        again = pickle.loads(pickle.dumps(error("why")))
        assert type(again) is error
        assert str(again) == "why"
    assert issubclass(errors.InvalidConfigError, ValueError)


WITHOUT_SPARK = [p for p in SOURCES if "table" in p.parts or {"plan", "task", "batch"} & set(p.parts)]


@pytest.mark.parametrize("path", WITHOUT_SPARK, ids=source_id)
def test_whoever_plans_and_works_does_not_import_pyspark(path):
    assert not re.search(r"^\s*(from|import) pyspark", path.read_text(), re.MULTILINE)


def imported_modules(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from [node.module or "", *(f"{node.module or ''}.{alias.name}" for alias in node.names)]


@pytest.mark.parametrize("path", TESTS, ids=source_id)
def test_no_test_is_imported(path):
    # what tests share stands in tests/support
    tests = {test.stem for test in TESTS if test.stem.startswith("test_")} | {"conftest"}
    found = [name for name in imported_modules(path) if tests & set(name.split("."))]
    assert not found, f"{found} stand in test modules: move what is shared to tests/support"

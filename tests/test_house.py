"""Rules of the house that no linter knows."""

import ast
import pickle
import re
from functools import cache
from pathlib import Path

from last_runs import longest_waiting
from mutants import MUTANTS

from table import errors

ROOT = Path(__file__).parent.parent
TESTS = sorted(Path(__file__).parent.rglob("*.py"))
ROOMS = ("table", "streaming", "hudistream", "pyspark_hudistream")
MOST_LINES = 310
SOURCES = {
    str(path.relative_to(ROOT)): path.read_text()
    for path in sorted(path for room in ROOMS for path in ROOT.joinpath(room).rglob("*.py"))
}


@cache
def trees():
    """Source file -> its syntax tree. Only the process that asks makes them: all processes collect this file."""
    return {name: ast.parse(source) for name, source in SOURCES.items()}


def code_lines(source, tree):
    """Numbers of the lines with code: no comments, no docstrings; a table of data at module level is one line."""
    lines = {
        number for number, line in enumerate(source.splitlines(), 1) if line.strip(" )]}") and line.strip()[0] != "#"
    }
    for node in ast.walk(tree):
        first = node.body[0] if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) and node.body else None
        if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str):
            lines -= set(range(first.lineno, first.end_lineno + 1))
        if isinstance(node, ast.Module):
            for table in (one for one in node.body if isinstance(one, (ast.Assign, ast.AnnAssign))):
                lines -= set(range(table.lineno + 1, table.end_lineno + 1))
    return lines


def test_no_module_has_more_code_than_one_person_reads_at_once():
    lines = {name: len(code_lines(source, trees()[name])) for name, source in SOURCES.items()}
    assert {name: count for name, count in lines.items() if count > MOST_LINES} == {}


def functions_of(tree):
    return [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]


def length_of(function):
    """Lines of a function without its docstring."""
    doc = ast.get_docstring(function, clean=False)
    return function.end_lineno - function.lineno + 1 - (len(doc.splitlines()) if doc else 0)


def test_no_function_is_longer_than_a_screen():
    lengths = {(name, one.name): length_of(one) for name, tree in trees().items() for one in functions_of(tree)}
    assert len(lengths) > 3000
    assert {function: lines for function, lines in lengths.items() if lines > 50} == {}


def is_of_a_package(node):
    """Docstring, imports and assignments; and what it takes to import names on their first use (PEP 562)."""
    if isinstance(node, ast.FunctionDef):
        return node.name in ("__getattr__", "__dir__")
    if isinstance(node, ast.If):  # for type checkers and editors
        only_imports = all(isinstance(inner, ast.ImportFrom) for inner in [*node.body, *node.orelse])
        return ast.unparse(node.test) == "TYPE_CHECKING" and only_imports
    return isinstance(node, (ast.Expr, ast.Import, ast.ImportFrom, ast.Assign))


def test_packages_hold_no_code():
    packages = {name: tree for name, tree in trees().items() if name.endswith("__init__.py")}
    assert len(packages) > 40
    assert [name for name, tree in packages.items() if not all(map(is_of_a_package, tree.body))] == []


def holding(pattern, names):
    """Those of the named modules in whose source the pattern is found."""
    return [name for name in names if re.search(pattern, SOURCES[name], re.MULTILINE)]


def test_streaming_uses_the_dataframe_api_alone():
    forbidden = r"\._jvm|\.sparkContext|\.rdd\b|\.persist\(|\.cache\(\)|_jdf|_jsc"
    assert (
        holding(forbidden, [name for name in SOURCES if name.startswith(("streaming/", "pyspark_hudistream/"))]) == []
    )


def says_pure(tree):
    """Whether a module's docstring calls it pure, in brackets: ``(pure)`` or ``(pure; HudiClass)``."""
    doc = ast.get_docstring(tree) or ""
    return re.search(r"\((?:[^()]*; )?pure(?:; [^()]*)?\)", doc) is not None


def docstrings_of(tree):
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef)
    return [ast.get_docstring(node) or "" for node in ast.walk(tree) if isinstance(node, kinds)]


def test_docstrings_use_the_words_of_the_field():
    """Each of these words has a plainer one: after, says or records, does not have."""
    words = {"behind": r"\bbehind\b", "tell": r"\b(tells?|told)\b", "lack": r"\b(lacks?|lacked)\b"}
    text = "\n".join(doc for tree in trees().values() for doc in docstrings_of(tree))
    assert {word: found for word, pattern in words.items() if len(found := re.findall(pattern, text)) > 5} == {}


def test_variables_say_what_their_value_is():
    stored = {
        (name, node.id)
        for name, tree in trees().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }
    assert sorted((name, variable) for name, variable in stored if variable in ("told", "said")) == []


def listed_as_pure():
    settings = ROOT.joinpath("pyproject.toml").read_text()
    contract = re.search(r'name = "Decisions do no I/O"\n.*?source_modules = \[\n(.*?)\n\]', settings, re.DOTALL)
    return set(re.findall(r'"(.*?)"', contract[1]))


def test_every_module_that_says_pure_is_under_the_contract_that_holds_it_to_that_and_no_other():
    says = {name.removesuffix(".py").replace("/", ".") for name, tree in trees().items() if says_pure(tree)}
    assert len(says) > 30
    assert sorted(says) == sorted(listed_as_pure())


def places_of_test(module):
    """Where the tests of a module may be: in the folder of its package, or one above, under its name or its room's."""
    *folders, room, name = module.split(".")
    for folder in ("/".join([*folders, room]), "/".join(folders)):
        yield from (f"tests/{folder}/test_{stem}.py" for stem in (name, f"{room}_{name}", room))


def test_a_pure_module_has_tests_where_people_look_for_them():
    places = {module: [*places_of_test(module)] for module in listed_as_pure()}
    assert {module: named for module, named in places.items() if not any((ROOT / one).exists() for one in named)} == {}


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


def test_whoever_plans_and_works_does_not_import_pyspark():
    without = [name for name in SOURCES if {"table", "plan", "task", "batch"} & set(name.split("/"))]
    assert holding(r"^\s*(from|import) pyspark", without) == []


def test_no_test_is_imported():
    # what tests share stands in tests/support
    tests = {test.stem for test in TESTS if test.stem.startswith("test_")} | {"conftest"}
    imports = {path.name: re.findall(r"^ *(?:from|import) .*$", path.read_text(), re.MULTILINE) for path in TESTS}
    found = [(test, line) for test, lines in imports.items() for line in lines if tests & {*re.findall(r"\w+", line)}]
    assert found == [], "move what is shared to tests/support"


def test_each_mutant_finds_its_text():
    """A text that was changed takes its mutant along: else nobody knows any more that a test finds the fault."""
    assert [one.name for one in MUTANTS if ROOT.joinpath(one.file).read_text().count(one.old) != 1] == []


def test_those_tests_run_first_that_never_ran_then_those_that_failed_then_the_longest_waiting():
    def ran(day, failed=()):
        return {"at": f"2026-11-{day} 10:00", "cases": 4, "seconds": 8, "failed": list(failed)}

    runs = {"old": ran(20), "new": ran(30), "failed": ran(30, ["[a]"])}
    counts = {"old": 4, "new": 4, "failed": 4, "never": 1}
    assert longest_waiting(counts, runs, seconds=60) == ["never", "failed", "old", "new"]
    assert longest_waiting(counts, runs, seconds=32) == ["never", "failed", "old"]
    assert longest_waiting(counts, runs, seconds=0) == ["never"]

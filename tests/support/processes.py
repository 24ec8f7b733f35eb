"""How the tests are shared among processes: two have real Hudi, one has Spark, and all share the rest file by file."""

import ast
from functools import cache
from pathlib import Path

from xdist.scheduler import LoadScopeScheduling

ROOT = Path(__file__).parents[2]
JVMS = ("hudi", "spark")  # the first that a test is marked with says where it runs
AGREEMENT = "tests/agreement/"
# those that begin first
LARGE = ("hudi, agreement", "spark", "hudi")


def needed_by(function):
    """The JVMs that a test function names: as a fixture, or as a mark."""
    named = {
        node.attr for mark in function.decorator_list for node in ast.walk(mark) if isinstance(node, ast.Attribute)
    }
    return (named | {argument.arg for argument in function.args.args}) & set(JVMS)


@cache
def needs_of(file):
    """By test function, the JVMs that it needs; by None, what the marks of the whole file say."""
    tree = ast.parse(ROOT.joinpath(file).read_text())
    needs = {node.name: needed_by(node) for node in tree.body if isinstance(node, ast.FunctionDef)}
    marks = [n.value for n in tree.body if isinstance(n, ast.Assign) and ast.unparse(n.targets[0]) == "pytestmark"]
    named = {node.attr for mark in marks for node in ast.walk(mark) if isinstance(node, ast.Attribute)}
    return {**needs, None: named & set(JVMS)}


def group_of(test_id):
    """The tests of a group run in one process: those that need the same JVM, else those of the same file.

    Those that need Hudi are two groups: while one waits for its JVM, others have the processor.
    """
    file, _, function = test_id.partition("::")
    needs = needs_of(file)
    found = needs[None] | needs.get(function.split("[")[0], set())
    jvm = next((jvm for jvm in JVMS if jvm in found), file)
    return LARGE[0] if jvm == "hudi" and file.startswith(AGREEMENT) else jvm


def heaviest_first(test_id):
    """Sort key: groups with a JVM take longest, and begin first."""
    group = group_of(test_id)
    return LARGE.index(group) if group in LARGE else len(LARGE)


class ByJvm(LoadScopeScheduling):
    """Hands out groups in the order of their first tests, each to the process that is free."""

    def __init__(self, config, log=None):
        super().__init__(config, log)
        config.option.loadscopereorder = False

    def _split_scope(self, nodeid):
        return group_of(nodeid)

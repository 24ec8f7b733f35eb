"""What the pages say holds: their Python runs, their commands parse, the files that they name exist."""

import ast
import importlib.util
import logging
import os
import re
import shlex
from pathlib import Path

import pytest
from page_runs import FENCE, run_page, shape, with_outputs
from s3_server import serve_s3

import hudistream
from hudistream import HudiSink, list_options, read_table
from table.services.check.finding import Kind

ROOT = Path(__file__).parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.joinpath("docs").rglob("*.md")])


def name_of(page):
    return str(page.relative_to(ROOT))


def blocks(page, language):
    """(line, text) of each block of a language."""
    text = page.read_text()
    return [(text[: m.start()].count("\n") + 2, m[2]) for m in FENCE.finditer(text) if m[1] == language]


def load_site_pages():
    spec = importlib.util.spec_from_file_location("site_pages", ROOT / ".ci" / "site_pages.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


site_pages = load_site_pages()

WITHOUT_SPARK = [ROOT / "docs" / "guides" / "first-hour.md"]
WITH_PYTHON = [page for page in PAGES if blocks(page, "python") and page not in WITHOUT_SPARK]
WITH_COMMANDS = [page for page in PAGES if "hudistream " in "".join(text for _, text in blocks(page, "sh"))]


@pytest.fixture
def s3_in_environment(monkeypatch):
    """An S3 server with an empty bucket `lake`, where the environment says that S3 is."""
    with serve_s3() as address:
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
        monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
        monkeypatch.setenv("AWS_ENDPOINT_URL", address)
        yield


@pytest.fixture
def logging_restored():
    levels = {name: logging.getLogger(name).level for name in (None, "hudistream")}
    handlers = list(logging.getLogger().handlers)
    yield
    for name, level in levels.items():
        logging.getLogger(name).setLevel(level)
    logging.getLogger().handlers[:] = handlers


def run(page, folder):
    """Runs a page, and stops the sinks that it made: what each block printed."""
    names, runs, sinks = {"__name__": "__main__"}, [], set()
    try:
        for one in run_page(page.read_text(), name_of(page), folder, names):
            runs.append(one)
            sinks |= {value for value in names.values() if isinstance(value, HudiSink)}
    finally:
        for sink in sinks:
            sink.stop()
    return runs


def check_outputs(page, runs):
    """Compares what a page printed with what it says; WRITE_PAGES=1 writes it there instead."""
    if os.environ.get("WRITE_PAGES") and page.name != "README.md":
        page.write_text(with_outputs(page.read_text(), runs))
        return
    for fence, said, printed in runs if page.name != "README.md" else ():  # there a comment says what is printed
        assert shape(said.text if said else "") == shape(printed), f"{name_of(page)}, block of line {fence.line}"


@pytest.mark.spark
@pytest.mark.parametrize("page", WITH_PYTHON, ids=name_of)
def test_the_python_of_a_page_runs(page, spark, tmp_path, logging_restored, request):
    if "AWS_ENDPOINT_URL" in page.read_text():
        request.getfixturevalue("s3_in_environment")
    check_outputs(page, run(page, tmp_path))


@pytest.mark.parametrize("page", WITHOUT_SPARK, ids=name_of)
def test_the_python_of_a_page_without_spark_runs(page, tmp_path):
    check_outputs(page, run(page, tmp_path))


@pytest.mark.spark
@pytest.mark.parametrize("page", [ROOT / "README.md", ROOT / "docs" / "quickstart.md"], ids=name_of)
def test_the_first_example_keeps_one_row_per_key_however_often_it_runs(page, spark, tmp_path):
    for _ in range(2):
        run(page, tmp_path)
        assert read_table(tmp_path / "lake" / "events").num_rows == 100


@pytest.mark.parametrize("page", WITH_COMMANDS, ids=name_of)
def test_the_commands_of_a_page_are_parsed(page):
    parser = site_pages.command_parser()
    for line, text in blocks(page, "sh"):
        for command in text.splitlines():
            words = shlex.split(command, comments=True)
            if words[:1] == ["hudistream"]:
                try:
                    parser.parse_args(words[1:])
                except SystemExit:
                    pytest.fail(f"{name_of(page)}, block of line {line}: the parser refuses {command!r}")


def test_make_targets_of_pages_exist():
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for page in PAGES:
        for target in re.findall(r"(?:^|`)make ([a-z-]+)", page.read_text(), re.MULTILINE):
            assert target in targets, f"{name_of(page)}: make {target}"


def test_files_that_a_page_names_exist():
    rooms = r"(?:table|streaming|hudistream|tests|docs|benchmarks|\.ci)"
    for page in PAGES:
        if page.name != "CHANGELOG.md":
            for path in re.findall(rf"`({rooms}/[\w./-]*)`", page.read_text()):
                assert ROOT.joinpath(path).exists(), f"{name_of(page)} names {path}"


def anchors(page):
    """The anchors of a page's headings, as GitHub and mkdocs make them."""
    heads = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    plain = [re.sub(r"\[([^\]]*)\]\([^)]*\)|[`*]", r"\1", head).lower() for head in heads]
    return {re.sub(r"\s+", "-", re.sub(r"[^\w\s-]", "", head).strip()) for head in plain}


def test_links_of_pages_lead_to_files_and_headings_in_the_repository_too():
    made = {ROOT / "docs" / uri for uri in site_pages.PAGES}
    for page in [*PAGES, *ROOT.joinpath("benchmarks").glob("*.md")]:
        for target, anchor in re.findall(r"\]\(([^)#:\s]*)(?:#([^)\s]*))?\)", page.read_text()):
            there = Path(os.path.normpath(page.parent / target)) if target else page
            assert there.exists(), f"{name_of(page)} links to {target}"
            if anchor and there.suffix == ".md" and there not in made:
                assert anchor in anchors(there), f"{name_of(page)} links to {target}#{anchor}"


def test_the_readme_is_short():
    assert len((ROOT / "README.md").read_text().splitlines()) <= 250


def test_every_decision_is_in_the_index_and_says_what_was_refused():
    """The index names each record once, by its title, with its state; what overtakes another says which."""
    folder = ROOT.joinpath("docs", "decisions")
    rows = re.findall(r"^\| \[(.*)\]\((.*)\) \| (.*) \|$", (folder / "README.md").read_text(), re.MULTILINE)
    records = sorted(folder.glob("[0-9]*.md"))
    assert [int(path.name[:4]) for path in records] == list(range(1, len(records) + 1))
    titles = {path.name: path.read_text().splitlines()[0].removeprefix("# ") for path in records}
    assert sorted((name, title) for title, name, _ in rows) == sorted(titles.items())
    for title, _, state in rows:
        assert re.match(r"current$|amended |withdrawn by |joined by |completed by |(.* )?superseded by ", state), title
        assert all(0 < int(number) <= len(records) for number in re.findall(r"\b\d+\b", state)), title
    for path in records:
        if int(path.name[:4]) > 2:
            for part in ("Context", "Decision", "Refused", "Consequences"):
                assert f"**{part}.**" in path.read_text(), f"{path.name} has no part {part!r}"


def test_every_room_is_on_the_map():
    architecture = (ROOT / "ARCHITECTURE.md").read_text()
    for package in ("table", "streaming"):
        for room in ROOT.joinpath(package).iterdir():
            if (room / "__init__.py").exists():
                assert re.search(rf"^ +{room.name}/ ", architecture, re.MULTILINE), room


def test_the_page_of_modules_is_that_of_the_docstrings():
    spec = importlib.util.spec_from_file_location("modules", ROOT / ".ci" / "modules.py")
    modules = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(modules)
    assert modules.PAGE.read_text() == modules.page(), "python .ci/modules.py"


def test_the_layers_on_the_map_are_those_that_the_linter_holds():
    settings = (ROOT / "pyproject.toml").read_text()
    held = re.search(r"^layers = \[\n(.*?)^\]", settings, re.MULTILINE | re.DOTALL)[1]
    said = re.search(r"## Layers\n.*?```\n(.*?)```", (ROOT / "ARCHITECTURE.md").read_text(), re.DOTALL)[1]
    assert re.split(r" >\s", said.strip()) == [line.strip(' ",').replace(" | ", ", ") for line in held.splitlines()]


def test_the_options_page_has_every_key_and_the_command_page_every_command():
    page = site_pages.options_page()
    for row in list_options():
        for key in (row.key, *row.aliases):
            assert f"`{key}`" in page, key
    commands = site_pages.cli_page()
    for name in (
        "show",
        "history",
        "files",
        "query",
        "doctor",
        "clean",
        "archive",
        "rollback",
        "savepoint",
        "explain",
        "check",
        "lock",
    ):
        assert f"## `hudistream {name}`" in commands


def test_the_reference_has_every_public_name():
    page = (ROOT / "docs" / "reference" / "api.md").read_text()
    errors = {name for name in hudistream.__all__ if name.endswith("Error")}  # all those of table.errors
    for name in {*hudistream.__all__} - errors - {"__version__"}:
        assert f"::: hudistream.{name}\n" in page, name


def test_the_page_of_differing_defaults_has_each_difference_and_no_other():
    # not set, they mean what Hudi's default says
    meant = {
        "hoodie.populate.meta.fields", "hoodie.datasource.write.table.type", "hoodie.meta.sync.client.tool.class",
        "hoodie.datasource.write.hive_style_partitioning", "hoodie.datasource.write.partitionpath.urlencode",
        "hoodie.datasource.hive_sync.table", "hoodie.clean.max.commits.to.clean", "hoodie.table.cdc.enabled",
        "hoodie.table.cdc.supplemental.logging.mode",
        *(row.key for row in list_options() if row.key.startswith("hoodie.keygen.timebased.")),
    }  # fmt: skip
    assert set(site_pages.untold_defaults()) <= meant
    for one in site_pages.differing_defaults():
        assert one.here != one.hudi or one.flink not in ("", one.hudi), f"{one.row.key} does not differ"
        assert one.why.endswith(".")
    page = site_pages.defaults_page()
    assert "`hoodie.clean.async.enabled`" in page
    assert len(re.findall(r"^\| `hoodie", page, re.MULTILINE)) == len(site_pages.differing_defaults()) >= 30


def test_the_page_of_the_protocol_has_each_folder_that_is_ours():
    page = (ROOT / "docs/concepts/protocol.md").read_text()
    source = "\n".join(path.read_text() for path in (ROOT / "table").rglob("*.py"))
    named = re.findall(r"OWN_FOLDER(?:, f?\"|\}/)(\w+)", source)
    assert set(named) >= {"lease", "alive", "open", "staged", "pins", "archiving", "turns", "plans", "order", "ends"}
    assert [name for name in sorted(set(named)) if f".hudistream/{name}" not in page] == []


def test_each_kind_of_finding_is_in_the_guide():
    rows = [line.partition("| ")[2] for line in ROOT.joinpath("docs/guides/checking.md").read_text().splitlines()]
    described = {kind for row in rows for kind in re.findall(r"`(\w+)`", row.partition(": ")[0])}
    assert {kind.value for kind in Kind} <= described


def test_each_row_of_reports_and_objections_names_a_test_that_exists():
    reported, objections = (ROOT.joinpath("docs", "concepts", f"{name}.md") for name in ("reported", "objections"))
    pages = reported.read_text(), objections.read_text().partition("## ")[0]
    found = [re.findall(r"^\| (.*) \|$", page, re.MULTILINE) for page in pages]
    rows = [[row for row in rows if not row.endswith(("| test", "|---"))] for rows in found]
    assert len(rows[0]) > 20
    assert len(rows[1]) == 7
    for row in [*rows[0], *rows[1]]:
        named = re.fullmatch(r"`(tests/[\w/]+\.py)::(test_\w+)`", row.rpartition(" | ")[2])
        assert named, f"names no test: {row}"
        tree = ast.parse((ROOT / named[1]).read_text())
        assert named[2] in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}, row

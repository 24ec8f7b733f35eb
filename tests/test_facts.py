"""What several pages state comes from one source (`.ci/facts.py`), and every page agrees with it."""

import importlib.util
import re
import runpy
from pathlib import Path

from hudistream import list_options
from table.version import VERSION

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()
# CHANGELOG.md and decisions tell of the past
STATING = [
    *(path for path in sorted(ROOT.glob("*.md")) if path.name != "CHANGELOG.md"),
    *sorted(path for path in ROOT.joinpath("docs").rglob("*.md") if "decisions" not in path.parts),
    *(ROOT / name for name in ("Makefile", "benchmarks/waits.md", "docs/decisions/0058-the-requests-of-a-batch.md")),
]


def load_facts():
    spec = importlib.util.spec_from_file_location("facts", ROOT / ".ci" / "facts.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


facts = load_facts()


def test_every_page_states_a_fact_as_its_source_has_it():
    pages = {str(path.relative_to(ROOT)): path.read_text() for path in STATING}
    for fact in facts.facts():
        stated = [(page, said) for page, text in pages.items() for one in fact.said for said in re.findall(one, text)]
        assert [(page, said) for page, said in stated if said != fact.value] == [], f"{fact.name}: {fact.value}"
        assert len(stated) >= fact.least, f"{fact.name} is stated in {len(stated)} places: mend the pattern"


def rows_of_figures():
    """(label, column -> cell) of the README's two tables of figures."""
    for head, rows in re.findall(
        r"^\| (?:a steady batch of|workload) \| (.*) \|\n\|[-:|]+\|\n((?:\|.*\n)+)", README, re.MULTILINE
    ):
        columns = [column.strip() for column in head.split("|")]
        for row in rows.splitlines():
            label, *cells = (cell.strip() for cell in row.strip("|").split("|"))
            yield label, dict(zip(columns, cells, strict=True))


def test_the_figures_of_speed_are_those_of_the_benchmarks():
    found = dict(rows_of_figures())
    assert found.keys() == facts.SPEED.keys()
    for label, cells in found.items():
        day, figures = facts.measured(facts.SPEED[label])
        assert cells.pop("measured", day).startswith(day), label
        ours = next(column for column in cells if column.startswith("hudistream"))
        for column, cell in cells.items():
            number = cell.partition(" ")[0]
            figure = figures.get("" if column == ours else column)
            wanted = "" if figure is None else f"{figure:.{len(number.partition('.')[2])}f}"
            assert number == wanted, f"{label}, {column}"


def test_readme_and_documentation_compare_with_the_same_tools():
    table_of = re.compile(r"^\| \*\*hudistream\*\*.*?(?=\n\n)", re.MULTILINE | re.DOTALL)
    there = (ROOT / "docs" / "index.md").read_text()
    assert table_of.search(README)[0].replace("](docs/", "](") == table_of.search(there)[0]


def test_the_readme_names_this_version_and_each_extra():
    assert re.search(r"\*\*Status\*\*: ([\d.]+)", README)[1] == VERSION
    named = set(re.findall(r"`(\w+)`", re.search(r"extras: (.*)\.$", README, re.MULTILINE)[1]))
    assert named | {"spark", "cli"} == set(facts.extras())


def test_a_default_that_a_page_gives_in_brackets_is_that_of_the_option():
    defaults = {key: row.default for row in list_options() for key in (row.key, *row.aliases)}
    in_bytes = {"MB": 2**20, "MiB": 2**20, "KiB": 2**10, "GiB": 2**30}
    given = re.compile(r"`((?:hoodie|hudistream)\.[\w.]+)`(?: \w+)?\s\((\d+)(?: (MB|MiB|KiB|GiB))?\)")
    stated = [(str(path.relative_to(ROOT)), *found) for path in STATING for found in given.findall(path.read_text())]
    assert len(stated) >= 8
    for page, key, number, unit in stated:
        assert defaults[key] == str(int(number) * in_bytes.get(unit, 1)), f"{page}: {key} ({number})"


def test_the_record_has_the_totals_of_the_committed_results():
    page = (ROOT / "docs" / "concepts" / "record.md").read_text()
    written = runpy.run_path(str(ROOT / "benchmarks" / "record.py"))["written"]
    assert written(page) == page, "run python benchmarks/record.py"

"""The report in a real browser, Debian's Chromium, on a phone and on a desk."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from engine import Engine, rows

from hudistream import HudiTable
from table.inspect.report.facts import load_report
from table.inspect.report.page import report_page

pytestmark = [pytest.mark.slow, pytest.mark.places]
BROWSER = "chromium"
QUIET = ("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking")
LOOK = """<script>
addEventListener("error", e => document.title = "error " + e.message);
const wide = [...document.querySelectorAll("main *")].filter(e => !e.closest(".scroll, svg")
  && e.getBoundingClientRect().right > innerWidth + 1);
document.title = "wide " + document.documentElement.scrollWidth + " of " + innerWidth + ", over " + wide.length;
</script>"""


@pytest.fixture(scope="module")
def browser():
    if shutil.which(BROWSER) is None:
        pytest.fail(f"{BROWSER} is not installed: apt-get install --no-install-recommends {BROWSER}")
    return BROWSER


@pytest.mark.parametrize("width", [500, 1400])  # a window of Chromium has 500 pixels at least
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_nothing_of_the_report_overflows(browser, tmp_path, width, kind):
    path = str(tmp_path / "t")
    options = {"hoodie.datasource.write.table.type": kind, "hoodie.datasource.write.operation": "upsert"}
    for number in range(12):
        long = "a-partition-with-a-name-that-goes-on-" * 3
        batch = rows(range(number * 20, number * 20 + 60), partition=lambda k, long=long: f"{long}{k % 9}")
        Engine(path, options).write(number, batch)
    page = report_page(load_report(HudiTable.open(path)), "now")
    shown = tmp_path / "report.html"
    shown.write_text(page.replace("</body>", LOOK + "</body>"))
    done = subprocess.run(
        [browser, *QUIET, f"--user-data-dir={tmp_path / 'profile'}", f"--window-size={width},2000", "--dump-dom",
         f"file://{shown}"],
        capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    title = re.search(r"<title>(.*?)</title>", done.stdout)[1]
    wide, window, over = map(int, re.fullmatch(r"wide (\d+) of (\d+), over (\d+)", title).groups())
    assert (wide <= window, over) == (True, 0)


SITE = Path(__file__).parents[2] / "build" / "site"
LOOK_AT_SITE = """<script>
addEventListener("error", e => document.title = "error " + e.message);
setTimeout(() => {
  const own = [...document.querySelectorAll("article *")].filter(e =>
    !e.closest("pre, .md-typeset__table, .md-typeset__scrollwrap, .highlight, .mermaid, svg, .headerlink"));
  const wide = own.filter(e => e.getBoundingClientRect().right > innerWidth + 1);
  const undrawn = document.querySelectorAll("pre.mermaid").length;
  if (!document.title.startsWith("error"))
    document.title = "wide " + document.documentElement.scrollWidth + " of " + innerWidth + ", over " + wide.length
      + ", undrawn " + undrawn;
}, 3000);
</script>"""


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """A copy of the site that `make docs` built, whose pages say in their title how they look."""
    if not (SITE / "index.html").exists():
        pytest.fail("there is no site: make docs")
    shown = tmp_path_factory.mktemp("site") / "site"
    shutil.copytree(SITE, shown)
    for page in shown.rglob("*.html"):
        page.write_text(page.read_text().replace("</body>", LOOK_AT_SITE + "</body>"))
    return shown


@pytest.mark.parametrize("width", [500, 1400])
def test_nothing_of_the_site_overflows_and_diagrams_are_drawn(browser, site, tmp_path, width):
    found = {}
    for page in sorted(site.rglob("*.html")):
        if "decisions" in page.parts and page.name != "index.html":
            continue
        done = subprocess.run(
            [browser, *QUIET, f"--user-data-dir={tmp_path / 'profile'}", f"--window-size={width},2000",
             "--virtual-time-budget=8000", "--dump-dom", f"file://{page}"],
            capture_output=True, text=True, timeout=120, check=True,
        )  # fmt: skip
        found[str(page.relative_to(site))] = re.search(r"<title>(.*?)</title>", done.stdout)[1]
    assert len(found) > 30
    assert found["concepts/timeline.html"].endswith("undrawn 0")
    for page, title in found.items():
        told = re.fullmatch(r"wide (\d+) of (\d+), over (\d+), undrawn (\d+)", title)
        assert told, (page, title)
        wide, window, over, undrawn = map(int, told.groups())
        assert (wide <= window, over, undrawn) == (True, 0, 0), (page, title)


def test_the_site_asks_no_other_host_and_searches_from_the_disk(site):
    assert (site / "search" / "search_index.js").read_text().startswith("var __index = ")
    asked = set()
    for page in site.rglob("*.html"):
        asked |= {
            address
            for address in re.findall(r"""<(?:script|link|img)[^>]+(?:src|href)="(https?://[^"]+)""", page.read_text())
            if "canonical" not in address
        }
    assert asked == set()

"""The report in a real browser, Debian's Chromium, on a phone and on a desk."""

import re
import shutil
import subprocess

import pytest
from engine import Engine, rows

from table import HudiTable
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

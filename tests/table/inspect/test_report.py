"""The report: a page that stands alone, whatever the table holds."""

import re
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from html.parser import HTMLParser
from pathlib import Path

import pyarrow as pa
import pytest
from engine import Engine, rows
from hypothesis import given
from hypothesis import strategies as st

from hudistream import HudiTable
from table import CompactionSettings
from table.cli.main import main
from table.inspect.report.charts import HALF, HEIGHT, WIDTH, Bar, bar_chart, place_squares, size_bins
from table.inspect.report.facts import LARGEST_PARTITIONS, ReportFacts, load_report
from table.inspect.report.page import report_page
from table.services.compaction.compaction import request_compaction
from table.snapshot import Snapshot

HOSTILE = "<script>alert(1)</script>"
MOST_BYTES = 2_000_000


class Strict(HTMLParser):
    """Refuses what asks for something elsewhere, and what is not closed."""

    VOID = ("meta", "line", "rect")

    def __init__(self):
        super().__init__()
        self.open, self.tags, self.texts = [], [], []

    def handle_starttag(self, tag, attributes):
        names = dict(attributes)
        assert tag not in ("script", "link", "img", "iframe", "object", "style" if "src" in names else "")
        assert not {"src", "href", "onload", "onclick"} & set(names)
        self.tags.append(tag)
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.tags.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)


def parsed(page):
    assert len(page.encode()) <= MOST_BYTES
    found = Strict()
    found.feed(page)
    found.close()
    assert found.open == []
    assert "http" not in re.sub(r"aria-label=\"[^\"]*\"", "", page)
    return found


def written(path, **options):
    settings = {"hoodie.datasource.write.operation": "upsert", **options}
    for number in range(3):
        batch = rows(range(number * 4, number * 4 + 8), partition=lambda k: HOSTILE if k % 3 == 0 else f"p{k % 3}")
        if number == 2:
            batch = batch.append_column("extra", pa.array([1] * len(batch)))
        Engine(path, settings).write(number, batch, schema=batch.schema)
    return HudiTable.open(path)


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_a_report_shows_the_table_and_nothing_of_it_as_markup(tmp_path, kind):
    table = written(str(tmp_path / "t"), **{"hoodie.datasource.write.table.type": kind})
    facts = load_report(table)
    assert facts.problems == ()
    found = parsed(report_page(facts, "now"))
    text = " ".join(found.texts)
    assert HOSTILE in text  # as text
    assert "the table is sound" in text
    assert not re.search(r"(?<![\d:])3 commits", text)  # a time of the timeline may end in 03
    assert text.count("UPSERT") >= 3
    assert "column extra" in text
    assert facts.partition_count == 3
    assert sum(count for _, count in facts.log_counts) == facts.health.live_files
    assert facts.bytes.live == facts.health.live_bytes + facts.health.log_bytes
    assert len([title for title in found.texts if re.search(r"UPSERT: \d+\.\d\d s$", title)]) == 3


def test_a_report_says_what_the_next_compaction_takes_and_when(tmp_path):
    buckets = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2"}
    table = written(str(tmp_path / "t"), **{"hoodie.datasource.write.table.type": "MERGE_ON_READ"}, **buckets)
    facts = load_report(table)
    logs = {
        "/".join(filter(None, (group.partition_path, group.file_id))): len(group.merged_slice.log_files)
        for _, groups in Snapshot.load(table).walk_file_groups()
        for group in groups
        if group.merged_slice.log_files
    }
    assert logs
    assert {group: count for group, count, _, _ in facts.next_compaction} == logs
    said = " ".join(parsed(report_page(facts, "now")).texts)
    assert "3 delta commits since the last compaction: the next one takes it after 5" in said
    assert load_report(written(str(tmp_path / "cow"))).next_compaction is None
    request_compaction(table, CompactionSettings())
    assert all("is requested, and folds it" in why for _, _, _, why in load_report(table).next_compaction)


def test_the_command_writes_the_page(tmp_path, capsys):
    written(str(tmp_path / "t"))
    out = tmp_path / "report.html"
    assert main(["report", str(tmp_path / "t"), "-o", str(out), "--no-check"]) == 0
    assert str(out) in capsys.readouterr().out
    assert "The table was not checked." in " ".join(parsed(out.read_text()).texts)


def test_an_empty_table_gives_a_page(tmp_path):
    Engine(str(tmp_path / "t")).write(0, rows([1]).slice(0, 0))
    facts = load_report(HudiTable.open(str(tmp_path / "t")))
    assert facts.problems == ()
    assert "Nothing to show." in " ".join(parsed(report_page(facts, "now")).texts)


def test_what_cannot_be_read_is_named_and_the_rest_is_shown(tmp_path):
    table = written(str(tmp_path / "t"))
    newest = max(Path(tmp_path, "t", ".hoodie").glob("*.commit"))
    newest.write_bytes(b"{")
    Path(tmp_path, "t", ".hoodie/.hudistream/ends", newest.name).unlink()  # else its content is shown
    facts = load_report(table)
    assert facts.problems
    text = " ".join(parsed(report_page(facts, "now")).texts)
    assert "could not be read" in text
    assert newest.name in text


def test_a_table_of_a_hundred_thousand_partitions_gives_a_page_of_the_same_size(tmp_path):
    facts = load_report(written(str(tmp_path / "t")))
    paths = tuple((f"{HOSTILE}{number:06}" * 3, 1_000_000 - number) for number in range(LARGEST_PARTITIONS))
    commit = {**facts.commits[0], "operation": HOSTILE}
    large = replace(
        facts,
        partitions=paths,
        partition_count=100_000,
        other_bytes=10**9,
        commits=(commit,) * 400,
        file_sizes=tuple(range(1, 100_001)),
        next_clean=(("x" * 500, 1, HOSTILE * 50),) * 200,
        next_clean_count=10**6,
        schema=(("c" * 1000, "string", True),) * 1000,
        problems=(HOSTILE * 100,),
    )
    text = " ".join(parsed(report_page(large, "now")).texts)
    assert "99,700 others" in text
    assert "999,800 more go" in text
    assert "800 more columns" in text


def test_a_page_without_any_fact_is_one():
    assert "could not be read" in report_page(ReportFacts("t", "/t", None, problems=("all: gone",)), "now")


@given(st.lists(st.integers(1, 10**12), min_size=1, max_size=120))
def test_rectangles_have_the_areas_of_their_values_and_stay_inside(values):
    values = sorted(values, reverse=True)
    placed = place_squares(values, WIDTH, HEIGHT)
    assert len(placed) == len(values)
    scale = WIDTH * HEIGHT / sum(values)
    for value, (x, y, w, h) in zip(values, placed, strict=True):
        assert w * h == pytest.approx(value * scale, rel=1e-3, abs=1e-3)
        assert x >= -1e-6
        assert y >= -1e-6
        assert x + w <= WIDTH + 0.01
        assert y + h <= HEIGHT + 0.01  # of a pixel


def test_sizes_are_counted_by_powers_of_two():
    assert size_bins([]) == []
    assert size_bins([0, 1, 2, 3, 4, 9]) == [(1, 2), (2, 2), (4, 1), (8, 1)]


@pytest.mark.parametrize(
    ("seconds", "labels"), [(1, {"10:00:00", "10:00:01"}), (86_400, {"01-05 10:00", "01-06 10:00"})]
)
def test_times_below_bars_differ(seconds, labels):
    """Commits of one minute had one and the same label."""
    begun = datetime(2026, 1, 5, 10, tzinfo=timezone.utc)
    rows = [
        {"action": "commit", "operation": "", "instant": "", "requested_at": begun + timedelta(seconds=n * seconds),
         "rows_added": 1, "bytes_written": 1, "files_written": 1, "seconds": 1.0}
        for n in (1, 0)
    ]  # fmt: skip
    page = report_page(ReportFacts("t", "/t", None, commits=tuple(rows)), "now")
    assert labels <= set(re.findall(r'<text class="axis"[^>]*>([^<]*)</text>', page))


@pytest.mark.parametrize("count", [1, 5, 24, 70])
@pytest.mark.parametrize("width", [WIDTH, HALF])
def test_labels_stay_in_the_drawing_and_do_not_cover_each_other(count, width):
    label = "01-05 10:00" if width == WIDTH else "32.0 KiB"
    bars = [Bar((("live", 1.0),), label, "") for _ in range(count)]
    letter, ends = (11, 6.6)[width == HALF], 0.0
    found = re.findall(r'x="([\d.]+)" y="175"( text-anchor="end")?', bar_chart(bars, "1 row", "rows", width=width))
    assert found
    for at, is_end in found:
        begins = float(at) - letter * len(label) * bool(is_end)
        assert ends - 0.1 <= begins
        ends = begins + letter * len(label)
        assert begins >= -0.1 or count == 1
        assert ends <= width + 0.1 or count == 1

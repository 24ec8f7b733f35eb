"""Tables and pictures of the results, written into ``benchmarks/README.md``. No measuring here."""

import json
import statistics
from pathlib import Path
from xml.sax.saxutils import escape

HERE = Path(__file__).parent
HEAD = """# Benchmarks

`make bench` runs the sink and its peers over the same Parquet files, one Structured Streaming query each in a process
of its own, in interleaved rounds, all with the same number of batches; each run is read back and counted afterwards.
This page is written by that command. A *steady batch* is the median of the last half of a run's batches; the table
shows the median of the rounds, and the ratio to the first line as the median of the ratios within each round. *All
batches* is the average of that half in place of the median: it has in it what comes every few batches only, as a
compaction. Seconds are those of one machine: compare the ratios.

Codecs are each writer's own defaults, as named. *Live files* are those a snapshot reader has to open at the end.
"""
WIDTH, HEIGHT, LEFT, TOP, BOTTOM = 860, 300, 56, 28, 34
COLOURS = ("#d1495b", "#00798c", "#8d96a3", "#edae49", "#30638e", "#66a182", "#7a4988", "#2e4057")


def steady(run):
    return run["steady_s"]


def average(run):
    return statistics.mean(run["seconds"][len(run["seconds"]) // 2 :])


def middle(runs, figure):
    return statistics.median(map(figure, runs))


def ratio(runs, first, figure):
    # who was measured in fewer rounds was so in the last ones
    pairs = zip(runs, first[-len(runs) :], strict=True)
    return statistics.median(figure(one) / figure(other) for one, other in pairs)


def spread(runs, rounds):
    each = [run["steady_s"] for run in runs]
    said = f"{min(each):.2f} to {max(each):.2f} s" if len(each) > 1 else f"{each[0]:.2f} s"
    return said if len(runs) == rounds else f"{said} ({len(runs)} of {rounds})"


def table(document):
    first = next(iter(document["results"].values()))
    lines = [
        "| | steady batch | times ours | the rounds | all batches | times ours | live files | MB |",
        "|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for label, runs in document["results"].items():
        figures = (f"{middle(runs, one):.2f} s | {ratio(runs, first, one):.2f}" for one in (steady, average))
        median, every = figures
        last = f"{runs[-1]['live_files']} | {runs[-1]['live_mb']:.0f}"
        lines.append(f"| {label} | {median} | {spread(runs, len(first))} | {every} | {last} |")
    return lines


def curve(document, values):
    """For each candidate the median over the rounds, batch by batch."""
    return {
        label: [statistics.median(points) for points in zip(*(values(run) for run in runs), strict=True)]
        for label, runs in document["results"].items()
    }


def picture(title, curves, unit):
    """A line chart as SVG."""
    most = max(max(points[1:] or points) for points in curves.values()) or 1
    count = max(map(len, curves.values()))
    plot_width, plot_height = WIDTH - LEFT - 300, HEIGHT - TOP - BOTTOM

    def at(number, value):
        x = LEFT + plot_width * number / max(1, count - 1)
        return f"{x:.1f},{TOP + plot_height * (1 - min(value, most) / most):.1f}"

    parts = [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
            'font-family="sans-serif" font-size="12">'
        ),
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        f'<text x="{LEFT}" y="16" font-size="14">{escape(title)}</text>',
    ]
    for step in range(5):
        value = most * step / 4
        y = TOP + plot_height * (1 - step / 4)
        parts.append(f'<line x1="{LEFT}" x2="{LEFT + plot_width}" y1="{y:.1f}" y2="{y:.1f}" stroke="#ddd"/>')
        parts.append(f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{value:.3g} {unit}</text>')
    parts.append(f'<text x="{LEFT + plot_width / 2:.0f}" y="{HEIGHT - 10}" text-anchor="middle">batch</text>')
    for number, (label, points) in enumerate(curves.items()):
        colour = COLOURS[number % len(COLOURS)]
        line = " ".join(at(index, value) for index, value in enumerate(points))
        parts.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="2"/>')
        y = TOP + 14 + 20 * number
        parts.append(f'<rect x="{LEFT + plot_width + 16}" y="{y - 9}" width="12" height="10" fill="{colour}"/>')
        parts.append(f'<text x="{LEFT + plot_width + 34}" y="{y}">{escape(label.split(" (")[0])}</text>')
    return "\n".join([*parts, "</svg>", ""])


def told(document):
    """The section on files near their limit."""
    return [
        "## Files near their limit",
        "",
        (
            f"{document['rows']:,} rows a batch into 8 files of about 90 MB ({document['copied_mb']} MB copied) "
            f"take {document['large_s']:.2f} s, the same rows into an empty table {document['empty_s']:.2f} s: "
            f"**{document['ratio']:.2f} times** (median of {document['batches']} pairs, in turns, "
            f"measured {document['measured']}: {named(document['machine'])}). Made by `benchmarks/large_files.py`."
        ),
        "",
    ]


def named(machine):
    return ", ".join(f"{name} {value}" for name, value in machine.items())


def main():
    """Writes the page and its pictures from what was last measured."""
    lines = [HEAD]
    large = HERE / "results" / "large-files.json"
    for file in sorted((HERE / "results").glob("*.json")):
        document = json.loads(file.read_text())
        if "workload" not in document:
            continue  # a page of its own
        runs = next(iter(document["results"].values()))
        lines += [
            f"## Workload {document['workload']}, {document['against']}",
            "",
            (
                f"{runs[0]['batches']} batches, {runs[0]['rows']:,} rows, {len(runs)} rounds, "
                f"measured {document['measured']}: {named(document['machine'])}."
            ),
            "",
            *table(document),
            "",
        ]
        charts = {
            "seconds": ("seconds a batch", curve(document, lambda run: run["seconds"]), "s"),
            "files": ("live files", curve(document, lambda run: run.get("files_by_batch", [])), ""),
        }
        for name, (title, curves, unit) in charts.items():
            if all(curves.values()):
                target = HERE / "results" / f"{file.stem}-{name}.svg"
                target.write_text(picture(f"{document['workload']}: {title}", curves, unit))
                lines += [f"![{title}](results/{target.name})", ""]
    if large.exists():
        lines += told(json.loads(large.read_text()))
    (HERE / "README.md").write_text("\n".join(lines))


if __name__ == "__main__":
    main()

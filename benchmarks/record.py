"""The totals of the harnesses on the page of the record, from the committed results.

python benchmarks/record.py    rewrites docs/concepts/record.md
"""

import json
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "concepts" / "record.md"
BEGINS, ENDS = "<!-- totals -->\n", "<!-- /totals -->\n"


def _results(name: str) -> dict:
    return json.loads((ROOT / "benchmarks" / "results" / f"{name}.json").read_text())


def rows() -> Iterator[tuple[str, ...]]:
    """(what, commit, minutes, how much, from which seed, what was found) of each run."""
    worlds = _results("torture")
    for run in (worlds, *worlds.get("earlier", ()), *([worlds["latest"]] if "latest" in worlds else [])):
        count = sum(run["worlds"].values())
        found = str(len(run["violations"]) or "nothing")
        yield "simulated worlds", run["commit"], str(run["minutes"]), f"{count} worlds", str(run["first_seed"]), found
    for name, run in worlds.get("since", {}).items():
        if isinstance(run, dict):
            much = f"{run['worlds']} worlds" if "worlds" in run else f"{run['worlds_of_a_kind']} worlds of each"
            what = f"simulated worlds, {name}"
            yield what, run["commit"], "", much, "", str(len(run["violations"]) or "nothing")
    for name, run in _results("chaos").items():
        much = f"{run['worlds']} worlds, {run['batches']} batches, {run['snapshots']} snapshots"
        found = "; ".join(f"{seed}: {' '.join(texts)[:160]}" for seed, texts in run["findings"].items())
        yield f"chaos, {name}", run["commit"], str(run["minutes"]), much, str(run["first"]), found or "nothing"
    truth = _results("truth")
    much, count = f"{truth['cases']['judged']} cases", len(truth["differences"])
    yield (
        "truth",
        truth["commit"][:9],
        str(truth["minutes"]),
        much,
        str(truth["first_seed"]),
        (f"{count} differences" if count else "nothing"),
    )


def totals() -> str:
    """The table (Markdown)."""
    lines = ["| run | commit | minutes | how much | first seed | found |", "|---|---|---:|---|---|---|"]
    lines += ["| " + " | ".join(cell.replace("|", "/") for cell in row) + " |" for row in rows()]
    return BEGINS + "\n".join(lines) + "\n" + ENDS


def written(page: str) -> str:
    """The page with the totals of today."""
    before, _, rest = page.partition(BEGINS)
    return before + totals() + rest.partition(ENDS)[2]


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text()))

"""The catalogue of golden tables says what the tables hold."""

import io
import json
import re
import zipfile
from collections import Counter
from pathlib import Path

import fastavro

TESTS = Path(__file__).parent
GOLDEN = TESTS / "golden"
TABLES = sorted(file.stem for file in GOLDEN.glob("*.zip"))
ROW = re.compile(r"^\| `(?P<name>\w+)` \| (?P<instants>[^|]*) \| (?P<rows>\d+) \| (?P<special>[^|]*) \|$")


def catalogue():
    found = [ROW.match(line) for line in (GOLDEN / "README.md").read_text().splitlines()]
    return {row["name"]: row for row in found if row}


def decoded(data):
    """A commit: Avro in timeline layout 2, JSON in layout 1."""
    return next(fastavro.reader(io.BytesIO(data))) if data.startswith(b"Obj") else json.loads(data)


def instants_of(archive):
    """What the active timeline holds, in the order of its instants: operations of writes, actions of services."""
    kinds = {}
    for name in sorted(archive.namelist()):
        found = re.fullmatch(r"\.hoodie/(?:timeline/)?(\d{17})(?:_\d{17})?\.(\w+)(\.\w+)?", name)
        if not found:
            continue
        time, action, state = found.groups()
        if action in {"commit", "deltacommit", "replacecommit"} and not state:
            kinds[time] = decoded(archive.read(name))["operationType"].lower()
        elif action in {"clean", "rollback", "savepoint", "restore"}:
            kinds[f"{time} {action}"] = action
        else:
            kinds.setdefault(time, "a pending compaction" if action == "compaction" else "a pending commit")
    ordered = Counter(kinds[time] for time in sorted(kinds))
    return ", ".join(kind if count == 1 else f"{count} {kind}" for kind, count in ordered.items())


def test_every_table_is_in_the_catalogue():
    assert list(catalogue()) == TABLES


def test_the_catalogue_says_what_each_table_holds():
    rows = catalogue()
    for name in TABLES:
        with zipfile.ZipFile(GOLDEN / f"{name}.zip") as archive:
            assert instants_of(archive) == rows[name]["instants"], name
        expected = json.loads((GOLDEN / f"{name}.expected.json").read_text())["rows"]
        assert len(expected) == int(rows[name]["rows"]), name

"""Runs a page: its Python, and the commands whose output it shows. What it prints is compared with what the page says.

A ``text`` block right after a block of Python, or of ``hudistream`` commands, is what that block prints. Instants, ids,
sizes and times differ with each run and are compared by their shape alone.
"""

import contextlib
import io
import os
import re
import shlex
import sys
from dataclasses import dataclass
from itertools import pairwise
from unittest import mock

FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
INCOMING = '{"id": "o1", "day": "2026-01-01", "ts": "2026-01-01T10:00:00Z", "status": "open"}\n'
SHAPES = (
    (r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f-]{22}(-\d+_[\d-]+)?", "<id>"),
    (r"\.log\.(\d+)_\d+-\d+-\d+", r".log.\1"),
    (r"(?<!\d)20\d{12,15}(?!\d)", "<instant>"),
    (r"\b20\d\d-\d\d-\d\d[ T]\d\d:\d\d(:\d\d(\.\d+)?)?", "<time>"),
    (r"\b[\d,.]+ ?(B|KiB|MiB|ms|s|bytes)\b", "<much>"),
    (r"(size_bytes': |bytes_written=)\d+", r"\1<much>"),
    (r"\d+\.\d{3,}(e-\d+)?", "<much>"),
    (r"[\d,]+ rows a minute", "<pace>"),
    (r"─+", "─"),
    (r"\s+", " "),
)


@dataclass(frozen=True)
class Fence:
    """A block of a page: its language and text, the line where the text begins, and where the block ends."""

    language: str
    text: str
    line: int
    end: int


def fences(page):
    """The blocks of a page, in order, each with the ``text`` block that follows it at once, or None."""
    found = [Fence(m[1], m[2], page[: m.start()].count("\n") + 2, m.end()) for m in FENCE.finditer(page)]
    starts = [m.start() for m in FENCE.finditer(page)]
    nexts = [
        after if after.language == "text" and not page[one.end : start].strip() else None
        for (one, after), start in zip(pairwise(found), starts[1:], strict=True)
    ]
    return list(zip(found, [*nexts, None], strict=True))


def shape(printed):
    """What two runs of a page have in common."""
    for pattern, name in SHAPES:
        printed = re.sub(pattern, name, printed)
    return printed.strip()


def run_page(page, name, folder, names):
    """Runs the blocks of a page one after the other in one namespace, with ``/data`` in a folder.

    Yields:
        (block, the block with its output or None, what it printed) of each block that ran.
    """
    incoming = folder / "incoming"
    incoming.mkdir(exist_ok=True)
    (incoming / "1.json").write_text(INCOMING)
    for fence, said in fences(page):
        told = io.StringIO()
        with contextlib.redirect_stdout(told):
            if fence.language == "python":
                code = "\n" * (fence.line - 1) + fence.text.replace('"/data/', f'"{folder}/')
                exec(compile(code, name, "exec"), names)
            elif fence.language == "sh" and said is not None and fence.text.startswith("hudistream "):
                run_commands(fence.text.replace(" /data/", f" {folder}/"))
            else:
                continue
        yield fence, said, told.getvalue().replace(str(folder), "/data")


def run_commands(text):
    """Runs each ``hudistream`` line of a block in this process."""
    from streaming.cli.main import main

    for command in text.splitlines():
        words = shlex.split(command, comments=True)
        with mock.patch.dict(os.environ, {"COLUMNS": "100"}), mock.patch.object(sys, "argv", words):
            main(words[1:])
            print()


def with_outputs(page, runs):
    """The page with what its blocks printed, where they printed something or an output stands there."""
    for fence, said, printed in reversed(runs):
        if said is None and not printed.strip():
            continue
        start, end = (fence.end, fence.end) if said is None else (fence.end, said.end)
        lines = "\n".join(line.rstrip() for line in printed.strip("\n").splitlines())
        page = f"{page[:start]}\n\n```text\n{lines}\n```{page[end:]}"
    return page

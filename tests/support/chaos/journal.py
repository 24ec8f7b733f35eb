"""Journals: lines of JSON, each forced to the disk before the next thing happens."""

import json
import os
import time


class Journal:
    """A file of one process's lines. A line that a kill cut short is dropped when the file is opened again."""

    def __init__(self, folder, name):
        self._path = os.path.join(folder, f"{name}.jsonl")
        whole = b"".join(line for line in _lines(self._path) if line.endswith(b"\n"))
        self._file = os.open(self._path, os.O_WRONLY | os.O_CREAT)
        os.ftruncate(self._file, len(whole))
        os.lseek(self._file, 0, os.SEEK_END)

    def tell(self, what, **more):
        """Appends a line."""
        line = json.dumps({"at": time.time(), "what": what, **more}) + "\n"
        os.write(self._file, line.encode())
        os.fsync(self._file)


def _lines(path):
    if not os.path.exists(path):
        return []
    with open(path, "rb") as file:
        return file.read().splitlines(keepends=True)


def read_journal(folder, name):
    """The whole lines of a journal."""
    lines = _lines(os.path.join(folder, f"{name}.jsonl"))
    return [json.loads(line) for line in lines if line.endswith(b"\n")]


class Progress:
    """How far a writer is: `ordering` holds the ordering value of each batch with an intent."""

    def __init__(self, folder, writer):
        lines = read_journal(folder, writer)
        self.ordering = [line["ts"] for line in lines if line["what"] == "intent"]
        self.acknowledged = sum(line["what"] == "acknowledged" for line in lines)
        self.begun = len(self.ordering)

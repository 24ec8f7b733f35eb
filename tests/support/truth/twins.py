"""Two writers of one history: do they make the same table?"""

from hudistream import HudiTable

from .judge import Difference, Outcome

# what differs between two runs of one history by one writer, too
OF_THE_RUN = ("hoodie.table.checksum", "hudistream.upgraded.until")
FIGURES = ("action", "state", "operation", "rows_added", "rows_updated", "rows_deleted", "schema_changes", "savepoint")
FILES = ("partition_path", "file_groups", "log_files")
META = ("_hoodie_commit_time", "_hoodie_record_key", "_hoodie_partition_path")


def portrait(path):
    """What two tables of one history share: name of a part -> lines of text.

    Times are numbers of the commits. Files are counted, because their names are drawn.
    """
    table = HudiTable.open(path)
    history = table.history()
    numbers = {time: number for number, time in enumerate(sorted(set(history["instant"].to_pylist())))}
    rows = table.scan(META, meta_columns=True).to_arrow().to_pylist() if table.schema.names else []
    with open(f"{path}/.hoodie/hoodie.properties") as file:
        properties = [line.strip() for line in file if not line.startswith(("#", *OF_THE_RUN))]
    return {
        "properties": sorted(properties),
        "columns": [str(field) for field in table.schema],
        "history": [_line(row, FIGURES) for row in history.to_pylist()],
        "files": [_line(row, FILES) for row in table.partitions().to_pylist()],
        "rows": sorted(_line({**row, META[0]: numbers.get(row[META[0]])}, META) for row in rows),
    }


def _line(row, names):
    return str(tuple(row[name] for name in names))


class Twins:
    """Judges a case by two judges, and their tables by each other.

    Args:
        first: a `Judge` that portrays its tables.
        second: another one, with another writer.
    """

    def __init__(self, first, second):
        self._judges = first, second

    def run(self, case, most=1):
        """The outcome of both."""
        one, other = (judge.run(case, most) for judge in self._judges)
        found = [*one.differences, *other.differences]
        if not found and one.portrait and other.portrait:
            found = list(_differences(one.portrait, other.portrait))[:most]
        return Outcome(found, one.counts + other.counts, one.undefined or other.undefined)


def _differences(one, other):
    for part, lines in one.items():
        if lines != other[part]:
            missing = [line for line in lines if line not in other[part]]
            yield Difference("twins", part, missing or lines, [line for line in other[part] if line not in lines])

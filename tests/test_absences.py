"""What is said to be absent is absent: each such sentence stands here with the fact that makes it true.

Whoever writes what a sentence says is not written fails a test here, and finds the sentence.
"""

import re
from pathlib import Path

import pytest

from table import InvalidConfigError, UnsupportedTableError, parse_options
from table.config.merge_mode import MergeMode
from table.config.metadata_indexes import check_maintained
from table.config.table_config import config_from_properties
from table.config.writable import check_can_write
from table.options.numbers import VersionNumber

ROOT = Path(__file__).parent.parent
PLACES = [
    *(
        path
        for room in ("table", "streaming", "hudistream", "pyspark_hudistream")
        for path in (ROOT / room).rglob("*.py")
    ),
    *(path for folder in ("guides", "concepts") for path in (ROOT / "docs" / folder).glob("*.md")),
    *(
        ROOT / name
        for name in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "docs/index.md", "docs/quickstart.md")
    ),
    *(ROOT / name for name in ("table/cli/why.md", ".ci/hudi_defaults.tsv")),
]
ABSENT = re.compile(
    r"([^\"'`.;:|()\n]*\b(?:(?:is|are) not (?:written|maintained)(?: here)?|not written here|not supported yet"
    r"|not yet|yet to be|today|for now|in a later (?:version|release)|will be (?:added|supported))\b)"
)


def refused(key, value):
    """What would be written then is refused."""

    def check():
        with pytest.raises(InvalidConfigError):
            parse_options({key: value})
        return True

    return check


def only(versions):
    """Tables of other versions are not written."""
    return lambda: VersionNumber().allowed == versions


def no_index_but(*names):
    """A metadata table with another index is refused."""

    def check():
        check_maintained(frozenset(names), tells_keys=True)
        for other in ("bloom_filters", "secondary_index_x", "expr_index_x"):
            with pytest.raises(UnsupportedTableError):
                check_maintained(frozenset({*names, other}), tells_keys=True)
        return True

    return check


def unsupported(**properties):
    """A table with such properties is refused."""

    def check():
        told = {key.replace("__", "."): value for key, value in properties.items()}
        needed = {"hoodie.table.name": "t", "hoodie.table.type": "COPY_ON_WRITE", "hoodie.table.version": "8"}
        with pytest.raises(UnsupportedTableError):
            check_can_write(config_from_properties({**needed, "hoodie.table.recordkey.fields": "id", **told}))
        return True

    return check


CHOSEN = refused("hoodie.metadata.index.column.stats.column.list", "a")
OF_PATHS = refused("hoodie.metadata.record.level.index.enable", "true")
VERSIONS = only("6, 8, 9")
# sentence -> what shows that it is true
FACTS = {
    "Statistics of chosen columns are not maintained": CHOSEN,
    "statistics of chosen columns are not maintained": CHOSEN,
    "a record index of partition paths is not maintained": OF_PATHS,
    "a record index of partition paths is not written": OF_PATHS,
    "the metadata table has indexes that are not maintained here": no_index_but(
        "files", "column_stats", "partition_stats", "record_index"
    ),
    "bootstrapped tables are not written": refused("hoodie.bootstrap.base.path", "/elsewhere"),
    "change files are not written": unsupported(
        hoodie__table__cdc__enabled="true", hoodie__populate__meta__fields="false"
    ),
    "partial updates are not written": refused("hoodie.write.partial.update.schema", "{}"),
    "the column _hoodie_operation is not written": refused("hoodie.allow.operation.metadata.field", "true"),
    "timestamps as keys are not supported yet": refused(
        "hoodie.datasource.write.keygenerator.consistent.logical.timestamp.enabled", "true"
    ),
    "table_format}, which is not written here": unsupported(hoodie__table__format="iceberg"),
    "not written here": VERSIONS,
    "Refuses a version that is not written": VERSIONS,
    "the version is not written": VERSIONS,
    "table version {to} is not written": VERSIONS,
    "tables of this version are not written here": VERSIONS,
    "tables of this version and type are not written here": VERSIONS,
    "the table is copy-on-write, or tables of its kind are not written here": VERSIONS,
    "in other properties how such records are merged, which are not written here": lambda: (
        "PartialUpdateAvroPayload" in {mode.payload_class.rpartition(".")[2] for mode in MergeMode}
    ),
}
# of rows, files and values, and not of what the project can do
OF_OTHER_THINGS = {
    "- A row whose record loses is not written", "So a delete with this value is not written",
    "a clean that has nothing to delete is not written", "a top-level column, not the first, that is not written",
    "s name is not written", "says what is not written", "the file is not written", "the type {avro!r} is not written",
    "without a number it is not written",
    "}, and an index is not written", "is not written",  # of pandas; CONTRIBUTING.md, about this test
    # a moment of a run
    "# also a foreign rollback of a commit that was decided and not yet", "A new pin, not yet", "not yet",
    "Refuses a time whose snapshot does not exist any more, or not yet", "the other records, not yet",
    "Withdraws the clusterings whose plans do not contain the files of a commit that is decided, and not yet",
    "archival must not retire an instant whose files the cleaner has not yet",
    "time} is to be committed, and was not yet", "{name} is decided to be committed, and was not yet",
}  # fmt: skip


def absences():
    """Sentence -> the files that have it."""
    found = {}
    for path in sorted(set(PLACES)):
        for sentence in ABSENT.findall(path.read_text()):
            found.setdefault(" ".join(sentence.split()), []).append(str(path.relative_to(ROOT)))
    return found


def test_each_sentence_about_what_is_not_there_has_a_fact():
    said = absences()
    assert {sentence: said[sentence] for sentence in said.keys() - FACTS.keys() - OF_OTHER_THINGS} == {}
    assert (FACTS.keys() | OF_OTHER_THINGS) - said.keys() == set()


@pytest.mark.parametrize("sentence", FACTS)
def test_what_is_said_to_be_absent_is_absent(sentence):
    assert FACTS[sentence]()

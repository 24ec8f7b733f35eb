"""Reads the options of a release of Hudi from the classes of its Spark bundle, and writes them for tests and the site.

Run by hand for each release: ``python .ci/read_hudi_options.py 1.2.0``. It starts real Hudi as the tests do. The result
is `.ci/hudi-options-<release>.tsv`, in place of the one before.
"""

import argparse
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "tests" / "support"))

HEAD = ("key", "default", "other spellings", "class in org.apache.hudi")


def main() -> None:
    """Writes the file of a release."""
    from oracles.hudi import Hudi

    parser = argparse.ArgumentParser(description="writes the options of a release of Hudi")
    parser.add_argument("release", help="of Hudi, such as 1.2.0")
    release = parser.parse_args().release
    hudi = Hudi(release)
    try:
        options = hudi.options()
    finally:
        hudi.stop()
    for older in HERE.glob("hudi-options-*.tsv"):
        older.unlink()
    lines = ["\t".join(HEAD), *("\t".join(one) for one in options)]
    made = HERE / f"hudi-options-{release}.tsv"
    made.write_text("\n".join(lines) + "\n")
    print(f"{len(options)} options in {made.name}")  # noqa: T201


if __name__ == "__main__":
    main()

"""The options of the newest release of Hudi, as `.ci/read_hudi_options.py` read them from its classes."""

import sys
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / ".ci"))
import site_pages


@dataclass(frozen=True)
class HudiOption:
    """A row of the file."""

    key: str
    default: str
    others: tuple[str, ...]
    declared_in: str


OPTIONS_OF_HUDI = [
    HudiOption(key, default, tuple(others.split()), declared_in)
    for key, default, others, declared_in in site_pages.options_of_hudi()
]

"""Kinds of option values that are numbers: how they read text and objects, and which values they accept."""

import math
import re
from dataclasses import dataclass
from typing import Any

from table.config.table_config import LAYOUTS
from table.options.values import refuse

_UNITS = {"": 1, "k": 1024, "m": 1024**2, "g": 1024**3, "t": 1024**4}
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*(?:([kmgt])(?:i?b)?|b)", re.IGNORECASE)
_WHOLE = re.compile(r"[+-]?\d+")


@dataclass(frozen=True)
class Whole:
    """A whole number.

    Attributes:
        least: the smallest allowed value.
        scale: factor for a number given as text, such as 1 MB.
    """

    least: int
    scale: int = 1

    @property
    def allowed(self) -> str:
        """The values that fit, in words."""
        least = self.least // self.scale
        return "a whole number" if least < -(2**30) else f"a whole number, at least {least}"

    def read(self, name: str, value: Any) -> int:
        """The number."""
        if isinstance(value, bool) or not isinstance(value, int | str):
            refuse(name, value, "not a whole number")
        try:
            number = int(value) * self.scale
        except ValueError:
            refuse(name, value, "not a whole number")
        if number < self.least:
            refuse(name, value, f"{self.least // self.scale} is the least that makes sense")
        return number


@dataclass(frozen=True)
class Size(Whole):
    """A number of bytes, also with a unit: ``120MB``. A unit is a power of 1,024, as in Hudi's defaults.

    Attributes:
        least: the smallest allowed value, in bytes.
        scale: factor for a number without a unit, such as 1 MB.
    """

    @property
    def allowed(self) -> str:
        """The values that fit, in words."""
        return f"{super().allowed}; or with a unit: 120MB"

    def read(self, name: str, value: Any) -> int:
        """The number of bytes."""
        if not isinstance(value, str) or _WHOLE.fullmatch(value.strip()):
            return super().read(name, value)
        found = _SIZE.fullmatch(value.strip())
        if found is None:
            refuse(name, value, "no size: give a number, also with a unit (KB, MB, GB, TB), as in 120MB")
        number = int(float(found[1]) * _UNITS[(found[2] or "").lower()])
        return number if number >= self.least else super().read(name, str(number // self.scale))


@dataclass(frozen=True)
class VersionNumber:
    """A table version that this project writes."""

    allowed: str = ", ".join(map(str, LAYOUTS))

    def read(self, name: str, value: Any) -> int:
        """The number."""
        number = Whole(0).read(name, value)
        return number if number in LAYOUTS else refuse(name, value, f"not written here; use one of {self.allowed}")


@dataclass(frozen=True)
class Tasks:
    """A number of tasks; 0 lets Hudi choose, and becomes None."""

    allowed: str = "a whole number; 0: chosen by the sink"

    def read(self, name: str, value: Any) -> int | None:
        """The number, or None."""
        return Whole(0).read(name, value) or None


@dataclass(frozen=True)
class Number:
    """A number between two bounds, bounds excluded."""

    above: float
    below: float

    @property
    def allowed(self) -> str:
        """The values that fit, in words."""
        return f"a number between {self.above:g} and {self.below:g}"

    def read(self, name: str, value: Any) -> float:
        """The number."""
        number = _float(name, value)
        if not self.above < number < self.below:
            refuse(name, value, f"must lie between {self.above:g} and {self.below:g}")
        return number


@dataclass(frozen=True)
class Share:
    """A number from 0 to 1."""

    allowed: str = "a number from 0 to 1"

    def read(self, name: str, value: Any) -> float:
        """The number."""
        number = _float(name, value)
        if not 0 <= number <= 1:
            refuse(name, value, "a share lies between 0 and 1")
        return number


def _float(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        refuse(name, value, "not a number")
    try:
        number = float(value)
    except ValueError:
        refuse(name, value, "not a number")
    return refuse(name, value, "not a number") if math.isnan(number) else number

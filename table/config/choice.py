"""A closed choice: an enum whose members are the strings that options, properties and Hudi write (pure)."""

from enum import Enum


class Choice(str, Enum):
    """Members equal their strings, and print as them."""

    def __str__(self) -> str:
        return str(self.value)

    def __format__(self, spec: str) -> str:
        return format(self.value, spec)

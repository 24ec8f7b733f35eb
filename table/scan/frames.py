"""Rows as data frames of other libraries, for what gives its rows as an Arrow table."""

from abc import ABC, abstractmethod
from typing import Any

import pyarrow as pa

from table.extras import needs_extra


class GivesFrames(ABC):
    """A query whose rows also come as a DataFrame of pandas or Polars."""

    __slots__ = ()

    @abstractmethod
    def to_arrow(self) -> pa.Table:
        """All rows in memory."""

    def to_pandas(self, **options: Any) -> Any:
        """All rows as a pandas DataFrame.

        Args:
            options: of ``pyarrow.Table.to_pandas``.

        Raises:
            HudiError: as `to_arrow`.
            ImportError: pandas is not installed.
        """
        return self.to_arrow().to_pandas(**options)

    def to_polars(self) -> Any:
        """All rows as a Polars DataFrame.

        Raises:
            HudiError: as `to_arrow`.
            ImportError: Polars is not installed; the message has the command that installs it.
        """
        try:
            import polars as pl  # noqa: PLC0415 an extra
        except ImportError as error:
            raise ImportError(needs_extra("to_polars()", "polars")) from error
        return pl.from_arrow(self.to_arrow())

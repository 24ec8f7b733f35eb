"""A service takes a table, or its path."""

import os
from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar

from table.hudi_table import HudiTable

_P = ParamSpec("_P")
_R = TypeVar("_R")


def takes_path(
    service: Callable[Concatenate[HudiTable, _P], _R],
) -> Callable[Concatenate[HudiTable | str | os.PathLike[str], _P], _R]:
    """A function of a table that takes the path of one, too. It raises `TableNotFoundError` where there is none.

    A table on a store that needs `storage_options` is opened by `HudiTable.open`.
    """

    @wraps(service)
    def call(table: HudiTable | str | os.PathLike[str], /, *args: _P.args, **kwargs: _P.kwargs) -> _R:
        return service(table if isinstance(table, HudiTable) else HudiTable.open(table), *args, **kwargs)

    return call

"""`HudiTable` and `create_table` stand in `hudistream`. This module still gives them until release 0.3."""

import warnings
from importlib import import_module
from typing import Any


def __getattr__(name: str) -> Any:
    if name not in ("HudiTable", "create_table"):
        raise AttributeError(f"module 'table.user_table' has no attribute {name!r}")
    warnings.warn(f"import {name} from hudistream: table gives it until 0.3 alone", DeprecationWarning, stacklevel=2)
    return getattr(import_module("hudistream.user_table"), name)

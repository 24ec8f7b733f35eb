"""Oracles that must not be skipped where CI runs."""

import importlib
import os

import pytest


def require(module):
    """An oracle: under CI a missing one is a failure, elsewhere a reason to skip."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        if os.environ.get("CI"):
            raise
        pytest.skip(f"the oracle {module} is not installed: {error}")

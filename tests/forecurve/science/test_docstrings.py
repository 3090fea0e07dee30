"""The examples in docstrings are run."""

from __future__ import annotations

import doctest
from importlib import import_module
from pkgutil import iter_modules

import forecurve.science


def test_every_example_in_a_docstring_holds() -> None:
    names = [module.name for module in iter_modules(forecurve.science.__path__)]
    results = [doctest.testmod(import_module(f"forecurve.science.{name}")) for name in names]
    assert sum(result.failed for result in results) == 0
    assert sum(result.attempted for result in results) >= 8

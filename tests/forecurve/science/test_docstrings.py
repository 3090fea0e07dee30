"""The examples in docstrings are run."""

from __future__ import annotations

import doctest
from importlib import import_module
from pkgutil import walk_packages

import forecurve.science


def test_every_example_in_a_docstring_holds() -> None:
    names = [module.name for module in walk_packages(forecurve.science.__path__, "forecurve.science.")]
    results = [doctest.testmod(import_module(name)) for name in names]
    assert sum(result.failed for result in results) == 0
    assert sum(result.attempted for result in results) >= 8

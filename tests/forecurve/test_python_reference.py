"""The page of the Python API is that of the docstrings, and nothing public is left out of it."""

from __future__ import annotations

import re
from pathlib import Path

import forecurve
from forecurve.python_reference import page, told

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "python.md"


def test_the_page_is_current() -> None:
    assert PAGE.read_text() == page(), "run `make python-reference`"


def test_every_public_name_has_a_place() -> None:
    titles = re.findall(r"^### (\w+)$", page(), re.MULTILINE)
    assert len(titles) == len(set(titles))
    assert set(forecurve.__all__) - set(titles) == {"__version__"}


def test_sections_become_lists_and_examples_blocks() -> None:
    doc = """One.

Args:
    a, b: first,
        and on.

    c: next.

Raises:
    CurveError: x. PriorError: y.

>>> 1 + 1
2"""
    assert told(doc) == [
        *("One.", "", "*Args:*", "- `a, b`: first,", "  and on.", "", "- `c`: next.", ""),
        *("*Raises:*", "- `CurveError`: x.", "- `PriorError`: y.", "", "```python", ">>> 1 + 1", "2", "```"),
    ]

"""Verifiers: what checks a response against a known answer. Names are those of a recipe's `task.verifiers`."""

from __future__ import annotations

from .judges import Judges
from .verdict import Verdict, Verifier

__all__ = ["Judges", "Verdict", "Verifier"]

"""What other processes of a run may import: all that can be imported here, a user's own modules too."""

from __future__ import annotations

import os
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
"""The folder that holds `trainer`."""


def search_path() -> str:
    """The value of PYTHONPATH for a process that we start."""
    return os.pathsep.join(dict.fromkeys([*(entry or os.getcwd() for entry in sys.path), str(ROOT)]))

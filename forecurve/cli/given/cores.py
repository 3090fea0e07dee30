"""How many cores a forecast takes."""

from __future__ import annotations

import os


def on_one_core() -> None:
    """Called before numpy loads, which reads it. Matrices here are small: threads of the linear algebra would wait for
    one another by spinning, and with other work beside them a file with siblings takes several times as long."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

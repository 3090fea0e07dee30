"""What a command sees to before it fits curves."""

from __future__ import annotations

import os
import sys


def before_fits() -> None:
    """Called before numpy loads. Forecasts take one core, and who waits for an installation's first one is told why."""
    # Matrices here are small: threads of the linear algebra would wait for one another by spinning, and with other work
    # beside them a file with siblings takes several times as long.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    if sys.stderr.isatty():
        from forecurve.science.compiled import when_compiling

        when_compiling(_tell)


def _tell() -> None:
    told = "Compiling the loops of the fit: once after an installation, for half a minute or so ..."
    print(told, file=sys.stderr, flush=True)

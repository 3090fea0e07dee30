"""What a command sees to before it fits curves."""

from __future__ import annotations

import atexit
import os
import sys

LONG_S = 2.0
"""How long numpy may work without a word."""


def before_fits() -> None:
    """Called before numpy loads. Forecasts take one core, and who waits as nothing is compiled yet is told why."""
    # Matrices here are small: threads of the linear algebra would wait for one another by spinning, and with other work
    # beside them a file with siblings takes several times as long.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    if sys.stderr.isatty():
        from forecurve.science.compiled import when_compiling

        when_compiling(_tell)
        atexit.register(_tell_what_is_faster)


def _tell() -> None:
    told = "Compiling the loops of the fit: once after an installation, for half a minute or so ..."
    print(told, file=sys.stderr, flush=True)


def _tell_what_is_faster() -> None:
    from forecurve.science.compiled import seconds_of_numpy

    if seconds_of_numpy() > LONG_S:
        told = "Once compiled, fits are several times faster; half a minute: python -m forecurve.science.warm_up"
        print(told, file=sys.stderr, flush=True)
